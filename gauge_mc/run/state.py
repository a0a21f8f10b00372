"""The state of a run at a moment, reasons to stop it, and the display of its progress.

All that shows or reports a run contains the same fields: status, live views, summaries, scans. The
progress is live on a terminal and in a notebook, and consists of plain lines elsewhere.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from types import FrameType
from typing import Any

from gauge_mc import defaults, process
from gauge_mc.console import Console
from gauge_mc.devices.cache import watching
from gauge_mc.errors import GaugeError
from gauge_mc.progress import Progress, duration
from gauge_mc.quoting import counted
from gauge_mc.random import GENERATORS
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import Chain
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""Signals upon which a run writes a checkpoint and stops.

SIGHUP comes when the terminal is lost. Programs that are started with nohup ignore it."""

TIME_LIMIT = "the time limit"
"""The reason to stop that is not a signal."""


StopReason = Callable[[float], str | None]
"""Function that takes the time in seconds that stopping would take, and returns the reason to stop
now, or None."""


class Stop:
    """The reason to stop a run now, if there is one: a signal or the time limit.

    Used as a context manager in the main thread, it records the signals in `SIGNALS` instead of
    letting them interrupt the program. A second SIGINT interrupts the program as usual.

    Parameters
    ----------
    time_limit : float, optional
        Time in seconds from now within which the run must have stopped.
    """

    def __init__(self, time_limit: float | None = None) -> None:
        self._deadline = math.inf if time_limit is None else time.monotonic() + time_limit
        self._signal: str | None = None
        self._handlers: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            numbers = [x for x in SIGNALS if not (ignored and x is signal.SIGHUP)]
            self._handlers = {number: signal.signal(number, self._note) for number in numbers}
            # The exception that ends a program by an earlier signal is lost if it is raised where
            # Python ignores exceptions, such as in a finalizer or in an import that may fail.
            self._signal = process.noted()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        if self._handlers:
            process.forget()

    def __call__(self, seconds_to_stop: float) -> str | None:
        """Return the reason to stop now, or None."""
        if self._signal is None and time.monotonic() + seconds_to_stop >= self._deadline:
            return TIME_LIMIT
        return self._signal

    def _note(self, number: int, frame: FrameType | None) -> None:
        self._signal = signal.Signals(number).name
        process.note(self._signal)
        signal.signal(signal.SIGINT, signal.default_int_handler)


WAITING, RUNNING, COMPLETE = "waiting", "running", "complete"
STOPPED, FAILED = "stopped", "failed"
"""States of runs and scans."""


@documented
@dataclass(frozen=True, kw_only=True)
class RunState:
    """How far a run is, how fast, and what it has taken."""

    state: str = result_field(
        "``waiting`` (not begun), ``running``, ``complete``, ``stopped``, or ``failed`` in the "
        "latest session of a scan."
    )
    sweep: int = result_field("Number of updates done, thermalisation included.", 0)
    sweeps: int = result_field("Number of updates in all, thermalisation included.", 0)
    thermalize: int = result_field("Number of updates of the thermalisation.", 0)
    links_per_s: float | None = result_field(
        "Link updates per second of the session, with the time for measurements and files; None "
        "if it is unknown or no process is at work.",
        None,
    )
    remaining_seconds: float | None = result_field(
        "Time to the end of the run at this speed, in seconds; None if it is unknown.", None
    )
    times: Mapping[str, float] = result_field(
        "Shares of the time of the session by name, in seconds.", dict
    )
    joules: float | None = result_field(
        "Energy that the devices used, in joules; None if it is unknown.", None
    )
    updates_again: int = result_field(
        "Least number of updates after the last checkpoint, which are repeated when the run is "
        "continued; 0 while a process is at work.",
        0,
    )
    physics: str = result_field(
        "Observables on the present links, as text; empty if no process is at work.", ""
    )

    @property
    def done(self) -> float:
        """Fraction of the updates that are done, from 0 to 1."""
        return self.sweep / self.sweeps if self.sweeps else 0.0

    @property
    def phase(self) -> str:
        """``thermalising`` or ``generating``; empty if the run has not begun."""
        return phase_of(self.sweep, self.thermalize) if self.sweeps else ""

    @property
    def ns_per_link(self) -> float | None:
        """Time of the update of a link in ns, with measurements and files; None if unknown."""
        return 1e9 / self.links_per_s if self.links_per_s else None


def phase_of(sweep: int, thermalize: int) -> str:
    """Return what a run does after a number of updates: ``thermalising`` or ``generating``."""
    return "generating" if sweep > thermalize else "thermalising"


def saved_progress(run: Run) -> tuple[int, bool]:
    """Return the updates in the last checkpoint, and whether all that is due is written.

    There are none if it is missing or damaged.
    """
    try:
        state = read_state(run.checkpoint)
    except GaugeError:
        return 0, False
    return state.sweep, state.measured


def saved_updates(run: Run) -> int:
    """Return the number of updates in the last checkpoint; 0 if it is missing or damaged."""
    return saved_progress(run)[0]


def updates_there(run: Run, format: str) -> int:
    """Return the number of updates of a run by its checkpoint and its configurations."""
    return max(saved_updates(run), *run.own_configs(format), 0)


