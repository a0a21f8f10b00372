"""A session: one process, or several together, at work on a run on disk.

A run that was stopped at any instant and resumed writes the same configurations and tables, bit for
bit, as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from gauge_mc import __version__
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import Table
from gauge_mc.observables import SWEEP, Measurer, Observable, live_observables
from gauge_mc.run.chain import Chain, provenance
from gauge_mc.run.directory import Run
from gauge_mc.run.functions import FunctionObservable
from gauge_mc.run.lock import RunLock
from gauge_mc.run.parameters import Measurement, Parameters

StopReason = Callable[[float], str | None]
"""Takes how many seconds it takes to stop in order; returns why to stop now, or None."""

OnUpdate = Callable[[Chain], object]
"""Called after every update."""

SAFETY = 2.0
"""Factor between the longest update or checkpoint so far and what is allowed for the next one."""

MARGIN = 1.0
"""Seconds that are allowed for stopping besides the update and the checkpoint."""

FORGETTING = 0.9
"""Share of the longest update so far that is remembered, so that compiling in the first update does
not count for ever."""

RECORD_SECONDS = 1.0
"""Seconds between two notes of the progress in the lock file."""


@dataclass(frozen=True)
class Work:
    """What a session is to do.

    Attributes
    ----------
    run : Run
    lock : RunLock or None
        The run's lock, if this process is the root.
    parameters : Parameters
        As in run.toml.
    observables : dict of Measurement to Observable
        What is measured.
    devices : DeviceGroup
    checkpoint_every : float
        Seconds.
    stop : callable
        See `StopReason`.
    report : callable
        Called after every update to show the progress.
    on_update : callable, optional
        The user's own callback; a true result stops the run in order.
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


def carry_out(work: Work) -> tuple[Chain, str | None]:
    """Carry out a run, or what is left of it.

    Several processes do so together; the root decides when something is due.

    Returns
    -------
    Chain
        The chain at its end.
    str or None
        Why it stopped before the end of the run, or None.

    Raises
    ------
    GaugeError
        If the run's files are damaged or cannot be written. The last checkpoint is whole.
    Exception
        What a user's own function raises. A checkpoint has been written before.
    """
    with ExitStack() as files:
        session = Session(work, files)
        reason = session.run()
        session.finish()
    return session.chain, reason


