"""Tables in the forms of other libraries: pandas, xarray, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load

Columns = Mapping[str, NDArray[Any]]
"""The columns of a table by name, which have one row per record."""

ENDS = 5
"""Number of rows at the beginning and at the end of a long table that a notebook shows."""


def to_pandas(columns: Columns, header: Mapping[str, str]) -> Any:
    """Return a data frame; see `TableData.to_pandas`."""
    frame = load("pandas", "The conversion needs").DataFrame(columns)
    frame.attrs.update(header)
    return frame


def to_xarray(columns: Columns, header: Mapping[str, str]) -> Any:
    """Return a data set; see `TableData.to_xarray`."""
    dimensions = dimensions_of(columns)
    axes = {name: _axis(columns[name]) for name in dimensions}
    shape = tuple(len(values) for values, _ in axes.values())
    places = tuple(place for _, place in axes.values())
    full = _rows(columns) == np.prod(shape)
    variables = {}
    for name, column in columns.items():
        if name not in axes:
            kind = column.dtype if full or column.dtype.kind == "U" else np.dtype(np.float64)
            values = np.full(shape, "" if kind.kind == "U" else 0 if full else np.nan, kind)
            values[places] = column
            variables[name] = dimensions, values
    coordinates = {name: values for name, (values, _) in axes.items()}
    xarray = load("xarray", "The conversion needs")
    return xarray.Dataset(variables, coordinates, header)


def _rows(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def dimensions_of(columns: Columns) -> tuple[str, ...]:
    """Return the first columns of a table that together tell its rows apart, at least one.

    Raises
    ------
    GaugeError
        If two rows are equal.
    """
    names, total = tuple(columns), _rows(columns)
    together = np.zeros(total, np.int64)
    for number, name in enumerate(names, 1):
        pairs = np.stack([together, _axis(columns[name])[1]])
        distinct, together = np.unique(pairs, axis=1, return_inverse=True)
        if distinct.shape[1] == total:
            return names[:number]
    raise GaugeError("Two rows of the table are equal, so that they cannot be told apart.")


def _axis(column: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the different values of a column in their order, and the place of each row."""
    values, first, places = np.unique(column, return_index=True, return_inverse=True)
    order = np.argsort(first)
    return values[order], np.argsort(order)[places]


def to_html(columns: Columns, header: Mapping[str, str], summary: str) -> str:
    """Return a summary, the header and the first and last rows of a table in HTML."""
    names, total = list(columns), _rows(columns)
    shown = [*range(total)]
    if total > 2 * ENDS + 1:
        shown = [*range(ENDS), -1, *range(total - ENDS, total)]
    facts = "<br>".join(escape(f"{key}: {value}") for key, value in header.items())
    rows = [[columns[name][row] if row >= 0 else "⋮" for name in names] for row in shown]
    details = f"<details><summary>{escape(summary)}</summary>{facts}</details>"
    return details + html_table(names, rows)


def html_table(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in HTML, with names of columns."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    cells = ("".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{one}</tr>" for one in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
