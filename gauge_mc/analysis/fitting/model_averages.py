"""Averages over models with Akaike weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gauge_mc.arrays import Array


def akaike_weights(chi2: Sequence[float], expected: Sequence[float]) -> Array:
    """Return the weights exp(-(chi2 - 2 <chi2>)/2) of models, whose sum is 1.

    For correlated fits <chi2> is the number of degrees of freedom, and chi2 - 2 <chi2> is the
    information criterion of Akaike up to a constant: chi2 + 2 (parameters) + 2 (points left out).
    """
    exponent = (np.array(chi2) - 2 * np.array(expected)) / 2
    weights = np.exp(exponent.min() - exponent)
    return np.asarray(weights / weights.sum())


def scatter(weights: Array, values: Array) -> float:
    """Return the standard deviation of the results of models, a systematic error."""
    mean = weights @ values
    return float(np.sqrt(weights @ (values - mean) ** 2))
