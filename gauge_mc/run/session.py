"""Sessions: the work of one process, or of several processes together, on a run or on a batch.

A run that was stopped at any point and resumed writes bit-for-bit the same configurations and
tables as an uninterrupted run.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc import algorithms
from gauge_mc.configurations.background import IN_FLIGHT, BackgroundWriter, prepare_writing
from gauge_mc.errors import ChainError, GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import SWEEP, TableColumns
from gauge_mc.files.table import Table
from gauge_mc.observables import Observable, Record, Records, RecordsOfTables, check_records
from gauge_mc.run.chain import Batch, Chain, is_configuration, provenance, version
from gauge_mc.run.checkpoint import ChainState, replaced_together
from gauge_mc.run.disk import DiskGuard, memory_beside
from gauge_mc.run.functions import FunctionObservable
from gauge_mc.run.log import CHECKPOINT, RunLog
from gauge_mc.run.measurement import Measurement, is_due
from gauge_mc.run.parameters import TEMPERING
from gauge_mc.run.request import ChainTask, SessionPlan, compile_kernels
from gauge_mc.updates.chain_steps import COLUMNS, NORMALISATION


class UpdateRecords(Observable):
    """The records of updates or exchanges of a batch, as an observable.

    It is its own recorder; see `Recorder`.

    Parameters
    ----------
    name : str
        Name of the table.
    columns : TableColumns
        The values in a record.
    normalisation : str
        Their definitions.
    latest : callable
        Function that returns the last record of every chain.
    chains : int
        Number of chains.
    """

    def __init__(
        self,
        name: str,
        columns: TableColumns,
        normalisation: str,
        latest: Callable[[], algorithms.Records],
        chains: int,
    ) -> None:
        self.name = name  # type: ignore[misc]
        self.columns = columns  # type: ignore[misc]
        self.normalisation = normalisation  # type: ignore[misc]
        self._latest = latest
        self._found: list[list[list[Record]]] = [[] for _ in range(chains)]

    @classmethod
    def of(cls, batch: Batch) -> dict[Measurement, Observable]:
        """Return the records of a batch: those of its algorithm, and those of exchanges."""
        p, count = batch.chains[0].parameters, len(batch.chains)
        algorithm, exchange = p.algorithm, batch.tempering
        observables: dict[Measurement, Observable] = {}
        if algorithm.columns:
            observables[Measurement(algorithm.name)] = cls(
                algorithm.name,
                algorithm.columns,
                algorithm.normalisation,
                lambda: batch.records,
                count,
            )
        if exchange:
            observables[Measurement(TEMPERING, p.exchange_every)] = cls(
                TEMPERING, COLUMNS, NORMALISATION, lambda: exchange.records, count
            )
        return observables

    def recorder(self, field: Field, ensembles: Sequence[Mapping[str, str]] = ()) -> UpdateRecords:
        """Return the recorder of the batch, which needs no field."""
        return self

    def begin(self) -> None:
        """Take the last records; see `Recorder.begin`."""
        for rows, record in zip(self._found, self._latest(), strict=True):
            rows.append([record])

    def fetch(self) -> Sequence[Records]:
        """Return the records; see `Recorder.fetch`."""
        records, self._found = self._found, [[] for _ in self._found]
        return records


PENDING = 64
"""Number of measurements after which their records are fetched."""

AT_ONCE = 16
"""Number of updates during which fetched records are added to the tables, a few tables each.

