"""Fits of V(R) = A + B/R + sigma R."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import can_invert, fit_linear
from gauge_mc.quantities.potential.analysis.derived import (
    FORCES,
    FitFunction,
    FitWithQuantities,
    of_all_points,
    window_fit,
)
from gauge_mc.quantities.potential.analysis.distances import window_points
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.strings import LUSCHER
from gauge_mc.quantities.potential.analysis.window_fits import (
    CONTINUUM,
    CORNELL,
    LATTICE,
    WindowFit,
    WindowScan,
)
from gauge_mc.quantities.potential.analysis.window_scans import scan_windows


def scan_cornell(
    plateaus: Plateaus, b_free: bool, r_min: float, r_max: float, coulomb: str
) -> WindowScan:
    """Fit A + B/R + sigma R to a window and its neighbours, with the other form of 1/R as well."""
    other = CONTINUUM if coulomb == LATTICE else LATTICE

    def form(coulomb: str) -> Callable[[Plateaus, float, float], FitWithQuantities]:
        return lambda some, low, high: fit_cornell(some, b_free, low, high, coulomb)

    return scan_windows(plateaus, form(coulomb), r_min, r_max, form(other))


def fit_window(
    plateaus: Plateaus, b_free: bool, r_min: float, r_max: float, coulomb: str = CONTINUUM
) -> WindowFit:
    """Fit V(R) = A + B/R + sigma R to the points with r_min <= R <= r_max.

    The errors are computed from the linearised time series of the parameters by the Gamma method.
    So they include autocorrelations and all correlations among the points.

    Parameters
    ----------
    plateaus : Plateaus
        V(R) at all distances.
    b_free : bool
        Whether B is fitted or set to -pi/12.
    r_min, r_max : float
        Ends of the window in lattice units. It must contain at least four distances.
    coulomb : str
        ``"continuum"`` or ``"lattice"``: 1/R is that of the geometric distance, or the Coulomb
        potential on the lattice.
    """
    return fit_cornell(plateaus, b_free, r_min, r_max, coulomb)[0]


def fit_cornell(
    plateaus: Plateaus, b_free: bool, r_min: float, r_max: float, coulomb: str
) -> FitWithQuantities:
    """Return a fit with its quantities."""
    r, used = window_points(plateaus, r_min, r_max)
    series = plateaus.series[:, used]
    inverse = 1 / r
    if coulomb == LATTICE:
        inverse = 1 / np.array([one.improved for one in plateaus.points])[used]
    design = np.stack([np.ones_like(r), inverse, r], axis=1)
    # The choice is the same for all windows, so that differences among them are not due to it.
    correlated = can_invert(len(plateaus.points), plateaus.independent)
    if b_free:
        fit = fit_linear(design, series, plateaus.tau_int, correlated)
        values, projection = fit.projection @ series.mean(axis=0), fit.projection
    else:
        series = series - LUSCHER * inverse
        fit = fit_linear(design[:, ::2], series, plateaus.tau_int, correlated)
        values = np.insert(fit.projection @ series.mean(axis=0), 1, LUSCHER)
        projection = np.insert(fit.projection, 1, 0.0, axis=0)
    gradients = of_all_points(projection, used)
    quantities = {
        name: FitFunction(float(value), gradient)
        for name, value, gradient in zip(("A", "B", "sigma"), values, gradients, strict=True)
    }
    _, B, sigma = values
    for name, target in FORCES.items():
        square = (target + B) / sigma
        if sigma > 0 and square > 0:
            root = math.sqrt(square)
            by_parameter = np.array([0, 1 / (2 * root * sigma), -root / (2 * sigma)])
            quantities[name] = FitFunction(root, by_parameter @ gradients)
    return window_fit(plateaus, quantities, fit, r, CORNELL, b_free, coulomb), quantities
