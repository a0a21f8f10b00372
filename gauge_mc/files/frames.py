"""Tables in the forms of other libraries: pandas, xarray, and HTML for notebooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError, UnknownNameError
from gauge_mc.libraries import load
from gauge_mc.registry import in_words, nearest

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
    return load("xarray", "The conversion needs").Dataset(variables, coordinates, header)


def _rows(columns: Columns) -> int:
    return len(next(iter(columns.values()), ()))


def dimensions_of(columns: Columns) -> tuple[str, ...]:
    """Return the first columns of a table that together tell its rows apart, at least one."""
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
    body = "".join(f"<tr>{cell}</tr>" for cell in cells)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


K = TypeVar("K", str, int)
V = TypeVar("V")


class FileMapping(Mapping[K, V]):
    """Files by name or number. Each is read anew whenever it is asked for.

    Parameters
    ----------
    kind : str
        Name of the kind, such as ``table``, for messages.
    files : mapping of str or int to Path
        Paths of the files.
    read : callable
        Function that reads one of them.
    """

    def __init__(self, kind: str, files: Mapping[K, Path], read: Callable[[Path], V]) -> None:
        self._kind, self._read = kind, read
        self._files: Mapping[K, Path] = files

    def __getitem__(self, key: K) -> V:
        """Read a file."""
        if key not in self._files:
            raise unknown(self._kind, key, self._files)
        return self._read(self._files[key])

    def __contains__(self, key: object) -> bool:
        return key in self._files

    def __iter__(self) -> Iterator[K]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        words: list[str] = [str(key) for key in self]
        shown = words if len(words) <= 6 else [*words[:2], "…", words[-1]]
        names = f": {in_words(shown)}" if self else ""
        return f"<{len(self)} {self._kind}{'s' * (len(self) != 1)}{names}>"


class SuggestingDict(dict[str, V]):
    """A dictionary whose error for an unknown name suggests the nearest one."""

    def __missing__(self, name: str) -> Any:
        raise unknown("entry", name, self)


def unknown(kind: str, key: str | int, entries: Mapping[Any, object]) -> UnknownNameError:
    """Return the error for an unknown name or number, with the nearest one."""
    if not entries:
        return UnknownNameError(f"There is no {kind} '{key}', and no other either.")
    if isinstance(key, int) and not isinstance(next(iter(entries)), str):
        close = min(entries, key=lambda x: abs(x - key))
        return UnknownNameError(f"There is no {kind} {key}; the nearest is {close}.")
    return UnknownNameError(
        f"There is no {kind} '{key}'{nearest(str(key), map(str, entries), 'keys()')}"
    )
