"""Tables of Wilson loops, and their ratios: effective potentials and Creutz ratios."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from gauge_mc.analysis.states import EffectiveEnergies
from gauge_mc.analysis.table_series import Skips, Tables, TableSeries, read_series
from gauge_mc.analysis.timeseries import MIN_FOR_ERRORS, Replicas
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import PATHS, bracketed
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.quoting import shortened
from gauge_mc.registry import in_words

AXIS = "100"
"""Path on axis."""


@dataclass(frozen=True)
class PathLoops:
    """Wilson loops along one path at one smearing level."""

    path: str
    """Direction of the spatial lines: ``"100"`` on axis, ``"110"``, ``"210"``, ``"111"``."""
    smearing: int
    """Number of smearing iterations of the spatial links."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    r: Integers
    """Numbers of steps along the path, of shape (R,): 1, 2, 3, …. With multihit r = 1 on axis is
    missing.
    """
    t: Integers
    """Extents in time in lattice units, of shape (T,): 1, 2, 3, …. With multilevel averages they
    are the multiples of the thickness of the slabs.
    """
    values: Array
    """W(r, t) = Re Tr / N, averaged over each configuration, of shape (configurations, R, T)."""
    levels: tuple[int, ...] = ()
    """All smearing levels of the table from which the loops are, if it is known."""
    chains: Replicas | None = None
    """Division of the configurations into chains; None for a single one."""

    @property
    def replicas(self) -> Replicas:
        """Division of the configurations into chains."""
        return self.chains or Replicas.alone(len(self.sweeps))

    @property
    def distances(self) -> Array:
        """Distances of the static charges in lattice units, shape (R,)."""
        return np.asarray(self.r * step_length(self.path))

    @property
    def t_step(self) -> int:
        """Distance of the values of t, which is also the first of them."""
        return int(self.t[0])


@dataclass(frozen=True)
class LoopMatrices:
    """Wilson loops along one path, with every pair of smearing levels on the two spatial sides.

    Attributes
    ----------
    path, sweeps, r, t
        See `PathLoops`.
    levels : tuple of int
        Smearing levels, ascending.
    values : ndarray of float64, shape (configurations, R, T, levels, levels)
        Symmetric matrices of W(r, t).
    replicas : Replicas
        Division of the configurations into chains.
    """

    path: str
    levels: tuple[int, ...]
    sweeps: Integers
    r: Integers
    t: Integers
    values: Array
    replicas: Replicas

    @property
    def distances(self) -> Array:
        """Distances of the static charges in lattice units, shape (R,)."""
        return np.asarray(self.r * step_length(self.path))


def step_length(path: str) -> float:
    """Return the length of a step along a path, such as sqrt(2) for ``"110"``."""
    return math.sqrt(sum(int(digit) ** 2 for digit in path))


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


def no_loops_along(path: str, loops: TableSeries) -> str:
    """Return the end of the sentence that a table has no loops along a path."""
    words = in_words([*map(bracketed, paths_of(loops))])
    return f"no loops along {bracketed(path)}, only along {words}."


def smearing_levels(loops: TableSeries) -> list[int]:
    """Return the smearing levels that a table contains, ascending."""
    return sorted(set(loops.index["smearing"].tolist()))


def level_pairs(loops: TableSeries) -> list[tuple[int, int]]:
    """Return the smearing levels of the two spatial sides that a table contains, ascending."""
    level = loops.index["smearing"]
    opposite = loops.index.get(OTHER_LEVEL, level)
    return sorted(set(zip(level.tolist(), opposite.tolist(), strict=True)))


def read_loops(tables: Tables, skip: Skips = 0) -> TableSeries:
    """Read the table of the loops of an ensemble, or those of all its chains; see `read_series`."""
    return read_series(tables, COLUMNS, WHAT, skip, fewest=1)


def has_correlations(loops: TableSeries) -> bool:
    """Return whether a table has the loops between all of several smearing levels."""
    return OTHER_LEVEL in loops.index and len(smearing_levels(loops)) > 1


def all_loops(loops: TableSeries, smearing: int | None = None) -> list[PathLoops]:
    """Return the loops along all paths, on axis first; see `select_loops`."""
    return [select_loops(loops, path, smearing) for path in paths_of(loops)]


