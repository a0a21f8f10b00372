"""Observables.

Each observable has a module of its name, with a subclass of `Observable` that is registered in
`OBSERVABLES`, and usually a kernel. It can then be measured during a run and on stored
configurations, and it has a table, a summary, plots, exports and columns in the tables of scans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import DeferredSums
from gauge_mc.files.averages import Averages
from gauge_mc.files.table import Table, TableData, Value
from gauge_mc.options import Option, check_options, merged
from gauge_mc.registry import Registry

Record = tuple[Value, ...]
"""Values of a row of a table, without the sweep."""

Records = list[list[Record]] | NDArray[np.float64]
"""Records of several measurements: [measurement][record][column]."""

Measurer = Callable[[Field], list[Record]]
"""A function that returns the records of a field. It may own memory on the device of the field."""

Columns = Mapping[str, NDArray[Any]]
"""Columns of a table, by name."""


class Recorder(Protocol):
    """Measurements of a field that changes, whose results may stay on the device until wanted."""

    def begin(self) -> None:
        """Begin to measure the field and all its replicas, within `DeviceGroup.measuring`."""

    def fetch(self) -> Sequence[Records]:
        """Return the records of all measurements since the last call, one item per replica."""


class ImmediateRecorder:
    """A recorder that measures at once, one replica after the other.

    Parameters
    ----------
    field : Field
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


@dataclass(frozen=True)
class Quantity:
    """A column of a table whose average is shown in summaries and plots.

    Attributes
    ----------
    column : str
        Name of the column.
    label : str
        Name in words, such as ``Polyakov loop, modulus``.
    symbol : str
        Label of an axis, in Matplotlib's mathematical text.
    short : str
        Short name for narrow columns; by default the label.
    """

    column: str
    label: str
    symbol: str
    short: str = ""

    @property
    def average(self) -> str:
        """Symbol of the average over an ensemble, as the label of an axis."""
        if self.symbol.startswith("$"):
            return rf"$\langle{self.symbol.strip('$')}\rangle$"
        return rf"$\langle${self.symbol}$\rangle$"

    @property
    def heading(self) -> str:
        """Heading of the column in a summary."""
        return self.short or self.label


@dataclass(frozen=True)
class Derived:
    """A quantity of an ensemble that is not a plain average, such as a susceptibility.

    Attributes
    ----------
    name : str
        Name of its columns in the table of a scan, where the name of the observable precedes it.
    note : str
        Definition, for the header of the table.
    label : str
        Short label for summaries.
    symbol : str
        Label of an axis, in Matplotlib's mathematical text.
    estimate : callable
        Function of the columns of one table per chain, and of the lattice. It returns value and
        error.
    """

    name: str
    note: str
    label: str
    symbol: str
    estimate: Callable[[Sequence[Columns], Lattice], tuple[float, float]]


@dataclass(frozen=True)
class Series:
    """A time series of numbers or of correlators.

    Attributes
    ----------
    sweeps : ndarray of int64, shape (configurations,)
        Numbers (updates) of the configurations, ascending.
    samples : ndarray of float64, shape (configurations,) or (configurations, T)
        One number per configuration, or one correlator at T times.
    first, step : int
        The first time of correlators, and the distance between times.
    """

    sweeps: NDArray[np.int64]
    samples: NDArray[Any]
    first: int = 1
    step: int = 1


@dataclass(frozen=True)
class Companion:
    """A second table that is written when an observable is measured.

    Its file is named after the table of the observable and after it.

    Attributes
    ----------
    name : str
    columns : tuple of str
        Names of the values in a record, without the sweep.
    records : int
        Number of records per field.
    """

    name: str
    columns: tuple[str, ...]
    records: int = 1

    def beside(self, path: Path) -> Path:
        """Return the file of the table, given that of the table of the observable."""
        return path.with_name(f"{path.stem}_{self.name}{path.suffix}")

    def open(self, path: Path, header: Mapping[str, str]) -> Table:
        """Open the table, given the file and the header of the table of the observable."""
        facts = {"observable": self.name, OF_TABLE: path.name}
        return Table(self.beside(path), {**header, **facts}, (SWEEP, *self.columns))


class Accompanied(list[Record]):
    """Records of a field, with those of the companions of the observable.

    Attributes
    ----------
    companions : mapping of str to list of Record
        Records of the companions, by name.
    """

    def __init__(self, records: Iterable[Record], companions: Mapping[str, list[Record]]) -> None:
        super().__init__(records)
        self.companions = companions


