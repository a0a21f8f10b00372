"""Errors of quantities that are given as linearised time series."""

from __future__ import annotations

import math

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array


def covariance_of(series: Array, errors: Array) -> Array:
    """Return the covariance matrix with the given errors and the correlations of the series.

    Parameters
    ----------
    series : ndarray of float64, shape (samples, quantities)
        Samples of all quantities, from which the correlations are taken.
    errors : ndarray of float64, shape (quantities,)
        Errors of the means, autocorrelations included: the square roots of the diagonal.
    """
    scatter = series.std(axis=0)
    scale = np.divide(
        errors, scatter, out=np.zeros_like(errors), where=(errors > 0) & (scatter > 0)
    )
    unit = (series - series.mean(axis=0)) * scale
    return np.asarray(unit.T @ unit / len(unit))


def excess(change: Array) -> float:
    """Return the size of a change that its statistical error does not explain.

    Parameters
    ----------
    change : ndarray of float64, shape (samples,)
        Linearised time series of the change.
    """
    found = estimate(change)
    return math.sqrt(max(0.0, found.value**2 - found.error**2))
