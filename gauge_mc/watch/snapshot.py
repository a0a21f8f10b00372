"""Snapshots of runs and scans at work, from their files only."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.benchmarks.over import SavedBenchmark
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column
from gauge_mc.files.table import TableData, TableTail
from gauge_mc.inspection.status import run_status
from gauge_mc.observables import table_name
from gauge_mc.reports.page import columns_of, single
from gauge_mc.results import documented, result_field
from gauge_mc.run import thermalisation as transients
from gauge_mc.run.directory import Run, missing_run
from gauge_mc.run.log import LOG, LogEntry, LogTail
from gauge_mc.run.state import COMPLETE, FAILED, RUNNING, STOPPED, WAITING, RunState, describe
from gauge_mc.scans.carry_out import MemberState, share_done
from gauge_mc.scans.scan import Member, Scan, is_scan

POINTS = 400
"""Largest number of points of a history."""

LOG_LINES = 20
"""Number of entries of the log that a snapshot has."""

DETAILED = 4
"""Number of runs of a scan that are shown with their histories."""

ADVANCES = {table_name(name) for name in ALGORITHMS}
"""Names of the tables of algorithms."""

GROWTH = 1.1
"""Factor by which a table grows before averages and warnings are computed again."""

REMARKS = {STOPPED: "it can be continued", WAITING: "it has not begun yet"}
"""Sentences that live views add to a state."""

UNFIT_BENCH = (
    "The benchmark does not fit the run: it is of other devices, another group, precision, action "
    "or random number generator, or the run's algorithm is not one of sweeps."
)


@documented
@dataclass(frozen=True)
class LiveSeries:
    """A quantity along a run, as its column declares it."""

    table: str = result_field("Name of the file of its table.")
    column: str = result_field("Name of its column.")
    name: str = result_field("Name for readers, such as ``Polyakov loop, modulus``.")
    symbol: str = result_field("Symbol in text; by default the name of the column.")
    label: str = result_field("Label of an axis, in Matplotlib's mathematical text, with the unit.")
    unit: str = result_field("Unit; empty if the quantity is dimensionless.")
    main: bool = result_field("Whether it stands for its table where there is room for one only.")
    sweeps: tuple[int, ...] = result_field("Last update of every point, ascending.")
    values: tuple[float, ...] = result_field(
        "Mean over the measurements of every point; all have the same number of measurements."
    )
    per_point: int = result_field("Number of measurements of a point.")
    measurements: int = result_field("Number of measurements so far.")
    latest: float = result_field("The last measurement.")
    average: Estimate | None = result_field(
        "Average without the transient, over the measurements so far or over slightly fewer; None "
        "if there is no measurement yet. tau_int is in measurements."
    )


@documented
@dataclass(frozen=True)
class RunSnapshot(RunState):
    """State of a run at a moment, with its histories."""

    path: str = result_field("Run directory.")
    name: str = result_field("Name of the run directory.")
    warnings: tuple[str, ...] = result_field(
        "Warnings, one sentence each: damage, thermalisation, and series that are too short.", ()
    )
    log: tuple[LogEntry, ...] = result_field("The last entries of the log.", ())
    chain: str = result_field("Short description of the chain; empty if the run has not begun.", "")
    process: str = result_field(
        "Process that works on the run, its host, and since when; empty if there is none.", ""
    )
    device: str = result_field("Devices of the last session; empty if there is none.", "")
    configurations: str = result_field(
        "Number of configurations written and in total, such as ``3 of 10``; empty if none is "
        "kept.",
        "",
    )
    checkpoint_sweep: int | None = result_field(
        "Number of updates in the last checkpoint; None if there is no checkpoint.", None
    )
    checkpoint_seconds: float | None = result_field("Age of the last checkpoint in seconds.", None)
    benched: float | None = result_field(
        "Speed divided by that of the sweeps alone as ``gauge-mc bench`` has measured it; None if "
        "unknown.",
        None,
    )
    acceptance: LiveSeries | None = result_field(
        "Main quantity of the algorithm, such as the acceptance of trajectories; None if it has "
        "none.",
        None,
    )
    left_out: int = result_field(
        "Last update that averages leave out, since the run has not thermalised there.", 0
    )
    histories: tuple[LiveSeries, ...] = result_field(
        "Quantities of all tables with averages, in the order of tables and columns.", ()
    )


@documented
@dataclass(frozen=True)
class LiveSnapshot:
    """State of a run or a scan at a moment, which live views show."""

    path: str = result_field("Directory of the run or the scan.")
    is_scan: bool = result_field("Whether it is a scan, which consists of runs.")
    time: float = result_field("Time at which it was made, in seconds since 1970.")
    state: str = result_field("``waiting``, ``running``, ``complete`` or ``stopped``.")
    done: float = result_field("Fraction of the work that is done, from 0 to 1.")
    links_per_s: float | None = result_field(
        "Link updates per second of all processes at work; None if unknown."
    )
    remaining_seconds: float | None = result_field(
        "Time to the end at this speed, in seconds; None if unknown."
    )
    members: tuple[MemberState, ...] = result_field("The runs of a scan; empty for a run.")
    runs: tuple[RunSnapshot, ...] = result_field(
        "The run; of a scan the ones at work, or else the last ones begun, at most `DETAILED`."
    )
    warnings: tuple[str, ...] = result_field(
        "Warnings of the run; of a scan the messages of runs that have failed."
    )
    log: tuple[LogEntry, ...] = result_field("The last entries of the log of the run or the scan.")

    @property
    def remark(self) -> str:
        """Remark on the state, such as "it can be continued", or nothing."""
        return REMARKS.get(self.state, "")

    @property
    def over(self) -> bool:
        """Whether there is nothing to wait for: the work is complete."""
        return self.state == COMPLETE


class Watcher:
    """A source of snapshots of a run or a scan, which reads only what has changed.

    Parameters
    ----------
    path : Path
        Directory of the run or the scan, which need not exist yet.
    bench : SavedBenchmark, optional
        What ``gauge-mc bench`` has measured on the same devices.
    """

    def __init__(self, path: Path, bench: SavedBenchmark | None = None) -> None:
        self.path, self.bench = path, bench
        self._runs: dict[Path, _WatchedRun] = {}
        self._members: dict[Path, tuple[tuple[int, int], int]] = {}
        self._log = _LogLines(path)

    def check_begun(self) -> None:
        """Refuse a path that is neither a run nor a scan, as one that is mistyped."""
        if not is_scan(self.path) and not Run(self.path).exists():
            words = str(missing_run(self.path))
            raise UsageError(f"{words} To wait for one that begins there, add --wait.")

    def snapshot(self) -> LiveSnapshot:
        """Return a snapshot of this moment."""
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; name the directory of a run or a scan.")
        if is_scan(self.path):
            return self._of_scan(Scan.read(self.path))
        run = self._run(self.path)
        progress = run.state, run.done, run.links_per_s, run.remaining_seconds
        path, now = str(self.path), time.time()
        return LiveSnapshot(path, False, now, *progress, (), (run,), run.warnings, run.log)

    def _run(self, path: Path) -> RunSnapshot:
        return self._runs.setdefault(path, _WatchedRun(path, self.bench)).snapshot()

    def _of_scan(self, scan: Scan) -> LiveSnapshot:
        failures, members = scan.failures(), scan.members()
        entries = [MemberState.of(member, failures, self._saved(member)) for member in members]
        share, links = share_done(members, entries)
        states = {x.state for x in entries}
        state = RUNNING if RUNNING in states else STOPPED if states - {WAITING} else WAITING
        state = COMPLETE if states == {COMPLETE} else state
        rate = sum(x.links_per_s or 0.0 for x in entries) or None
        subject, progress = (str(self.path), True, time.time()), (state, share, rate)
        working = [entry.name for entry in entries if entry.state == RUNNING]
        begun = [entry.name for entry in entries if entry.state != WAITING and entry.sweep]
        detailed = working[:DETAILED] or begun[-DETAILED:]
        runs = tuple(self._run(self.path / name) for name in detailed)
        failed = (x.name for x in entries if x.state == FAILED)
        warnings = tuple(f"{name}: {failures[name]}" for name in failed)
        remaining, log = links / rate if rate else None, self._log.last()
        return LiveSnapshot(*subject, *progress, remaining, tuple(entries), runs, warnings, log)

    def _saved(self, member: Member) -> int:
        """Return the number of updates in the checkpoint, which is read if it has changed."""
        try:
            status = member.run.checkpoint.stat()
        except OSError:
            return 0
        key = (status.st_ino, status.st_mtime_ns)
        cached = self._members.get(member.run.path)
        if cached is None or cached[0] != key:
            cached = self._members[member.run.path] = (key, member.sweep())
        return cached[1]


def _leads_out(path: Path) -> bool:
    """Return whether a file of a run is a link out of its directory, of which no view shows any."""
    return path.is_symlink() and path.resolve().parent != path.parent.resolve()


class _LogLines:
    """The last lines of a log."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG
        self._tail = LogTail(folder)
        self._lines: deque[LogEntry] = deque(maxlen=LOG_LINES)

    def last(self) -> tuple[LogEntry, ...]:
        if not _leads_out(self._path):
            self._lines.extend(self._tail.new())
        return tuple(self._lines)