class Observable:
    """An observable that is measured on fields. Instances contain the values of the options.

    Most observables declare the class attributes and define `measure`, which returns one record of
    numbers. All other methods have defaults here.

    Attributes
    ----------
    name : str
        Name on the command line, for ``--measure``. The table is named after it.
    summary : str
        Short description, for help texts.
    columns : tuple of str
        Names of the values in a record, without the sweep.
    descriptions : mapping of str to str
        Short description of each column, for the reference documentation. There may be columns
        that only some instances have.
    words : tuple of str
        Names of columns, its own and those of its companions, that contain words.
    normalisation, units : str
        Normalisation and units in words, for the header of the table.
    options : tuple of Option
        Options of `for_lattice`.
    smears : bool
        True if `for_lattice` also accepts a smearing and its options.
    quantities : tuple of Quantity
        Averages to show, the main one first. By default only the first column. Empty for an
        observable with several records per field.
    derived : tuple of Derived
        Further quantities in the tables of scans.
    links_moved : float or None
        Minimum memory traffic of a measurement for benchmarks, in links read or written per link
        of the lattice; None if it is unknown.
    main_kernel : Kernel or None
        Kernel whose number of registers benchmarks show.
    bench_options : mapping of str to object
        Options with which benchmarks measure it, if the default ones take too long.
    formerly : mapping of str to str
        Entries that the headers of tables of earlier versions lack.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    descriptions: ClassVar[Mapping[str, str]] = {}
    words: ClassVar[tuple[str, ...]] = ()
    normalisation: ClassVar[str]
    units: ClassVar[str] = "dimensionless"
    options: ClassVar[tuple[Option, ...]] = ()
    smears: ClassVar[bool] = False
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    derived: ClassVar[tuple[Derived, ...]] = ()
    links_moved: ClassVar[float | None] = None
    main_kernel: ClassVar[Kernel | None] = None
    bench_options: ClassVar[Mapping[str, object]] = {}
    formerly: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        """Make the first column the only quantity if no quantities are declared."""
        super().__init_subclass__()
        if "columns" in vars(cls) and "quantities" not in vars(cls):
            first = cls.columns[0]
            label = cls.name if first in (cls.name, "value") else f"{cls.name}, {first}"
            cls.quantities = (Quantity(first, label, label),)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Observable:
        """Return the observable for fields on a lattice.

        Parameters
        ----------
        lattice : Lattice
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

    @classmethod
    def slow_modes(cls, table: TableData) -> Mapping[str, NDArray[np.float64]]:
        """Return series of quantities that change slowly, one number per measurement, by name.

        Summaries of runs warn if their autocorrelation is longer than that of the averages.
        """
        return {}

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels that `measure` calls, which are compiled side by side before a run begins.

        They depend on nothing but the group. Kernels that are missing here are compiled when they
        are first called.
        """
        return (self.main_kernel,) if self.main_kernel else ()

    @property
    def records(self) -> int:
        """Number of records per field; 0 if only `for_group` or `prepared` can tell it."""
        return 1

    def for_group(self, group: str) -> Observable:
        """Return the observable for a gauge group, given its name, if its `records` depend on it.

        Raises
        ------
        UsageError
            If it is not defined for the group.
        """
        return self

    def prepared(self, field: Field) -> Observable:
        """Return the observable after a look at the first field, if it has no `records` before."""
        return self.for_group(field.group.name)

    @property
    def companions(self) -> tuple[Companion, ...]:
        """Further tables, whose records a measurer returns as `Accompanied`."""
        return ()

    @property
    def trial(self) -> Observable:
        """The observable that a run measures once when it starts, to compile the kernels.

        One that takes long returns a shorter one that calls the same kernels.
        """
        return self

    @property
    def header(self) -> dict[str, str]:
        """Header of the table: name, normalisation, units and parameters of the observable."""
        return {
            "observable": self.name,
            "normalisation": self.normalisation,
            "units": self.units,
        }

    def measure(self, field: Field) -> Record:
        """Return the record of a field."""
        raise NotImplementedError

    def measurer(self, like: Field) -> Measurer:
        """Return a function that measures fields of the same kind and on the same devices."""
        return lambda field: [self.measure(field)]

    def recorder(self, field: Field) -> Recorder:
        """Return a recorder for a field that is measured repeatedly while it changes.

        A run begins to measure after an update and fetches the records some updates later, so that
        the device does not have to wait. By default it measures at once.
        """
        return ImmediateRecorder(field, self.measurer(field.replicas[0]))

    def informed(self, facts: Mapping[str, str]) -> Observable:
        """Return the observable for an ensemble, if it needs to know more than the links.

        Parameters
        ----------
        facts : mapping of str to str
            Facts about the ensemble as in the headers of tables, such as ``beta``.

        Raises
        ------
        UsageError
            If the facts contradict the options.
        """
        return self

    def recorder_along(self, field: Field, facts: Sequence[Mapping[str, str]]) -> Recorder:
        """Return a recorder for a run, or for the runs of a batch, given facts about each."""
        return self.recorder(field)

    @classmethod
    def live(cls, record: Record) -> str:
        """Return a record in words for progress displays, or an empty string to show nothing."""
        return ""

    @classmethod
    def is_live(cls) -> bool:
        """Return whether progress displays show the observable even if it is not measured."""
        return cls.live.__func__ is not Observable.live.__func__  # type: ignore[attr-defined]

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_] | None:
        """Return a mask of the rows whose values are inconsistent, or None if there is no test."""
        return None

    @classmethod
    def of_averages(cls, averages: Averages) -> dict[str, float]:
        """Return the values of a record that follow from the averages of a stored configuration."""
        return {}

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, Series]:
        """Return the time series in a table, for exports and analysis.

        Parameters
        ----------
        table : TableData
        source : str
            Name of the file of the table, for error messages.

        Returns
        -------
        dict of str to Series
            One series per column, or per element and column if a record is an element of an array.

        Raises
        ------
        GaugeError
            If the table does not contain numbers, sorted by sweep.
        """
        columns = dict(table.columns)
        rows = columns.pop(SWEEP, np.array([""]))
        numbers = all(column.dtype.kind in "if" for column in (rows, *columns.values()))
        if numbers and (np.diff(rows) >= 0).all():
            sweeps, counts = np.unique(rows, return_counts=True)
            if len(sweeps) == len(rows):
                return {name: Series(sweeps, column) for name, column in columns.items()}
            if (counts == counts[0]).all() and _are_elements(int(counts[0]), columns):
                return _elements(sweeps, int(counts[0]), columns)
        raise GaugeError(
            f"The table {source} is damaged: it does not contain numbers, sorted by sweep; run "
            "gauge-mc verify on its run."
        )


def _are_elements(rows: int, columns: Columns) -> bool:
    """Return whether a table contains arrays: the same indices in the rows of every sweep."""
    indices = [columns[name].reshape(-1, rows) for name in columns if name in INDICES]
    return bool(indices) and all((index == index[0]).all() for index in indices)


def _elements(sweeps: NDArray[np.int64], rows: int, columns: Columns) -> dict[str, Series]:
    """Return a series for each element of the arrays in a table, named by its indices."""
    indices = [columns[name][:rows] for name in columns if name in INDICES]
    return {
        f"{name}[{','.join(str(index[row]) for index in indices)}]": Series(
            sweeps, column.reshape(-1, rows)[:, row]
        )
        for name, column in columns.items()
        if name not in INDICES
        for row in range(rows)
    }


OF_TABLE = "of table"
"""Key in the header of the table of a companion, with the name of the main table."""

SWEEP = "sweep"
"""Name of the first column of every table, which counts updates."""

INDICES = "ijklmn"
"""Names of columns with the indices of an array, for tables whose records are its elements."""

CONFIGS_SUFFIX = "_configs"
"""Suffix of the name of a table measured on stored configurations, if the run itself also measures
the observable along the way."""


def check_observable(kind: type[Observable]) -> None:
    """Refuse a class of observables whose tables could not be read.

    Raises
    ------
    ValueError
        If a column has no name that can be used, or records of arrays have no indices.
    """
    merged(kind.owners())
    for column in kind.columns:
        if not column.isidentifier() or column == SWEEP or kind.columns.count(column) > 1:
            raise ValueError(
                f"has a column '{column}'; choose different names of letters, digits and "
                f"underscores, other than {SWEEP}"
            )
    several = kind.records is not Observable.records
    own_series = kind.series.__func__ is not Observable.series.__func__  # type: ignore[attr-defined]
    if several and not own_series and not {*kind.columns} & {*INDICES}:
        raise ValueError(
            "has several records per field, but no column with an index; name one of "
            f"{', '.join(INDICES)}, or define series"
        )


def check_records(observable: Observable, records: Records) -> None:
    """Refuse records that do not fit the columns of an observable, or that are too few or too many.

    Parameters
    ----------
    observable : Observable
    records : Records
        Records of several measurements.

    Raises
    ------
    GaugeError
        If there is such a record.
    """
    columns, expected = len(observable.columns), observable.records
    for found in records:
        lengths = {len(record) for record in found} - {columns}
        if lengths or len(found) != expected:
            kind = type(observable)
            long = f" of {min(lengths)} values" if lengths else ""
            raise GaugeError(
                f"The observable {observable.name} in the module {kind.__module__} returned "
                f"{len(found)} records{long}, but declares {expected} of {columns} values "
                f"({', '.join(observable.columns)}); mend its columns, its records or measure."
            )


OBSERVABLES: Registry[type[Observable]] = Registry(
    "observable", __name__, Observable, check_observable
)


def table_name(observable: str) -> str:
    """Return the file name of the table of an observable, without its ending."""
    return observable.replace("-", "_")


def live_observables(lattice: Lattice) -> list[Observable]:
    """Return the observables that progress displays always show, for fields on a lattice."""
    return [one.for_lattice(lattice) for one in OBSERVABLES.values() if one.is_live()]


def observable_of_table(table: TableData) -> type[Observable] | None:
    """Return the observable that the header of a table names, or None if it is unknown."""
    name = table.header.get("observable", "").replace("_", "-")
    if name not in OBSERVABLES:
        return None
    return OBSERVABLES[name]
