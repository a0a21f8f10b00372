"""Sessions: the work of one process, or of several processes together, on a run or on a batch.

A run that was stopped at any point and resumed writes bit-for-bit the same configurations and
tables as an uninterrupted run.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial

from gauge_mc import algorithms
from gauge_mc.configurations.writing import IN_FLIGHT, BackgroundWriter, prepare_writing
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import EnergyMeter
from gauge_mc.errors import ChainError, GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import TableColumns
from gauge_mc.observables import Observable, Record, Records, check_records
from gauge_mc.run.chain import Batch, Chain
from gauge_mc.run.checkpoint import ChainState, replaced_together
from gauge_mc.run.log import CHECKPOINT, RunLog
from gauge_mc.run.measurement import FunctionObservable, Measurement, is_due
from gauge_mc.run.needs import DiskGuard, memory_beside
from gauge_mc.run.open_run import OpenRun, compile_kernels
from gauge_mc.run.parameters import TEMPERING, Parameters
from gauge_mc.run.state import StopReason
from gauge_mc.updates.chain_steps import COLUMNS, NORMALISATION

OnUpdate = Callable[[Chain], object]
"""Function that is called after every update."""


@dataclass
class Times:
    """Shares of a session's time, in seconds."""

    start: float = 0.0
    """Compiling kernels, and beginning or resuming the chain."""
    update: float = 0.0
    """Updates of the links. On a GPU they include what kernels of measurements take, because the
    host does not wait for each of them.
    """
    measure: float = 0.0
    """Measurements with their tables."""
    write: float = 0.0
    """Snapshots of configurations, and checkpoints."""
    wait: float = 0.0
    """Waiting for configurations to be on disk."""

    @contextmanager
    def of(self, share: str) -> Iterator[None]:
        """Add the duration of a context to one of the shares, without that of others inside it."""
        began = time.monotonic() - sum(vars(self).values())
        try:
            yield
        finally:
            seconds = time.monotonic() - sum(vars(self).values()) - began
            setattr(self, share, getattr(self, share) + seconds)


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

    def recorder(self, field: Field, runs: Sequence[Observable] = ()) -> UpdateRecords:
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
    runs : sequence of OpenRun
        The runs, which have the same measurements.
    batch : Batch
        Their chains, which are updated together.
    devices : DeviceGroup
        The devices of the chains.
    times : Times
        The times of the session, to which those of measurements are added.

    Attributes
    ----------
    observables : dict of Measurement to Observable
        What is measured: the observables of the session, and the records of the algorithm.
    """

    def __init__(
        self, runs: Sequence[OpenRun], batch: Batch, devices: DeviceGroup, times: Times
    ) -> None:
        self._tables = [run.tables for run in runs]
        self._batch, self._devices, self._times = batch, devices, times
        self.observables = runs[0].observables | UpdateRecords.of(batch)
        self._begun: dict[Measurement, list[int]] = {item: [] for item in self.observables}
        self._fetched: deque[Callable[[], None]] = deque()
        for observable in (x for run in runs for x in run.observables.values()):
            if isinstance(observable, FunctionObservable):
                observable.for_ensemble({}, batch.field)
        memory_beside(self.observables.values(), batch.field.replicas[0])
        self._recorders = {
            item: observable.recorder(
                batch.field, [x.observables.get(item, observable) for x in runs]
            )
            for item, observable in self.observables.items()
        }
        for item, observable in runs[0].observables.items():
            warm_up, recorder = observable.warm_up, self._recorders[item]
            if warm_up is not observable:
                each = [run.observables[item].warm_up for run in runs]
                recorder = warm_up.recorder(batch.field, each)
            with devices.measuring():
                recorder.begin()
            for records in recorder.fetch():
                check_records(warm_up, records)

    def begin(self, updates: int) -> None:
        """Begin what is due after a number of updates after thermalisation."""
        due = [item for item in self._recorders if is_due(updates, item.every)]
        if due:
            with self._devices.measuring():
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
        with self._times.of("update"):
            self._devices.synchronize()
        with self._times.of("measure"):
            for item, sweeps in self._begun.items():
                by_run = self._recorders[item].fetch()
                if self._devices.root and sweeps:
                    for tables, records in zip(self._tables, by_run, strict=True):
                        self._fetched.append(partial(tables.add, item, tuple(sweeps), records))
                sweeps.clear()

    def _add_records(self, tables: int) -> None:
        """Add fetched records to some tables; the devices may work on the next update meanwhile."""
        with self._times.of("measure"):
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


class Session:
    """The work of this process on a run, or on the runs of a batch.

    In an MPI job all processes carry out a session; the root decides when to write checkpoints.

    Parameters
    ----------
    runs : sequence of OpenRun
        The run; or the runs of a batch, after the same number of updates, with parameters that
        differ only in couplings and seed.
    devices : DeviceGroup
        Devices that share the lattice; a single one for a batch.
    stop : callable
        See `StopReason`.
    report : callable
        Function that is called after every update to show the progress of the first run.
    on_update : callable, optional
        The user's callback, called after every update with the first run. A true result stops the
        session.
    checkpoint_every : float
        Time in seconds between checkpoints.
    energy : EnergyMeter, optional
        Meter of the energy, which the session reads regularly.

    Attributes
    ----------
    times : Times
        Shares of the time so far.
    batch : Batch
        The chains, once they have begun.
    """

    def __init__(
        self,
        runs: Sequence[OpenRun],
        devices: DeviceGroup,
        stop: StopReason,
        report: OnUpdate,
        on_update: OnUpdate | None = None,
        checkpoint_every: float = math.inf,
        energy: EnergyMeter | None = None,
    ) -> None:
        self._runs, self._devices, self._stop, self._report = runs, devices, stop, report
        self._on_update, self._checkpoint_every, self._energy = on_update, checkpoint_every, energy
        self.times, self._writer = Times(), BackgroundWriter()
        self._full_disk: str | None = None
        self._stopped_by_user = False
        self._update_time = self._last_write = self._save_time = self._last_save = 0.0
        self._recorded_at = self._looked_at = self._live_from = -math.inf

    @property
    def _parameters(self) -> Parameters:
        """Parameters of the first run; those of the others say the same of lengths and files."""
        return self._runs[0].parameters

    def carry_out(self) -> str | None:
        """Carry out what remains of the runs; return the reason if the session stops before."""
        with ExitStack() as files:
            with self.times.of("start"):
                self._begin(files)
                self.batch.prepare()
            try:
                reason = self._update()
                self.finish()
            except GaugeError:
                self.rescue()
                raise
        if self._full_disk:
            raise GaugeError(self._full_disk)
        return reason

    def _begin(self, files: ExitStack) -> None:
        """Begin or resume the chains, and open the files of the runs until `files` is closed."""
        self._set_up_chains()
        for run, chain in zip(self._runs, self.batch.chains, strict=True):
            run.chain = chain
        self._first_sweep, self._first_at = self.batch.sweep + 1, math.inf
        self._sampler = Sampler(self._runs, self.batch, self._devices, self.times)
        # The kernels that write configurations, and those of the progress display, are loaded here.
        # Their compilation is not to enter the rates of the session either.
        if self._parameters.keeps_configs:
            prepare_writing(self.batch.field.replicas[0], self._parameters.format)
        self.batch.chains[0].live()
        self._began = self._saved_at = self._regular_at = time.monotonic()
        self._saved = (self.batch.sweep, self._measured) if self._resuming else None
        if not self._resuming:
            # Checkpoints are written before anything else. Results without one are therefore an
            # error, and results later than the checkpoint can be computed again.
            self.save()
        observables = self._sampler.observables
        places = [run.directory for run in self._runs]
        self._guard = DiskGuard.of(places, self._parameters, observables, PENDING)
        if self._devices.root:
            sweep = self.batch.sweep if self._measured else self.batch.sweep - 1
            for run in self._runs:
                run.open_tables(files, observables, sweep)
        files.enter_context(self._writer)  # which is closed before the tables

    def _update(self) -> str | None:
        """Update, measure and write until the run is complete or there is a reason to stop."""
        batch, updates = self.batch, self._parameters.updates
        processes = self._devices.processes
        if not self._measured:
            self._sample()
        while batch.sweep < updates:
            reasons = processes.allgather(self._reason())
            if reason := next((reason for reason in reasons if reason), None):
                return reason
            self._advance()
            regular, due = processes.broadcast(self._due())
            if due and batch.sweep < updates:
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
        regular = now - self._regular_at >= min(interval, self._checkpoint_every)
        beside = now - self._saved_at >= least and self._parameters.keeps(self.batch.sweep)
        return regular, regular or beside

    def _reason(self) -> str | None:
        """Return the reason why this process should stop now, or None."""
        due, now = self._parameters.keeps(self.batch.sweep + 1), time.monotonic()
        # Asking may take long on a network file system, so that it is not done after every update.
        if self._devices.root and (due or now - self._looked_at >= RECORD_SECONDS):
            self._looked_at = now
            self._full_disk = self._guard.shortage(self._writer.unwritten, due)
        if self._full_disk:
            return FULL_DISK
        # An upper estimate of the time in seconds for one more update and a checkpoint.
        writing = IN_FLIGHT * self._writer.seconds + self._save_time
        seconds = SAFETY * (self._update_time + writing) + MARGIN
        return "on_update" if self._stopped_by_user else self._stop(seconds)

    def _set_up_chains(self) -> None:
        """Resume the chains, or begin them."""
        began, count, devices = time.monotonic(), len(self._runs), self._devices
        exists = self._runs[0].directory.checkpoint.exists()
        self._resuming = resumed = devices.processes.broadcast(exists)
        first = self._runs[0]
        compile_kernels(first.parameters, first.observables.values(), devices, resumed, count > 1)
        if resumed:
            states: list[ChainState] = []
            self.batch = Batch(self._resumed(states), count)
            self._measured = states[0].measured
            self._save_time = time.monotonic() - began
            return
        for run in self._runs if devices.root else ():
            run.directory.refuse_leftovers(run.parameters.recorded)
        begun = (Chain.begin(run.parameters, devices) for run in self._runs)
        self.batch, self._measured = Batch(begun, count), True

    def _resumed(self, states: list[ChainState]) -> Iterator[Chain]:
        """Yield the chains from their checkpoints, whose states are added to `states`."""
        for run in self._runs:
            path = run.directory.checkpoint
            chain, state = Chain.resume(run.parameters, self._devices, path)
            states.append(state)
            if (state.sweep, state.measured) != (states[0].sweep, states[0].measured):
                raise GaugeError(
                    f"The checkpoint {path} is not after the same update as those of the other "
                    "runs; continue the runs one by one."
                )
            yield chain

    def _advance(self) -> None:
        """Do one update, and measure and write what is due after it."""
        began, times = time.monotonic(), self.times
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
            self._report(self.batch.chains[0])
        if self._on_update:
            with self._saving_on_failure():
                self._stopped_by_user = bool(self._on_update(self.batch.chains[0]))
        if time.monotonic() - self._recorded_at >= RECORD_SECONDS:
            if self._devices.processes.size == 1:  # the others do not know the time
                self._sampler.fetch()
            self._record_progress()

    def _sample(self) -> None:
        """Measure and write what is due after the last update."""
        p, sweep, began = self._parameters, self.batch.sweep, time.monotonic()
        with self._saving_on_failure():
            self._sampler.begin(sweep - p.thermalize)
        self.times.measure += time.monotonic() - began
        if self._sampler.full:
            self._sampler.fetch()
        began = time.monotonic()
        if p.keeps(sweep):
            self._sampler.collect()
            with self._writing():
                for run in self._runs:
                    run.write_configuration(self._writer)
        self._writer.check()
        self._last_write = time.monotonic() - began
        self._measured = True

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Divide the time of a context into writing, and waiting for the disk."""
        times, waited = self.times, self._writer.waited
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
            together = self._runs if self._saved and self.batch.tempering else ()
            with replaced_together([run.directory.checkpoint for run in together]):
                for run in self._runs:
                    run.tables.sync()
                    run.chain.save(run.directory.checkpoint, self._measured)
        self._saved, self._saved_at = (self.batch.sweep, self._measured), time.monotonic()
        self._last_save = self._saved_at - began
        self._save_time = max(self._save_time, self._last_save)
        sweep, seconds = self.batch.sweep, round(self._last_save, 3)
        for run in self._runs if regular and self._devices.root else ():
            RunLog(run.directory.path).add(CHECKPOINT, sweep=sweep, seconds=seconds)

    def finish(self) -> None:
        """Seal the tables, then write checkpoints, and record the progress.

        In this order the tables of every run whose checkpoint is complete are sealed.
        """
        self._sampler.collect()
        with self._writing():
            self._writer.flush()
        for run in self._runs:
            run.tables.seal()
        self.save()
        self._record_progress()

    def rescue(self) -> None:
        """Try again to write the configurations that could not be written, and then a checkpoint.

        This may succeed if the disk was full only for a moment.
        """
        if self._writer.failed and self._devices.processes.size == 1:
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
            serial = self._devices.processes.size == 1
            its_own = isinstance(error, UsageError) or not isinstance(error, GaugeError)
            if serial and its_own:
                self.finish()
            raise

    def _record_progress(self) -> None:
        """Read the energy, and record the progress of every run for other processes."""
        now, processes = time.monotonic(), self._devices.processes
        self._recorded_at = now
        elapsed = now - self._first_at
        rate = (self.batch.sweep - self._first_sweep) / elapsed if elapsed > 0 else 0.0
        times = {name: round(spent, 3) for name, spent in asdict(self.times).items()}
        joules = self._energy.read() if self._energy else None
        if joules is not None:  # that of other processes is not known here
            joules = round(joules / len(self._runs), 3) if processes.size == 1 else None
        live: list[dict[str, str]] = [{}] * len(self._runs)
        if processes.size == 1 and now >= self._live_from:
            self._devices.synchronize()
            began = time.monotonic()
            live = [{"physics": chain.live()} for chain in self.batch.chains]
            ended = time.monotonic()
            self._live_from = ended + (ended - began) / LIVE_SHARE
        progress = {"sweep": self.batch.sweep, "rate": rate, "times": times, "joules": joules}
        for run, physics in zip(self._runs, live, strict=True):
            if run.lock:
                run.lock.record(**progress, **physics)