def state_of(
    run: Run, parameters: Parameters, saved: int, begun: bool = True, failed: bool = False
) -> RunState:
    """Return the state of a run, as any process sees it."""
    holder, at_work = run.holder()
    sweeps = parameters.updates
    state = RUNNING if at_work else FAILED if failed else STOPPED if begun else WAITING
    state = COMPLETE if saved >= sweeps and not at_work else state
    at_rest = RunState(state=state, sweep=saved, sweeps=sweeps, thermalize=parameters.thermalize)
    if not at_work:
        return replace(at_rest, updates_again=max(0, holder.sweep - saved))
    sweep = max(saved, holder.sweep)
    return replace(
        at_rest,
        sweep=sweep,
        links_per_s=holder.rate * parameters.links_per_update or None,
        remaining_seconds=(sweeps - sweep) / holder.rate if holder.rate else None,
        times=holder.times,
        joules=holder.joules,
        physics=holder.physics,
    )


AT_FIRST = "compiling or loading kernels ..."
"""Text that live displays show before the first update."""

Report = Callable[[Chain], None]
"""Function that is called after every update to show the progress of the chain."""


class Clock:
    """Clock of a session.

    Rates exclude the first update of the session, during which kernels may be compiled.

    Parameters
    ----------
    sweep : int
        Number of updates done at the beginning.
    chains : int
        Number of chains that are updated together.
    """

    def __init__(self, sweep: int, chains: int = 1) -> None:
        self.began = time.monotonic()
        self.chains = chains
        self._sweep = sweep + 1
        self._since = math.inf

    def tick(self) -> None:
        """Note that an update is done."""
        self._since = min(self._since, time.monotonic())

    def updates_per_second(self, sweep: int) -> float:
        """Return the mean rate of this session up to `sweep`; 0 if it is not known yet."""
        elapsed = time.monotonic() - self._since
        return (sweep - self._sweep) / elapsed if sweep > self._sweep and elapsed > 0 else 0.0


def describe(parameters: Parameters) -> str:
    """Return a short description of the chain, such as ``su2, beta = 2.5, 16x16x16x16, …``."""
    p = parameters
    words = [p.group, f"beta = {p.beta:g} ({p.action.beta_is})"]
    words += [p.action.said] if p.action.tags(defaults.ACTION) else []
    words += [str(p.lattice), *p.algorithm.labels, f"{p.precision} precision"]
    return ", ".join([*words, GENERATORS[p.rng].at(p.luxury)])


@contextmanager
def show_progress(updates: int, clock: Clock, console: Console) -> Iterator[Report]:
    """Show the progress of a run of a number of updates."""
    progress = Progress(console, updates, "updates", AT_FIRST)
    with announced_compilation(console), progress:
        yield partial(_report, clock, progress)


@contextmanager
def announced_compilation(console: Console) -> Iterator[None]:
    """Say in a log file when the first kernel is compiled in a context.

    Otherwise it would stay silent for as long as a minute. Terminals and notebooks have live
    displays.
    """
    event = Event()

    def say(kernel: str) -> None:
        if not event.is_set():
            event.set()
            console.print("compiling kernels, which are kept for later commands ...")

    if console.is_terminal or console.is_jupyter or console.quiet:
        yield
        return
    with watching(say):
        yield


def _report(clock: Clock, progress: Progress, chain: Chain) -> None:
    """Show the chain if it is due. All processes measure, because each has a part of the field."""
    clock.tick()
    due = progress.due(chain.sweep)
    if not chain.field.devices.processes.broadcast(due):
        return
    facts = [chain.live()]
    if due:
        p, sweep = chain.parameters, chain.sweep
        rate = clock.updates_per_second(sweep)
        remaining = duration((p.updates - sweep) / rate if rate else None)
        pace = f"{link_rate(rate * clock.chains * p.links_per_update)}  ETA {remaining:>7}"
        if p.keeps_configs:
            written = max(0, sweep - p.thermalize) // p.separation
            facts.append(f"configurations {written}/{p.configs}")
        phase, words = phase_of(sweep, p.thermalize), "  ".join(filter(None, facts))
        line = f"update {sweep}/{p.updates} ({phase})  {pace}  {words}"
        progress.show(sweep, line, phase, pace, words)


def made_again(updates: int) -> str:
    """Return the end of a sentence that says how many updates are repeated, if there are any."""
    return f"; at least {counted(updates, 'update')} to be repeated" if updates else ""


def spent(times: Mapping[str, float]) -> str:
    """Return what time was spent on, such as ``update 6.0 s, measure 1.7 s``."""
    return ", ".join(f"{name} {duration(seconds)}" for name, seconds in times.items())


def energy_text(joules: float) -> str:
    """Return an energy with three digits and a unit, and in watt-hours: ``72 kJ (20 Wh)``."""
    for unit, name, hours in ((1e6, "MJ", "kWh"), (1e3, "kJ", "Wh")):
        if joules >= unit:
            return f"{joules / unit:.3g} {name} ({joules / unit / 3.6:.3g} {hours})"
    return f"{joules:.3g} J"


def link_rate(rate: float) -> str:
    """Return a rate of link updates with three digits and a unit, such as ``1.23 Glink/s``."""
    for prefix, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= unit:
            return f"{rate / unit:.3g} {prefix}link/s"
    return f"{rate:.3g} link/s"
