"""Least-squares fits of curves that are not linear in their parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import LinearFit, Points
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError

Curve = Callable[[Array], tuple[Array, Array]]
"""A function of the parameters, shape (parameters,), that returns the values of the points, shape
(points,), and their derivatives by the parameters, shape (points, parameters)."""

MOST_STEPS = 50
"""Maximum number of Gauss-Newton steps, of which five or so are needed."""

MOST_HALVINGS = 20
"""Maximum number of times that a step is halved."""

CONVERGED = 1e-10
"""Change of all parameters, relative to their sizes or to 1, at which the fit has converged."""

INDEPENDENT = 1e-3
"""Largest deviation of the projection of the derivatives from 1. If it is larger, the points do not
determine all parameters."""

LARGEST = 1e4
"""Bound on the values of a curve in units of the largest one of the data, beyond which rounding
errors would hide how these fluctuate."""


@dataclass(frozen=True)
class CurveFit:
    """A least-squares fit of a curve."""

    series: Array
    """Linearised time series of the parameters, of shape (samples, parameters), whose means are the
    fitted values.
    """
    fit: LinearFit
    """The fit of the linearised curve at the minimum."""

    @property
    def values(self) -> Array:
        """The fitted parameters."""
        return np.asarray(self.series.mean(axis=0))


def fit_curve(
    curve: Curve, start: Array, series: Array, tau_int: float, correlated: bool
) -> CurveFit:
    """Fit ``mean of series = curve(parameters)`` by Gauss-Newton steps.

    A step that increases chi2 is halved until it does not. Weights and errors are those of
    `fit_linear`.

    Parameters
    ----------
    curve : callable
        See `Curve`.
    start : ndarray of float64, shape (parameters,)
        First guess.
    series, tau_int, correlated
        See `fit_linear`.

    Raises
    ------
    GaugeError
        If the steps do not converge.
    """
    here = np.asarray(start, dtype=np.float64)
    points, largest = Points.of(series, tau_int, correlated), float(np.abs(series).max())
    chi2 = np.inf
    for _ in range(MOST_STEPS):
        values, slopes = _at(curve, here)
        if not np.isfinite(slopes).all():
            break
        fit = points.fit(slopes, values)
        if not np.allclose(fit.projection @ slopes, np.eye(here.size), atol=INDEPENDENT):
            break
        step = fit.projection @ (points.mean - values)
        if (np.abs(step) <= CONVERGED * np.maximum(np.abs(here), 1)).all():
            return CurveFit(here + (series - values) @ fit.projection.T, fit)
        here, chi2 = _descend(curve, here, step, chi2, points, largest)
    raise no_fit()


def no_fit() -> GaugeError:
    """Return the error for a fit that does not converge."""
    return GaugeError("The fit does not converge; choose another range.")


def _at(curve: Curve, parameters: Array) -> tuple[Array, Array]:
    """Return values and derivatives of a curve, which may be infinite or not numbers."""
    with np.errstate(over="ignore", invalid="ignore"):
        return curve(parameters)


def _descend(
    curve: Curve, here: Array, step: Array, chi2: float, points: Points, largest: float
) -> tuple[Array, float]:
    """Return the parameters after a step, halved until chi2 does not increase, and chi2 there.

    `largest` is the largest modulus of the data.
    """
    for _ in range(MOST_HALVINGS):
        values = _at(curve, here + step)[0]
        if (np.abs(values) < LARGEST * largest).all():
            found = points.chi2(values)
            if found <= chi2 * (1 + CONVERGED):
                return here + step, found
        step = step / 2
    raise no_fit()
