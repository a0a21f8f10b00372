"""``gauge-mc generate``: carry out a run, or what is left of it."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

import typer

from gauge_mc.cli import options as o
from gauge_mc.parameters import Execution, Parameters, read_card
from gauge_mc.run import RUNS, Run, Session

if TYPE_CHECKING:
    from gauge_mc.ring import Ring
    from gauge_mc.ring.processes import Processes

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


def generate(
    ctx: typer.Context,
    group: o.Group = None,
    beta: o.Beta = None,
    lattice: o.Extents = None,
    precision: o.Precision = None,
    start: o.Start = None,
    seed: o.Seed = None,
    rng: o.Generator = None,
    luxury: o.Luxury = None,
    heatbath: o.Heatbath = None,
    overrelax: o.Overrelax = None,
    thermalize: o.Thermalize = None,
    configs: o.Configs = None,
    separation: o.Separation = None,
    measure: o.Measure = None,
    card: o.Card = None,
    output: o.Output = None,
    format: o.Format = None,
    backend: o.Backend = None,
    threads: o.Threads = None,
    devices: o.Devices = None,
    share_gpus: o.ShareGpus = None,
    time_limit: o.TimeLimit = None,
    checkpoint_every: o.CheckpointEvery = None,
    quiet: o.Quiet = None,
) -> None:
    """Generate an ensemble of configurations and measure along the way.

    The same command again continues a run that was stopped; so does --output alone, since what
    is not given is taken from the run. SIGTERM, SIGINT and SIGUSR1 write a checkpoint and stop.
    """
    given = {name: value for name, value in ctx.params.items() if value is not None}
    written = read_card(given.pop("card")) if "card" in given else {}
    carry_out(written | given)


def carry_out(values: Mapping[str, object], processes: Processes | None = None) -> None:
    """Begin or continue the run that options and card describe.

    Parameters
    ----------
    values : mapping of str to object
        By the names of `Parameters` and `Execution`.
    processes : Processes, optional
        That share the lattice; by default those that an MPI launcher has started.

    Raises
    ------
    UsageError
        If a value is not allowed, or differs from that of the run in the directory.
    GaugeError
        If the run cannot be carried out.
    """
    from gauge_mc.ring.mpi import find_processes

    execution = Execution.from_values(values)
    processes = processes or find_processes()
    with processes.together(), Stop(execution.time_limit) as stop:
        asked = Parameters.from_values(values)
        run = Run(Path(execution.output) if execution.output else RUNS / asked.name)
        reason = _work(run, values, execution, processes, stop)
    if reason and processes.rank == 0:
        print(
            f"Stopped by {reason}; to continue: gauge-mc generate --output {quote(str(run.path))}"
        )


def settled(run: Run, values: Mapping[str, object]) -> Parameters:
    """Return the parameters of a run, new or under way.

    Parameters
    ----------
    run : Run
        The directory.
    values : mapping of str to object
        What was asked for. For a run under way, the rest is as it was.

    Raises
    ------
    UsageError
        If something else was asked for than what the run is under way with, or less.
    """
    if not run.begun():
        return Parameters.from_values(values)
    return run.read()[0].continued(values, f"The run {run.path}")


def _work(
    run: Run,
    values: Mapping[str, object],
    execution: Execution,
    processes: Processes,
    stop: Stop,
) -> str | None:
    """Do what there is to do, and show it; return why it stopped early, or None."""
    # Imported here, since that takes longer than a signal may take to come.
    from rich.console import Console

    from gauge_mc.chain import check_start, generate
    from gauge_mc.checkpoint import read_moment
    from gauge_mc.progress import Clock, averages_table, opening, shown, summary
    from gauge_mc.ring import open_ring

    asked = settled(run, values)
    if not run.begun():
        check_start(asked)
    e, every = execution, 60 * execution.checkpoint_every
    ring = open_ring(e.devices, e.backend, e.threads, processes, e.share_gpus)
    ring.slabs(asked.lattice)
    device = ring.name
    if not ring.root:
        _follow(run, ring, every, stop)
        return None
    console = Console(quiet=e.quiet, highlight=False, markup=False)
    with run.held() as hold:
        parameters = settled(run, values)
        sweep = read_moment(run.checkpoint).sweep if run.checkpoint.exists() else 0
        session = Session.now(sweep, device)
        console.print(opening(run, parameters, session), soft_wrap=True)
        if parameters.rng == "lcg":
            console.print("lcg fails tests of randomness: for trials, not for results to publish")
        if run.begun() and sweep == parameters.sweeps:
            processes.share(None)
            console.print(averages_table(run, parameters))
            return None
        run.write(parameters, [*(run.read()[1] if run.begun() else []), session])
        clock = Clock(sweep)
        processes.share((parameters, sweep))
        with shown(parameters, clock, console) as report:
            chain, reason = generate(run, hold, parameters, ring, every, stop, report)
        console.print(summary(run, clock, chain, chain.sweep - sweep))
    return reason


def _follow(run: Run, ring: Ring, every: float, stop: Stop) -> None:
    """Take part in what the root does, which alone has files and something to say."""
    from rich.console import Console

    from gauge_mc.chain import generate
    from gauge_mc.progress import Clock, shown

    found: tuple[Parameters, int] | None = ring.processes.share(None)
    if found:
        parameters, sweep = found
        with shown(parameters, Clock(sweep), Console(quiet=True)) as report:
            generate(run, None, parameters, ring, every, stop, report)


class Stop:
    """Says why to stop now: a signal has come, or the time runs out.

    While it is entered, SIGINT, SIGTERM and SIGUSR1 are only noted; a second SIGINT interrupts.

    Parameters
    ----------
    time_limit : float or None
        Seconds from now.
    """

    def __init__(self, time_limit: float | None) -> None:
        self._deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self._signal: str | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        self._handlers = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def __call__(self, seconds_to_stop: float) -> str | None:
        """Return why to stop now, or None, if stopping takes so many seconds."""
        if self._signal is None and time.monotonic() + seconds_to_stop >= self._deadline:
            return "the time limit"
        return self._signal

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signal = signal.Signals(number).name
        signal.signal(signal.SIGINT, signal.default_int_handler)
