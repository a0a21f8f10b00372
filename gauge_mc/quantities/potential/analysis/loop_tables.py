"""Reading of tables of Wilson loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.paths import PATHS
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.table import TableData, read_table
from gauge_mc.quantities.potential.analysis.loops import AXIS, LoopMatrices, PathLoops
from gauge_mc.quoting import shortened

OTHER_LEVEL = "smearing2"
"""Column of the smearing level of the other spatial side, in tables of correlation matrices."""

COLUMNS = TableColumns(
    Column("smearing", int, "iterations of smearing before the measurement", index=True),
    Column(
        OTHER_LEVEL,
        int,
        "iterations on the other spatial side; only with `--correlations`",
        index=True,
        optional=True,
    ),
    Column("path", str, f"direction of the spatial line: {', '.join(PATHS)}", index=True),
    Column("r", int, "steps along the path", index=True),
    Column("t", int, "extent in time, in lattice units", index=True),
    Column("loop", float, "W(R, T), averaged over all sites and equivalent directions"),
)
"""Columns of a table of Wilson loops."""

LOOP_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns that every such table has."""

T_STEP = "t_step"
"""Line of the header with the distance of the values of T, if it is not 1."""


def paths_of(table: TableData) -> list[str]:
    """Return the paths that a table contains, such as ``["100", "110"]``."""
    return sorted(set(_path_names(table).tolist()))


def smearing_levels(table: TableData) -> list[int]:
    """Return the smearing levels that a table contains, ascending."""
    return [int(level) for level in np.unique(_integers(table, "smearing"))]


def level_pairs(table: TableData) -> list[tuple[int, int]]:
    """Return the smearing levels of the two spatial sides that a table contains, ascending."""
    other = OTHER_LEVEL if OTHER_LEVEL in table.columns else "smearing"
    columns = (_integers(table, name).tolist() for name in ("smearing", other))
    return sorted(set(zip(*columns, strict=True)))


def read_loops(
    path: Path, smearing: int | None = None, skip: int = 0
) -> tuple[list[PathLoops], dict[str, str]]:
    """Read the loops along all paths at one smearing level from the file of a table.

    Parameters
    ----------
    path : Path
        File of the table.
    smearing : int, optional
        Smearing level; by default the highest.
    skip : int
        Last update that is left out.

    Returns
    -------
    list of PathLoops
        One for each path, on axis first.
    dict of str to str
        Group, beta and lattice of the ensemble, as the header of the table states them.

    Raises
    ------
    GaugeError
        If the table cannot be read, or for the reasons given in `select_loops`.
    UsageError
        If nothing was measured after the update `skip`.
    """
    table, source, known = _open(path, skip)
    return [select_loops(table, one, smearing, source) for one in paths_of(table)], known


def read_matrices(
    path: Path, levels: Sequence[int], skip: int = 0
) -> tuple[list[LoopMatrices], dict[str, str]]:
    """Read the loops along all paths between smearing levels from the file of a table.

    Parameters
    ----------
    path : Path
        File of a table with the column `OTHER_LEVEL`.
    levels : sequence of int
        Smearing levels.
    skip : int
        Last update that is left out.

    Returns
    -------
    list of LoopMatrices
        One for each path, on axis first.
    dict of str to str
        Group, beta and lattice of the ensemble, as the header of the table states them.

    Raises
    ------
    GaugeError
        If the table has no loops between different levels, or for the reasons given in
        `select_loops`.
    UsageError
        If nothing was measured after the update `skip`.
    """
    table, source, known = _open(path, skip)
    return [select_matrices(table, one, levels, source) for one in paths_of(table)], known


def _open(path: Path, skip: int) -> tuple[TableData, str, dict[str, str]]:
    """Return a table of Wilson loops, its name, and what its header says of the ensemble."""
    table, source = read_table(path), str(path)
    _check_columns(table, source)
    return table.after(skip, source), source, ensemble_of(table.header)


def ensemble_of(header: Mapping[str, str]) -> dict[str, str]:
    """Return group, beta and lattice of an ensemble, as far as a header states them."""
    names = ("group", "beta", "lattice")
    return {name: value for name, value in header.items() if name in names}


def select_loops(
    table: TableData,
    path: str = "100",
    smearing: int | None = None,
    source: str = "The table",
    other: int | None = None,
) -> PathLoops:
    """Return the loops along one path at one smearing level from a table.

    Parameters
    ----------
    table : TableData
        A table with the columns `LOOP_COLUMNS`.
    path : str
        Path of the spatial lines, such as ``"100"``.
    smearing : int, optional
        Smearing level; by default the highest.
    source : str
        Name of the table for error messages.
    other : int, optional
        Smearing level of the other spatial side; by default the same.

    Returns
    -------
    PathLoops
        The loops at all R and t of that path and level.

    Raises
    ------
    GaugeError
        If the table lacks a column, the path or the level, or if some configuration does not have
        every loop up to the largest r and t exactly once.
    """
    _check_columns(table, source)
    if path not in paths_of(table):
        known = ", ".join(paths_of(table))
        raise GaugeError(f"{source} has no loops along the path {path}; choose from {known}.")
    known_levels = smearing_levels(table)
    level = known_levels[-1] if smearing is None else smearing
    both = level, level if other is None else other
    sweeps, r, t, values = _select(table, path, both, source)
    return PathLoops(path, level, sweeps, r, t, values, tuple(known_levels))