def ensemble_of(header: Mapping[str, str]) -> dict[str, str]:
    """Return group, beta and lattice of an ensemble, as far as a header states them."""
    names = ("group", "beta", "lattice")
    return {name: value for name, value in header.items() if name in names}


def lines_of(header: Mapping[str, str]) -> str:
    """Return the links of static lines that a header states, such as ``HYP2``; empty if plain."""
    return header.get("temporal", "").partition(",")[0]


def select_loops(
    loops: TableSeries, path: str = "100", smearing: int | None = None, opposite: int | None = None
) -> PathLoops:
    """Return the loops along one path at one smearing level from a table."""
    if path not in paths_of(loops):
        raise GaugeError(f"{loops.source} has {no_loops_along(path, loops)}")
    known_levels = smearing_levels(loops)
    level = known_levels[-1] if smearing is None else smearing
    r, t, values = _select(loops, path, (level, level if opposite is None else opposite))
    parts = path, level, loops.sweeps, r, t, values, tuple(known_levels)
    return PathLoops(*parts, loops.replicas)


def select_matrices(loops: TableSeries, path: str, levels: Sequence[int]) -> LoopMatrices:
    """Return the loops along one path between all pairs of smearing levels from a table.

    The two orders of a pair have the same expectation value and are averaged if the table has both.
    """
    if OTHER_LEVEL not in loops.index:
        raise GaugeError(
            f"{loops.source} has no column '{OTHER_LEVEL}': its loops have the same smearing level "
            "on both sides, but a variational analysis needs the loops between all pairs of "
            "levels; fit a single level with --level instead."
        )
    basis = tuple(sorted(set(levels)))
    entries = {}
    pairs = level_pairs(loops)
    for i, j in combinations_with_replacement(range(len(basis)), 2):
        pair = basis[i], basis[j]
        orders = [x for x in {pair, pair[::-1]} if x in pairs] or [pair]
        parts = [_select(loops, path, order) for order in orders]
        entries[i, j] = entries[j, i] = (
            *parts[0][:2],
            np.mean([x[2] for x in parts], axis=0),
        )
    r, t, _ = entries[0, 0]
    size = len(basis)
    for (i, j), entry in entries.items():
        if not (np.array_equal(entry[0], r) and np.array_equal(entry[1], t)):
            raise GaugeError(
                f"{loops.source} is incomplete: it has other loops between the levels {basis[i]} "
                f"and {basis[j]} than at {basis[0]}; measure its Wilson loops again."
            )
    rows = [np.stack([entries[i, j][2] for j in range(size)], axis=-1) for i in range(size)]
    values = np.stack(rows, axis=-2)
    return LoopMatrices(path, basis, loops.sweeps, r, t, values, loops.replicas)


def _select(
    loops: TableSeries, path: str, levels: tuple[int, int]
) -> tuple[Integers, Integers, Array]:
    """Return r, t and W(r, t) along one path with two smearing levels."""
    (level, opposite), index = levels, loops.index
    mask = (index["path"] == path) & (index["smearing"] == level)
    mask &= index.get(OTHER_LEVEL, opposite) == opposite
    if not mask.any():
        choices = ", ".join(map(str, smearing_levels(loops)))
        both = f"{level} smearing iterations"
        if level != opposite:
            both = f"{level} smearing iterations on one side and {opposite} on the other"
        raise GaugeError(
            f"{loops.source} has no loops along {bracketed(path)} after {both}; choose "
            f"from the levels {choices}."
        )
    order = np.flatnonzero(mask)
    order = order[np.lexsort((index["t"][order], index["r"][order]))]
    extents = np.stack([index["r"][order], index["t"][order]])
    first = 2 if path == AXIS and loops.header.get("multihit") == "yes" else 1
    step = _t_step(loops)
    last_r, last_t = extents.max(axis=1)
    r, t = np.arange(first, last_r + 1), np.arange(step, last_t + 1, step)
    if not np.array_equal(extents, [np.repeat(r, t.size), np.tile(t, r.size)]):
        raise GaugeError(
            f"{loops.source} is incomplete: its loops along {bracketed(path)} lack some r between "
            f"{first} and {last_r}, or some t between {step} and {last_t} in steps of {step}; "
            "measure them again."
        )
    return r, t, loops.values["loop"].take(order, axis=1).reshape(-1, r.size, t.size)


