"""The table of what updates find out, such as whether a proposal was accepted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gauge_mc.fields.field import Field
from gauge_mc.observables import Observable, Record, Records
from gauge_mc.run.batch import Batch
from gauge_mc.run.measurement import Measurement


class UpdateRecords(Observable):
    """The records of the updates of a batch, as an observable with a row for every update.

    It is its own recorder; see `Recorder`.

    Parameters
    ----------
    batch : Batch
        A batch whose algorithm has columns.
    """

    def __init__(self, batch: Batch) -> None:
        algorithm = batch.chains[0].parameters.algorithm
        self.name = algorithm.name  # type: ignore[misc]
        self.columns = algorithm.columns  # type: ignore[misc]
        self.normalisation = algorithm.normalisation  # type: ignore[misc]
        self._batch = batch
        self._found: list[list[list[Record]]] = [[] for _ in batch.chains]

    @classmethod
    def of(cls, batch: Batch) -> dict[Measurement, Observable]:
        """Return the records after every update of a batch, or nothing."""
        algorithm = batch.chains[0].parameters.algorithm
        return {Measurement(algorithm.name): cls(batch)} if algorithm.columns else {}

    def recorder(self, field: Field, ensembles: Sequence[Mapping[str, str]] = ()) -> UpdateRecords:
        """Return the recorder of the batch, which needs no field."""
        return self

    def begin(self) -> None:
        """Take the records of the last update; see `Recorder.begin`."""
        for found, record in zip(self._found, self._batch.records, strict=True):
            found.append([record])

    def fetch(self) -> Sequence[Records]:
        """Return the records; see `Recorder.fetch`."""
        found, self._found = self._found, [[] for _ in self._batch.chains]
        return found
