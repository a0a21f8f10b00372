"""Tables as arrays: a row for each configuration, a column for each element of the result.

Which columns of a table say what element a row is, its observable declares (`Column.index`). So one
reader, with one set of checks, serves all tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries.gamma_method import MIN_CONFIGURATIONS
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import DamagedError, GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, TableColumns
from gauge_mc.files.table import TableData, read_table
from gauge_mc.numbers import counted


@dataclass(frozen=True)
class TableSeries:
    """The columns of a table as arrays.

    Attributes
    ----------
    source, what : str
        Name and content of the table, for messages.
    header : mapping of str to str
        Contents of its header.
    sweeps : ndarray of int64, shape (configurations,)
        Numbers (updates) of the configurations, ascending.
    index : dict of str to ndarray, shape (elements,)
        The declared index columns, in the order of the file.
    values : dict of str to ndarray, shape (configurations, elements)
        The other columns.
    """

    source: str
    what: str
    header: Mapping[str, str]
    sweeps: Integers
    index: dict[str, NDArray[Any]]
    values: dict[str, Array]

    def stated(self, keys: Sequence[str]) -> dict[str, str]:
        """Return what the header states of some keys."""
        return {key: self.header[key] for key in keys if key in self.header}

    @property
    def lattice(self) -> Lattice:
        """The lattice that the header states.

        Raises
        ------
        GaugeError
            If it states none.
        """
        try:
            return Lattice.parse(self.header["lattice"])
        except (KeyError, UsageError) as error:
            raise GaugeError(
                f"{self.source} does not state its lattice; measure {self.what} again."
            ) from error


def read_series(
    path: Path,
    columns: TableColumns,
    what: str,
    skip: int = 0,
    fewest: int = MIN_CONFIGURATIONS,
    rows: Callable[[TableData], NDArray[np.bool_]] | None = None,
) -> TableSeries:
    """Read a table whose configurations all have the same elements; see `series_of`.

    Raises
    ------
    GaugeError
        If the file is damaged, or as in `series_of`.
    UsageError
        If nothing was measured after the update `skip`.
    """
    table = read_table(path, columns.words)
    return series_of(table, str(path), columns, what, skip, fewest, rows)


def series_of(
    table: TableData,
    source: str,
    columns: TableColumns,
    what: str,
    skip: int = 0,
    fewest: int = 1,
    rows: Callable[[TableData], NDArray[np.bool_]] | None = None,
) -> TableSeries:
    """Return the columns of a table whose configurations all have the same elements.

    Parameters
    ----------
    table : TableData
        The table.
    source : str
        Its name, for messages.
    columns : TableColumns
        Its columns, as its observable declares them.
    what : str
        Content of the table, for messages, such as ``Wilson loops``.
    skip : int
        Last update that is left out.
    fewest : int
        Smallest number of configurations.
    rows : callable, optional
        Function of the table that returns which rows are read, if not all.

    Raises
    ------
    GaugeError
        If it is damaged or another table, some configuration does not have every element exactly
        once, or there are too few configurations.
    UsageError
        If nothing was measured after the update `skip`.
    """
    columns.check(table, source, what)
    table = table.after(skip, source)
    chosen = rows(table) if rows else np.ones(len(table), bool)
    if not chosen.any():
        raise GaugeError(f"{source} has no rows of {what}; measure {what} first.")
    known = {
        one.name: table[one.name][chosen].astype(one.kind, copy=False)
        for one in columns
        if one.name in table.columns
    }
    elements = [known.pop(name) for name in columns.indices if name in known]
    sweeps, index, order = arranged(table[SWEEP][chosen], elements, source, what)
    if sweeps.size < fewest:
        raise GaugeError(
            f"{source} has {counted(sweeps.size, 'configuration')}, and at least {fewest} are "
            f"needed; measure {what} on more."
        )
    for name, one in known.items():
        if one.dtype.kind == "f" and not np.isfinite(one).all():
            raise DamagedError(
                f"{source} is damaged: its column '{name}' contains a value that is not a number."
            )
    names = (name for name in columns.indices if name in table.columns)
    return TableSeries(
        source,
        what,
        table.header,
        sweeps,
        dict(zip(names, index, strict=True)),
        {name: one[order] for name, one in known.items()},
    )


def arranged(
    sweeps: NDArray[Any], index: Sequence[NDArray[Any]], source: str, what: str
) -> tuple[Integers, list[NDArray[Any]], Integers]:
    """Return the place of every element of every configuration in a table.

    Parameters
    ----------
    sweeps : ndarray, shape (rows,)
        Number of the configuration of each row.
    index : sequence of ndarray, each of shape (rows,)
        Columns that say which element a row is.
    source, what : str
        Name and content of the table, for messages.

    Returns
    -------
    ndarray of int64, shape (configurations,)
        Numbers of the configurations, ascending.
    list of ndarray, each of shape (elements,)
        The columns of the elements, in the order in which they first occur.
    ndarray of int64, shape (configurations, elements)
        Numbers of the rows.

    Raises
    ------
    GaugeError
        If some configuration does not have every element exactly once.
    """
    numbers, at = np.unique(sweeps, return_inverse=True)
    codes = [np.unique(one, return_inverse=True)[1] for one in index]
    shape = [int(one.max()) + 1 for one in codes]
    flat = np.ravel_multi_index(codes, shape) if codes else np.zeros(len(at), np.int64)
    _, first, which = np.unique(flat, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    rows = np.full((numbers.size, order.size), -1, np.int64)
    rows[at, place[which]] = np.arange(len(at))
    bad = (rows < 0).any(axis=1) | (np.bincount(at) != order.size)
    if bad.any():
        raise GaugeError(
            f"{source} is incomplete: configuration {numbers[np.argmax(bad)]} does not have the "
            f"same rows of {what} as the others, each once; measure {what} again."
        )
    return np.asarray(numbers, np.int64), [one[first[order]] for one in index], rows
