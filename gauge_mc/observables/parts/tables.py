"""Tables of observables: their columns, headers and secondary tables, and series from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError
from gauge_mc.files.averages import Averages
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.table import Table, TableData

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

    def open(self, path: Path, header: Mapping[str, str], sources: str = "") -> Table:
        """Open the table, given the file, header and sources of the table of the observable."""
        own = {"observable": self.name, OF_TABLE: path.name}
        return Table(self.beside(path), {**header, **own}, (SWEEP, *self.columns.names), sources)


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
        if declared and all(isinstance(one, Column | str) for one in declared):
            columns = TableColumns(*cls.columns)
            silent = columns.averaged or columns.indices
            cls.columns = columns if silent else columns.averaging(cls.name, only=1)

    @property
    def header(self) -> dict[str, str]:
        """Header of the table: name, normalisation, units and parameters of the observable."""
        return {
            "observable": self.name,
            "normalisation": self.normalisation,
            "units": self.units,
        }

    @classmethod
    def columns_of_tables(cls) -> Iterator[TableColumns]:
        """Yield the columns of each of its tables."""
        yield cls.columns
        yield from (one.columns for one in cls.secondary_tables)

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
        known = declared or TableColumns.of_function("", columns)
        indices = {name: columns.pop(name) for name in known.indices if name in columns}
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
            "configuration, sorted by sweep; check it with gauge-mc verify "
            f"{quote(str(source))}."
        )


def _are_elements(rows: int, indices: Columns) -> bool:
    """Return whether a table contains arrays: the same indices in the rows of every sweep."""
    return bool(indices) and all(
        (one.reshape(-1, rows) == one[:rows]).all() for one in indices.values()
    )


def _elements(
    sweeps: NDArray[np.int64], rows: int, indices: Columns, columns: Columns, declared: bool
) -> dict[str, TimeSeries]:
    """Return a series for each element of the arrays in a table, named by its indices.

    The indices that an observable declares have names, such as ``path=100,r=3``, and the name of
    the column follows if there are several; those of a function have none, as in ``value[0,1]``.
    """
    found = {}
    for name, column in columns.items():
        for row in range(rows):
            if not declared:
                key = f"{name}[{','.join(str(one[row]) for one in indices.values())}]"
            else:
                words = [f"{index}={one[row]}" for index, one in indices.items()]
                key = ",".join([*words, *[name] * (len(columns) > 1)])
            found[key] = TimeSeries(sweeps, column.reshape(-1, rows)[:, row].astype(np.float64))
    return found
