"""``gauge-mc scan``: many independent runs over a grid of couplings and lattices."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli.generate import Stop
from gauge_mc.cli.generate import carry_out as carry_out_run
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.parameters import Execution, read_card
from gauge_mc.scans import Scan
from gauge_mc.scans.process import leave_mpi, stop_with_parent
from gauge_mc.scans.request import Request

if TYPE_CHECKING:
    from rich.console import Console

    from gauge_mc.scans.gather import Averages
    from gauge_mc.scans.pool import Slot

GRID = "Grid"

CHILD = "from gauge_mc.cli.scan import child; child()"
COMMAND = (sys.executable, "-c", CHILD, "generate", "--quiet")
"""Carries out a run as a child of a scan."""


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
    precision: o.Precision = None,
    start: o.Start = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="Of the first run; the others count up [dim]\\[default: 1][/dim]",
            rich_help_panel=o.PHYSICS,
            show_default=False,
        ),
    ] = None,
    rng: o.Generator = None,
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
            help="Scan directory [dim]\\[default: runs/ and scan_ with a name that tells what the "
            "runs share][/dim]",
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
            help="So many GPUs, the GPUs of these numbers, or cpu [dim]\\[default: all GPUs, else "
            "the CPU][/dim]",
            rich_help_panel=o.EXECUTION,
            metavar="N|I,J,...|all|cpu",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            help="Of a run on the CPU [dim]\\[default: 1][/dim]",
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
) -> None:
    """Carry out a grid of independent runs, one or more a device at a time.

    The same command again continues a scan that was stopped; so does --output alone. More
    couplings, lattices and chains may be asked for later, and more configurations. Each run is a
    directory like those of generate; scan.csv and scan.pdf hold the averages at every point.
    SIGTERM, SIGINT and SIGUSR1 write checkpoints and stop.
    """
    given = {name: value for name, value in ctx.params.items() if value is not None}
    card_values = read_card(given.pop("card")) if "card" in given else {}
    asked = Request.of(card_values | given)
    if collect:
        _collect(asked)
    elif submit and per_device:
        raise UsageError("--per-device is not for --submit: each job has one run.")
    elif submit:
        _submit(asked, submit, slurm or [])
    elif slurm:
        raise UsageError("--slurm is for --submit slurm.")
    else:
        _carry_out(asked, per_device)


def child() -> None:
    """Run the program as a child of a scan; it saves and stops if its parent dies."""
    from gauge_mc.cli import main

    stop_with_parent()
    leave_mpi()
    main()


def carry_out_alone(values: Mapping[str, object]) -> None:
    """Carry out a run as `gauge_mc.cli.generate.carry_out` does, with no other process."""
    leave_mpi()
    carry_out_run(values)


def _carry_out(asked: Request, per_device: int | None) -> None:
    """Carry out what is left of a scan on the devices of this machine."""
    e = asked.execution
    with Stop(e.time_limit) as stop:
        # Imported here, since that takes longer than a signal may take to come.
        from gauge_mc.devices import choose_devices
        from gauge_mc.scans.pool import make_slots

        asked.scan()
        chosen = choose_devices(e.devices, e.backend, e.threads, every_gpu=True)
        slots = make_slots(chosen, per_device)
        with asked.held() as scan:
            reason, failures = _work(scan, slots, e, stop)
    if reason:
        print(f"Stopped by {reason}; to continue: gauge-mc scan --output {quote(str(scan.path))}")
    if failures:
        name, sentence = next(iter(failures.items()))
        raise GaugeError(
            f"{len(failures)} of {len(scan.members())} runs failed, and the same command tries "
            f"them again; {name}: {sentence}"
        )


def _work(
    scan: Scan, slots: Sequence[Slot], execution: Execution, stop: Stop
) -> tuple[str | None, dict[str, str]]:
    """Do what there is to do, and show it; return why it stopped early, and what failed why."""
    from gauge_mc.scans.board import Tally, opening, shown
    from gauge_mc.scans.gather import Averages
    from gauge_mc.scans.pool import Pool
    from gauge_mc.scans.scheduler import Scheduler

    console = _console(execution)
    tally = Tally(scan.members())
    console.print(opening(scan, tally, slots), soft_wrap=True)
    averages = Averages(scan)
    left = [member for member in tally.members if not tally.done(member)]
    with Pool(slots) as pool, shown(tally, slots, console) as board:
        scheduler = Scheduler(pool, COMMAND, board, averages, execution)
        reason = scheduler.carry_out(left, stop)
    _finish(averages, console)
    return reason, scheduler.failures | averages.failures


def _console(execution: Execution) -> Console:
    from rich.console import Console

    return Console(quiet=execution.quiet, highlight=False, markup=False)


def _finish(averages: Averages, console: Console) -> None:
    """Write and draw what is complete, and show it."""
    from gauge_mc.scans.board import results

    averages.write()
    files = [averages.scan.table] + [averages.scan.figure] * averages.draw()
    console.print("", results(averages), "", sep="\n")
    console.print(", ".join(map(str, files)), soft_wrap=True)


def _collect(asked: Request) -> None:
    """Gather the results of the runs that are complete."""
    from gauge_mc.scans.board import Tally
    from gauge_mc.scans.gather import Averages

    scan = Scan.read(asked.path)
    console = _console(asked.execution)
    console.print(f"{scan.path}: {Tally(scan.members())}", soft_wrap=True)
    averages = Averages(scan)
    _finish(averages, console)
    for failure in averages.failures.values():
        raise GaugeError(failure)


def _submit(asked: Request, system: str, words: Sequence[str]) -> None:
    """Submit a job for each run that is neither complete nor at work."""
    from gauge_mc.scans.board import Tally
    from gauge_mc.scans.slurm import parse_options, submit, task

    if system != "slurm":
        raise UsageError(f"Jobs can be submitted to slurm, not to '{system}'.")
    options = parse_options(words)
    with asked.held() as scan:
        tally = Tally(scan.members())
        left = [one for one in tally.members if not (tally.done(one) or one.run.holder()[1])]
        tasks = [task(member, asked.execution) for member in left]
        folder = scan.path.absolute() / "jobs"
        jobs = submit(carry_out_alone, tasks, folder, options) if tasks else []
    array = f" as job {str(jobs[0].job_id).partition('_')[0]}" if jobs else ""
    print(f"{scan.path}: {tally}, {len(jobs)} submitted{array}")
    print(f"To gather what is complete: gauge-mc scan --collect --output {quote(str(scan.path))}")
