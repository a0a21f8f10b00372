"""``gauge-mc scan``: many independent runs over a grid of couplings and lattices."""

from __future__ import annotations

from dataclasses import asdict
from shlex import quote
from typing import Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.errors import INTERRUPTED, UsageError
from gauge_mc.run.parameters import read_card
from gauge_mc.scans.request import Request

GRID = "Grid"


def _grid(help: str, **how: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=GRID, show_default=False, **how)


def scan(
    ctx: typer.Context,
    beta: Annotated[
        str | None,
        _grid(
            "Couplings: numbers and ranges, such as 2.2:2.8:0.05.",
            metavar="BETA|FIRST:LAST:STEP,...",
        ),
    ] = None,
    lattice: Annotated[
        str | None,
        _grid(
            "Lattices of even extents [dim]\\[default: 16x16x16x16][/dim]", metavar="XxYxZxT,..."
        ),
    ] = None,
    chains: Annotated[
        int | None, _grid("Independent chains at each point [dim]\\[default: 1][/dim]")
    ] = None,
    group: o.Group = None,
    action: o.Action = None,
    precision: o.Precision = None,
    start: o.Start = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Seed of the first run; the others count up [dim]\\[default: 1][/dim]",
            rich_help_panel=o.PHYSICS,
            show_default=False,
        ),
    ] = None,
    rng: o.Rng = None,
    luxury: o.Luxury = None,
    heatbath: o.Heatbath = None,
    overrelax: o.Overrelax = None,
    thermalize: o.Thermalize = None,
    configs: o.Configs = None,
    separation: o.Separation = None,
    measure: o.Measure = None,
    card: o.Card = None,
    output: Annotated[
        str | None,
        typer.Option(
            help="Scan directory [dim]\\[default: runs/ and scan_ with a name that identifies what "
            "the runs share][/dim]",
            rich_help_panel=o.FILES,
            metavar="PATH",
            show_default=False,
        ),
    ] = None,
    format: o.Format = None,
    backend: o.Backend = None,
    devices: Annotated[
        str | None,
        typer.Option(
            help="GPUs: how many, or their numbers; or cpu [dim]\\[default: all GPUs, else the "
            "CPU][/dim]",
            rich_help_panel=o.EXECUTION,
            metavar="N|I,J,...|all|cpu",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="CPU threads of one run [dim]\\[default: 1][/dim]",
            rich_help_panel=o.EXECUTION,
            show_default=False,
        ),
    ] = None,
    per_device: Annotated[
        int | None,
        typer.Option(
            help="Runs at a time on each device [dim]\\[default: 1 on a GPU, on the CPU as many "
            "as its cores have threads for][/dim]",
            rich_help_panel=o.EXECUTION,
            metavar="K",
            show_default=False,
        ),
    ] = None,
    time_limit: o.TimeLimit = None,
    checkpoint_every: o.CheckpointEvery = None,
    submit: Annotated[
        str | None,
        typer.Option(
            help="Submit the runs as a job array instead.",
            rich_help_panel=o.EXECUTION,
            metavar="slurm",
        ),
    ] = None,
    slurm: Annotated[
        list[str] | None,
        typer.Option(
            help="Option of sbatch for each job, such as time=12:00:00 or gpus_per_node=1; "
            "array_parallelism is how many jobs may run at a time.",
            rich_help_panel=o.EXECUTION,
            metavar="KEY[=VALUE]",
        ),
    ] = None,
    collect: Annotated[
        bool,
        typer.Option(
            "--collect",
            help="Only gather the results of runs that are complete.",
            rich_help_panel=o.EXECUTION,
        ),
    ] = False,
    quiet: o.Quiet = None,
    json: o.Json = False,
) -> None:
    """Carry out a grid of independent runs, one or more a device at a time.

    The same command again continues a scan that was stopped; so does --output alone. More
    couplings, lattices and chains may be asked for later, and more configurations. Each run is a
    directory like those of generate; scan.csv and scan.pdf hold the averages at every point.
    SIGTERM, SIGINT and SIGUSR1 write checkpoints and stop; the exit code is then 75.
    """
    from gauge_mc.scans import carry_out as scans

    given = {name: value for name, value in ctx.params.items() if value is not None}
    card_values = read_card(given.pop("card")) if "card" in given else {}
    if json:
        given["quiet"] = True
    asked = Request.of(card_values | given)
    where = quote(str(asked.path))
    if submit:
        if per_device:
            raise UsageError("--per-device is not for --submit: each job has one run.")
        if json:
            raise UsageError("--json is not for --submit: get the results later, by --collect.")
        lines = scans.submit(asked, submit, slurm or [])
        lines.append(f"To gather what is complete: gauge-mc scan --collect --output {where}")
        print(*lines, sep="\n")
        return
    if slurm and not collect:
        raise UsageError("--slurm is for --submit slurm.")
    result = scans.gather(asked) if collect else scans.carry_out(asked, per_device)
    if json:
        rows = result.table.columns
        points = [dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]
        o.print_json({**asdict(result), "points": points})
    elif result.stopped:
        print(f"Stopped by {result.stopped}; to continue: gauge-mc scan --output {where}")
    if result.stopped:
        raise typer.Exit(INTERRUPTED)
