"""``gauge-mc measure``: write tables."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.command import OptionGroup, Subcommands
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.cli.options import with_settings
from gauge_mc.configurations.reading import LinkKind
from gauge_mc.console import Console
from gauge_mc.devices.choice import AUTOMATIC, Place
from gauge_mc.domain.mpi import find_processes
from gauge_mc.domain.slab import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.quoting import counted
from gauge_mc.smearing import SMEARINGS, smear_option


def _owners(name: str) -> list[OptionGroup]:
    """Return what declares the options of measuring an observable."""
    kind, section = OBSERVABLES[name], f"Options of {name}"
    owners = [OptionGroup(x, options, section) for x, options in kind.owners()]
    if not kind.smears:
        return owners
    smearings = [
        OptionGroup(f"the smearing {name}", x.options, "Options of --smear", name)
        for name, x in SMEARINGS.items()
    ]
    return [*owners, OptionGroup("--smear", (smear_option(),), section), *smearings]


@prints(
    "gauge_mc.stored.measure:TableReport",
    "gauge_mc.run.needs:MemoryForecast",
    "gauge_mc.stored.measure:TableReports",
)
@Subcommands(
    "Observables",
    lambda: OBSERVABLES,
    lambda name: OBSERVABLES[name].summary,
    _owners,
    OBSERVABLES.check,
)
@with_settings(("backend", "devices", "threads", "quiet"))
@o.described_by(
    "gauge_mc.stored.measure:measure",
    output="FILE",
    precision=REALS,
    split=Option("split", bool, panel=o.EXECUTION),
    at="UPDATES",
    number="REGEX",
)
def measure(
    observable: Annotated[
        str, o.argument("One of the observables below.", metavar="OBSERVABLE", choices=OBSERVABLES)
    ],
    run: Annotated[
        list[Path] | None,
        o.argument("Runs, scans, folders, files.", o.NEWEST, metavar="RUN|SCAN|CONFIG"),
    ] = None,
    output: Path | None = None,
    precision: str | None = None,
    split: bool = False,
    at: str | None = None,
    every_config: Annotated[
        int, o.option("Every Nth stored configuration.", 1, "N", flag="--every --every-config")
    ] = 1,
    skip: Annotated[int, o.option("Stored ones after update or number N.", 0, "N")] = 0,
    lattice: o.StatedLattice = None,
    group: o.StatedGroup = None,
    number: str | None = None,
    again: bool = False,
    dry_run: Annotated[
        bool,
        o.option(
            "For quarks: show the memory needed, with exit code 1 if it is too small.",
            flag="--dry-run",
            panel=o.EXECUTION,
        ),
    ] = False,
    json: o.Json = False,
    backend: str | None = None,
    devices: str | None = None,
    threads: int | None = None,
    quiet: bool | None = None,
    **options: Any,
) -> None:
    """Measure an observable on stored configurations.

    By default each GPU takes one configuration at a time; without a GPU, the CPU does. A repeated
    command measures what is missing. Tables are named after the observable, with _configs if runs
    write one, _at for --at, _NAME for a folder NAME. Other links of the same number are refused.

    gauge-mc measure wilson-loops
    gauge-mc measure flow RUN --devices all
    gauge-mc measure plaquette CONFIG --output table.csv
    """
    from gauge_mc.fits import caution_few
    from gauge_mc.run.needs import refuse_shortage
    from gauge_mc.stored.measure import (
        MeasurementPlan,
        TableReport,
        TableReports,
        ensembles_of,
        measure_all,
    )

    if find_processes().size > 1:
        raise UsageError(
            "measure works in one process: start it without mpirun or srun, on several devices "
            "with --devices, or measure along the way with `gauge-mc generate --measure`."
        )
    stated = {name: value for name, value in options.items() if value not in (None, [])}
    place, kind = Place(devices, backend or AUTOMATIC, threads), LinkKind(lattice, group)
    plan = MeasurementPlan(
        observable,
        stated,
        precision=precision,
        place=place,
        split=split,
        kind=kind,
        number=number,
        at=at,
        every=every_config,
        skip=skip,
        again=again,
        console=Console(quiet=bool(quiet)),
    )
    if dry_run and at is not None:
        raise UsageError("--dry-run is for configurations that are kept; leave out --at.")
    run = o.named_or_said(run, json)
    if dry_run:
        needs = map(plan.memory, ensembles_of(run, output))
        memory = max(needs, key=lambda need: need.device_bytes)
        show_result("measure", memory, json, memory.table())
        refuse_shortage(memory)
        return
    results, failures = [], []
    with alone_on_stdout(json):
        for path, folder, table in measure_all(plan, run, output):
            if isinstance(table, GaugeError):
                failures.append(str(table) if str(path) in str(table) else f"{path}: {table}")
                if not any(f.endswith(str(table)) for f in failures[:-1]):
                    say(f"gauge-mc: {failures[-1]}", error=True)
                continue
            few = caution_few(table, path, folder) if json or not quiet else []
            results.append(TableReport.of(path, table, few))
            if not (json or quiet):
                averages = results[-1].averages.items()
                say(*(f"{name:<10} {average}" for name, average in averages))
                say(*results[-1].cautions, str(path))
    if json:
        single = len(results) == 1 and not failures
        print_document("measure", results[0] if single else TableReports(results, failures))
    if failures:
        every = counted(len(results) + len(failures), "ensemble")
        raise GaugeError(f"{len(failures)} of {every} could not be measured; see above.")
