"""Progress display and summary of a scan: live in terminals and notebooks, else plain lines."""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import rich.progress as bars
from rich.console import Group, RenderableType

from gauge_mc.actions import BETA
from gauge_mc.console import Console, plain_table
from gauge_mc.files.table import Value
from gauge_mc.options import Option
from gauge_mc.progress import LIVE_SECONDS, PLAIN_SECONDS, Progress, duration
from gauge_mc.quoting import counted
from gauge_mc.random import GENERATORS
from gauge_mc.run.state import link_rate, made_again, state_of
from gauge_mc.scans.additions import ADDITIONS
from gauge_mc.scans.averages import ScanAverages, panels, row_in_words
from gauge_mc.scans.grid import Point, numbers_in, value_at
from gauge_mc.scans.ladders import ladder_reports, ladders_shown
from gauge_mc.scans.pool import Child, Slot
from gauge_mc.scans.scan import Member, Scan

LOOK_SECONDS = 1.0
"""Time in seconds between two looks at the progress of the runs for plain lines."""

START_SECONDS = 3.0
"""Time in seconds within which a run begins to update if its kernels have been compiled."""


@dataclass
class _Pace:
    """The link updates of a slot, from its first report of a rate to its last report."""

    links: int = 0
    since: float = math.inf
    until: float = -math.inf

    @property
    def rate(self) -> float:
        """Link updates per second, pauses between processes included; 0 if it is not known yet."""
        return self.links / (self.until - self.since) if self.until > self.since else 0.0


class Tally:
    """The progress of a scan.

    Parameters
    ----------
    members : sequence of Member
        All runs of the scan.

    Attributes
    ----------
    sweeps : dict of str to int
        Number of updates done, by the name of the run.
    again : int
        Number of updates, at least, that are repeated because processes were killed.
    """

    def __init__(self, members: Sequence[Member]) -> None:
        self.members = members
        self.sweeps = {member.name: member.sweep() for member in members}
        self._first = dict(self.sweeps)
        states = (
            state_of(member.run, member.parameters, self.sweeps[member.name]) for member in members
        )
        self.again = sum(state.updates_again for state in states)
        self._paces: defaultdict[Slot, _Pace] = defaultdict(_Pace)

    def done(self, member: Member) -> bool:
        """Return whether a run is complete."""
        return self.sweeps[member.name] >= member.parameters.updates

    def note(self, child: Child) -> None:
        """Record the progress of the runs of a child that has ended."""
        self.look(child)
        for member in child.members:
            self._count(child, member, member.sweep())

    def look(self, child: Child) -> float:
        """Record the progress that a child reports; return its link updates per second, or 0."""
        total = 0.0
        for member in child.members:
            holder = member.run.holder()[0]
            if holder.process == child.process.pid and holder.rate:
                spent = (holder.sweep - self._first[member.name]) / holder.rate
                pace = self._paces[child.slot]
                pace.since = min(pace.since, time.monotonic() - spent)
                self._count(child, member, max(self.sweeps[member.name], holder.sweep))
                total += holder.rate * member.parameters.links_per_update
        return total

    def _count(self, child: Child, member: Member, sweep: int) -> None:
        """Record the updates of a run. A report that is old says nothing about the time since."""
        more = sweep - self.sweeps[member.name]
        if more:
            pace = self._paces[child.slot]
            pace.links += more * member.parameters.links_per_update
            pace.until = time.monotonic()
            self.sweeps[member.name] = sweep

    @property
    def updating(self) -> bool:
        """Whether any run has reported the rate of its updates."""
        return any(math.isfinite(pace.since) for pace in self._paces.values())

    def share(self) -> float:
        """Return the completed fraction of the work, from 0 to 1."""
        return self._links() / max(1, self._all())

    def remaining(self, children: Sequence[Child]) -> float:
        """Return the estimated remaining time in seconds; NaN if it is not known yet.

        The rate of a slot is that since its first update, before which kernels may have been
        compiled. A child in a slot without one is taken to be as fast as the others.
        """
        rates = [self._paces[child.slot].rate for child in children]
        positive = [rate for rate in rates if rate > 0]
        if not positive:
            return math.nan
        return (self._all() - self._links()) * len(positive) / (sum(positive) * len(rates))

    def __str__(self) -> str:
        return f"{sum(map(self.done, self.members))} of {len(self.members)} runs complete"

    def _links(self) -> int:
        return sum(self.sweeps[m.name] * m.parameters.links_per_update for m in self.members)

    def _all(self) -> int:
        return sum(m.parameters.updates * m.parameters.links_per_update for m in self.members)


