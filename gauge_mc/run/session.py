"""Sessions: the work of one process, or of several processes together, on a run.

A run that was stopped at any point and resumed writes bit-for-bit the same configurations and
tables as an uninterrupted run.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.configurations.background import IN_FLIGHT, BackgroundWriter, prepare_writing
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import Table, Value
from gauge_mc.observables import SWEEP, Beginner, Deferred, Observable, live_observables
from gauge_mc.run.chain import Chain, provenance
from gauge_mc.run.directory import Run
from gauge_mc.run.functions import FunctionObservable
from gauge_mc.run.lock import RunLock
from gauge_mc.run.parameters import Measurement, Parameters
from gauge_mc.run.preparation import compile_kernels

StopReason = Callable[[float], str | None]
"""Function that takes the time in seconds that stopping would take, and returns the reason to stop
now, or None."""

OnUpdate = Callable[[Chain], object]
"""Function that is called after every update."""

SAFETY = 2.0
"""Ratio of the time allowed for the next update or checkpoint to the longest time so far."""

MARGIN = 1.0
"""Additional time in seconds that is allowed for stopping."""

FORGETTING = 0.9
"""Factor by which the longest update time decays in every update.

The first update, which may include compilation, is thus forgotten after a while."""

PENDING = 64
"""Number of measurements after which their records are fetched and added to the tables."""

RECORD_SECONDS = 1.0
"""Time in seconds between two records of the progress in the lock file."""


@dataclass
class Times:
    """Shares of a session's time, in seconds.

    Attributes
    ----------
    start : float
        Compiling kernels, and beginning or resuming the chain.
    update, measure : float
        Updates of the links, and measurements with their tables. On a GPU, what kernels of
        measurements take counts as updates, because the host does not wait for each of them.
    write : float
        Snapshots of configurations, and checkpoints.
    wait : float
        Waiting for configurations to be on disk.
    """

    start: float = 0.0
    update: float = 0.0
    measure: float = 0.0
    write: float = 0.0
    wait: float = 0.0

    @contextmanager
    def of(self, what: str) -> Iterator[None]:
        """Add the time that is spent in a context."""
        began = time.monotonic()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.monotonic() - began)


@dataclass(frozen=True)
class Work:
    """The task of a session.

    Attributes
    ----------
    run : Run
    lock : RunLock or None
        Run lock; None if this process is not the root.
    parameters : Parameters
        Parameters of the run, as in run.toml.
    observables : dict of Measurement to Observable
        Observables to measure.
    devices : DeviceGroup
    checkpoint_every : float
        Time in seconds between checkpoints.
    stop : callable
        See `StopReason`.
    report : callable
        Function that is called after every update to show the progress.
    on_update : callable, optional
        The user's callback, called after every update. A true result stops the run.
    times : Times
        Shares of the time so far; the session adds to them.
    """

    run: Run
    lock: RunLock | None
    parameters: Parameters
    observables: dict[Measurement, Observable]
    devices: DeviceGroup
    checkpoint_every: float
    stop: StopReason
    report: OnUpdate
    on_update: OnUpdate | None = None
    times: Times = field(default_factory=Times)


def carry_out(work: Work) -> tuple[Chain, str | None]:
    """Carry out the remaining part of a run.

    In an MPI job all processes call this function; the root decides when to write checkpoints.

    Returns
    -------
    Chain
        Chain at the end of the session.
    str or None
        Reason why the session stopped before the end of the run; None if the run is complete.

    Raises
    ------
    GaugeError
        If files of the run are damaged or cannot be written. The last checkpoint remains valid.
    Exception
        If a user's function raises an exception. A checkpoint is written before.
    """
    with ExitStack() as files:
        with work.times.of("start"):
            session = Session(work, files)
        reason = session.run()
        session.finish()
    return session.chain, reason


class Session:
    """The state of a session: the chain, the open tables, and the times of the last steps.

    Parameters
    ----------
    work : Work
    files : ExitStack
        Context that closes the tables.
    """

    def __init__(self, work: Work, files: ExitStack) -> None:
        self._work = work
        self._tables: dict[Measurement, Table] = {}
        self._stopped_by_user = False
        self._update_time = self._last_write = 0.0
        self._writer = BackgroundWriter()
        self._recorded_at = -math.inf
        self._begun: list[tuple[Measurement, int, Deferred]] = []
        self._set_up_chain()
        self._first_sweep, self._first_at = self.chain.sweep + 1, math.inf
        self._saved, self._saved_at = (self.chain.sweep, self._measured), time.monotonic()
        self._set_up_observables()
        if self.chain.root:
            self._open_tables(files)
        files.enter_context(self._writer)  # which is closed before the tables

    def run(self) -> str | None:
        """Update, measure and write until the run is complete or there is a reason to stop.

        Returns
        -------
        str or None
            Reason why the session stopped before the end of the run; None if the run is complete.
        """
        chain, parameters = self.chain, self._work.parameters
        processes = self._work.devices.processes
        if not self._measured:
            self._sample()
        while chain.sweep < parameters.updates:
            reasons = processes.gather(self._reason())
            if reason := next((one for one in reasons if one), None):
                return reason
            self._advance()
            due = processes.broadcast(self._since_save >= self._work.checkpoint_every)
            if due and chain.sweep < parameters.updates:
                self.save()
        return None

    def _reason(self) -> str | None:
        """Return the reason why this process should stop now, or None."""
        return "on_update" if self._stopped_by_user else self._work.stop(self._seconds_to_stop)

    @property
    def _seconds_to_stop(self) -> float:
        """Upper estimate of the time in seconds for one more update and a checkpoint."""
        writing = IN_FLIGHT * self._writer.seconds + self._save_time
        return SAFETY * (self._update_time + writing) + MARGIN

    @property
    def _since_save(self) -> float:
        """Time in seconds since the last checkpoint."""
        return time.monotonic() - self._saved_at

    def _set_up_chain(self) -> None:
        """Resume the chain, or begin it and write a first checkpoint.

        The first checkpoint is written before anything else. Results without a checkpoint are
        therefore an error, and results later than the checkpoint can be computed again.
        """
        work, began = self._work, time.monotonic()
        path = work.run.checkpoint
        resumed = work.devices.processes.broadcast(path.exists())
        compile_kernels(work.parameters, work.observables.values(), work.devices, resumed)
        if resumed:
            self.chain, state = Chain.resume(work.parameters, work.devices, path)
            self._measured = state.measured
            self._save_time = time.monotonic() - began
            return
        if work.devices.root:
            _refuse_leftovers(work)
        self.chain, self._measured = Chain.begin(work.parameters, work.devices), True
        began = time.monotonic()
        self.chain.save(path)
        self._save_time = time.monotonic() - began

    def _set_up_observables(self) -> None:
        """Create the measurers, and call each of them once to compile its kernels.

        The kernels that write configurations are loaded as well, and the observables of the
        progress display are also called once, so that the time of compilation does not enter the
        rates of the session. For user-defined observables the call also determines the columns of
        the table.
        """
        observables, field = self._work.observables, self.chain.field
        with self._saving_on_failure():
            for observable in observables.values():
                if isinstance(observable, FunctionObservable):
                    observable.prepare(field)
            self._measurers: dict[Measurement, Beginner] = {
                item: observable.beginner(field) for item, observable in observables.items()
            }
            for begin in self._measurers.values():
                begin(field)()
        p = self._work.parameters
        if p.keeps_configs:
            prepare_writing(field, p.format)
        measured = {observable.name for observable in observables.values()}
        for observable in live_observables(field.lattice):
            if observable.name not in measured:
                observable.measure(field)

    def _open_tables(self, files: ExitStack) -> None:
        """Open the tables, and remove rows and configurations later than the checkpoint."""
        work, chain = self._work, self.chain
        written = chain.sweep if self._measured else chain.sweep - 1
        for item, observable in work.observables.items():
            header = {**observable.header, **provenance(work.parameters)}
            columns = (SWEEP, *observable.columns)
            table = files.enter_context(Table(work.run.table(item.observable), header, columns))
            measurements = max(0, written - work.parameters.thermalize) // item.every
            table.truncate(after=written, expected=measurements * observable.records)
            self._tables[item] = table
        for sweep, path in work.run.config_files():
            if sweep > written:
                _refuse_stranger(work, sweep, path)
                path.unlink()

    def _advance(self) -> None:
        """Do one update, and measure and write what is due after it."""
        began, times = time.monotonic(), self._work.times
        with times.of("update"):
            self.chain.update()
        self._measured = False
        self._sample()
        ended = time.monotonic()
        self._update_time = max(ended - began - self._last_write, FORGETTING * self._update_time)
        self._first_at = min(self._first_at, ended)
        with self._saving_on_failure():
            self._work.report(self.chain)
        if self._work.on_update:
            with self._saving_on_failure():
                self._stopped_by_user = bool(self._work.on_update(self.chain))
        if time.monotonic() - self._recorded_at >= RECORD_SECONDS:
            if self._work.devices.processes.size == 1:  # the others do not know the time
                self._collect()
            self._record_progress()

    def _sample(self) -> None:
        """Measure and write what is due after the last update."""
        p, chain = self._work.parameters, self.chain
        done = chain.sweep - p.thermalize
        with self._work.times.of("measure"):
            for item, begin in self._measurers.items():
                if is_due(done, item.every):
                    with self._saving_on_failure():
                        self._begun.append((item, chain.sweep, begin(chain.field)))
        if len(self._begun) >= PENDING:
            self._collect()
        began = time.monotonic()
        if p.keeps_configs and is_due(done, p.separation):
            path = self._work.run.config(chain.sweep, p.format)
            self._collect()
            with self._writing():
                chain.write(path, self._writer, before=self._sync)
        self._writer.check()
        self._last_write = time.monotonic() - began
        self._measured = True

    def _collect(self) -> None:
        """Add the records of all measurements that have begun to the tables, in order."""
        if not self._begun:
            return
        with self._work.times.of("update"):
            self.chain.field.devices.synchronize()
        with self._work.times.of("measure"):
            self._add_rows()

    def _add_rows(self) -> None:
        rows: dict[Measurement, list[tuple[Value, ...]]] = {}
        for item, sweep, deferred in self._begun:
            records = deferred()
            rows.setdefault(item, []).extend((sweep, *record) for record in records)
        self._begun.clear()
        if self.chain.root:
            for item, some in rows.items():
                self._tables[item].append(some)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Divide the time of a context into writing, and waiting for the disk."""
        times, waited = self._work.times, self._writer.waited
        with times.of("write"):
            yield
        times.write -= self._writer.waited - waited
        times.wait += self._writer.waited - waited

    def save(self) -> None:
        """Write a checkpoint, unless the last one is up to date."""
        if (self.chain.sweep, self._measured) == self._saved:
            return
        began = time.monotonic()
        self._collect()
        with self._writing():
            self._writer.flush()
            self._sync()
            self.chain.save(self._work.run.checkpoint, self._measured)
        self._saved, self._saved_at = (self.chain.sweep, self._measured), time.monotonic()
        self._save_time = max(self._save_time, self._saved_at - began)

    def finish(self) -> None:
        """Seal the tables, then write a checkpoint, and record the progress.

        In this order the tables of every run whose checkpoint is complete are sealed.
        """
        self._collect()
        with self._writing():
            self._writer.flush()
        for table in self._tables.values():
            table.seal()
        self._tables.clear()
        self.save()
        self._record_progress()

    @contextmanager
    def _saving_on_failure(self) -> Iterator[None]:
        """Write a checkpoint if a user's function fails, so that no work is lost.

        This is possible only for a single process, because writing a checkpoint needs all processes
        and the others may not have failed.
        """
        try:
            yield
        except Exception as error:
            alone = self._work.devices.processes.size == 1
            its_own = isinstance(error, UsageError) or not isinstance(error, GaugeError)
            if alone and its_own:
                self.finish()
            raise

    def _record_progress(self) -> None:
        """Record the progress in the lock file, where other processes can read it."""
        lock, now = self._work.lock, time.monotonic()
        if lock:
            self._recorded_at = now
            elapsed = now - self._first_at
            rate = (self.chain.sweep - self._first_sweep) / elapsed if elapsed > 0 else 0.0
            times = {name: round(spent, 3) for name, spent in asdict(self._work.times).items()}
            lock.record(replace(lock.holder, sweep=self.chain.sweep, rate=rate, times=times))

    def _sync(self) -> None:
        for table in self._tables.values():
            table.sync()


