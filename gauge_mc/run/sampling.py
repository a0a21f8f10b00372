"""Measurements along the way: begun on the devices, fetched in blocks, added to tables in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from gauge_mc.observables import check_records
from gauge_mc.run.batch import Batch
from gauge_mc.run.chain import provenance
from gauge_mc.run.functions import FunctionObservable
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.memory import memory_beside
from gauge_mc.run.run_output import RunOutput, is_due
from gauge_mc.run.session_plan import SessionPlan
from gauge_mc.run.update_records import UpdateRecords

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

    def begin(self, done: int) -> None:
        """Begin what is due after a number of updates after thermalisation."""
        due = [item for item in self._recorders if is_due(done, item.every)]
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
                        self._fetched.append(
                            partial(output.add_records, item, tuple(sweeps), records)
                        )
                sweeps.clear()

    def _add_records(self, tables: int) -> None:
        """Add fetched records to some tables; the devices may work on the next update meanwhile."""
        with self._work.times.of("measure"):
            for _ in range(min(tables, len(self._fetched))):
                self._fetched.popleft()()