class ProgressDisplay:
    """Progress display of plain lines.

    Parameters
    ----------
    tally : Tally
        Progress of the scan.
    console : Console
        Where to print.
    """

    look_seconds = LOOK_SECONDS
    """Time in seconds between two looks at the progress of the runs."""

    def __init__(self, tally: Tally, console: Console) -> None:
        self.tally, self.console = tally, console
        self._began = self._shown_at = time.monotonic()
        self._looked_at = -math.inf
        self._said = False

    def line(self, text: str) -> None:
        """Print a permanent line."""
        self._shown_at = time.monotonic()
        self.console.print(text, soft_wrap=True)

    def refresh(self, children: Sequence[Child]) -> None:
        """Show the progress of the children, if the display is due for an update."""
        if time.monotonic() - self._looked_at >= self.look_seconds:
            self._looked_at = time.monotonic()
            rates = [self.tally.look(child) for child in children]
            self._show(children, rates)

    def _show(self, children: Sequence[Child], rates: Sequence[float]) -> None:
        """Show the progress of the children, given their link updates per second."""
        now = time.monotonic()
        if now - self._began >= START_SECONDS and not self._said and not self.tally.updating:
            self._said = True
            self.line("kernels are being compiled or loaded ...")
        elif now - self._shown_at >= PLAIN_SECONDS:
            eta = duration(self.tally.remaining(children))
            self.line(f"{self.tally}, {len(children)} running  ETA {eta}")


class _Bars(ProgressDisplay):
    """Live progress display: a bar for the scan, and one for each slot."""

    look_seconds = LIVE_SECONDS

    def __init__(
        self, tally: Tally, slots: Sequence[Slot], progress: bars.Progress, console: Console
    ) -> None:
        super().__init__(tally, console)
        self.progress = progress
        self._whole = progress.add_task("scan", total=1.0, words="")
        self._slots = {slot: progress.add_task(slot.name, total=1.0, words="") for slot in slots}

    def _show(self, children: Sequence[Child], rates: Sequence[float]) -> None:
        for slot in self._slots.keys() - {child.slot for child in children}:
            self.progress.update(self._slots[slot], completed=0.0, words="")
        for child, rate in zip(children, rates, strict=True):
            first = child.members[0]
            sweep, total = self.tally.sweeps[first.name], first.parameters.updates
            names = list(dict.fromkeys(point_name(member.point) for member in child.members))
            words = names[0] + (f" and {len(names) - 1} more points" if names[1:] else "")
            words += f"  {sweep}/{total} updates"
            words += f"  {link_rate(rate)}" if rate else ""
            self.progress.update(self._slots[child.slot], completed=sweep / total, words=words)
        words = f"{self.tally}  ETA {duration(self.tally.remaining(children))}"
        self.progress.update(self._whole, completed=self.tally.share(), words=words)


class _NotebookScanDisplay(ProgressDisplay):
    """Live progress display in a notebook: one bar, which shows the whole scan in the end."""

    look_seconds = LIVE_SECONDS

    def __init__(self, tally: Tally, console: Console) -> None:
        super().__init__(tally, console)
        total = sum(member.parameters.updates for member in tally.members)
        self._bar = Progress(console, total, "updates", str(tally))

    def _show(self, children: Sequence[Child], rates: Sequence[float]) -> None:
        self.say(f"{len(children)} running  ETA {duration(self.tally.remaining(children))}")

    def say(self, words: str) -> None:
        """Show how far the scan has come, with words beside it."""
        self._bar.show(sum(self.tally.sweeps.values()), "", str(self.tally), words)


