"""Tables of what updates find out, such as whether a proposal was accepted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gauge_mc import algorithms
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import TableColumns
from gauge_mc.observables import Observable, Record, Records
from gauge_mc.run.batch import Batch
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import TEMPERING
from gauge_mc.updates.exchange import COLUMNS, NORMALISATION


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
        one, exchange = p.algorithm, batch.tempering
        found: dict[Measurement, Observable] = {}
        if one.columns:
            found[Measurement(one.name)] = cls(
                one.name, one.columns, one.normalisation, lambda: batch.records, count
            )
        if exchange:
            found[Measurement(TEMPERING, p.exchange_every)] = cls(
                TEMPERING, COLUMNS, NORMALISATION, lambda: exchange.records, count
            )
        return found

    def recorder(self, field: Field, ensembles: Sequence[Mapping[str, str]] = ()) -> UpdateRecords:
        """Return the recorder of the batch, which needs no field."""
        return self

    def begin(self) -> None:
        """Take the last records; see `Recorder.begin`."""
        for found, record in zip(self._found, self._latest(), strict=True):
            found.append([record])

    def fetch(self) -> Sequence[Records]:
        """Return the records; see `Recorder.fetch`."""
        found, self._found = self._found, [[] for _ in self._found]
        return found