Otherwise a GPU would wait while the tables of many runs are written."""


class Sampler:
    """Measurements of a batch that advances.

    It calls every observable once when it is made, so that the time of compilation does not enter
    the rates of the session. For user-defined observables this also determines the columns of the
    table.

    Parameters
    ----------
    work : SessionPlan
        Runs, observables, devices and limits.
    batch : Batch
        The chains that are updated together.
    outputs : sequence of RunOutput
        The files of each run of the batch.

    Attributes
    ----------
    observables : dict of Measurement to Observable
        What is measured: the observables of the session, and the records of the algorithm.
    """

    def __init__(self, work: SessionPlan, batch: Batch, outputs: Sequence[RunOutput]) -> None:
        self._work, self._batch, self._outputs = work, batch, outputs
        self.observables = work.observables | UpdateRecords.of(batch)
        self._begun: dict[Measurement, list[int]] = {item: [] for item in self.observables}
        self._fetched: deque[Callable[[], None]] = deque()
        metadata = [provenance(task.parameters) for task in work.tasks]
        for observable in self.observables.values():
            if isinstance(observable, FunctionObservable):
                observable.for_ensemble(metadata[0], batch.field)
        memory_beside(self.observables.values(), batch.field.replicas[0])
        self._recorders = {
            item: observable.recorder(batch.field, metadata)
            for item, observable in self.observables.items()
        }
        for item, observable in work.observables.items():
            warm_up, recorder = observable.warm_up, self._recorders[item]
            if warm_up is not observable:
                recorder = warm_up.recorder(batch.field, metadata)
            with work.devices.measuring():
                recorder.begin()
            for records in recorder.fetch():
                check_records(warm_up, records)

    def begin(self, updates: int) -> None:
        """Begin what is due after a number of updates after thermalisation."""
        due = [item for item in self._recorders if is_due(updates, item.every)]
        if due:
            with self._work.devices.measuring():
                for item in due:
                    self._recorders[item].begin()
                    self._begun[item].append(self._batch.sweep)

    @property
    def full(self) -> bool:
        """Whether so much has begun that it should be fetched."""
        return any(len(sweeps) >= PENDING for sweeps in self._begun.values())

    def collect(self) -> None:
        """Add the records of all measurements that have begun to the tables, in order."""
        self.fetch()
        self._add_records(len(self._fetched))

    def add_some(self) -> None:
        """Add some of the fetched records; the devices may work on the next update meanwhile."""
        if self._fetched:
            self._add_records(max(2, len(self._fetched) // AT_ONCE))

    def fetch(self) -> None:
        """Fetch the records of all measurements that have begun."""
        if not any(self._begun.values()):
            return
        self._add_records(len(self._fetched))
        with self._work.times.of("update"):
            self._work.devices.synchronize()
        with self._work.times.of("measure"):
            for item, sweeps in self._begun.items():
                by_run = self._recorders[item].fetch()
                if self._work.devices.root and sweeps:
                    for output, records in zip(self._outputs, by_run, strict=True):
                        add = partial(output.add_records, item, tuple(sweeps), records)
                        self._fetched.append(add)
                sweeps.clear()

    def _add_records(self, tables: int) -> None:
        """Add fetched records to some tables; the devices may work on the next update meanwhile."""
        with self._work.times.of("measure"):
            for _ in range(min(tables, len(self._fetched))):
                self._fetched.popleft()()


SAFETY = 2.0
"""Ratio of the time allowed for the next update or checkpoint to the longest time so far."""

MARGIN = 1.0
"""Additional time in seconds that is allowed for stopping."""

FORGETTING = 0.9
"""Factor by which the longest update time decays in every update.

