"""The table of the records of updates, such as whether a proposal was accepted."""

from __future__ import annotations

from gauge_mc.algorithms import Algorithm
from gauge_mc.observables import Observable, Recorder, Records
from gauge_mc.run.batch import Batch
from gauge_mc.run.measurement import Measurement


class BatchRecorder:
    """A recorder of the records of the updates of a batch.

    Parameters
    ----------
    batch : Batch
        The chains that are updated together.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._found: list[list[list[tuple[object, ...]]]] = [[] for _ in batch.chains]

    def begin(self) -> None:
        """Take the records of the last update; see `Recorder.begin`."""
        for found, record in zip(self._found, self._batch.records, strict=True):
            found.append([record])

    def fetch(self) -> list[Records]:
        """Return the records; see `Recorder.fetch`."""
        found, self._found = self._found, [[] for _ in self._batch.chains]
        return found  # type: ignore[return-value]


class UpdateRecords(Observable):
    """The records of an algorithm, as an observable whose table has a row for every update.

    Parameters
    ----------
    algorithm : Algorithm
        An algorithm that has columns.
    """

    def __init__(self, algorithm: Algorithm) -> None:
        self.name = algorithm.name  # type: ignore[misc]
        self.columns = algorithm.columns  # type: ignore[misc]
        self.normalisation = algorithm.normalisation  # type: ignore[misc]

    @classmethod
    def of(cls, algorithm: Algorithm) -> dict[Measurement, Observable]:
        """Return the records of an algorithm after every update, or nothing."""
        return {Measurement(algorithm.name): cls(algorithm)} if algorithm.columns else {}

    def recorder_of(self, batch: Batch) -> Recorder:
        """Return the recorder of a batch."""
        return BatchRecorder(batch)
