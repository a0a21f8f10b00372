"""Live views in the terminal."""

from __future__ import annotations

import math
import textwrap
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.text import Text

from gauge_mc.progress import duration
from gauge_mc.quoting import printable
from gauge_mc.run.directory import Run
from gauge_mc.run.lock import is_locked
from gauge_mc.run.log import END, SESSION, LogEntry, LogTail
from gauge_mc.run.state import COMPLETE, FAILED, RUNNING, STOPPED, WAITING, energy_text, link_rate
from gauge_mc.scans.scan import is_scan
from gauge_mc.watch.snapshot import LiveSeries, LiveSnapshot, RunSnapshot, Watcher

EARLIER = 10
"""Number of entries of each log that are shown at first."""

LOOK_SECONDS = 0.5
"""Time in seconds between two looks at the logs."""

KILLED = "The last session has no end in the log: it was killed, or its machine failed."
"""Remark about a run that no process works on and whose last session has not ended."""


def followed(path: Path, seconds: float = LOOK_SECONDS) -> Iterator[str]:
    """Yield the entries of the log of a run or a scan in lines, until no process works on it.

    The logs of the runs of a scan are followed as well, and their lines begin with their names.
    """
    several = is_scan(path)
    logs: dict[Path, LogTail] = {}
    last: dict[Path, LogEntry] = {}
    while True:
        at_work = _at_work(path, several)  # before the logs are read, so that none is missed
        lines: list[tuple[str, str]] = []
        for folder in (path, *(sorted(path.glob("*/")) if several else ())):
            new: deque[LogEntry] = deque(maxlen=None if folder in logs else EARLIER)
            new.extend(logs.setdefault(folder, LogTail(folder)).new())
            name = "" if folder == path else f"{folder.name}: "
            lines += [(x.time, f"{name}{x}") for x in new]
            last.update((folder, x) for x in new if x.event in (SESSION, END))
        yield from (line for _, line in sorted(lines, key=lambda pair: pair[0]))
        if not at_work:
            break
        time.sleep(seconds)
    if path in last and last[path].event == SESSION:
        yield KILLED


def _at_work(path: Path, is_scan: bool) -> bool:
    """Return whether a process generates, measures, or carries out the scan or one of its runs."""
    folders = (path, *path.glob("*/")) if is_scan else (path,)
    return any(
        is_locked(lock)
        for folder in folders
        for lock in (Run(folder).lock, *folder.glob(".*.csv.lock"))
    )


SECONDS = 1.0
"""Minimum time in seconds between two snapshots."""

SHARE = 0.05
"""Fraction of the time that snapshots may take."""

BLOCKS, LETTERS = "▁▂▃▄▅▆▇█", "_.-=+*#@"
"""Heights of a sparkline, for terminals that show Unicode and for others."""

LOG_SHOWN = 4
"""Number of entries of the log that are shown."""

MEMBERS_SHOWN = 8
"""Number of runs of a scan at work that are shown."""

LEAST_HISTORIES = 3
"""Number of histories of a run that are shown even if the terminal is too low."""

WIDEST = 200
"""Number of columns beyond which lines are not made longer."""


def watch_in_terminal(watcher: Watcher, console: Console) -> None:
    """Show snapshots of a run or a scan until it is complete, or until Ctrl-C."""
    if not console.is_terminal:
        console.print(SnapshotView(watcher.snapshot(), whole=True), soft_wrap=True)
        return
    with suppress(KeyboardInterrupt), Live(console=console, auto_refresh=False) as live:
        while True:
            began = time.monotonic()
            snapshot = watcher.snapshot()
            live.update(SnapshotView(snapshot), refresh=True)
            if snapshot.over:
                return
            time.sleep(max(SECONDS, (time.monotonic() - began) / SHARE))