The first update, which may include compilation, is thus forgotten after a while."""

FULL_DISK = "a full disk"
"""Reason for a session to stop."""

RECORD_SECONDS = 1.0
"""Time in seconds between two records of the progress in the lock file."""

FIRST_SAVE = 1.0
"""Time in seconds from the start of a session to its first checkpoint that is due by time."""

SAVE_SHARE = 0.01
"""Largest share of the time for checkpoints that come earlier than the user asks for."""

LIVE_SHARE = 0.01
"""Largest share of the time in which observables are measured for these records alone."""


def carry_out(work: SessionPlan) -> tuple[tuple[Chain, ...], str | None]:
    """Carry out the remaining part of a run, or of all runs of a batch.

    In an MPI job all processes call this function; the root decides when to write checkpoints.
    """
    with ExitStack() as files:
        with work.times.of("start"):
            session = Session(work, files)
        try:
            reason = session.run()
            session.finish()
        except GaugeError:
            session.rescue()
            raise
    if session.full_disk:
        raise GaugeError(session.full_disk)
    return session.batch.chains, reason


class Session:
    """The state of a session: the chains, their open files, and the times of the last steps.

    Parameters
    ----------
    work : SessionPlan
        Runs, observables, devices and limits.
    files : ExitStack
        Context that closes the tables.

    Attributes
    ----------
    full_disk : str or None
        Why the session stopped because there was too little space on a disk, in a sentence.
    """

    def __init__(self, work: SessionPlan, files: ExitStack) -> None:
        self._work = work
        self.full_disk: str | None = None
        self._stopped_by_user = False
        self._update_time = self._last_write = self._save_time = self._last_save = 0.0
        self._writer = BackgroundWriter()
        self._recorded_at = self._looked_at = self._live_from = -math.inf
        self._set_up_chains()
        chains = zip(work.tasks, self.batch.chains, strict=True)
        self._outputs = [RunOutput(task, chain) for task, chain in chains]
        self._first_sweep, self._first_at = self.batch.sweep + 1, math.inf
        self._sampler = Sampler(work, self.batch, self._outputs)
        # The kernels that write configurations, and those of the progress display, are loaded here.
        # Their compilation is not to enter the rates of the session either.
        if work.parameters.keeps_configs:
            prepare_writing(self.batch.field.replicas[0], work.parameters.format)
        self.batch.chains[0].live()
        self._began = self._saved_at = self._regular_at = time.monotonic()
        self._saved = (self.batch.sweep, self._measured) if self._resuming else None
        if not self._resuming:
            # Checkpoints are written before anything else. Results without one are therefore an
            # error, and results later than the checkpoint can be computed again.
            self.save()
        runs = [task.run for task in work.tasks]
        self._guard = DiskGuard.of(runs, work.parameters, self._sampler.observables, PENDING)
        if work.devices.root:
            sweep = self.batch.sweep if self._measured else self.batch.sweep - 1
            for output in self._outputs:
                output.open_tables(files, self._sampler.observables, sweep)
        files.enter_context(self._writer)  # which is closed before the tables

    def run(self) -> str | None:
        """Update, measure and write until the run is complete or there is a reason to stop."""
        batch, parameters = self.batch, self._work.parameters
        processes = self._work.devices.processes
        if not self._measured:
            self._sample()
        while batch.sweep < parameters.updates:
            reasons = processes.allgather(self._reason())
            if reason := next((reason for reason in reasons if reason), None):
                return reason
            self._advance()
            regular, due = processes.broadcast(self._due())
            if due and batch.sweep < parameters.updates:
                self.save(regular)
        return None

    def _due(self) -> tuple[bool, bool]:
        """Return whether a checkpoint is due by the time, and whether one is due at all.

        By the time they come at doubling intervals, up to that which the user asks for. Others come
        with configurations. All but those that the user asks for take no more than `SAVE_SHARE` of
        the time, with the wait for configurations to be on disk.
        """
        now, least = time.monotonic(), self._last_save / SAVE_SHARE
        interval = max(self._regular_at - self._began, FIRST_SAVE, least)
        regular = now - self._regular_at >= min(interval, self._work.checkpoint_every)
        beside = now - self._saved_at >= least and self._work.parameters.keeps(self.batch.sweep)
        return regular, regular or beside

    def _reason(self) -> str | None:
        """Return the reason why this process should stop now, or None."""
        if self._work.devices.root and self._disk_is_full():
            return FULL_DISK
        # An upper estimate of the time in seconds for one more update and a checkpoint.
        writing = IN_FLIGHT * self._writer.seconds + self._save_time
        seconds = SAFETY * (self._update_time + writing) + MARGIN
        return "on_update" if self._stopped_by_user else self._work.stop(seconds)

    def _disk_is_full(self) -> bool:
        """Return whether there is too little space for what is written next.

        Asking may take long on a network file system, so that it is not done after every update.
        """
        due, now = self._work.parameters.keeps(self.batch.sweep + 1), time.monotonic()
        if due or now - self._looked_at >= RECORD_SECONDS:
            self._looked_at = now
            self.full_disk = self._guard.shortage(self._writer.unwritten, due)
        return self.full_disk is not None

    def _set_up_chains(self) -> None:
        """Resume the chains, or begin them."""
        work, began = self._work, time.monotonic()
        count = len(work.tasks)
        resumed = work.devices.processes.broadcast(work.tasks[0].run.checkpoint.exists())
        self._resuming = resumed
        observables = work.observables.values()
        compile_kernels(work.parameters, observables, work.devices, resumed, count > 1)
        if resumed:
            states: list[ChainState] = []
            self.batch = Batch(self._resumed(states), count)
            self._measured = states[0].measured
            self._save_time = time.monotonic() - began
            return
        if work.devices.root:
            refuse_leftovers(work.tasks)
        begun = (Chain.begin(task.parameters, work.devices) for task in work.tasks)
        self.batch, self._measured = Batch(begun, count), True

    def _resumed(self, states: list[ChainState]) -> Iterator[Chain]:
        """Yield the chains from their checkpoints, whose states are added to `states`."""
        for task in self._work.tasks:
            path = task.run.checkpoint
            chain, state = Chain.resume(task.parameters, self._work.devices, path)
            states.append(state)
            if (state.sweep, state.measured) != (states[0].sweep, states[0].measured):
                raise GaugeError(
                    f"The checkpoint {path} is not after the same update as those of the other "
                    "runs; continue the runs one by one."
                )
            yield chain

    def _advance(self) -> None:
        """Do one update, and measure and write what is due after it."""
        began, times = time.monotonic(), self._work.times
        try:
            self.batch.update()
        except ChainError:  # before anything has changed
            self.finish()
            raise
        times.update += time.monotonic() - began
        self._sampler.add_some()
        self._measured = False
        self._sample()
        ended = time.monotonic()
        self._update_time = max(ended - began - self._last_write, FORGETTING * self._update_time)
        self._first_at = min(self._first_at, ended)
        with self._saving_on_failure():
            self._work.report(self.batch.chains[0])
        if self._work.on_update:
            with self._saving_on_failure():
                self._stopped_by_user = bool(self._work.on_update(self.batch.chains[0]))
        if time.monotonic() - self._recorded_at >= RECORD_SECONDS:
            if self._work.devices.processes.size == 1:  # the others do not know the time
                self._sampler.fetch()
            self._record_progress()

    def _sample(self) -> None:
        """Measure and write what is due after the last update."""
        p, sweep, began = self._work.parameters, self.batch.sweep, time.monotonic()
        with self._saving_on_failure():
            self._sampler.begin(sweep - p.thermalize)
        self._work.times.measure += time.monotonic() - began
        if self._sampler.full:
            self._sampler.fetch()
        began = time.monotonic()
        if p.keeps(sweep):
            self._sampler.collect()
            with self._writing():
                for output in self._outputs:
                    output.write_configuration(self._writer)
        self._writer.check()
        self._last_write = time.monotonic() - began
        self._measured = True

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Divide the time of a context into writing, and waiting for the disk."""
        times, waited = self._work.times, self._writer.waited
        with times.of("write"):
            yield
        times.write -= self._writer.waited - waited
        times.wait += self._writer.waited - waited

    def save(self, regular: bool = True) -> None:
        """Write checkpoints, unless the last ones are up to date; log the regular ones."""
        began = time.monotonic()
        if regular:
            self._regular_at = began
        if (self.batch.sweep, self._measured) == self._saved:
            return
        self._sampler.collect()
        with self._writing():
            self._writer.flush()
            # Of runs that exchange couplings, a kill leaves checkpoints after the same update.
            tasks = self._work.tasks if self._saved and self._work.parameters.tempering else ()
            with replaced_together([task.run.checkpoint for task in tasks]):
                for output in self._outputs:
                    output.save(self._measured)
        self._saved, self._saved_at = (self.batch.sweep, self._measured), time.monotonic()
        self._last_save = self._saved_at - began
        self._save_time = max(self._save_time, self._last_save)
        for output in self._outputs if regular else ():
            output.log_checkpoint(self._last_save)

    def finish(self) -> None:
        """Seal the tables, then write checkpoints, and record the progress.

        In this order the tables of every run whose checkpoint is complete are sealed.
        """
        self._sampler.collect()
        with self._writing():
            self._writer.flush()
        for output in self._outputs:
            output.seal()
        self.save()
        self._record_progress()

    def rescue(self) -> None:
        """Try again to write the configurations that could not be written, and then a checkpoint.

        This may succeed if the disk was full only for a moment.
        """
        if self._writer.failed and self._work.devices.processes.size == 1:
            with suppress(GaugeError):
                self._writer.rewrite()
                self.finish()

    @contextmanager
    def _saving_on_failure(self) -> Iterator[None]:
        """Write a checkpoint if a user's function fails, so that no work is lost.

        This is possible only for a single process, because writing a checkpoint needs all processes
        and the others may not have failed.
        """
        try:
            yield
        except Exception as error:
            serial = self._work.devices.processes.size == 1
            its_own = isinstance(error, UsageError) or not isinstance(error, GaugeError)
            if serial and its_own:
                self.finish()
            raise

    def _record_progress(self) -> None:
        """Read the energy, and record the progress of every run for other processes."""
        now, processes = time.monotonic(), self._work.devices.processes
        self._recorded_at = now
        elapsed = now - self._first_at
        rate = (self.batch.sweep - self._first_sweep) / elapsed if elapsed > 0 else 0.0
        times = {name: round(spent, 3) for name, spent in asdict(self._work.times).items()}
        joules = self._work.energy.read() if self._work.energy else None
        if joules is not None:  # that of other processes is not known here
            joules = round(joules / len(self._outputs), 3) if processes.size == 1 else None
        if processes.size == 1 and now >= self._live_from:
            self._work.devices.synchronize()
            began = time.monotonic()
            for output in self._outputs:
                output.record(physics=output.chain.live())
            ended = time.monotonic()
            self._live_from = ended + (ended - began) / LIVE_SHARE
        for output in self._outputs:
            output.record(rate=rate, times=times, joules=joules)