def select_matrices(
    table: TableData, path: str, levels: Sequence[int], source: str = "The table"
) -> LoopMatrices:
    """Return the loops along one path between all pairs of smearing levels from a table.

    The two orders of a pair have the same expectation value and are averaged if the table has both.

    Parameters
    ----------
    table : TableData
        A table with the columns `LOOP_COLUMNS` and `OTHER_LEVEL`.
    path : str
        Path of the spatial lines.
    levels : sequence of int
        Smearing levels.
    source : str
        Name of the table for error messages.

    Raises
    ------
    GaugeError
        If the table has no loops between different levels, or for the reasons given in
        `select_loops`.
    """
    if OTHER_LEVEL not in table.columns:
        raise GaugeError(
            f"{source} has no column '{OTHER_LEVEL}': its loops have the same smearing level on "
            "both sides, but a variational analysis needs the loops between all pairs of levels; "
            "fit a single level with --level instead."
        )
    chosen = tuple(sorted(set(levels)))
    found = {}
    pairs = level_pairs(table)
    for i, j in combinations_with_replacement(range(len(chosen)), 2):
        pair = chosen[i], chosen[j]
        orders = [one for one in {pair, pair[::-1]} if one in pairs] or [pair]
        parts = [_select(table, path, one, source) for one in orders]
        found[i, j] = found[j, i] = (*parts[0][:3], np.mean([one[3] for one in parts], axis=0))
    sweeps, r, t, _ = found[0, 0]
    size = len(chosen)
    for (i, j), one in found.items():
        if any(not np.array_equal(a, b) for a, b in zip(one[:3], (sweeps, r, t), strict=True)):
            raise GaugeError(
                f"{source} is incomplete: it has other loops between the levels {chosen[i]} and "
                f"{chosen[j]} than at {chosen[0]}; measure its Wilson loops again."
            )
    rows = [np.stack([found[i, j][3] for j in range(size)], axis=-1) for i in range(size)]
    return LoopMatrices(path, chosen, sweeps, r, t, np.stack(rows, axis=-2))


def _select(
    table: TableData, path: str, levels: tuple[int, int], source: str
) -> tuple[Integers, Integers, Integers, Array]:
    """Return sweeps, r, t and W(r, t) along one path with two smearing levels."""
    level, other = levels
    rows = (_path_names(table) == path) & (_integers(table, "smearing") == level)
    if OTHER_LEVEL in table.columns:
        rows &= _integers(table, OTHER_LEVEL) == other
    if not rows.any():
        known = ", ".join(str(known) for known in smearing_levels(table))
        both = f"{level} smearing iterations"
        if level != other:
            both = f"{level} smearing iterations on one side and {other} on the other"
        raise GaugeError(
            f"{source} has no loops along {path} after {both}; choose from the levels {known}."
        )
    columns = [_integers(table, name)[rows] for name in ("sweep", "r", "t")]
    loop = np.asarray(table.columns["loop"], dtype=np.float64)[rows]
    (sweeps, at_sweep), (r, at_r), (t, at_t) = (np.unique(c, return_inverse=True) for c in columns)
    values = np.full((sweeps.size, r.size, t.size), np.nan)
    values[at_sweep, at_r, at_t] = loop
    counts = np.bincount(at_sweep)
    if not np.isfinite(values).all() or (counts != r.size * t.size).any():
        bad = ~np.isfinite(values).all(axis=(1, 2)) | (counts != r.size * t.size)
        raise GaugeError(
            f"{source} is incomplete: configuration {sweeps[np.argmax(bad)]} does not have every "
            f"loop along {path} up to {r[-1]}x{t[-1]} exactly once; measure its Wilson loops again."
        )
    first, step = _first_r(table, path), _t_step(table, source)
    for name, found, begin, by in (("r", r, first, 1), ("t", t, step, step)):
        if not np.array_equal(found, np.arange(begin, found[-1] + 1, by)):
            raise GaugeError(
                f"{source} is incomplete: its loops along {path} lack some {name} between "
                f"{begin} and {found[-1]}; measure them again."
            )
    return sweeps, r, t, values


def _first_r(table: TableData, path: str) -> int:
    """Return the smallest number of steps along a path in a table."""
    return 2 if path == AXIS and table.header.get("multihit") == "yes" else 1


def _t_step(table: TableData, source: str) -> int:
    """Return the distance of the values of t in a table."""
    text = table.header.get(T_STEP, "1")
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) < 10**6:
        raise GaugeError(
            f"The header of {source} is damaged: {T_STEP} is '{shortened(text)}'; measure the "
            "loops again."
        )
    return int(text)


def _check_columns(table: TableData, source: str) -> None:
    """Refuse a table that is empty or does not contain Wilson loops."""
    COLUMNS.check(table, source, "Wilson loops")
    if not len(table.columns["loop"]):
        raise GaugeError(f"{source} has no loops yet; measure some first.")


def _integers(table: TableData, name: str) -> Integers:
    return np.asarray(table.columns[name], dtype=np.int64)


def _path_names(table: TableData) -> NDArray[np.str_]:
    return np.asarray(table.columns["path"], dtype=np.str_)
