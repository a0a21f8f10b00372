"""The series of tables that tell whether a chain has thermalised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.files.columns import SWEEP, TableColumns
from gauge_mc.files.table import TableData
from gauge_mc.observables import OBSERVABLES

LAST_ROW = ", last row"
"""End of the name of a series of the last rows of measurements."""

NamedSeries = tuple[str, NDArray[np.int64], NDArray[np.float64]]
"""Name of a quantity, numbers of updates, and values, of shape (samples,)."""


def series_of(table: TableData) -> Iterator[NamedSeries]:
    """Yield the series of a table that tell whether a chain has thermalised.

    These are the columns whose averages are shown and the slow modes of the observable; of the
    table of an algorithm, such as the energies of trajectories, all columns with numbers. Of a
    table with several rows per measurement they are the mean over the rows of each measurement and
    its last row, which is that of the longest flow time or of the largest loop. Columns that may
    be nothing but rounding are left out.
    """
    sweeps = table.columns.get(SWEEP)
    if sweeps is None or sweeps.dtype.kind != "i" or not len(table):
        return
    observable = OBSERVABLES.get(_name(table))
    updates, first, rows = np.unique(sweeps, return_index=True, return_counts=True)
    for column in _columns(table, rows.size == sweeps.size):
        values = np.asarray(table[column], dtype=np.float64)
        if rows.size == sweeps.size:
            yield column, sweeps, values
        else:
            yield f"{column}, mean of its rows", updates, np.add.reduceat(values, first) / rows
            yield f"{column}{LAST_ROW}", updates, values[first + rows - 1]
    if observable:
        for name, values in observable.slow_modes(table).items():
            if len(values) == updates.size:
                yield name, updates, values


def _name(table: TableData) -> str:
    """Return the name of the observable, the algorithm or the function that made a table."""
    return table.header.get("observable", "").replace("_", "-")


def _columns(table: TableData, single: bool) -> Sequence[str]:
    """Return the names of the columns that are looked at, which contain decimal numbers."""
    name = _name(table)
    known = OBSERVABLES.get(name) or ALGORITHMS.get(name)
    columns = known.columns if known else TableColumns.of_function(name, table.columns)
    every = tuple(one for one in columns if one.kind is float and not one.rounding)
    chosen = columns.averaged if single and name not in ALGORITHMS else every
    return [
        one.name
        for one in chosen
        if not one.index and one.name in table and table[one.name].dtype.kind in "if"
    ]
