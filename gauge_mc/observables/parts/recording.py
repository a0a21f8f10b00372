"""Records of observables, and how runs take them while the field changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums
from gauge_mc.files.table import Value

Record = tuple[Value, ...]
"""Values of a row of a table, without the sweep."""

Records = list[list[Record]] | NDArray[np.float64]
"""Records of several measurements: [measurement][record][column]."""

Measurer = Callable[[Field], list[Record]]
"""A function that returns the records of a field. It may own memory on the device of the field."""


class Recorder(Protocol):
    """Repeated measurements of a changing field, which may stay on the device until fetched."""

    def begin(self) -> None:
        """Begin to measure the field and all its replicas, within `DeviceGroup.measuring`."""

    def fetch(self) -> Sequence[Records]:
        """Return the records of all measurements since the last call, one item per replica."""


def measure_repeatedly(recorder: Recorder, devices: DeviceGroup, times: int = 1) -> None:
    """Measure an unchanged field several times as a run does, and discard the records."""
    for _ in range(times):
        with devices.measuring():
            recorder.begin()
    recorder.fetch()


class ImmediateRecorder:
    """A recorder that measures at once, one replica after the other.

    Parameters
    ----------
    field : Field
        The field that is measured.
    *measure : Measurer
        The measurer of all replicas, or one for each.
    """

    def __init__(self, field: Field, *measure: Measurer) -> None:
        replicas = field.replicas
        measurers = measure * len(replicas) if len(measure) == 1 else measure
        self._pairs = [*zip(measurers, replicas, strict=True)]
        self._found: list[list[list[Record]]] = []

    def begin(self) -> None:
        """Measure the field; see `Recorder.begin`."""
        self._found.append([measure(one) for measure, one in self._pairs])

    def fetch(self) -> list[Records]:
        """Return the records; see `Recorder.fetch`."""
        found, self._found = self._found, []
        return [list(one) for one in zip(*found, strict=True)]


class SumRecorder:
    """A recorder of sums over sites, which are fetched in blocks.

    Parameters
    ----------
    sums : DeferredSums
        The sums of a kernel, which stay on the device until they are fetched.
    records : callable
        Takes the totals, an array of shape (..., values), and returns the records that follow from
        them, of shape (..., columns).
    prepare : callable, optional
        Called before every sum.
    """

    def __init__(
        self,
        sums: DeferredSums,
        records: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._sums, self._records, self._prepare = sums, records, prepare

    def begin(self) -> None:
        """Launch the sums; see `Recorder.begin`."""
        if self._prepare:
            self._prepare()
        self._sums.begin()

    def fetch(self) -> list[Records]:
        """Return the records; see `Recorder.fetch`."""
        records = self._records(self._sums.fetch())
        return [records[:, n, np.newaxis] for n in range(records.shape[1])]


class RecordsOfTables(list[Record]):
    """Records of a field for the main table, together with those for the secondary tables.

    Attributes
    ----------
    secondary : mapping of str to list of Record
        Records of the secondary tables, by name.
    """

    def __init__(self, records: Iterable[Record], secondary: Mapping[str, list[Record]]) -> None:
        super().__init__(records)
        self.secondary = secondary
