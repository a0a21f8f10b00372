"""What a person sees of a run: live progress on a terminal, plain lines elsewhere, a summary."""

from __future__ import annotations

import datetime
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from gauge_mc.analysis.timeseries import Estimate, estimate, with_error
from gauge_mc.chain import Chain, Report
from gauge_mc.errors import GaugeError
from gauge_mc.formats.table import read_table
from gauge_mc.observables.plaquette import plaquette
from gauge_mc.observables.polyakov import polyakov_loop
from gauge_mc.parameters import Parameters
from gauge_mc.run import Run, Session

LIVE_SECONDS = 0.5
"""At the least between two looks at the field on a terminal."""

PLAIN_SECONDS = 30.0
"""The longest silence in plain lines, which also come at every tenth of a run."""

QUANTITIES = {
    "plaquette": ("plaquette", "plaquette"),
    "spatial plaquette": ("plaquette", "spatial"),
    "temporal plaquette": ("plaquette", "temporal"),
    "Polyakov loop, real part": ("polyakov", "re"),
    "Polyakov loop, modulus": ("polyakov", "abs"),
}
"""What a summary shows, each from an observable's table and one of its columns."""


@dataclass(frozen=True)
class View:
    """A look at a chain.

    Parameters
    ----------
    sweep, sweeps : int
        Composite sweeps done, and of the whole run.
    phase : str
        "thermalising" or "generating".
    rate : float
        Link updates a second in this session.
    remaining : float
        Seconds to the end of the run; NaN if not known yet.
    configs : str
        How many configurations have been written, and of how many; empty if none are kept.
    plaquette : float
    polyakov : complex
        Of the field as it is.
    """

    sweep: int
    sweeps: int
    phase: str
    rate: float
    remaining: float
    configs: str
    plaquette: float
    polyakov: complex

    def pace(self) -> str:
        """Return rate and time to go in words."""
        return f"{link_rate(self.rate)}  ETA {duration(self.remaining):>7}"

    def physics(self) -> str:
        """Return plaquette, Polyakov loop and the number of configurations in words."""
        real, imaginary = self.polyakov.real, self.polyakov.imag
        loop = f"{real:+.4f}{imaginary:+.4f}i" if imaginary else f"{real:+.4f}"
        configs = f"  configurations {self.configs}" if self.configs else ""
        return f"plaquette {self.plaquette:.5f}  Polyakov loop {loop}{configs}"


class Clock:
    """The time that a session takes; its first sweep, which may compile, is left out of rates."""

    def __init__(self, sweep: int) -> None:
        self.began = time.monotonic()
        self._sweep = sweep + 1
        self._since = math.inf

    def look(self, chain: Chain) -> View:
        """Look at a chain, which takes about as long as half a sweep."""
        p = chain.parameters
        loop, cells = polyakov_loop(chain.field), plaquette(chain.field)
        pace = self.sweeps_per_second(chain.sweep)
        done = max(0, chain.sweep - p.thermalize)
        return View(
            chain.sweep,
            p.sweeps,
            "generating" if done else "thermalising",
            pace * p.links_per_sweep,
            (p.sweeps - chain.sweep) / pace if pace else math.nan,
            f"{done // p.separation}/{p.configs}" if p.keeps_configs else "",
            cells.mean,
            loop,
        )

    def tick(self) -> float:
        """Note that a sweep is done; return the time."""
        now = time.monotonic()
        self._since = min(self._since, now)
        return now

    def sweeps_per_second(self, sweep: int) -> float:
        """Return the pace of this session up to `sweep`, or 0 if not known yet."""
        elapsed = time.monotonic() - self._since
        return (sweep - self._sweep) / elapsed if sweep > self._sweep and elapsed > 0 else 0.0


def opening(run: Run, parameters: Parameters, session: Session) -> str:
    """Return the lines that say what begins."""
    p, state = parameters, "begins"
    if session.sweep == p.sweeps:
        state = f"is complete, {p.sweeps} sweeps"
    elif session.sweep:
        state = f"continues after sweep {session.sweep} of {p.sweeps}"
    return f"{run.path} {state}\n{described(p)}, on {session.device}"


def described(parameters: Parameters) -> str:
    """Return in words which chain it is."""
    p = parameters
    return f"{p.group}, beta = {p.beta:g}, {p.lattice}, {p.precision} precision, {p.generator}"


@contextmanager
def shown(parameters: Parameters, clock: Clock, console: Console) -> Iterator[Report]:
    """Show progress while a run is at work.

    Parameters
    ----------
    parameters : Parameters
        Of the run.
    clock : Clock
        Of the session.
    console : Console
        A quiet one shows nothing, a terminal live progress, anything else plain lines.

    Yields
    ------
    Report
        To be called after every sweep.
    """
    if console.quiet:
        yield partial(_report, clock, None)
    elif console.is_terminal:
        with _Bar(parameters, console) as bar:
            yield partial(_report, clock, bar)
    else:
        yield partial(_report, clock, _Lines(clock.began, console))


class _Display(Protocol):
    """Somewhere to show progress."""

    def due(self, chain: Chain, now: float) -> bool:
        """Tell whether to look at the chain."""

    def show(self, view: View) -> None:
        """Show what was seen."""


