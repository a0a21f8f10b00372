"""Observables.

Each observable is a subclass of `Observable` that is registered in `OBSERVABLES`, and usually a
kernel. It can then be measured during a run and on stored configurations, and it has a table, a
summary, plots, exports and columns in the tables of scans.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice, Loops
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import BLOCK, DeferredSums
from gauge_mc.files.columns import SWEEP, TableColumns
from gauge_mc.files.table import TableData
from gauge_mc.groups import Group
from gauge_mc.observables.parts import (
    OF_TABLE,
    ChoiceParts,
    Columns,
    CostParts,
    DerivedQuantity,
    ImmediateRecorder,
    Measurer,
    Record,
    Recorder,
    Records,
    RecordsOfTables,
    SecondaryTable,
    SummaryParts,
    SumRecorder,
    TableParts,
    TimeSeries,
    measure_repeatedly,
)
from gauge_mc.options import merged
from gauge_mc.registry import Registry

__all__ = [
    "AGAIN_SUFFIX",
    "CONFIGS_SUFFIX",
    "OBSERVABLES",
    "OF_TABLE",
    "Columns",
    "DerivedQuantity",
    "ImmediateRecorder",
    "Measurer",
    "Observable",
    "Record",
    "Recorder",
    "Records",
    "RecordsOfTables",
    "SecondaryTable",
    "SumRecorder",
    "SummedObservable",
    "TimeSeries",
    "check_observable",
    "check_records",
    "live_observables",
    "measure_repeatedly",
    "observable_of_loops",
    "observable_of_table",
    "table_name",
]

CONFIGS_SUFFIX = "_configs"
"""Suffix of the name of a table measured on stored configurations, if the run itself also measures
the observable along the way."""

AGAIN_SUFFIX = "_at"
"""Suffix of the name of a table measured on configurations that were made for it and not kept."""


class Observable(ChoiceParts, TableParts, SummaryParts, CostParts):
    """An observable that is measured on fields, with the values of its options.

    Most observables declare a name, a summary, columns and a normalisation, and define `measure`,
    which returns one record of numbers. All else has defaults: options in `ChoiceParts`, the table
    in `TableParts`, what is shown in `SummaryParts`, kernels and benchmarks in `CostParts`.
    """

    name: ClassVar[str]
    """Name on the command line, for ``--measure``. The table is named after it."""
    summary: ClassVar[str]
    """Short description, for help texts."""
    strict: ClassVar[bool] = False
    """Whether its tables can have the same bits on all machines. Then its values are sums of
    kernels whose lanes do not depend on each other, and what follows is rounded by IEEE 754.
    """
    on_copies: ClassVar[bool] = False
    """Whether its values are averages over all sites of what does not wind around the lattice. They
    are then the same on periodic copies, so that it can be measured if an extent is odd.
    """

    @property
    def loose(self) -> str:
        """An option on the command line with which the tables are not strict; none by default."""
        return ""

    @property
    def records(self) -> int:
        """Number of records per field; 0 if only `for_group` or `for_ensemble` can tell it."""
        return 1

    def measure(self, field: Field) -> Record:
        """Return the record of a field."""
        raise NotImplementedError

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields of the same kind and on the same devices."""
        return lambda field: [self.measure(field)]

    def recorder(self, field: Field, runs: Sequence[Self] = ()) -> Recorder:
        """Return a recorder for a field that is measured repeatedly while it changes.

        A run begins to measure after an update and fetches the records some updates later, so that
        the device does not have to wait. By default it measures at once.

        Parameters
        ----------
        field : Field
            The field, with a replica for each run.
        runs : sequence of Observable
            The observable of each replica, if several runs have it; see `for_ensemble`.
        """
        measurers: list[tuple[Observable, Measurer]] = []
        for run in runs or [self]:
            same = (measure for x, measure in measurers if x == run or vars(x) == vars(run))
            measurers.append((run, next(same, None) or run.measurer(field.replicas[0])))
        return ImmediateRecorder(field, *(measure for _, measure in measurers))