class _WatchedRun:
    """A run, of which only what has changed is read."""

    def __init__(self, path: Path, bench: SavedBenchmark | None = None) -> None:
        self.run, self.bench = Run(path), bench
        self._tables: dict[Path, _WatchedTable] = {}
        self._log = _LogLines(path)
        self._measured, self._cut = -1, 0
        self._warnings: list[str] = []

    def snapshot(self) -> RunSnapshot:
        path = self.run.path
        named = partial(RunSnapshot, str(path), path.resolve().name, log=self._log.last())
        if not self.run.exists():
            return named(state=WAITING)
        try:
            now = run_status(self.run)
            p, sessions = self.run.read()
        except GaugeError as error:
            return named(state=STOPPED, warnings=(str(error),))
        tables, damaged = self._read()
        self._judge(tables)
        histories = tuple(h for table in tables for h in table.histories(self._cut))
        of_algorithm = (h for h in histories if h.main and Path(h.table).stem in ADVANCES)
        device = sessions[-1].device if sessions else ""
        benched = self.bench.ns_per_link(p, device) if self.bench else None
        unfit = (UNFIT_BENCH,) if self.bench and sessions and not benched else ()
        return named(
            **{field.name: getattr(now, field.name) for field in fields(RunState)},
            warnings=(*damaged, *unfit, *self._warnings),
            chain=describe(p),
            process=f"{now.process} on {now.host} since {now.since}" if now.process else "",
            device=device,
            configurations=f"{now.configurations} of {p.configs}" if p.keeps_configs else "",
            checkpoint_sweep=now.checkpoint_sweep,
            checkpoint_seconds=now.checkpoint_seconds,
            benched=benched * now.links_per_s / 1e9 if benched and now.links_per_s else None,
            acceptance=next(of_algorithm, None),
            left_out=self._cut,
            histories=histories,
        )

    def _read(self) -> tuple[list[_WatchedTable], list[str]]:
        """Read what is new in the tables; return them, and sentences about damaged ones."""
        tables, damaged = [], []
        for path in self.run.tables():
            if _leads_out(path):
                damaged.append(f"{path} is a link to another folder, so that it is not shown.")
                continue
            table = self._tables.setdefault(path, _WatchedTable(path))
            try:
                table.read()
            except GaugeError as error:
                damaged.append(str(error))
                del self._tables[path]
            else:
                tables.append(table)
        return tables, damaged

    def _judge(self, tables: Sequence[_WatchedTable]) -> None:
        """Look for transients and short series, if the tables have grown enough since last time."""
        rows = sum(len(table.data) for table in tables)
        if self._measured <= rows < GROWTH * max(self._measured, 0.9):
            return
        self._measured = rows
        every = [
            (table.path.name, series)
            for table in tables
            for series in transients.series_of(table.data)
        ]
        thermalisation = transients.thermalisation_of(
            self.run.path, every, transients.compared_starts(self.run.path)
        )
        self._cut = thermalisation.update
        slowest = [x for table in tables if (x := table.average(self._cut))]
        worst = max(slowest, key=lambda x: x.tau_int / x.samples, default=None)
        self._warnings = [*thermalisation.cautions, *(worst.cautions if worst else ())]


