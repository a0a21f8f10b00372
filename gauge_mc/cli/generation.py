"""``gauge-mc generate`` and ``gauge-mc card``: runs, and the cards that describe them."""

from __future__ import annotations

import json as text
import os
from pathlib import Path
from typing import Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints, show_result
from gauge_mc.cli.options import with_settings
from gauge_mc.console import Console
from gauge_mc.errors import INTERRUPTED, GaugeError, UsageError
from gauge_mc.files.atomic import write_file
from gauge_mc.quoting import CommandLine
from gauge_mc.run.cards import CardReport, check_card, commented, read_card
from gauge_mc.run.cards import schema as json_schema
from gauge_mc.run.parameters import OF_SCANS, known_options


@prints(
    "gauge_mc.run.results:RunReport",
    "gauge_mc.run.results:RunReports",
    "gauge_mc.scans.forecast:Forecast",
)
@with_settings(name for name in known_options() if name not in OF_SCANS)
@o.listed("Observables", o.OBSERVABLE_SUMMARIES)
def generate(
    ctx: typer.Context,
    chains: Annotated[
        int | None,
        o.option(
            "Independent chains with consecutive seeds, which are updated together. Their run "
            "directories are named after --output and end with _chain1, _chain2, ...",
            1,
            panel=o.ENSEMBLE,
        ),
    ] = None,
    card: o.Card = None,
    dry_run: Annotated[
        bool,
        o.option(
            "Show what the run needs on this machine (memory, disk space, time), and with "
            "--time-limit how far it comes, without beginning it. The exit code is 1 if the disk "
            "is too small.",
            flag="--dry-run",
            panel=o.EXECUTION,
        ),
    ] = False,
    json: o.Json = False,
    **settings: object,
) -> None:
    """Generate an ensemble of configurations, and measure observables along the way.

    To continue a run that was stopped, repeat the command, or give only --output: parameters that
    are not given are taken from the run. SIGTERM, SIGINT, SIGHUP, SIGUSR1 and the time limit
    write a checkpoint and stop the run with exit code 75.

    gauge-mc generate --lattice 8x8x8x8 --beta 2.4
    gauge-mc generate --output RUN --configs 100
    gauge-mc generate --group su3 --beta 6.0 --lattice 16x16x16x32 --measure plaquette,flow:20
    """
    from gauge_mc.run import generate as runs
    from gauge_mc.run.results import RunReport, RunReports

    stated = {name: value for name, value in ctx.params.items() if value is not None}
    as_json, only_forecast = stated.pop("json"), stated.pop("dry_run")
    number: int | None = stated.pop("chains", None)
    card_values = read_card(stated.pop("card")) if "card" in stated else {}
    values = card_values | stated
    if only_forecast and number is not None:
        raise UsageError("--dry-run describes a single chain; leave out --chains.")
    if only_forecast:
        from gauge_mc.scans.forecast import forecast_run

        with Console(stderr=True).status("trying an update and the measurements after it ..."):
            needs = forecast_run(values)
        if needs:
            show_result("generate", needs, as_json, needs.table())
        if needs and needs.shortage:
            raise GaugeError(needs.shortage)
        return
    with alone_on_stdout(as_json):
        results = runs.generate_together(runs.requests_of(values, number), progress=True)
    stopped = next((result.stopped for result in results if result.stopped), None)
    first = results[0]
    if as_json and first.root:
        report = RunReport.of(first) if number is None else RunReports.of(results)
        print_document("generate", report)
    elif stopped and first.root:
        path = str(first.path).removesuffix("_chain1" if number else "")
        again = CommandLine("generate", output=path, chains=number)
        say(f"Stopped by {stopped}; to continue: {again}")
    if stopped:
        raise typer.Exit(INTERRUPTED)


@prints("gauge_mc.run.cards:CardReport")
@with_settings(known_options())
def card(
    ctx: typer.Context,
    file: Annotated[Path | None, o.argument("Run card to check.", metavar="CARD")] = None,
    schema: Annotated[
        bool, o.option("Print the JSON schema of run cards, for editors.", flag="--schema")
    ] = False,
    out: Annotated[
        Path | None, o.option("File to write the card to.", "print it", metavar="FILE")
    ] = None,
    json: Annotated[
        bool, o.option("Print the result of the check as one JSON object.", flag="--json")
    ] = False,
    **settings: object,
) -> None:
    """Check a run card, or print one with all options and comments.

    Without CARD a card is printed, or written to --out. It has the options that are given, such as
    --output of the run, and all others as comments with their defaults. With CARD its keys and
    values are checked as a run would check them.

    gauge-mc card
    gauge-mc card --beta 2.4 --out card.toml
    gauge-mc card card.toml
    """
    excluded = ("file", "schema", "out", "json")
    stated = {k: v for k, v in ctx.params.items() if v is not None and k not in excluded}
    if schema:
        print(text.dumps(json_schema(), indent=1, ensure_ascii=False))
        return
    if file is None:
        if json:
            raise UsageError("--json describes the check of a card; name one, or leave it out.")
        lines = "\n".join(commented(stated))
        if out is None:
            print(lines)
            return
        if os.path.lexists(out):  # or a link that leads nowhere
            raise UsageError(f"{out} exists; choose another --out.")
        write_file(out, f"{lines}\n")
        say(str(out))
        return
    if stated:
        raise UsageError(
            f"{file} is only checked; leave the other options out, or leave out CARD to print one."
        )
    parameters = check_card(file)
    words = f"{file} is sound, for the run {parameters.name}."
    show_result("card", CardReport.of(file, parameters), json, words)