def is_due(done: int, every: int) -> bool:
    """Return whether something that happens at an interval is due.

    Parameters
    ----------
    done : int
        Number of updates after thermalisation.
    every : int
        Interval in updates.
    """
    return done > 0 and done % every == 0


def _refuse_stranger(work: Work, sweep: int, path: Path) -> None:
    """Check that a configuration later than the checkpoint is one that the run writes again."""
    p, header = work.parameters, None
    due = is_due(sweep - p.thermalize, p.separation) and sweep <= p.updates
    if p.keeps_configs and due and path == work.run.config(sweep, p.format):
        with suppress(GaugeError):
            header = open_configuration(path).header
    said = header.provenance if header else {}
    origin = {"sequence_number": str(sweep)}
    if re.fullmatch("[!-~]{1,200}", p.name):  # formats store other names differently
        origin["ensemble_id"] = p.name
    same = header and (header.group, header.lattice, header.precision) == (
        p.group,
        p.lattice,
        p.precision,
    )
    if not same or any(said.get(name, value) != value for name, value in origin.items()):
        raise GaugeError(
            f"{path} is later than the checkpoint and does not seem to be a configuration of this "
            "run, which would replace it; move it to another folder."
        )


def _refuse_leftovers(work: Work) -> None:
    """Check that a directory without a checkpoint contains no results."""
    run = work.run
    tables = [run.table(item.observable) for item in work.parameters.measure]
    if run.configs() or any(table.exists() for table in tables):
        how = "--start from its last configuration and " if run.configs() else ""
        raise GaugeError(
            f"The run {run.path} contains results but no checkpoint; start a new run with "
            f"{how}another --output."
        )


def version() -> str:
    """Return the name and version of the program, for the headers of files."""
    return f"gauge-mc {__version__}"
