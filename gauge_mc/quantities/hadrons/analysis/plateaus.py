"""Plateaus in time of ratios of correlators."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.hadrons.analysis.folded import one_energy
from gauge_mc.quantities.hadrons.analysis.masses import Ranges, too_noisy
from gauge_mc.quantities.potential.analysis.plateau_search import (
    LEAST_TIMES,
    LOOP_PRECISION,
    find_plateaus,
)
from gauge_mc.quantities.potential.analysis.plateaus import PlateauPoint


class RatioPlateau(NamedTuple):
    """A plateau of a ratio of correlators."""

    point: PlateauPoint
    """The plateau."""
    series: Array
    """Linearised series of its value, shape (configurations,)."""


def ratio_series(above: Array, below: Array) -> Array:
    """Return the linearised series of the ratio of two averages.

    Parameters
    ----------
    above, below : ndarray of float64, shape (configurations, times)
        Numerators and denominators.
    """
    mean, scale = above.mean(axis=0), below.mean(axis=0)
    ratio = mean / scale
    return np.asarray(ratio + (above - mean) / scale - ratio * (below - scale) / scale)


def ratio_plateau(
    sweeps: Integers,
    series: Array,
    below: Array,
    ranges: Ranges,
    precision: float = LOOP_PRECISION,
    start: int = 1,
) -> RatioPlateau:
    """Return the plateau of a ratio at t = start, start + 1, ….

    Parameters
    ----------
    sweeps : ndarray of int64, shape (configurations,)
        Numbers (updates) of the configurations.
    series : ndarray of float64, shape (configurations, times)
        The linearised ratio.
    below : ndarray of float64, shape (configurations, times)
        The correlator in the denominator, whose errors limit the times.
    ranges : Ranges
        The choice of the times.
    precision : float
        Relative error of the denominator up to which a time is used. The bias of the ratio is at
        most this fraction of its error.
    start : int
        First t of the ratio.

    Raises
    ------
    GaugeError
        If there is no plateau, because the correlators are too noisy or too short.
    """
    scale = below.mean(axis=0)
    errors = np.array([estimate(one).error for one in (below / scale).T])
    errors *= LOOP_PRECISION / precision  # which `Ranges.last` compares with
    energies = one_energy(sweeps, series, np.where(scale > 0, errors, np.nan), start)
    if len(energies.t) < LEAST_TIMES:
        raise GaugeError(
            f"A plateau needs {LEAST_TIMES} times from t = {start} on, and the correlators have "
            f"{len(energies.t)}; use a lattice that is longer in time."
        )
    last = min(ranges.last(energies.precision[0], after=start - 1), energies.t[-1])
    first = ranges.t_min
    if last < max(first or start, start) + LEAST_TIMES - 1:
        raise too_noisy()

    def plateau(sign: int) -> RatioPlateau:
        turned = replace(energies, series=sign * energies.series)
        try:
            found = find_plateaus([turned], first, last, average=ranges.average)
        except GaugeError as error:
            raise too_noisy() from error
        return RatioPlateau(found.points[0], sign * found.series[:, 0])

    # The rule is for an approach from above, and near the source the ratio may oscillate: it holds
    # for both signs where the later of the two plateaus begins.
    return max((plateau(1), plateau(-1)), key=lambda one: one.point.t_min)
