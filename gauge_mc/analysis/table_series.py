"""Tables as arrays: a row for each configuration, a column for each element of the result.

Which columns of a table say what element a row is, its observable declares (`Column.index`). So one
reader, with one set of checks, serves all tables.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, Replicas
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import DamagedError, GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, TableColumns
from gauge_mc.files.table import TableData, read_table
from gauge_mc.quoting import counted

OF_A_CHAIN = ("seed", "start", "measured in", "version")
"""Keys of headers in which tables of chains of one ensemble may differ."""

Tables = Path | Sequence[Path]
"""The file of a table, or those of several chains of one ensemble."""

Skips = int | Sequence[int]
"""Last update that is left out: of all chains, or of each."""


@dataclass(frozen=True)
class TableSeries:
    """The columns of a table as arrays, or of the tables of several chains of one ensemble.

    Attributes
    ----------
    source, what : str
        Name and content of the table, for messages.
    header : mapping of str to str
        Contents of its header.
    sweeps : ndarray of int64, shape (configurations,)
        Numbers (updates) of the configurations, ascending in every chain.
    replicas : Replicas
        Division of the configurations into chains.
    index : dict of str to ndarray, shape (elements,)
        The declared index columns, in the order of the file.
    values : dict of str to ndarray, shape (configurations, elements)
        The other columns.
    """

    source: str
    what: str
    header: Mapping[str, str]
    sweeps: Integers
    replicas: Replicas
    index: dict[str, NDArray[Any]]
    values: dict[str, Array]

    @property
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """All columns by name."""
        return {**self.index, **self.values}

    def stated(self, keys: Sequence[str]) -> dict[str, str]:
        """Return what the header states of some keys."""
        return {key: self.header[key] for key in keys if key in self.header}

    @property
    def lattice(self) -> Lattice:
        """The lattice that the header states."""
        try:
            return Lattice.parse(self.header["lattice"])
        except (KeyError, UsageError) as error:
            raise GaugeError(
                f"{self.source} does not state its lattice; measure {self.what} again."
            ) from error


def read_series(
    tables: Tables,
    columns: TableColumns,
    subject: str,
    skip: Skips = 0,
    fewest: int = MIN_CONFIGURATIONS,
    rows: Callable[[TableData], NDArray[np.bool_]] | None = None,
) -> TableSeries:
    """Read a table whose configurations all have the same elements, or those of several chains."""
    chains = [
        series_of(read_table(path, columns.words), str(path), columns, subject, last, rows)
        for path, last in _each(tables, skip)
    ]
    return joined_series(chains, fewest)


def read_rows(
    tables: Tables, skip: Skips = 0, words: Collection[str] = ("path",)
) -> tuple[TableData, Replicas]:
    """Read a table, or those of chains of one ensemble, whose rows then follow each other."""
    pairs = _each(tables, skip)
    chains = [read_table(path, words).after(last, str(path)) for path, last in pairs]
    first = chains[0]
    for (path, _), table in zip(pairs[1:], chains[1:], strict=True):
        _check_alike(pairs[0][0], path, _difference(first, table))
    columns = {name: np.concatenate([chain[name] for chain in chains]) for name in first}
    sweeps = (np.unique(next(iter(chain.columns.values()))) for chain in chains)
    names = _names([str(path) for path, _ in pairs])
    return TableData(first.header, columns), replace(Replicas.of(*sweeps), names=names)


def _each(tables: Tables, skip: Skips) -> list[tuple[Path, int]]:
    """Return the files of tables, each with the last update that is left out."""
    paths = [tables] if isinstance(tables, Path) else tables
    skips = [skip] * len(paths) if isinstance(skip, int) else skip
    return [*zip(paths, skips, strict=True)]


def joined_series(chains: Sequence[TableSeries], fewest: int = 1) -> TableSeries:
    """Return the series of chains of one ensemble, one after the other."""
    first = chains[0]
    for series in chains[1:]:
        difference = _difference(first, series)
        matches = (np.array_equal(rows, series.index[name]) for name, rows in first.index.items())
        if not difference and not all(matches):
            difference = f"the rows of {first.what} of every configuration"
        _check_alike(first.source, series.source, difference)
    sweeps = [chain.sweeps for chain in chains]
    joined = replace(
        first,
        source=", ".join(chain.source for chain in chains),
        sweeps=np.concatenate(sweeps),
        replicas=replace(Replicas.of(*sweeps), names=_names([chain.source for chain in chains])),
        values={x: np.concatenate([chain.values[x] for chain in chains]) for x in first.values},
    )
    if joined.sweeps.size < fewest:
        raise GaugeError(
            f"{joined.source} has {counted(joined.sweeps.size, 'configuration')}, and at least "
            f"{fewest} are needed; measure {joined.what} on more."
        )
    return joined


def _names(sources: Sequence[str]) -> tuple[str, ...]:
    return tuple(sources) if len(sources) > 1 else ()


def _check_alike(first: str | Path, second: str | Path, difference: str) -> None:
    if difference:
        raise GaugeError(
            f"{first} and {second} differ in {difference}, so that they are not chains of one "
            "ensemble; name those that are, or fit them with --separate."
        )


def _difference(first: TableSeries | TableData, second: TableSeries | TableData) -> str:
    """Return in which entry of the header or columns tables differ, if they must not."""
    for key in sorted((first.header.keys() | second.header.keys()).difference(OF_A_CHAIN)):
        stated = [table.header.get(key, "none") for table in (first, second)]
        if stated[0] != stated[1]:
            return f"'{key}' ({' and '.join(stated)})"
    names = [{*table.columns} for table in (first, second)]
    return f"the columns {', '.join(sorted(names[0] ^ names[1]))}" if names[0] != names[1] else ""


def series_of(
    table: TableData,
    source: str,
    columns: TableColumns,
    subject: str,
    skip: int = 0,
    rows: Callable[[TableData], NDArray[np.bool_]] | None = None,
) -> TableSeries:
    """Return the columns of a table whose configurations all have the same elements."""
    columns.check(table, source, subject)
    table = table.after(skip, source)
    mask = rows(table) if rows else np.ones(len(table), bool)
    if not mask.any():
        raise GaugeError(f"{source} has no rows of {subject}; measure {subject} first.")
    arrays = {
        column.name: table[column.name][mask].astype(column.kind, copy=False)
        for column in columns
        if column.name in table.columns
    }
    elements = [arrays.pop(name) for name in columns.indices if name in arrays]
    sweeps, index, order = arranged(table[SWEEP][mask], elements, source, subject)
    for name, values in arrays.items():
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise DamagedError(
                f"{source} is damaged: its column '{name}' contains a value that is not a number."
            )
    names = (name for name in columns.indices if name in table.columns)
    return TableSeries(
        source,
        subject,
        table.header,
        sweeps,
        Replicas.of(sweeps),
        dict(zip(names, index, strict=True)),
        {name: values[order] for name, values in arrays.items()},
    )


def arranged(
    sweeps: NDArray[Any], index: Sequence[NDArray[Any]], source: str, subject: str
) -> tuple[Integers, list[NDArray[Any]], Integers]:
    """Return the place of every element of every configuration in a table."""
    numbers, at = np.unique(sweeps, return_inverse=True)
    codes = [np.unique(x, return_inverse=True)[1] for x in index]
    shape = [int(code.max()) + 1 for code in codes]
    flat = np.ravel_multi_index(codes, shape) if codes else np.zeros(len(at), np.int64)
    _, first, element = np.unique(flat, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    rows = np.full((numbers.size, order.size), -1, np.int64)
    rows[at, place[element]] = np.arange(len(at))
    bad = (rows < 0).any(axis=1) | (np.bincount(at) != order.size)
    if bad.any():
        raise GaugeError(
            f"{source} is incomplete: configuration {numbers[np.argmax(bad)]} does not have the "
            f"same rows of {subject} as the others, each once; measure {subject} again."
        )
    return np.asarray(numbers, np.int64), [x[first[order]] for x in index], rows