@contextmanager
def show_progress(
    tally: Tally, slots: Sequence[Slot], console: Console
) -> Iterator[ProgressDisplay]:
    """Show the progress of a scan; a quiet console shows nothing."""
    if console.is_jupyter and not console.quiet:
        shown = _NotebookScanDisplay(tally, console)
        yield shown
        shown.say("")
        return
    if not console.is_terminal or console.quiet:
        yield ProgressDisplay(tally, console)
        return
    name = bars.TextColumn("{task.description}", style="bold")
    columns = (
        name,
        bars.BarColumn(bar_width=None),
        bars.TextColumn("{task.fields[words]}", style="cyan"),
    )
    with bars.Progress(*columns, console=console, transient=True, expand=True) as progress:
        yield _Bars(tally, slots, progress, console)


def opening(scan: Scan, tally: Tally, slots: Sequence[Slot], hint: str | None = None) -> str:
    """Return the lines shown at the start: scan, grid, parameters, devices, and a hint."""
    points = scan.points()
    lattices = dict.fromkeys(str(point.lattice) for point in points)
    every = [{BETA.name: point.beta, **point.numbers} for point in points]
    stated = dict.fromkeys(x for p in points for x in (BETA, *p.action.changed, *p.listed))
    words = [_values(x, sorted({value_at(n, x.name) for n in every})) for x in stated]
    p, verb = scan.parameters, "continues" if any(tally.sweeps.values()) else "begins"
    updates = f"{p.thermalize} + {p.configs * p.separation} updates per run"
    generator = GENERATORS[p.rng].at(p.luxury)
    lines = [
        f"{scan.path} {verb}, {tally}{made_again(tally.again)}",
        f"{', '.join(words)} on {', '.join(lattices)}",
        f"{p.group}, {p.precision} precision, {generator}, {updates}, {places(slots)}",
        *filter(None, [hint, *(addition.caution(p) for addition in ADDITIONS.values())]),
    ]
    return "\n".join(lines)


def _values(option: Option, values: Sequence[float]) -> str:
    """Return ascending values of a number in words."""
    if len(values) == 1 and option is not BETA:
        return option.said(values[0])
    name = BETA.name if option is BETA else option.short
    last = f" to {values[-1]:g}" if len(values) > 1 else ""
    return f"{name} = {values[0]:g}{last} ({counted(len(values), 'value')})"


def places(slots: Sequence[Slot]) -> str:
    """Return the number of processes and their devices, as text."""
    devices = dict.fromkeys(slot.device for slot in slots)
    several = "es" if len(slots) > 1 else ""
    return f"{len(slots)} process{several} on {', '.join(devices)}"


def point_name(point: Point) -> str:
    """Return the name of a point, such as ``beta = 2.4 on 8x8x8x8``."""
    return f"{', '.join([f'beta = {point.beta:.12g}', *point.words])} on {point.lattice}"


def point_words(point: Point, row: Mapping[str, Value], chains: int) -> str:
    """Return a line with the averages at a point over the chains that are complete."""
    numbers = "  ".join(f"{label} {number}" for label, number in row_in_words(row).items())
    progress = f"  ({row['chains']} of {chains} chains)" if chains != 1 else ""
    return f"{point_name(point)}: {numbers}{progress}"


def results(averages: ScanAverages) -> RenderableType:
    """Return tables of the averages at all points, with cautions, and of exchanges of couplings."""
    rows, exchanges = averages.sorted_rows(), ladders_shown(ladder_reports(averages.scan))
    if not rows:
        return Group("no run is complete yet", *exchanges)
    labels = [panel.label for panel in panels() if panel.column in rows[0]]
    options = [BETA, *numbers_in(rows[0])]
    headings = ("β", *(option.short for option in options[1:]), *labels, "chains", "updates")
    table = plain_table(["lattice"], headings)
    for row in rows:
        numbers = row_in_words(row)
        counts = (str(row["chains"]), str(row["sweeps"]))
        place = [f"{float(row[option.name]):.12g}" for option in options]
        table.add_row(str(row["lattice"]), *place, *(numbers[label] for label in labels), *counts)
    return Group(table, *averages.cautions, *exchanges)
