"""Tables of observables: their columns, headers and secondary tables, and series from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums
from gauge_mc.files.columns import SWEEP, Averages, Column, TableColumns
from gauge_mc.files.table import Table, TableData, Value
from gauge_mc.options import Number, Option, check_options
from gauge_mc.quoting import CommandLine


class CostParts:
    """Kernels, memory and time of the measurements of an observable."""

    links_moved: ClassVar[float | None] = None
    """Minimum memory traffic of a measurement for benchmarks, in links read or written per link of
    the lattice; None if it is unknown.
    """
    takes_memory: ClassVar[bool] = False
    """Whether it may take many times the memory of the links, so that the memory is forecast before
    it is measured; see `rehearsed`.
    """
    main_kernel: ClassVar[Kernel | None] = None
    """Kernel whose number of registers benchmarks show."""
    bench_options: ClassVar[Mapping[str, object]] = {}
    """Options with which benchmarks measure it, if the default ones take too long."""
    benched: ClassVar[bool] = True
    """Whether benchmarks time it although it is not named, since it does not take long."""

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that `measure` calls, which are compiled side by side before a run begins.

        They depend on nothing but the group. Kernels that are missing here are compiled when they
        are first called.
        """
        return (self.main_kernel,) if self.main_kernel else ()

    @property
    def warm_up(self) -> Self:
        """The observable that a run measures once when it starts, to compile the kernels.

        One that takes long returns a shorter one that calls the same kernels.
        """
        return self

    @property
    def rehearsed(self) -> Self | None:
        """The observable that is rehearsed to find the memory that it takes; None if it cannot be.

        See `gauge_mc.devices.rehearsal`: all results on devices are zero. It is declared together
        with `takes_memory`.
        """
        return None


class ChoiceParts:
    """The options of an observable."""

    name: ClassVar[str]
    """Name on the command line, for ``--measure``."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Options of `for_lattice`."""
    smears: ClassVar[bool] = False
    """True if `for_lattice` also accepts a smearing and its options."""

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Self:
        """Return the observable for fields on a lattice.

        Parameters
        ----------
        lattice : Lattice
            Extents of the lattice.
        **options : object
            Values of the options, by name.

        Raises
        ------
        UsageError
            If an option is unknown or its value is invalid.
        """
        return cls(**check_options(cls.options, options, cls.name))

    @classmethod
    def owners(cls) -> list[tuple[str, tuple[Option, ...]]]:
        """Return what declares the options, as named in messages, with the options of each."""
        return [(cls.name, cls.options)]

    def for_group(self, group: str) -> Self:
        """Return the observable for a gauge group, given its name, if its `records` depend on it.

        Raises
        ------
        UsageError
            If it is not defined for the group.
        """
        return self

    def for_ensemble(self, metadata: Mapping[str, str], field: Field | None = None) -> Self:
        """Return the observable for an ensemble, if it needs to know more than options and group.

        Parameters
        ----------
        metadata : mapping of str to str
            Metadata of the ensemble, as in the headers of tables, such as ``beta``.
        field : Field, optional
            The first configuration, which is given if `records` is still 0 without it.

        Raises
        ------
        UsageError
            If the metadata contradict the options.
        """
        return self

    def as_in(self, table: Path) -> Self:
        """Return the observable of a run's table, whose version may have had other defaults.

        Parameters
        ----------
        table : Path
            The table, which need not exist.
        """
        return self


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
        self._found.append([measure(x) for measure, x in self._pairs])

    def fetch(self) -> list[Records]:
        """Return the records; see `Recorder.fetch`."""
        records, self._found = self._found, []
        return [list(x) for x in zip(*records, strict=True)]


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


@dataclass(frozen=True)
class DerivedQuantity(Number):
    """A quantity of an ensemble that is not a plain average, such as a susceptibility.

    In the table of a scan, the name of the observable precedes the names of its columns; `help` is
    its definition there.
    """

    estimate: Callable[[Sequence[Columns], Lattice], tuple[float, float]] = field(kw_only=True)
    """Function of the columns of one table per chain, and of the lattice. It returns value and
    error.
    """
    shown: bool = field(default=True, kw_only=True)
    """Whether it is shown in the terminal and in the figure of a scan, or stands in its table only.
    """


class SummaryParts:
    """Quantities of an observable that are shown beside averages of its columns."""

    derived: ClassVar[tuple[DerivedQuantity, ...]] = ()
    """Further quantities in the tables of scans."""

    @classmethod
    def slow_modes(cls, table: TableData) -> Mapping[str, NDArray[np.float64]]:
        """Return series of quantities that change slowly, one number per measurement, by name.

        Summaries of runs warn if their autocorrelation is longer than that of the averages.
        """
        return {}

    @classmethod
    def live(cls, record: Record) -> str:
        """Return a record in words for progress displays, or an empty string to show nothing."""
        return ""

    @classmethod
    def is_live(cls) -> bool:
        """Return whether progress displays show the observable even if it is not measured."""
        return cls.live.__func__ is not SummaryParts.live.__func__  # type: ignore[attr-defined]


Columns = Mapping[str, NDArray[Any]]
"""Columns of a table, by name."""

OF_TABLE = "of table"
"""Key in the header of a secondary table, with the name of the main table."""