def _report(clock: Clock, display: _Display | None, chain: Chain) -> None:
    """Look at the chain if it is time to; all processes do, since each has a part of the field."""
    now = clock.tick()
    if chain.field.ring.processes.share(display is not None and display.due(chain, now)):
        view = clock.look(chain)
        if display:
            display.show(view)


class _Lines:
    """Progress as plain lines."""

    def __init__(self, began: float, console: Console) -> None:
        self.console = console
        self._shown_at, self._tenth = began, 0

    def due(self, chain: Chain, now: float) -> bool:
        tenth = 10 * chain.sweep // chain.parameters.sweeps
        silence = now - self._shown_at
        if silence >= PLAIN_SECONDS or (tenth > self._tenth and silence >= 1.0):
            self._shown_at, self._tenth = now, tenth
            return True
        return False

    def show(self, view: View) -> None:
        self.console.print(
            f"sweep {view.sweep}/{view.sweeps} ({view.phase})  {view.pace()}  {view.physics()}",
            soft_wrap=True,
        )


class _Bar(Progress):
    """Live progress: a bar, and a line of physics below it."""

    def __init__(self, parameters: Parameters, console: Console) -> None:
        self.note = Text("compiling kernels, or finding them compiled ...", style="dim")
        super().__init__(
            TextColumn("{task.description}", style="bold"),
            BarColumn(bar_width=None),
            TextColumn("{task.completed}/{task.total} sweeps"),
            TextColumn("{task.fields[pace]}", style="cyan"),
            console=console,
            transient=True,
            expand=True,
        )
        self._shown_at = -math.inf
        self._task = self.add_task("starting", total=parameters.sweeps, pace="")

    def get_renderables(self) -> Iterator[RenderableType]:
        """Yield the bar and the line below it."""
        yield self.make_tasks_table(self.tasks)
        yield self.note

    def due(self, chain: Chain, now: float) -> bool:
        """Tell whether to look at the chain."""
        return now - self._shown_at >= LIVE_SECONDS

    def show(self, view: View) -> None:
        """Show what was seen."""
        self._shown_at = time.monotonic()
        self.update(self._task, description=view.phase, completed=view.sweep, pace=view.pace())
        self.note = Text(view.physics())


def averages(run: Run, parameters: Parameters) -> dict[str, Estimate]:
    """Return the averages of what a run has measured so far.

    Returns
    -------
    dict of str to Estimate
        By the names of `QUANTITIES`; tau_int in records.

    Raises
    ------
    GaugeError
        If a table is damaged.
    """
    result = {}
    for name, (observable, column) in QUANTITIES.items():
        path = run.table(observable)
        if any(item.observable == observable for item in parameters.measure) and path.exists():
            series = read_table(path).columns.get(column)
            if series is None or series.dtype.kind == "U":
                raise GaugeError(f"The table {path} is damaged: it has no numbers for {column}.")
            if len(series):
                result[name] = estimate(series)
    return result


def averages_table(run: Run, parameters: Parameters) -> RenderableType:
    """Return the averages with their errors as a table; tau_int is in sweeps.

    Raises
    ------
    GaugeError
        If a table is damaged.
    """
    every = {item.observable: item.every for item in parameters.measure}
    found = averages(run, parameters)
    if not found:
        return Text("nothing measured yet")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("average")
    for heading in ("value", "tau_int [sweeps]", "measurements"):
        table.add_column(heading, justify="right")
    for name, number in found.items():
        scale = every[QUANTITIES[name][0]]
        tau = with_error(scale * number.tau_int, scale * number.tau_int_error)
        table.add_row(name, number.format(), tau, str(number.samples))
    return Group(table, "")


def summary(run: Run, clock: Clock, chain: Chain, sweeps: int) -> RenderableType:
    """Return what a session came to: averages, time, rate, files.

    Parameters
    ----------
    run : Run
        The run.
    clock : Clock
        Of the session.
    chain : Chain
        At the end of the session.
    sweeps : int
        Composite sweeps that the session did.
    """
    p = chain.parameters
    facts = Table.grid(padding=(0, 2))
    facts.add_row("time", f"{duration(time.monotonic() - clock.began)} for {sweeps} sweeps")
    rate = clock.sweeps_per_second(chain.sweep) * p.links_per_sweep
    if rate:
        facts.add_row("rate", f"{link_rate(rate)}, measuring and writing included")
    configs = f"{len(run.configs())} configurations" if p.keeps_configs else "no configurations"
    facts.add_row("files", f"{run.path} ({configs})")
    try:
        return Group(averages_table(run, p), facts)
    except GaugeError as error:
        return Group(Text(str(error), style="red"), facts)


def duration(seconds: float) -> str:
    """Write seconds as ``H:MM:SS``, less than a minute in tenths; unknown ones as dashes."""
    if not math.isfinite(seconds):
        return "-:--:--"
    if seconds < 60:
        return f"{seconds:.1f} s"
    return str(datetime.timedelta(seconds=round(seconds)))


def link_rate(rate: float) -> str:
    """Write links a second with three digits and a prefix."""
    for prefix, unit in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if rate >= unit:
            return f"{rate / unit:.3g} {prefix}link/s"
    return f"{rate:.3g} link/s"