class Session:
    """A chain at work on a run.

    Parameters
    ----------
    work : Work
    files : ExitStack
        Closes the tables.
    """

    def __init__(self, work: Work, files: ExitStack) -> None:
        self._work = work
        self._tables: dict[Measurement, Table] = {}
        self._stopped_by_user = False
        self._update_time = self._write_time = self._last_write = 0.0
        self._recorded_at = -math.inf
        self._set_up_chain()
        self._saved, self._saved_at = (self.chain.sweep, self._measured), time.monotonic()
        self._set_up_observables()
        if self.chain.root:
            self._open_tables(files)
        self._first_sweep, self._first_at = self.chain.sweep + 1, math.inf

    def run(self) -> str | None:
        """Update, measure and write until all is done; return why it stopped earlier, or None."""
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
        """Return why this process should stop now, or None."""
        return "on_update" if self._stopped_by_user else self._work.stop(self._seconds_to_stop)

    @property
    def _seconds_to_stop(self) -> float:
        """A cautious estimate of how long one more update and a checkpoint take."""
        writing = max(self._write_time, self._save_time)
        return SAFETY * (self._update_time + writing) + MARGIN

    @property
    def _since_save(self) -> float:
        """Seconds since the last checkpoint."""
        return time.monotonic() - self._saved_at

    def _set_up_chain(self) -> None:
        """Resume the chain, or begin it and write a first checkpoint.

        The first checkpoint comes before anything else is written. So whatever lies beyond a
        checkpoint is work that will be repeated, and files without a checkpoint are a mistake.
        """
        work, began = self._work, time.monotonic()
        path = work.run.checkpoint
        if work.devices.processes.broadcast(path.exists()):
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
        """Make the measurers and call each once, so that the kernels are compiled.

        The time that this takes must not count in the rates of the session, which may show more
        than is measured. What the user's own functions return becomes known as well.
        """
        observables, field = self._work.observables, self.chain.field
        with self._saving_on_failure():
            for observable in observables.values():
                if isinstance(observable, FunctionObservable):
                    observable.prepare(field)
            self._measurers: dict[Measurement, Measurer] = {
                item: observable.measurer(field) for item, observable in observables.items()
            }
            for measure in self._measurers.values():
                measure(field)
        measured = {observable.name for observable in observables.values()}
        for observable in live_observables(field.lattice):
            if observable.name not in measured:
                observable.measure(field)

    def _open_tables(self, files: ExitStack) -> None:
        """Open the tables with exactly the rows up to where the chain is; drop later files."""
        work, chain = self._work, self.chain
        written = chain.sweep if self._measured else chain.sweep - 1
        for item, observable in work.observables.items():
            header = {**observable.header, **provenance(work.parameters)}
            columns = (SWEEP, *observable.columns)
            table = files.enter_context(Table(work.run.table(item.observable), header, columns))
            measurements = max(0, written - work.parameters.thermalize) // item.every
            table.truncate(after=written, expected=measurements * observable.records)
            self._tables[item] = table
        for sweep, path in work.run.configs().items():
            if sweep > written:
                path.unlink()

    def _advance(self) -> None:
        """Do one update, and what is due after it."""
        began = time.monotonic()
        self.chain.update()
        self._measured = False
        self._sample()
        ended = time.monotonic()
        self._update_time = max(ended - began - self._last_write, FORGETTING * self._update_time)
        self._first_at = min(self._first_at, ended)
        self._work.report(self.chain)
        if self._work.on_update:
            with self._saving_on_failure():
                self._stopped_by_user = bool(self._work.on_update(self.chain))
        self._record_progress()

    def _sample(self) -> None:
        """Measure and write what is due after the last update."""
        p, chain = self._work.parameters, self.chain
        done = chain.sweep - p.thermalize
        for item, measure in self._measurers.items():
            if is_due(done, item.every):
                with self._saving_on_failure():
                    records = measure(chain.field)
                if chain.root:
                    rows = [(chain.sweep, *record) for record in records]
                    self._tables[item].append(rows)
        began = time.monotonic()
        if p.keeps_configs and is_due(done, p.separation):
            self._sync()
            chain.write(self._work.run.config(chain.sweep, p.format))
        self._last_write = time.monotonic() - began
        self._write_time = max(self._write_time, self._last_write)
        self._measured = True

    def save(self) -> None:
        """Write a checkpoint, if there is anything new."""
        if (self.chain.sweep, self._measured) == self._saved:
            return
        began = time.monotonic()
        self._sync()
        self.chain.save(self._work.run.checkpoint, self._measured)
        self._saved, self._saved_at = (self.chain.sweep, self._measured), time.monotonic()
        self._save_time = max(self._save_time, self._saved_at - began)

    def finish(self) -> None:
        """Seal the tables and write a checkpoint.

        In this order, so that the tables of a run are sealed when its checkpoint is the last one.
        """
        for table in self._tables.values():
            table.seal()
        self._tables.clear()
        self.save()

    @contextmanager
    def _saving_on_failure(self) -> Iterator[None]:
        """Write a checkpoint if a user's own function fails, so that no work is lost.

        Of several processes others may not have failed, and cannot take part in a checkpoint.
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
        """Note for other processes, once a second, how far the chain is."""
        lock, now = self._work.lock, time.monotonic()
        if lock and now - self._recorded_at >= RECORD_SECONDS:
            self._recorded_at = now
            elapsed = now - self._first_at
            rate = (self.chain.sweep - self._first_sweep) / elapsed if elapsed > 0 else 0.0
            lock.record(replace(lock.holder, sweep=self.chain.sweep, rate=rate))

    def _sync(self) -> None:
        for table in self._tables.values():
            table.sync()


def is_due(done: int, every: int) -> bool:
    """Return whether something is due `done` updates after thermalisation."""
    return done > 0 and done % every == 0


def _refuse_leftovers(work: Work) -> None:
    """Refuse a directory that has results but no checkpoint."""
    run = work.run
    tables = [run.table(item.observable) for item in work.parameters.measure]
    if run.configs() or any(table.exists() for table in tables):
        how = "from its last configuration, with --start and" if run.configs() else "with another"
        raise GaugeError(
            f"The run {run.path} has lost its checkpoint; start a new one {how} --output."
        )


def version() -> str:
    """Return the program and its version, as in the headers of files."""
    return f"gauge-mc {__version__}"