class SummedObservable(Observable):
    """An observable whose record follows from sums over sites, which are fetched in blocks.

    A subclass defines `sums` and `of_sums`.
    """

    def sums(self, field: Field, block: int) -> tuple[DeferredSums, Callable[[], object] | None]:
        """Return the sums over a field, and a function to call before each of them, if any.

        Parameters
        ----------
        field : Field
            The field that is measured.
        block : int
            Largest number of sums on the devices.
        """
        raise NotImplementedError

    @classmethod
    def of_sums(
        cls, group: Group, lattice: Lattice, sums: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return records, an array of shape (..., columns), given sums of shape (..., values)."""
        raise NotImplementedError

    def measure(self, field: Field) -> Record:
        """Return the record of a field."""
        recorder = self._recorder(field, 1)
        with field.devices.measuring():
            recorder.begin()
        first, *_ = recorder.fetch()
        return tuple(np.asarray(first)[0, 0].tolist())

    def recorder(self, field: Field, runs: Sequence[Self] = ()) -> Recorder:
        """Return a recorder for a field; see `Observable.recorder`."""
        return self._recorder(field, BLOCK)

    def _recorder(self, field: Field, block: int) -> SumRecorder:
        sums, prepare = self.sums(field, block)
        return SumRecorder(sums, partial(self.of_sums, field.group, field.lattice), prepare)


def check_observable(kind: type[Observable]) -> None:
    """Refuse a class of observables whose tables could not be read."""
    merged([(kind.name, kind.options)])
    if not isinstance(kind.columns, TableColumns):
        raise ValueError(f"has the columns {kind.columns!r}; declare a tuple of columns or names")
    names = [column.name for column in kind.columns]
    for column in names:
        if not column.isidentifier() or column == SWEEP or names.count(column) > 1:
            raise ValueError(
                f"has a column '{column}'; choose different names of letters, digits and "
                f"underscores, other than {SWEEP}"
            )
    several = kind.records is not Observable.records
    own_series = kind.series.__func__ is not Observable.series.__func__  # type: ignore[attr-defined]
    if several and not own_series and not kind.columns.indices:
        raise ValueError(
            "has several records per field, but no column with an index; declare one with "
            "index=True, or define series"
        )


def check_records(observable: Observable, records: Records) -> None:
    """Refuse records that do not fit the columns of an observable, or are too few or many."""
    columns, expected = len(observable.columns.names), observable.records
    for measurement in records:
        lengths = {len(record) for record in measurement} - {columns}
        if lengths or len(measurement) != expected:
            kind = type(observable)
            long = f" of {min(lengths)} values" if lengths else ""
            raise GaugeError(
                f"The observable {observable.name} in the module {kind.__module__} returned "
                f"{len(measurement)} records{long}, but declares {expected} of {columns} values "
                f"({', '.join(observable.columns.names)}); mend its columns, its records or "
                "measure."
            )


OBSERVABLES: Registry[type[Observable]] = Registry(
    "observable", __name__, Observable, check_observable, options=lambda x: x.options, alone=True
)


def table_name(observable: str) -> str:
    """Return the file name of the table of an observable, without its ending."""
    return observable.replace("-", "_")


def live_observables(lattice: Lattice) -> list[Observable]:
    """Return the observables that progress displays always show, for fields on a lattice."""
    return [x.for_lattice(lattice) for x in OBSERVABLES.values() if x.is_live()]


def observable_of_table(table: TableData) -> type[Observable] | None:
    """Return the observable that the header of a table names, or None if it is unknown."""
    name = table.header.get("observable", "").replace("_", "-")
    if name not in OBSERVABLES:
        return None
    return OBSERVABLES[name]


def observable_of_loops(loops: Loops) -> str | None:
    """Return the observable that averages over all loops of a shape and over those of each kind."""
    for name, observable in OBSERVABLES.items():
        if getattr(observable, "loops", None) == loops and len(observable.columns.names) == 1 + len(
            loops.kinds
        ):
            return name
    return None
