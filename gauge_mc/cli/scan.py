"""``gauge-mc scan``: carry out independent runs on a grid of couplings and lattices."""

from __future__ import annotations

from shlex import quote
from typing import Annotated

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli import say
from gauge_mc.cli.document import alone_on_stdout, print_document, prints
from gauge_mc.errors import INTERRUPTED, UsageError
from gauge_mc.run.parameters import Parameters, read_card
from gauge_mc.scans.grid import Grid
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.slurm import NAME, PARALLELISM

GRID = "Grid"

_usual = Parameters().values()


@prints(
    "gauge_mc.scans.report:ScanReport",
    "gauge_mc.scans.forecast:ScanForecast",
    "gauge_mc.scans.carry_out:Submission",
)
@o.listed("Observables", o.OBSERVABLE_SUMMARIES)
def scan(
    ctx: typer.Context,
    beta: Annotated[
        str | None,
        o.option(
            GRID,
            "Couplings: numbers and ranges, such as 2.2:2.8:0.05.",
            metavar="BETA|FIRST:LAST:STEP,...",
        ),
    ] = None,
    lattice: Annotated[
        str | None,
        o.option(GRID, "Lattices of even extents.", _usual["lattice"], "XxYxZxT,..."),
    ] = None,
    anisotropy: Annotated[
        str | None,
        o.option(
            GRID, "Bare anisotropies.", f"{_usual['anisotropy']:g}", "XI0|FIRST:LAST:STEP,..."
        ),
    ] = None,
    chains: Annotated[
        int | None, o.option(GRID, "Independent chains at each point.", Grid.chains)
    ] = None,
    group: o.Group = None,
    action: o.Action = None,
    precision: o.Precision = None,
    start: o.Start = None,
    seed: Annotated[
        int | None,
        o.option(
            o.PHYSICS,
            "Seed of the first run; each further run has the next number.",
            _usual["seed"],
        ),
    ] = None,
    rng: o.Rng = None,
    luxury: o.Luxury = None,
    heatbath: o.Heatbath = None,
    overrelax: o.Overrelax = None,
    chain_version: o.ChainVersion = None,
    thermalize: o.Thermalize = None,
    configs: o.Configs = None,
    separation: o.Separation = None,
    measure: o.Measure = None,
    card: o.Card = None,
    output: Annotated[
        str | None,
        o.option(
            o.FILES,
            "Scan directory.",
            "runs/scan_NAME, where NAME identifies the shared parameters",
            "PATH",
        ),
    ] = None,
    format: o.Format = None,
    backend: o.Backend = None,
    devices: Annotated[
        str | None,
        o.option(
            o.EXECUTION,
            f"Number of {o.NUMBERED}s, or their numbers, or all; or {o.UNDIVIDED}.",
            f"all {o.NUMBERED}s, else the {o.DIVIDED_LABELS}",
            f"N|I,J,...|all|{'|'.join(o.DIVIDED)}",
        ),
    ] = None,
    threads: Annotated[
        int | None,
        o.option(
            o.EXECUTION,
            "Number of CPU threads of each run.",
            "1; with --per-device K, 1/K of the cores; with --submit, all cores of a job",
        ),
    ] = None,
    per_device: Annotated[
        int | None,
        o.option(
            o.EXECUTION,
            "Number of processes on each device.",
            f"1 on a {o.NUMBERED}, otherwise as many as there are cores for",
            "K",
        ),
    ] = None,
    time_limit: o.TimeLimit = None,
    checkpoint_every: o.CheckpointEvery = None,
    submit: Annotated[
        str | None,
        o.option(
            o.EXECUTION, "Submit the runs as an array of jobs to a batch system.", metavar=NAME
        ),
    ] = None,
    slurm: Annotated[
        list[str] | None,
        o.option(
            o.EXECUTION,
            "Option of sbatch for each job, such as time=12:00:00 or gpus_per_node=1. "
            f"{PARALLELISM}=N limits the number of simultaneous jobs.",
            metavar="KEY[=VALUE]",
        ),
    ] = None,
    collect: Annotated[
        bool,
        typer.Option(
            "--collect",
            help="Only gather the results of complete runs.",
            rich_help_panel=o.EXECUTION,
        ),
    ] = False,
    skip: Annotated[
        int | None,
        o.option(o.EXECUTION, "Leave measurements up to update N out of the averages.", "0", "N"),
    ] = None,
    quiet: o.Quiet = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Show the grid, what is done, and what the rest needs on this machine (time, "
            "memory, disk space), without beginning it. The exit code is 1 if runs would be "
            "refused.",
            rich_help_panel=o.EXECUTION,
        ),
    ] = False,
    json: o.Json = False,
) -> None:
    """Carry out independent runs on a grid of couplings and lattices.

    Runs on small lattices are updated together on each device. To continue a scan that was stopped,
    repeat the command, or give only --output. Couplings, lattices, chains and configurations can be
    added later. Each run has a run directory as from generate; scan.csv and scan.pdf contain the
    averages at every point. SIGTERM, SIGINT, SIGHUP, SIGUSR1 and the time limit write checkpoints
    and stop the scan with exit code 75.
    """
    from gauge_mc.scans import carry_out as scans

    given = {name: value for name, value in ctx.params.items() if value is not None}
    card_values = read_card(given.pop("card")) if "card" in given else {}
    asked = ScanRequest.of(card_values | given)
    where = quote(str(asked.path))
    if dry_run:
        if submit or collect:
            other = "--submit" if submit else "--collect"
            raise UsageError(f"--dry-run cannot be combined with {other}; leave out one of them.")
        show_forecast(asked, per_device, json)
        return
    if submit:
        if per_device:
            raise UsageError(
                "--per-device cannot be combined with --submit, because each job carries out one "
                "run; leave it out."
            )
        if skip:
            raise UsageError(
                "--skip cannot be combined with --submit; give it with --collect, when the results "
                "are averaged."
            )
        with alone_on_stdout(json):
            submission = scans.submit(asked, submit, slurm or [])
        if json:
            print_document("scan", submission)
        else:
            say(str(submission), f"To gather the results: gauge-mc scan --collect --output {where}")
        return
    if slurm and not collect:
        raise UsageError(
            f"--slurm has an effect only with --submit {NAME}; add that, or leave it out."
        )
    with alone_on_stdout(json):
        result = scans.gather(asked) if collect else scans.carry_out(asked, per_device)
    if json:
        from gauge_mc.scans.report import ScanReport

        print_document("scan", ScanReport.of(result, asked.skip))
    elif result.stopped:
        say(f"Stopped by {result.stopped}; to continue: gauge-mc scan --output {where}")
    if result.stopped:
        raise typer.Exit(INTERRUPTED)


def show_forecast(asked: ScanRequest, per_device: int | None, as_json: bool) -> None:
    """Print what a scan would need; end with exit code 1 if runs would be refused."""
    from gauge_mc.console import Console
    from gauge_mc.scans.forecast import forecast

    with alone_on_stdout(as_json):
        found = forecast(asked, per_device)
    if as_json:
        print_document("scan", found)
    else:
        Console(highlight=False, markup=False).print(found.table())
    if found.refusals:
        raise typer.Exit(1)
