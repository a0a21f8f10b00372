"""Reading of tables of Wilson loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np

from gauge_mc.analysis.table_series import TableSeries, read_series
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.paths import PATHS
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
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

WHAT = "Wilson loops"
"""Content of a table, for messages."""

LOOP_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns that every such table has."""

T_STEP = "t_step"
"""Line of the header with the distance of the values of T, if it is not 1."""


def paths_of(loops: TableSeries) -> list[str]:
    """Return the paths that a table contains, such as ``["100", "110"]``."""
    return sorted(set(loops.index["path"].tolist()))


def smearing_levels(loops: TableSeries) -> list[int]:
    """Return the smearing levels that a table contains, ascending."""
    return sorted(set(loops.index["smearing"].tolist()))


def level_pairs(loops: TableSeries) -> list[tuple[int, int]]:
    """Return the smearing levels of the two spatial sides that a table contains, ascending."""
    level = loops.index["smearing"]
    other = loops.index.get(OTHER_LEVEL, level)
    return sorted(set(zip(level.tolist(), other.tolist(), strict=True)))


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
    table = read_series(path, COLUMNS, WHAT, skip, fewest=1)
    found = [select_loops(table, one, smearing) for one in paths_of(table)]
    return found, ensemble_of(table.header)


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
    table = read_series(path, COLUMNS, WHAT, skip, fewest=1)
    found = [select_matrices(table, one, levels) for one in paths_of(table)]
    return found, ensemble_of(table.header)


def ensemble_of(header: Mapping[str, str]) -> dict[str, str]:
    """Return group, beta and lattice of an ensemble, as far as a header states them."""
    names = ("group", "beta", "lattice")
    return {name: value for name, value in header.items() if name in names}


def select_loops(
    loops: TableSeries, path: str = "100", smearing: int | None = None, other: int | None = None
) -> PathLoops:
    """Return the loops along one path at one smearing level from a table.

    Parameters
    ----------
    loops : TableSeries
        All loops of the table.
    path : str
        Path of the spatial lines, such as ``"100"``.
    smearing : int, optional
        Smearing level; by default the highest.
    other : int, optional
        Smearing level of the other spatial side; by default the same.

    Returns
    -------
    PathLoops
        The loops at all R and t of that path and level.

    Raises
    ------
    GaugeError
        If the table lacks the path, the level, or a loop up to the largest r and t.
    """
    if path not in paths_of(loops):
        known = ", ".join(paths_of(loops))
        raise GaugeError(f"{loops.source} has no loops along the path {path}; choose from {known}.")
    known_levels = smearing_levels(loops)
    level = known_levels[-1] if smearing is None else smearing
    r, t, values = _select(loops, path, (level, level if other is None else other))
    return PathLoops(path, level, loops.sweeps, r, t, values, tuple(known_levels))


def select_matrices(loops: TableSeries, path: str, levels: Sequence[int]) -> LoopMatrices:
    """Return the loops along one path between all pairs of smearing levels from a table.

    The two orders of a pair have the same expectation value and are averaged if the table has both.

    Parameters
    ----------
    loops : TableSeries
        All loops of a table with the column `OTHER_LEVEL`.
    path : str
        Path of the spatial lines.
    levels : sequence of int
        Smearing levels.

    Raises
    ------
    GaugeError
        If the table has no loops between different levels, or for the reasons given in
        `select_loops`.
    """
    if OTHER_LEVEL not in loops.index:
        raise GaugeError(
            f"{loops.source} has no column '{OTHER_LEVEL}': its loops have the same smearing level "
            "on both sides, but a variational analysis needs the loops between all pairs of "
            "levels; fit a single level with --level instead."
        )
    chosen = tuple(sorted(set(levels)))
    found = {}
    pairs = level_pairs(loops)
    for i, j in combinations_with_replacement(range(len(chosen)), 2):
        pair = chosen[i], chosen[j]
        orders = [one for one in {pair, pair[::-1]} if one in pairs] or [pair]
        parts = [_select(loops, path, one) for one in orders]
        found[i, j] = found[j, i] = (*parts[0][:2], np.mean([one[2] for one in parts], axis=0))
    r, t, _ = found[0, 0]
    size = len(chosen)
    for (i, j), one in found.items():
        if not (np.array_equal(one[0], r) and np.array_equal(one[1], t)):
            raise GaugeError(
                f"{loops.source} is incomplete: it has other loops between the levels {chosen[i]} "
                f"and {chosen[j]} than at {chosen[0]}; measure its Wilson loops again."
            )
    rows = [np.stack([found[i, j][2] for j in range(size)], axis=-1) for i in range(size)]
    return LoopMatrices(path, chosen, loops.sweeps, r, t, np.stack(rows, axis=-2))


def _select(
    loops: TableSeries, path: str, levels: tuple[int, int]
) -> tuple[Integers, Integers, Array]:
    """Return r, t and W(r, t) along one path with two smearing levels."""
    (level, other), index = levels, loops.index
    chosen = (index["path"] == path) & (index["smearing"] == level)
    chosen &= index.get(OTHER_LEVEL, other) == other
    if not chosen.any():
        known = ", ".join(map(str, smearing_levels(loops)))
        both = f"{level} smearing iterations"
        if level != other:
            both = f"{level} smearing iterations on one side and {other} on the other"
        raise GaugeError(
            f"{loops.source} has no loops along {path} after {both}; choose from the levels "
            f"{known}."
        )
    order = np.flatnonzero(chosen)
    order = order[np.lexsort((index["t"][order], index["r"][order]))]
    found = np.stack([index["r"][order], index["t"][order]])
    first, step = _first_r(loops, path), _t_step(loops)
    last_r, last_t = found.max(axis=1)
    r, t = np.arange(first, last_r + 1), np.arange(step, last_t + 1, step)
    if not np.array_equal(found, [np.repeat(r, t.size), np.tile(t, r.size)]):
        raise GaugeError(
            f"{loops.source} is incomplete: its loops along {path} lack some r between {first} and "
            f"{last_r}, or some t between {step} and {last_t} in steps of {step}; measure them "
            "again."
        )
    return r, t, loops.values["loop"].take(order, axis=1).reshape(-1, r.size, t.size)


def _first_r(loops: TableSeries, path: str) -> int:
    """Return the smallest number of steps along a path in a table."""
    return 2 if path == AXIS and loops.header.get("multihit") == "yes" else 1


def _t_step(loops: TableSeries) -> int:
    """Return the distance of the values of t in a table."""
    text = loops.header.get(T_STEP, "1")
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) < 10**6:
        raise GaugeError(
            f"The header of {loops.source} is damaged: {T_STEP} is '{shortened(text)}'; measure "
            "the loops again."
        )
    return int(text)
