"""``gauge-mc scan``: many independent runs over a grid of couplings and lattices."""

from __future__ import annotations

import math
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.cli.generate import Stop
from gauge_mc.cli.generate import carry_out as carry_out_run
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.parameters import Execution, Parameters, read_card

if TYPE_CHECKING:
    from rich.console import Console

    from gauge_mc.scans import Member, Scan
    from gauge_mc.scans.board import Board
    from gauge_mc.scans.gather import Averages
    from gauge_mc.scans.pool import Child, Pool, Slot

GRID = "Grid"
SECONDS_TO_STOP = 4.0
"""Before the end of its time limit, a scan tells those of its runs to stop that have not yet."""

TICK = 0.1
"""Seconds between two looks at the children."""

CHILD = "from gauge_mc.cli.scan import child; child()"
"""What the Python of a child runs."""


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
    import ctypes

    from gauge_mc.cli import main

    set_parent_death_signal = 1  # PR_SET_PDEATHSIG of linux/prctl.h
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGTERM)
    _leave_mpi()
    main()


def carry_out_alone(values: Mapping[str, object]) -> None:
    """Carry out a run as `gauge_mc.cli.generate.carry_out` does, with no other process."""
    _leave_mpi()
    carry_out_run(values)


def _leave_mpi() -> None:
    """Forget the launcher that has started the scan or the job: a run of a scan is alone."""
    from gauge_mc.ring.mpi import RANK, SIZES

    for name in (*SIZES, RANK):
        os.environ.pop(name, None)


@dataclass(frozen=True)
class Request:
    """What options and card ask for.

    Parameters
    ----------
    values : mapping of str to object
        What all runs share, by the names of `Parameters`.
    execution : Execution
    path : Path
        The directory of the scan.
    beta : str, optional
    lattice : str, optional
        As on the command line.
    chains : int, optional
    """

    values: Mapping[str, object]
    execution: Execution
    path: Path
    beta: str | None
    lattice: str | None
    chains: int | None

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Request:
        """Read it from values by the names of options."""
        from gauge_mc.scans import default_path

        shared = {name: value for name, value in values.items() if name not in ("beta", "lattice")}
        execution = Execution.from_values(values)
        path = Path(execution.output or default_path(Parameters.from_values(shared)))
        chains: Any = values.get("chains")
        return cls(
            shared, execution, path, _words(values, "beta"), _words(values, "lattice"), chains
        )

    def scan(self) -> Scan:
        """Return the scan that is asked for: new, or continued and perhaps enlarged.

        Raises
        ------
        UsageError
            If it is not possible, or differs from the one in the directory.
        """
        from gauge_mc.scans import Scan, parse_betas, parse_lattices

        if (self.path / "scan.toml").is_file():
            there = Scan.read(self.path)
            there = there.continued(Parameters.from_values(self.values, base=there.parameters))
        else:
            there = Scan(self.path, Parameters.from_values(self.values))
        return there.enlarged(
            parse_betas(self.beta) if self.beta is not None else None,
            parse_lattices(self.lattice) if self.lattice is not None else None,
            self.chains,
        )


def _words(values: Mapping[str, object], name: str) -> str | None:
    """Return an entry as it is on the command line; a card may also have a number or a list."""
    value = values.get(name)
    if value is None:
        return None
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


@contextmanager
def _held(asked: Request) -> Iterator[Scan]:
    """Begin or continue a scan that no other process is to work on meanwhile."""
    from gauge_mc.run import Hold

    asked.scan().make()
    with closing(Hold(asked.path / "lock")) as hold:
        hold.say(hold.holder)
        scan = asked.scan()
        scan.write()
        yield scan


def _carry_out(asked: Request, per_device: int | None) -> None:
    """Carry out what is left of a scan on the devices of this machine."""
    execution = asked.execution
    with Stop(execution.time_limit) as stop:
        # Imported here, since that takes longer than a signal may take to come.
        from gauge_mc.devices import choose_devices
        from gauge_mc.scans.pool import make_slots

        asked.scan()
        e = execution
        chosen = choose_devices(e.devices, e.backend, e.threads, every_gpu=True)
        slots = make_slots(chosen, per_device)
        with _held(asked) as scan:
            reason, failures = _work(scan, slots, execution, stop)
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

    console = _console(execution)
    tally = Tally(scan.members())
    console.print(opening(scan, tally, slots), soft_wrap=True)
    averages = Averages(scan)
    left = [member for member in tally.members if not tally.done(member)]
    with Pool(slots) as pool, shown(tally, slots, console) as board:
        work = Work(pool, board, averages, execution)
        reason = work.carry_out(left, stop)
    _finish(averages, console)
    return reason, work.failures | averages.failures