class RunOutput:
    """The output of a session to one run. Only the root process writes.

    Parameters
    ----------
    task : ChainTask
        The run, with its lock and its parameters.
    chain : Chain
        The chain of the run.
    """

    def __init__(self, task: ChainTask, chain: Chain) -> None:
        self.task, self.chain = task, chain
        # By the name of a secondary table; that of a main table is empty.
        self._tables: dict[tuple[Measurement, str], Table] = {}

    def open_tables(
        self, files: ExitStack, observables: Mapping[Measurement, Observable], last: int
    ) -> None:
        """Open the tables, and remove rows and configurations later than the checkpoint."""
        run, parameters = self.task.run, self.task.parameters
        for item, observable in observables.items():
            metadata = provenance(parameters)
            observable = observable.for_ensemble(metadata)
            header = {**observable.header, **metadata, "version": version(observable)}
            columns, path = (SWEEP, *observable.columns.names), run.table(item.observable)
            measurements = max(0, last - parameters.thermalize) // item.every

            def opened(table: Table, records: int, expected: int = measurements) -> Table:
                files.enter_context(table)
                table.truncate(after=last, expected=expected * records)
                return table

            self._tables[item, ""] = opened(Table(path, header, columns), observable.records)
            for second in observable.secondary_tables:
                table = opened(second.open(path, header), second.records(observable))
                self._tables[item, second.name] = table
        for sweep, path in run.config_files():
            if sweep > last:
                _refuse_stranger(self.task, sweep, path)
                path.unlink()

    def add_records(self, item: Measurement, sweeps: Sequence[int], records: Records) -> None:
        """Append records to a table."""
        table = self._tables[item, ""]
        if isinstance(records, np.ndarray):
            numbers = np.repeat(sweeps, records.shape[1]).tolist()
            table.append_numbers(numbers, records.reshape(-1, records.shape[-1]))
            return
        secondary = {name: each for (of, name), each in self._tables.items() if of == item and name}
        for sweep, rows in zip(sweeps, records, strict=True):
            if isinstance(rows, RecordsOfTables):
                for name, beside in secondary.items():
                    beside.append([(sweep, *row) for row in rows.secondary[name]])
            table.append([(sweep, *row) for row in rows])

    def write_configuration(self, writer: BackgroundWriter) -> None:
        """Write the links after the last update, when the rows of the tables are on disk."""
        path = self.task.run.config(self.chain.sweep, self.task.parameters.format)
        self.chain.write(path, writer, before=self.sync)
        self.record()

    def save(self, measured: bool) -> None:
        """Write a checkpoint, when the rows of the tables are on disk; see `Chain.save`."""
        self.sync()
        self.chain.save(self.task.run.checkpoint, measured)

    def log_checkpoint(self, seconds: float) -> None:
        """Log that a checkpoint is on disk, and how long it took in seconds."""
        if self.task.lock:
            log = RunLog(self.task.run.path)
            log.add(CHECKPOINT, sweep=self.chain.sweep, seconds=round(seconds, 3))

    def sync(self) -> None:
        """Wait until the rows of the tables are on disk."""
        for table in self._tables.values():
            table.sync()

    def seal(self) -> None:
        """Seal the tables."""
        for table in self._tables.values():
            table.seal()
        self._tables.clear()

    def record(self, **progress: Any) -> None:
        """Record the progress in the lock file, where other processes can read it."""
        if lock := self.task.lock:
            lock.record(replace(lock.holder, sweep=self.chain.sweep, **progress))


def _refuse_stranger(task: ChainTask, sweep: int, path: Path) -> None:
    """Check that a configuration later than the checkpoint is one that the run writes again."""
    p = task.parameters
    expected = p.keeps(sweep) and sweep <= p.updates and path == task.run.config(sweep, p.format)
    if not expected or not is_configuration(path, p, sweep):
        raise GaugeError(
            f"{path} is later than the checkpoint and does not seem to be a configuration of this "
            "run, which would replace it; move it to another folder."
        )


def refuse_leftovers(tasks: Iterable[ChainTask]) -> None:
    """Check that run directories without checkpoints contain no results."""
    for task in tasks:
        run = task.run
        tables = [run.table(item.observable) for item in task.parameters.recorded]
        if run.configs() or any(table.exists() for table in tables):
            advice = "--start from its last configuration and " if run.configs() else ""
            raise GaugeError(
                f"The run {run.path} contains results but no checkpoint; start a new run with "
                f"{advice}another --output."
            )
