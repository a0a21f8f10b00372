"""``gauge-mc measure``: measure an observable on stored configurations."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.domain.layout import REALS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.smearing import SMEARINGS, smear_option


def _owners() -> Iterator[tuple[str, list[Option]]]:
    """Yield the options that observables and smearings declare."""
    for name, one in OBSERVABLES.items():
        yield name, [*one.options, *([smear_option()] if one.smears else [])]
    for name, smearing in SMEARINGS.items():
        yield f"the smearing {name}", list(smearing.options)


@o.declared(_owners())
@o.listed("Observables", o.OBSERVABLE_SUMMARIES)
def measure(
    observable: Annotated[
        str,
        typer.Argument(
            metavar="OBSERVABLE", help="One of the observables above.", show_default=False
        ),
    ],
    run: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="RUN|CONFIG",
            help=o.with_default(
                "One run, or configuration files of any format.", "newest run in runs/"
            ),
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            help=o.with_default("Table to write.", "in the run, or in this folder for files"),
            metavar="FILE",
        ),
    ] = None,
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(REALS),
            help=o.with_default("Precision of the links in memory.", "as in the files"),
            show_default=False,
        ),
    ] = None,
    backend: o.Backend = None,
    devices: o.Devices = None,
    split: Annotated[
        bool | None,
        typer.Option(
            "--split",
            help="Let all devices share every configuration, instead of taking one each.",
            rich_help_panel=o.EXECUTION,
        ),
    ] = None,
    threads: o.Threads = None,
    quiet: o.Quiet = None,
    json: o.Json = False,
    **options: Any,
) -> None:
    """Measure an observable on stored configurations.

    By default all GPUs are used, each for one configuration at a time; without a GPU, the CPU.
    Repeating the command continues an interrupted measurement, and measures new configurations. To
    measure with other options than before, choose another --output. The table is named after the
    observable; if the run itself already writes such a table, _configs is appended to the name.
    """
    from gauge_mc.devices.choice import AUTOMATIC
    from gauge_mc.run.ensemble import find_ensemble
    from gauge_mc.run.measure import measure as carry_out

    OBSERVABLES.check(observable)
    given = {name: value for name, value in options.items() if value not in (None, [])}
    targets = run or []
    path = output or find_ensemble(targets).table(observable)
    table = carry_out(
        targets or None,
        observable,
        output=path,
        precision=precision,
        backend=backend or AUTOMATIC,
        devices=devices,
        threads=threads,
        split=bool(split),
        progress=not (quiet or json),
        **given,
    )
    found = _averages(table)
    if json:
        facts = {"table": str(path), "rows": len(table), "header": table.header}
        o.print_json({**facts, "averages": found})
    elif not quiet:
        for name, estimate in found.items():
            say(f"{name:<10} {estimate['text']}")
        for sentence in _cautions(table, found):
            say(sentence)
        say(str(path))


def _averages(table: Any) -> dict[str, dict[str, Any]]:
    """Return the averages of the columns of a table that has one row per configuration."""
    from dataclasses import asdict

    from gauge_mc.analysis.timeseries import estimate
    from gauge_mc.observables import SWEEP, observable_of_table

    observable = observable_of_table(table)
    if observable is None or not observable.quantities:
        return {}
    estimates = {name: estimate(column) for name, column in table.columns.items() if name != SWEEP}
    return {name: {**asdict(one), "text": str(one)} for name, one in estimates.items()}


def _cautions(table: Any, found: dict[str, dict[str, Any]]) -> list[str]:
    """Return cautions about averages: the chain is short, or has not thermalised."""
    from gauge_mc.analysis.timeseries import caution_short, caution_transient
    from gauge_mc.observables import SWEEP

    slowest = max((one["tau_int"] for one in found.values()), default=math.nan)
    series = [table[name] for name in found]
    return caution_short(len(table), slowest) + caution_transient(table[SWEEP], *series)
