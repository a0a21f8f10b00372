"""Observables, one module each, named after the observable.

An observable is its kernels and a subclass of `Observable`, registered in `OBSERVABLES`. It is then
measured along the way and on stored configurations, and has its table, its summary, its plots, its
export and its columns in the tables of scans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.files.averages import Averages
from gauge_mc.files.table import TableData, Value
from gauge_mc.options import Option, check_options
from gauge_mc.registry import Registry

Record = tuple[Value, ...]
"""The values of a row of a table, without the number of the configuration."""

Measurer = Callable[[Field], list[Record]]
"""Returns the records of a field. It may hold memory of the device that the field is on."""

Columns = Mapping[str, NDArray[Any]]
"""The columns of a table by name."""


@dataclass(frozen=True)
class Quantity:
    """An average that is shown to people.

    Attributes
    ----------
    column : str
        The column of the observable's table.
    label : str
        In words, such as ``Polyakov loop, modulus``.
    symbol : str
        On the axis of a plot, in Matplotlib's mathematical text.
    short : str
        In narrow columns; by default the label.
    """

    column: str
    label: str
    symbol: str
    short: str = ""

    @property
    def average(self) -> str:
        """The symbol of the average over an ensemble, for the axis of a plot."""
        inside = self.symbol.strip("$")
        return self.symbol if inside == self.symbol else rf"$\langle{inside}\rangle$"

    @property
    def heading(self) -> str:
        """What stands above a column of a table."""
        return self.short or self.label


@dataclass(frozen=True)
class Derived:
    """A quantity of an ensemble that is not an average, such as a susceptibility.

    Attributes
    ----------
    name : str
        What its columns are called in the table of a scan, after the observable's name.
    note : str
        Its definition, for the table's header.
    label : str
        In words, short.
    symbol : str
        On the axis of a plot.
    estimate : callable
        Returns value and error from the columns of the tables of several chains, and the lattice.
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
        Numbers of the configurations, ascending.
    samples : ndarray of float64, shape (configurations,) or (configurations, T)
        Numbers, or correlators at t = 1, 2, ….
    """

    sweeps: NDArray[np.int64]
    samples: NDArray[Any]


class Observable:
    """Something to measure on fields of a lattice. An instance has its options.

    Most observables declare the class attributes and define `measure`, which returns one record of
    numbers. What else they may define has a default here.

    Attributes
    ----------
    name : str
        As in ``--measure`` and in the name of the table.
    summary : str
        What is measured, in a few words.
    columns : tuple of str
        Names of the values in a record, without the number of the configuration.
    normalisation, units : str
        In words, for the header of the table.
    options : tuple of Option
        What `for_lattice` takes.
    smears : bool
        Whether `for_lattice` also takes a smearing and its options.
    quantities : tuple of Quantity
        Averages to show; by default the first column. The first one is the main one. Empty for an
        observable with several records of one field.
    derived : tuple of Derived
        What else tables of scans hold.
    links_moved : float or None
        Links that a measurement must at least read and write for each link of the lattice, for
        benchmarks; None if that is not simply known.
    main_kernel : Kernel or None
        The kernel whose registers benchmarks show.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    normalisation: ClassVar[str]
    units: ClassVar[str] = "dimensionless"
    options: ClassVar[tuple[Option, ...]] = ()
    smears: ClassVar[bool] = False
    quantities: ClassVar[tuple[Quantity, ...]] = ()
    derived: ClassVar[tuple[Derived, ...]] = ()
    links_moved: ClassVar[float | None] = None
    main_kernel: ClassVar[Kernel | None] = None

    def __init_subclass__(cls) -> None:
        """Take the first column for the main quantity if none is declared."""
        super().__init_subclass__()
        if "columns" in vars(cls) and "quantities" not in vars(cls):
            first = cls.columns[0]
            label = cls.name if first in (cls.name, "value") else f"{cls.name}, {first}"
            cls.quantities = (Quantity(first, label, label),)

    @classmethod
    def for_lattice(cls, lattice: Lattice, **options: Any) -> Observable:
        """Return the observable on fields of a lattice, with options by name.

        Raises
        ------
        UsageError
            If there is no such option, or its value is not allowed.
        """
        return cls(**check_options(cls.options, options, cls.name))

    @property
    def records(self) -> int:
        """The number of records of one field."""
        return 1

    @property
    def header(self) -> dict[str, str]:
        """What the table says of the observable: name, normalisation, units, parameters."""
        return {
            "observable": self.name,
            "normalisation": self.normalisation,
            "units": self.units,
        }

    def measure(self, field: Field) -> Record:
        """Return the record of a field."""
        raise NotImplementedError

    def measurer(self, like: Field) -> Measurer:
        """Return what measures on fields like this one, on the same devices."""
        return lambda field: [self.measure(field)]

    @classmethod
    def live(cls, record: Record) -> str:
        """Return a record in words for progress displays; empty if it is not for them."""
        return ""

    @classmethod
    def is_live(cls) -> bool:
        """Return whether progress displays show the observable, whether it is measured or not."""
        return cls.live.__func__ is not Observable.live.__func__  # type: ignore[attr-defined]

    @classmethod
    def contradictions(cls, columns: Columns) -> NDArray[np.bool_] | None:
        """Mark the rows whose numbers contradict each other; None if none can."""
        return None

    @classmethod
    def of_averages(cls, averages: Averages) -> dict[str, float]:
        """Return what the averages over a stored configuration say of a record, by column."""
        return {}

    @classmethod
    def series(cls, table: TableData, source: str) -> dict[str, Series]:
        """Return the time series in a table, for export and analysis: one for each column.

        Parameters
        ----------
        table : TableData
        source : str
            The name of the table's file, for messages.

        Raises
        ------
        GaugeError
            If the table does not hold numbers by ascending sweep.
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
            f"The table {source} is damaged: it does not hold numbers by ascending sweep; run "
            "gauge-mc verify on its run."
        )


def _are_elements(rows: int, columns: Columns) -> bool:
    """Return whether a table holds arrays: so many rows for each sweep, always the same indices."""
    indices = [columns[name].reshape(-1, rows) for name in columns if name in INDICES]
    return bool(indices) and all((index == index[0]).all() for index in indices)


def _elements(sweeps: NDArray[np.int64], rows: int, columns: Columns) -> dict[str, Series]:
    """Return a series for each element of an array that a table holds, by its indices."""
    indices = [columns[name][:rows] for name in columns if name in INDICES]
    return {
        f"{name}[{','.join(str(index[row]) for index in indices)}]": Series(
            sweeps, column.reshape(-1, rows)[:, row]
        )
        for name, column in columns.items()
        if name not in INDICES
        for row in range(rows)
    }


SWEEP = "sweep"
"""The first column of every table: the number of the configuration."""

INDICES = "ijklmn"
"""Names of the columns that hold the indices of an array, if a record is one of its elements."""

OBSERVABLES: Registry[type[Observable]] = Registry("observable", __name__)


def table_name(observable: str) -> str:
    """Return the name of an observable's table, without its ending."""
    return observable.replace("-", "_")


def live_observables(lattice: Lattice) -> list[Observable]:
    """Return what progress displays show of fields on a lattice, measured or not."""
    return [one.for_lattice(lattice) for one in OBSERVABLES.values() if one.is_live()]


def observable_of_table(table: TableData) -> type[Observable] | None:
    """Return the observable whose table this is, as its header says; None if it is not known."""
    name = table.header.get("observable", "").replace("_", "-")
    return OBSERVABLES[name] if name in OBSERVABLES else None