@dataclass(frozen=True)
class SnapshotView:
    """A snapshot as lines for a terminal, as wide as it is and no higher."""

    snapshot: LiveSnapshot
    """The snapshot."""
    whole: bool = False
    """Whether to show all lines, however many there are."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        unicode = console.encoding.lower().startswith("utf")
        page = _Page(min(options.max_width, WIDEST), BLOCKS if unicode else LETTERS)
        room = math.inf if self.whole else console.size.height - 1
        yield from page.lines(self.snapshot, room)


@dataclass(frozen=True)
class _Page:
    """The lines of a snapshot at a width."""

    width: int
    heights: str

    def lines(self, snapshot: LiveSnapshot, room: float) -> Iterator[RenderableType]:
        """Yield the lines, of which as many histories are left out as there is no room for."""
        head = [*self._head(snapshot), *self._cautions(snapshot)]
        last = snapshot.log[-LOG_SHOWN:]
        entries = [replace(x, time=x.time[5:19].replace("T", " ")) for x in last]
        log = [self._line(str(entry), "dim") for entry in entries]
        log = [self._line("log", "bold"), *log] if log else []
        room -= len(head) + len(log)
        middle: list[Text] = []
        for run in snapshot.runs:
            share = (room - len(middle)) if not snapshot.is_scan else room / len(snapshot.runs)
            middle += self._histories(run, share, snapshot.is_scan)
        yield from (*head, *middle, *log)

    def _head(self, snapshot: LiveSnapshot) -> Iterator[Text]:
        """Yield the lines about the state, the progress and the speed."""
        if snapshot.is_scan:
            yield self._title(snapshot)
            yield self._progress("", snapshot.done, "", snapshot.remaining_seconds)
            counts = Counter(member.state for member in snapshot.members)
            states = (COMPLETE, RUNNING, FAILED, STOPPED, WAITING)
            words = ", ".join(f"{counts[state]} {state}" for state in states if counts[state])
            speed = f"; {link_rate(snapshot.links_per_s)}" if snapshot.links_per_s else ""
            yield self._line(f"runs: {words}{speed}")
            working = [member for member in snapshot.members if member.state == RUNNING]
            for busy in working[:MEMBERS_SHOWN]:
                pace = f"  {link_rate(busy.links_per_s)}" if busy.links_per_s else "  starting"
                yield self._line(f"  {busy.point}  {busy.sweep}/{busy.sweeps} updates{pace}")
            if len(working) > MEMBERS_SHOWN:
                yield self._line(f"and {len(working) - MEMBERS_SHOWN} more at work", "dim")
            return
        (run,) = snapshot.runs
        yield self._title(snapshot)
        if run.chain:
            yield self._line(run.chain)
        if run.process:
            yield self._line(f"process {run.process}, on {run.device}", "dim")
        if run.sweeps:
            count = f"{run.sweep}/{run.sweeps} updates"
            yield self._progress(run.phase, run.done, count, run.remaining_seconds)
        if facts := self._facts(run):
            yield from self._wrapped(facts)

    def _facts(self, run: RunSnapshot) -> list[str]:
        """Return what is known about the speed, the algorithm and the files, in phrases."""
        facts = []
        if run.links_per_s and run.ns_per_link:
            pace = f"{run.ns_per_link:.3g} ns per link update"
            share = f", {run.benched:.0%} of the sweeps alone" if run.benched else ""
            facts.append(f"speed {link_rate(run.links_per_s)}, {pace}{share}")
        if total := sum(run.times.values()):
            longest = sorted(run.times.items(), key=lambda pair: -pair[1])
            shares = (f"{name} {spent / total:.0%}" for name, spent in longest if spent > 0)
            facts.append(f"time: {', '.join(shares)}")
        if run.acceptance and run.acceptance.average:
            facts.append(f"{run.acceptance.name} {run.acceptance.average.format()}")
        averaged = [h for h in run.histories if h.average and h.main]
        for series in averaged[:1]:
            number = series.average.samples if series.average else 0
            every = f" of {series.measurements}" * (number < series.measurements)
            facts.append(f"averages over {number}{every} measurements")
        if run.physics:
            facts.append(f"now {run.physics}")
        if run.configurations:
            facts.append(f"configurations {run.configurations}")
        if run.checkpoint_seconds is not None:
            age = duration(run.checkpoint_seconds)
            facts.append(f"checkpoint after update {run.checkpoint_sweep}, {age} ago")
        if run.joules:
            facts.append(f"energy {energy_text(run.joules)}")
        return facts

    def _cautions(self, snapshot: LiveSnapshot) -> Iterator[Text]:
        """Yield the warnings, each on as many lines as it needs."""
        named = [] if not snapshot.is_scan else snapshot.runs
        every = [*snapshot.warnings, *(f"{x.name}: {w}" for x in named for w in x.warnings)]
        for warning in every:
            for line in textwrap.wrap(printable(f"! {warning}"), self.width):
                yield Text(line, "yellow")

    def _histories(self, run: RunSnapshot, room: float, brief: bool) -> list[Text]:
        """Return the histories of a run, the main ones of each table first if room is short."""
        shown = [h for h in run.histories if h.main or not brief]
        lines = [self._line(run.name, "bold")] if brief and shown else []
        most = max(room - len(lines) - 1, LEAST_HISTORIES)
        rest: list[Text] = []
        if len(shown) > most:
            ranked = sorted(shown, key=lambda x: not x.main)[: int(most)]
            hidden = len(shown) - len(ranked)
            shown = [x for x in shown if x in ranked]
            rest = [self._line(f"and {hidden} more series, which a higher window shows", "dim")]
        if not shown and run.state != WAITING and not brief:
            return [self._line("nothing measured yet", "dim")]
        return [*lines, *self._sparklines(shown), *rest]

    def _sparklines(self, histories: Sequence[LiveSeries]) -> list[Text]:
        """Return a line for each history: name, average and sparkline."""
        names = [printable(h.name) for h in histories]
        numbers = [h.average.format() if h.average else f"{h.latest:.6g}" for h in histories]
        first = min(max(map(cell_len, names), default=0), max(6, self.width * 2 // 5))
        second = max(map(cell_len, numbers), default=0)
        width = max(1, self.width - first - second - 4)
        lines = []
        for history, name, number in zip(histories, names, numbers, strict=True):
            line = Text(_fitted(name, first))
            line.append(f"  {number:>{second}}  ", "bold")
            line.append(sparkline(history.values, width, self.heights), "cyan")
            lines.append(line)
        return lines

    def _progress(self, phase: str, fraction: float, count: str, remaining: float | None) -> Text:
        """Return a bar with what is done and the time to the end."""
        eta = "" if remaining is None else f"ETA {duration(remaining)}"
        words = "  ".join(filter(None, (f"{math.floor(100 * fraction)} %", count, eta)))
        room = max(0, self.width - cell_len(phase) - cell_len(words) - 3)
        full = round(fraction * room)
        unicode = self.heights is BLOCKS
        line = Text(f"{phase} " if phase else "", "bold")
        line.append(("━" if unicode else "#") * full, "green")
        line.append(("━" if unicode else "-") * (room - full), "bright_black")
        line.append(f"  {words}")
        line.truncate(self.width, overflow="ellipsis")
        return line

    def _wrapped(self, phrases: Sequence[str]) -> Iterator[Text]:
        """Yield phrases in as few lines as they need, without breaking one."""
        line = ""
        for phrase in phrases:
            longer = f"{line}; {phrase}" if line else phrase
            if line and cell_len(longer) > self.width:
                yield self._line(line)
                longer = phrase
            line = longer
        yield self._line(line)

    def _title(self, snapshot: LiveSnapshot) -> Text:
        """Return the line with the path, of which the beginning may be left out, and the state."""
        remark = f"; {snapshot.remark}" if snapshot.remark else ""
        state, path = f": {snapshot.state}{remark}", printable(snapshot.path)
        room = max(8, self.width - cell_len(state))
        while cell_len(path) > room:
            path = f"…{path[2:]}"
        return self._line(f"{path}{state}", "bold")

    def _line(self, words: str, style: str = "") -> Text:
        return Text(_fitted(printable(words), self.width).rstrip(), style)


def _fitted(words: str, width: int) -> str:
    """Return words in exactly so many columns, with an ellipsis in place of what does not fit."""
    if cell_len(words) <= width:
        return set_cell_size(words, width)
    return set_cell_size(words, width - 1) + "…"


def sparkline(values: Sequence[float], width: int, heights: str = BLOCKS) -> str:
    """Return a series as a line of characters of different heights."""
    series = np.asarray(values, np.float64)
    series = series[np.isfinite(series)]
    if series.size > width:
        series = np.array([part.mean() for part in np.array_split(series, width)])
    if not series.size:
        return ""
    low, span = series.min(), np.ptp(series)
    levels = (series - low) / span if span > 0 else np.full(series.size, 0.5)
    places = np.minimum(levels * len(heights), len(heights) - 1).astype(int)
    return "".join(heights[place] for place in places)
