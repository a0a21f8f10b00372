"""Ratios of Wilson loops: effective potential and Creutz ratios."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import MIN_FOR_ERRORS, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.potential.analysis.loops import AXIS, PathLoops


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

    Returns
    -------
    ndarray of float64, shape (configurations, R, T)
        NaN where the mean loop is not positive.
    """
    mean = loops.values.mean(axis=0)
    positive = np.where(mean > 0, mean, np.nan)
    return np.asarray(np.log(positive) + (loops.values - positive) / positive)


def effective_potential(loops: PathLoops) -> Array:
    """Return the linearised time series of V(r, t) = ln [W(r, t) / W(r, t + d)] / d.

    Here d is the distance of the values of t, which usually is 1.

    Returns
    -------
    ndarray of float64, shape (configurations, R, T - 1)
        V in lattice units; NaN where a loop is not positive.
    """
    log = log_loops(loops)
    return (log[:, :, :-1] - log[:, :, 1:]) / loops.t_step


def effective_potential_grid(loops: PathLoops) -> LoopGrid:
    """Return V(r, t) with errors, in lattice units; see `effective_potential`.

    Raises
    ------
    GaugeError
        If there is only one configuration, or only one extent in time.
    """
    _require_configurations(loops)
    if loops.t.size < 2:
        raise GaugeError(
            "The effective potential needs Wilson loops with at least two values of t; measure "
            "them with a larger t_max."
        )
    return _grid(effective_potential(loops), loops.r, loops.t[:-1])


def creutz_ratios(loops: PathLoops) -> LoopGrid:
    """Return chi(r, t) = -ln [W(r,t) W(r-1,t-1) / (W(r,t-1) W(r-1,t))] with errors.

    Loops with a side of length 0 are 1. For large loops chi tends to the string tension sigma a^2,
    because perimeter and corner terms cancel (M. Creutz, Phys. Rev. Lett. 45 (1980) 313).

    Raises
    ------
    GaugeError
        If there is only one configuration, the loops are not on axis, or some r or t is missing.
    """
    _require_configurations(loops)
    if loops.path != AXIS:
        raise GaugeError(f"Creutz ratios need loops along 100, on axis, instead of {loops.path}.")
    if loops.r[0] != 1 or loops.t_step != 1:
        raise GaugeError(
            "Creutz ratios need loops of all r and t from 1 on, which multilevel averages and "
            "multihit leave out; measure plain loops."
        )
    log = np.pad(log_loops(loops), ((0, 0), (1, 0), (1, 0)))
    chi = log[:, 1:, :-1] + log[:, :-1, 1:] - log[:, 1:, 1:] - log[:, :-1, :-1]
    return _grid(chi, loops.r, loops.t)


def _grid(series: Array, r: Integers, t: Integers) -> LoopGrid:
    """Estimate every element of a series of shape (configurations, R, T)."""
    results = [[estimate(series[:, i, j]) for j in range(t.size)] for i in range(r.size)]
    value = np.array([[one.value for one in row] for row in results])
    error = np.array([[one.error for one in row] for row in results])
    return LoopGrid(r, t, value, error)


def _require_configurations(loops: PathLoops) -> None:
    if loops.sweeps.size < MIN_FOR_ERRORS:
        raise GaugeError(
            "Errors need at least two configurations; measure Wilson loops on more of them."
        )