@dataclass(frozen=True)
class TimeSeries:
    """A time series of numbers or of correlators."""

    sweeps: NDArray[np.int64]
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    samples: NDArray[Any]
    """One number per configuration, or one correlator at T times, of shape (configurations,) or
    (configurations, T).
    """
    first: int = 1
    """The first time of correlators."""
    step: int = 1
    """The distance between times of correlators."""


@dataclass(frozen=True)
class SecondaryTable:
    """A second table that is written when an observable is measured.

    Its file has the name of the observable's table, followed by its own.
    """

    name: str
    """Name of the table, which is added to that of the observable's table."""
    summary: str
    """Description of its rows, for the reference documentation."""
    columns: TableColumns
    """Its columns, without the one that counts updates."""
    records: Callable[[Any], int]
    """Returns the number of records per field, given the observable."""

    def beside(self, path: Path) -> Path:
        """Return the file of the table, given that of the table of the observable."""
        return path.with_name(f"{path.stem}_{self.name}{path.suffix}")

    def open(self, path: Path, header: Mapping[str, str]) -> Table:
        """Open the table, given the file and the header of the table of the observable."""
        entries = {"observable": self.name, OF_TABLE: path.name}
        return Table(self.beside(path), {**header, **entries}, (SWEEP, *self.columns.names))


class TableParts:
    """The table of an observable."""

    name: ClassVar[str]
    """Name on the command line, for ``--measure``. The table is named after it."""
    columns: ClassVar[TableColumns]
    """The values in a record, without the sweep. A tuple of `Column` and of names is also taken.
    Unless some column has an average or is an index, the average of the first one is shown.
    """
    normalisation: ClassVar[str]
    """Normalisation in words, for the header of the table."""
    units: ClassVar[str] = "dimensionless"
    """Units in words, for the header of the table."""
    secondary_tables: ClassVar[tuple[SecondaryTable, ...]] = ()
    """Further tables, whose records a measurer returns as `RecordsOfTables`."""
    formerly: ClassVar[Mapping[str, str]] = {}
    """Entries that the headers of tables of earlier versions lack."""

    def __init_subclass__(cls) -> None:
        """Take names for columns, and show the first average if none is declared."""
        super().__init_subclass__()
        declared: tuple[object, ...] = vars(cls).get("columns", ())
        if declared and all(isinstance(x, Column | str) for x in declared):
            columns = TableColumns(*cls.columns)
            silent = columns.averaged or columns.indices
            cls.columns = columns if silent else columns.averaging(cls.name, only=1)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table: name, normalisation, units and parameters of the observable."""
        return {"observable": self.name, "normalisation": self.normalisation, "units": self.units}

    @classmethod
    def columns_of_tables(cls) -> Iterator[TableColumns]:
        """Yield the columns of each of its tables."""
        yield cls.columns
        yield from (table.columns for table in cls.secondary_tables)

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_] | None:
        """Return a mask of the rows whose values are inconsistent, or None if there is no test."""
        return None

    @classmethod
    def of_averages(cls, averages: Averages) -> dict[str, float]:
        """Return the values of a record that the averages of a stored configuration determine."""
        return {}

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, TimeSeries]:
        """Return the time series in a table, for exports and analysis.

        Parameters
        ----------
        table : TableData
            A table of this observable.
        source : str
            Name of the file of the table, for error messages.

        Returns
        -------
        dict of str to TimeSeries
            One series per column, or per element and column if a record is an element of an array.

        Raises
        ------
        GaugeError
            If the table does not contain numbers, sorted by sweep.
        """
        columns = dict(table.columns)
        declared = getattr(cls, "columns", None)
        layout = declared or TableColumns.of_function("", columns)
        indices = {name: columns.pop(name) for name in layout.indices if name in columns}
        rows = columns.pop(SWEEP, np.array([""]))
        numbers = all(column.dtype.kind in "if" for column in (rows, *columns.values()))
        if numbers and (np.diff(rows) >= 0).all():
            sweeps, counts = np.unique(rows, return_counts=True)
            if len(sweeps) == len(rows) and not (declared and indices):
                return {
                    name: TimeSeries(sweeps, column)
                    for name, column in table.columns.items()
                    if name != SWEEP
                }
            if (counts == counts[0]).all() and _are_elements(int(counts[0]), indices):
                return _elements(sweeps, int(counts[0]), indices, columns, declared is not None)
        raise GaugeError(
            f"The table {source} is damaged: it does not contain the same numbers of every "
            f"configuration, sorted by sweep; check it with `{CommandLine('verify', source)}`."
        )


def _are_elements(rows: int, indices: Columns) -> bool:
    """Return whether a table contains arrays: the same indices in the rows of every sweep."""
    return bool(indices) and all((x.reshape(-1, rows) == x[:rows]).all() for x in indices.values())


def _elements(
    sweeps: NDArray[np.int64], rows: int, indices: Columns, columns: Columns, declared: bool
) -> dict[str, TimeSeries]:
    """Return a series for each element of the arrays in a table, named by its indices.

    The indices that an observable declares have names, such as ``path=100,r=3``, and the name of
    the column follows if there are several; those of a function have none, as in ``value[0,1]``.
    """
    elements = {}
    for name, column in columns.items():
        for row in range(rows):
            if not declared:
                key = f"{name}[{','.join(str(index[row]) for index in indices.values())}]"
            else:
                words = [f"{index}={i[row]}" for index, i in indices.items()]
                key = ",".join([*words, *[name] * (len(columns) > 1)])
            elements[key] = TimeSeries(sweeps, column.reshape(-1, rows)[:, row].astype(np.float64))
    return elements