class _WatchedTable:
    """A table, of which only new rows are read."""

    data: TableData

    def __init__(self, path: Path) -> None:
        self.path, self._tail = path, TableTail(path)
        self._averages: dict[str, Estimate] = {}

    def read(self) -> None:
        """Read the new rows."""
        self.data = self._tail.read()

    def average(self, cut: int) -> Estimate | None:
        """Average the columns after an update; return the average of the slowest one."""
        self._averages = {
            column.name: estimate(values[sweeps > cut])
            for column, sweeps, values in _series(self.data)
            if (sweeps > cut).any()
        }
        finite = [a for a in self._averages.values() if math.isfinite(a.tau_int)]
        return max(finite, key=lambda x: x.tau_int / x.samples, default=None)

    def histories(self, cut: int) -> list[LiveSeries]:
        """Return the histories of the columns."""
        series = []
        columns = list(_series(self.data))
        main = next((c.name for c, *_ in columns if c.main), columns[0][0].name if columns else "")
        for column, sweeps, values in columns:
            words = column.average or column.short, column.short, column.label, column.unit
            points = _points(sweeps, values)
            shown = (*words, column.name == main, *points, values.size, float(values[-1]))
            average = self._averages.get(column.name)
            series.append(LiveSeries(self.path.name, column.name, *shown, average))
        return series


def _points(
    sweeps: NDArray[np.int64], values: NDArray[np.float64]
) -> tuple[tuple[int, ...], tuple[float, ...], int]:
    """Return a series in at most `POINTS` points, each the mean of equally many measurements.

    The last update and the mean of every point are returned, and the number of its measurements.
    """
    length = 1
    while values.size // length > POINTS:
        length *= 2
    end = values.size // length * length
    means = values[:end].reshape(-1, length).mean(axis=1)
    return tuple(sweeps[length - 1 : end : length].tolist()), tuple(means.tolist()), length


Series = tuple[Column, NDArray[np.int64], NDArray[np.float64]]
"""A column of a table, numbers of updates, and values, of shape (samples,)."""


def _series(table: TableData) -> Iterator[Series]:
    """Yield the columns of a table that are shown, with the updates and the values.

    The mean over the rows of each measurement is shown if a table has several.
    """
    yield from columns_of(table)
    if len(table) and SWEEP in table and not single(table):
        updates, first = np.unique(table[SWEEP], return_index=True)
        rows = np.diff(first, append=len(table))
        made_by, columns = transients.declared_columns(table)
        for column in columns:
            if column.kind is float and not column.index and column.name in table:
                values = np.asarray(table[column.name], np.float64)
                name = f"{made_by}, mean of {column.short}"
                yield replace(column, average=name), updates, np.add.reduceat(values, first) / rows
