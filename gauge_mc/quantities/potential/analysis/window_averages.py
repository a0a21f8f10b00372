"""Averages over windows of distances with Akaike weights."""

from __future__ import annotations

import math

import numpy as np

from gauge_mc.analysis.fitting.model_averages import akaike_weights, scatter
from gauge_mc.analysis.fitting.series_errors import excess
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.quantities.potential.analysis.cornell import fit_cornell
from gauge_mc.quantities.potential.analysis.derived import FitFunction
from gauge_mc.quantities.potential.analysis.distances import (
    LEAST_DISTANCES,
    between,
    known_distances,
)
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.window_fits import CONTINUUM, LATTICE, RangeAverage
from gauge_mc.quantities.potential.analysis.window_scans import BETWEEN


def average_windows(
    plateaus: Plateaus, r_min: float, r_max: float, coulomb: str = CONTINUUM
) -> dict[str, RangeAverage]:
    """Average the quantities of fits with B free over windows within one, by Akaike weights.

    The windows have at least half the points of the whole one, since a fit to fewer says little.

    Parameters
    ----------
    plateaus : Plateaus
        V(R) at all distances.
    r_min, r_max : float
        Ends of the largest window in lattice units.
    coulomb : str
        See `fit_window`.

    Returns
    -------
    dict of str to RangeAverage
        Averages by the name of the quantity; those that some likely window lacks are missing.
    """
    form = CONTINUUM if coulomb == LATTICE else LATTICE
    others = _average_windows(plateaus, r_min, r_max, form)
    averages = {}
    for name, (mean, spread) in _average_windows(plateaus, r_min, r_max, coulomb).items():
        series = mean.series(plateaus)
        other = others[name][0].series(plateaus) if name in others else series
        form_error = BETWEEN * excess(other - series)
        systematic = math.hypot(spread, plateaus.systematic_error(mean.gradient), form_error)
        averages[name] = RangeAverage(estimate(series), systematic)
    return averages


def _average_windows(
    plateaus: Plateaus, r_min: float, r_max: float, coulomb: str
) -> dict[str, tuple[FitFunction, float]]:
    """Return the averages over windows with one form of 1/R, and their scatter."""
    known = known_distances(plateaus)
    known = known[between(known, r_min, r_max)]
    ends = [
        (float(known[i]), float(known[j]))
        for i in range(known.size)
        for j in range(i + LEAST_DISTANCES - 1, known.size)
    ]
    fits = [fit_cornell(plateaus, True, *pair, coulomb) for pair in ends]
    most = max(one.points for one, _ in fits)
    fits = [pair for pair in fits if pair[0].points >= most / 2]
    weights = akaike_weights([one.chi2 for one, _ in fits], [one.chi2_expected for one, _ in fits])
    likely = [(w, found) for w, (_, found) in zip(weights, fits, strict=True) if w > NEGLIGIBLE]
    used = np.array([w for w, _ in likely]) / sum(w for w, _ in likely)
    averages = {}
    for name in likely[0][1]:
        if all(name in one for _, one in likely):
            several = [one[name] for _, one in likely]
            values = np.array([one.value for one in several])
            gradient = used @ np.stack([one.gradient for one in several])
            mean = FitFunction(float(used @ values), gradient)
            averages[name] = mean, scatter(used, values)
    return averages


NEGLIGIBLE = 1e-6
"""Weight below which a window is left out of an average."""
