"""Fits to windows of distances that differ in one end, and the errors that follow from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.fitting.series_errors import excess
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.potential.analysis.derived import FitWithQuantities
from gauge_mc.quantities.potential.analysis.distances import LEAST_DISTANCES, known_distances
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.window_fits import WindowFit, WindowScan


def scan_windows(
    plateaus: Plateaus,
    fit: Callable[[Plateaus, float, float], FitWithQuantities],
    r_min: float,
    r_max: float,
    other: Callable[[Plateaus, float, float], FitWithQuantities] | None = None,
) -> WindowScan:
    """Fit a window of distances, and all windows that differ from it in one end.

    Parameters
    ----------
    plateaus : Plateaus
        V(R) at all distances.
    fit : callable
        Fits a window, given the plateaus and its ends. A GaugeError leaves a window out.
    r_min, r_max : float
        Ends of the window in lattice units. It must contain at least four distances.
    other : callable, optional
        Fits another form, whose results are a further measure of the systematic error.

    Raises
    ------
    GaugeError
        If the window itself cannot be fitted.
    """
    known = known_distances(plateaus)
    below = known[known <= r_max + 1e-9][: 1 - LEAST_DISTANCES]
    above = known[known >= r_min - 1e-9][LEAST_DISTANCES - 1 :]
    chosen, quantities = fit(plateaus, r_min, r_max)
    from_r = _those_that_fit(fit, plateaus, [(float(low), r_max) for low in below])
    to_r = _those_that_fit(fit, plateaus, [(r_min, float(high)) for high in above])
    near = [one for one in (*from_r, *to_r) if 1e-9 < _distance(one[0], chosen) < 1 + 1e-9]
    others = _those_that_fit(other, plateaus, [(r_min, r_max)]) if other else []
    window: dict[str, float] = {}
    for some, share in ((near, 1.0), (others, BETWEEN)):
        for found, changed in some:
            if found.p_value < POOR <= chosen.p_value:
                continue
            for name in quantities.keys() & changed.keys():
                series = changed[name].series(plateaus) - quantities[name].series(plateaus)
                window[name] = max(window.get(name, 0.0), share * excess(series))
    if plateaus.later:
        later = fit(plateaus.later, r_min, r_max)[1]
        systematic = {
            name: excess(later[name].series(plateaus.later) - one.series(plateaus))
            for name, one in quantities.items()
            if name in later
        }
        chosen = replace(chosen, systematic=systematic)
    below_it, above_it = (tuple(one for one, _ in some) for some in (from_r, to_r))
    return WindowScan(chosen, below_it, above_it, window)


BETWEEN = 1 / math.sqrt(3)
"""Standard deviation, from one end, of a value that lies anywhere between two ends. The truth lies
between the two forms of 1/R as far as it is known."""


def _distance(one: WindowFit, other: WindowFit) -> float:
    """Return by how much the ends of two windows differ, in lattice units."""
    return abs(one.r_min - other.r_min) + abs(one.r_max - other.r_max)


def _those_that_fit(
    fit: Callable[[Plateaus, float, float], FitWithQuantities],
    plateaus: Plateaus,
    windows: Sequence[tuple[float, float]],
) -> list[FitWithQuantities]:
    """Return the fits to windows, without those that cannot be fitted."""
    found = []
    for low, high in windows:
        with suppress(GaugeError):
            found.append(fit(plateaus, low, high))
    return found
