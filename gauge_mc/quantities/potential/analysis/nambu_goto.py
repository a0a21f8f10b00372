"""Fits of the Nambu-Goto string to V(R)."""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import can_invert, fit_linear
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.potential.analysis.derived import (
    FORCES,
    FitFunction,
    FitWithQuantities,
    of_all_points,
    window_fit,
)
from gauge_mc.quantities.potential.analysis.distances import (
    LEAST_DISTANCES,
    between,
    known_distances,
    window_points,
)
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.quantities.potential.analysis.strings import LUSCHER, STRING_BOUND, string_energy
from gauge_mc.quantities.potential.analysis.window_fits import CONTINUUM, NAMBU_GOTO, WindowScan
from gauge_mc.quantities.potential.analysis.window_scans import scan_windows


def fit_nambu_goto(plateaus: Plateaus, r_min: float, r_max: float) -> FitWithQuantities:
    """Fit V(R) = A + sigma R sqrt(1 - pi / (6 sigma R^2)) to the points of a window.

    This is the ground state of the Nambu-Goto string in four dimensions with fixed ends (J. F.
    Arvis, Phys. Lett. B 127 (1983) 106). The fit is iterated with the derivative by sigma.

    Parameters
    ----------
    plateaus : Plateaus
        V(R) at all distances.
    r_min, r_max : float
        Ends of the window in lattice units.

    Returns
    -------
    FitWithQuantities
        The fit, and its quantities with their derivatives by all V(R).

    Raises
    ------
    GaugeError
        If there is no such sigma: the window contains distances where the string is unstable.
    """
    r, used = window_points(plateaus, r_min, r_max)
    series = plateaus.series[:, used]
    correlated = can_invert(len(plateaus.points), plateaus.independent)
    start = np.stack([np.ones_like(r), r], axis=1)
    fit = fit_linear(start, series - LUSCHER / r, plateaus.tau_int, correlated)
    parameters = fit.projection @ (series - LUSCHER / r).mean(axis=0)
    for _ in range(STRING_STEPS):
        sigma = float(parameters[1])
        if not sigma * r[0] ** 2 > STRING_BOUND * (1 + 1e-6):
            raise GaugeError("The Nambu-Goto string is unstable at the smallest R of the window.")
        level, slope = string_energy(r, sigma)
        shifted = series - level + slope * sigma
        design = np.stack([np.ones_like(r), slope], axis=1)
        fit = fit_linear(design, shifted, plateaus.tau_int, correlated)
        parameters = fit.projection @ shifted.mean(axis=0)
        if abs(parameters[1] - sigma) < 1e-12 * sigma:
            break
    constant, sigma = map(float, parameters)
    by_constant, by_sigma = of_all_points(fit.projection, used)
    quantities = {
        "A": FitFunction(constant, by_constant),
        "B": FitFunction(LUSCHER, np.zeros_like(by_constant)),
        "sigma": FitFunction(sigma, by_sigma),
    }
    for name, target in FORCES.items():
        # r^2 F = u / sqrt(1 - pi / (6 u)) with u = sigma r^2
        roots = np.roots([1, 0, -(target**2), target**2 * STRING_BOUND])
        real = [one.real for one in roots if abs(one.imag) < 1e-12 and one.real > STRING_BOUND]
        if real:
            scale = math.sqrt(max(real) / sigma)
            quantities[name] = FitFunction(scale, -scale / (2 * sigma) * by_sigma)
    found = window_fit(plateaus, quantities, fit, r, NAMBU_GOTO, False, CONTINUUM)
    return found, quantities


STRING_STEPS = 50
"""Maximum number of iterations of the fit of a string, of which five or so are needed."""


def scan_nambu_goto(plateaus: Plateaus, r0: float, r_max: float) -> WindowScan | None:
    """Fit the Nambu-Goto string to the distances from r0 to r_max, if there are enough."""
    known = known_distances(plateaus)
    inside = known[between(known, r0, r_max)] if math.isfinite(r0) else known[:0]
    if inside.size < LEAST_DISTANCES:
        return None
    with suppress(GaugeError):
        return scan_windows(plateaus, fit_nambu_goto, float(inside[0]), r_max)
    return None
