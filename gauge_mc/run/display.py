"""Progress display of a run: live on a terminal and in a notebook, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event

from gauge_mc import defaults
from gauge_mc.console import Console
from gauge_mc.devices.cache import watching
from gauge_mc.progress import Progress, duration
from gauge_mc.quoting import counted
from gauge_mc.random import GENERATORS
from gauge_mc.run.chain import Chain
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.state import RUNNING, RunState

AT_FIRST = "compiling or loading kernels ..."
"""Text that live displays show before the first update."""

Report = Callable[[Chain], None]
"""Function that is called after every update to show the progress of the chain."""


@dataclass(frozen=True, kw_only=True)
class View(RunState):
    """State of a chain, as the progress display shows it."""

    configs: str
    """Number of configurations written and in total, such as ``3/10``; empty if the run keeps none.
    """

    def pace(self) -> str:
        """Return the rate and the remaining time as text."""
        return f"{link_rate(self.links_per_s or 0.0)}  ETA {duration(self.remaining_seconds):>7}"

    def facts(self) -> str:
        """Return the physics and the number of configurations as text."""
        configs = f"configurations {self.configs}" if self.configs else ""
        return "  ".join(filter(None, (self.physics, configs)))


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

    def view(self, chain: Chain, physics: str) -> View:
        """Return the state of a chain."""
        p = chain.parameters
        pace = self.updates_per_second(chain.sweep)
        sampled = max(0, chain.sweep - p.thermalize)
        return View(
            state=RUNNING,
            sweep=chain.sweep,
            sweeps=p.updates,
            thermalize=p.thermalize,
            links_per_s=pace * self.chains * p.links_per_update,
            remaining_seconds=(p.updates - chain.sweep) / pace if pace else None,
            configs=f"{sampled // p.separation}/{p.configs}" if p.keeps_configs else "",
            physics=physics,
        )

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
    if chain.field.devices.processes.broadcast(due):
        view = clock.view(chain, chain.live())
        if due:
            pace, facts = view.pace(), view.facts()
            line = f"update {view.sweep}/{view.sweeps} ({view.phase})  {pace}  {facts}"
            progress.show(view.sweep, line, view.phase, pace, facts)


def made_again(updates: int) -> str:
    """Return the end of a sentence that says how many updates are made again, if there are any."""
    return f"; at least {counted(updates, 'update')} to be made again" if updates else ""


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