class Work:
    """The work on a scan by a pool of children.

    Parameters
    ----------
    pool : Pool
    board : Board
        Shows how far it is.
    averages : Averages
        Gathers what is complete.
    execution : Execution
        What children are told, too.

    Attributes
    ----------
    failures : dict of str to str
        Why runs failed, by their names.
    """

    def __init__(self, pool: Pool, board: Board, averages: Averages, execution: Execution) -> None:
        self.pool = pool
        self.board = board
        self.averages = averages
        self.execution = execution
        self.failures: dict[str, str] = {}
        limit = execution.time_limit
        self._deadline = math.inf if limit is None else time.monotonic() + limit
        self._stopped: str | None = None

    def carry_out(self, members: Sequence[Member], stop: Stop) -> str | None:
        """Carry out runs until all are done or there is a reason to stop; return the reason."""
        # The largest come first, so that the others can fill the gaps at the end.
        queue = deque(sorted(members, key=lambda one: -one.parameters.lattice.sites))
        reason = None
        while self.pool.children or (queue and not reason):
            if not reason:
                reason = stop(SECONDS_TO_STOP)
                if reason:
                    self.pool.terminate()
                else:
                    self._fill(queue)
            for child in self.pool.ended():
                self._note(child)
            self.board.refresh(self.pool.children)
            time.sleep(TICK)
        return reason or self._stopped

    def _fill(self, queue: deque[Member]) -> None:
        """Start runs in free slots; those that another process holds wait."""
        for _ in range(min(len(queue), len(self.pool.free))):
            if queue[0].run.holder()[1]:
                queue.rotate(-1)
            else:
                member = queue.popleft()
                self.pool.start(member, [*_command(), *self._words(member)])

    def _words(self, member: Member) -> list[str]:
        """Return the options of generate for a run."""
        values = member.parameters.values() | {
            "output": member.run.path,
            "checkpoint_every": self.execution.checkpoint_every,
        }
        if math.isfinite(self._deadline):
            seconds = max(1, int(self._deadline - SECONDS_TO_STOP / 2 - time.monotonic()))
            values["time_limit"] = f"0:0:{seconds}"
        return [f"--{name.replace('_', '-')}={value}" for name, value in values.items()]

    def _note(self, child: Child) -> None:
        """Note the end of a child: a run complete, failed or stopped."""
        from gauge_mc.scans.board import point_words

        member, tally = child.member, self.board.tally
        failure = child.failure()
        tally.note(member)
        if failure:
            self.failures[member.name] = failure
            self.board.line(f"{member.name} failed: {failure}")
        elif not tally.done(member):
            limited = math.isfinite(self._deadline)
            self._stopped = "the time limit" if limited else f"a signal to {member.name}"
        else:
            self.averages.update(member.point)
            self.averages.write()
            row = self.averages.rows.get(member.point)
            if row:
                self.board.line(point_words(member, row))


def _command() -> list[str]:
    return [sys.executable, "-c", CHILD, "generate", "--quiet"]


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
    from gauge_mc.scans import Scan
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
    from gauge_mc.scans.slurm import parse_options, submit

    if system != "slurm":
        raise UsageError(f"Jobs can be submitted to slurm, not to '{system}'.")
    options = parse_options(words)
    with _held(asked) as scan:
        tally = Tally(scan.members())
        left = [one for one in tally.members if not (tally.done(one) or one.run.holder()[1])]
        how = _execution_values(asked.execution)
        tasks = [
            member.parameters.values() | how | {"output": str(member.run.path.absolute())}
            for member in left
        ]
        jobs = (
            submit(carry_out_alone, tasks, scan.path.absolute() / "jobs", options) if left else []
        )
    array = f" as job {str(jobs[0].job_id).partition('_')[0]}" if jobs else ""
    print(f"{scan.path}: {tally}, {len(jobs)} submitted{array}")
    print(f"To gather what is complete: gauge-mc scan --collect --output {quote(str(scan.path))}")


def _execution_values(execution: Execution) -> dict[str, object]:
    """Return how each job is to carry out its run, by the names of `Execution`."""
    limit = execution.time_limit
    values = {
        "backend": execution.backend,
        "devices": execution.devices,
        "threads": execution.threads,
        "checkpoint_every": execution.checkpoint_every,
        "time_limit": None if limit is None else f"0:0:{limit:.0f}",
    }
    return {name: value for name, value in values.items() if value is not None}