def _t_step(loops: TableSeries) -> int:
    """Return the distance of the values of t in a table."""
    text = loops.header.get(T_STEP, "1")
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) < 10**6:
        raise GaugeError(
            f"The header of {loops.source} is damaged: {T_STEP} is '{shortened(text)}'; measure "
            "the loops again."
        )
    return int(text)


@dataclass(frozen=True)
class LoopGrid:
    """A quantity that depends on r and t, with its errors."""

    r: Integers
    """Extents of the loops in space in lattice units, of shape (R,)."""
    t: Integers
    """Extents of the loops in time in lattice units, of shape (T,)."""
    value: Array
    """Mean, of shape (R, T); NaN where a loop is not positive and has no logarithm."""
    error: Array
    """Standard error, of the same shape."""


def log_loops(loops: PathLoops) -> Array:
    """Return the linearised time series of ln W(r, t).

    Its mean is the logarithm of the mean loop. Errors propagate linearly through such series
    (U. Wolff, hep-lat/0306017, sect. 2.3): a linear combination of them is again the series of a
    derived quantity.
    """
    mean = loops.values.mean(axis=0)
    positive = np.where(mean > 0, mean, np.nan)
    return np.asarray(np.log(positive) + (loops.values - positive) / positive)


def effective_potential(loops: PathLoops) -> Array:
    """Return the linearised time series of V(r, t) = ln [W(r, t) / W(r, t + d)] / d.

    Here d is the distance of the values of t, which usually is 1.
    """
    log = log_loops(loops)
    return (log[:, :, :-1] - log[:, :, 1:]) / loops.t_step


def effective_energies(loops: PathLoops) -> EffectiveEnergies:
    """Return the effective potential, with the relative errors of the loops."""
    logs = log_loops(loops)
    errors = np.array(
        [[loops.replicas.estimate(x).error for x in row.T] for row in logs.transpose(1, 0, 2)]
    )
    precision = np.maximum(errors[:, :-1], errors[:, 1:])
    parts = loops.path, loops.sweeps, loops.r, loops.distances, loops.t_step
    return EffectiveEnergies(*parts, effective_potential(loops), precision, loops.t_step)


def effective_potential_grid(energies: EffectiveEnergies) -> LoopGrid:
    """Return effective energies V(r, t) of one chain with errors, in lattice units."""
    _require_configurations(energies)
    if not energies.t:
        raise GaugeError(
            "The effective potential needs Wilson loops with at least two values of t; measure "
            "them with a larger t_max."
        )
    replicas = Replicas.alone(len(energies.sweeps))
    return _grid(energies.series, energies.r, np.array(energies.t), replicas)


def creutz_ratios(loops: PathLoops) -> LoopGrid:
    """Return chi(r, t) = -ln [W(r,t) W(r-1,t-1) / (W(r,t-1) W(r-1,t))] with errors.

    Loops with a side of length 0 are 1. For large loops chi tends to the string tension sigma a^2,
    because perimeter and corner terms cancel (M. Creutz, Phys. Rev. Lett. 45 (1980) 313).
    """
    _require_configurations(loops)
    if loops.path != AXIS:
        raise GaugeError(
            f"Creutz ratios need loops along {bracketed(AXIS)}, on axis, instead of "
            f"{bracketed(loops.path)}."
        )
    if loops.r[0] != 1 or loops.t_step != 1:
        raise GaugeError(
            "Creutz ratios need loops of all r and t from 1 on, which multilevel averages and "
            "multihit leave out; measure plain loops."
        )
    log = np.pad(log_loops(loops), ((0, 0), (1, 0), (1, 0)))
    chi = log[:, 1:, :-1] + log[:, :-1, 1:] - log[:, 1:, 1:] - log[:, :-1, :-1]
    return _grid(chi, loops.r, loops.t, loops.replicas)


def _grid(series: Array, r: Integers, t: Integers, replicas: Replicas) -> LoopGrid:
    """Estimate every element of a series of shape (configurations, R, T)."""
    results = [[replicas.estimate(series[:, i, j]) for j in range(t.size)] for i in range(r.size)]
    value = np.array([[x.value for x in row] for row in results])
    error = np.array([[x.error for x in row] for row in results])
    return LoopGrid(r, t, value, error)


def _require_configurations(loops: PathLoops | EffectiveEnergies) -> None:
    if loops.sweeps.size < MIN_FOR_ERRORS:
        raise GaugeError("Errors need at least two configurations; measure Wilson loops on more.")
