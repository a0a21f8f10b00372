"""Bins of time series: susceptibilities, the jackknife."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.analysis.timeseries.gamma_method import LEAST_BINS, estimate

TAUS_IN_A_BIN = 10
"""Length of a jackknife bin in integrated autocorrelation times. It makes the error about 5 % too
small, as neighbouring bins are still correlated."""


def kurtosis(*chains: ArrayLike) -> tuple[float, float]:
    """Return <x^4> / <x^2>^2 and its error by the jackknife.

    The length of a bin is 10 tau_int of x^2 or of x^4, whichever is longer, but short enough for 20
    bins.

    Parameters
    ----------
    *chains : array_like of float, shape (samples,)
        Measurements of x, in the order of each Markov chain.

    Returns
    -------
    value, error : float
        The error is NaN if there are fewer than two bins. Both are NaN without measurements that
        differ from zero.
    """
    parts = [np.asarray(chain, dtype=np.float64) for chain in chains]
    powers = [np.stack([part**2, part**4], axis=1) for part in parts]
    if not any(np.any(part) for part in parts):
        return math.nan, math.nan
    tau = max(estimate(*(one[:, n] for one in powers)).tau_int for n in range(2))
    length = bin_length(sum(part.size for part in parts), tau)
    return jackknifed(powers, length, lambda mean: mean[..., 1] / mean[..., 0] ** 2)


def phase_of_mean(*chains: ArrayLike) -> tuple[float, float]:
    """Return the phase of <z> in units of pi, from -1 to 1, and its error by the jackknife.

    Parameters
    ----------
    *chains : array_like of complex, shape (samples,)
        Measurements of z, in the order of each Markov chain.

    Returns
    -------
    value, error : float
        The error is NaN if there are fewer than two bins. Both are NaN if the mean is 0.
    """
    parts = [np.asarray(chain, dtype=np.complex128) for chain in chains]
    mean = np.concatenate(parts).mean() if any(map(len, parts)) else 0
    if mean == 0:
        return math.nan, math.nan
    # Along the mean the phase is 0, far from where it jumps.
    turned = [part * np.conj(mean) / abs(mean) for part in parts]
    pairs = [np.stack([part.real, part.imag], axis=1) for part in turned]
    tau = max(estimate(*(one[:, n] for one in pairs)).tau_int for n in range(2))
    length = bin_length(sum(part.size for part in parts), tau)
    _, error = jackknifed(pairs, length, lambda mean: np.arctan2(mean[..., 1], mean[..., 0]))
    return float(np.angle(mean)) / math.pi, error / math.pi


def jackknifed(
    chains: Sequence[NDArray[np.float64]],
    length: int,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[float, float]:
    """Return a function of averages over several chains, and its error by the jackknife.

    Parameters
    ----------
    chains : sequence of ndarray of float64, shape (samples, quantities)
        The chains.
    length : int
        Approximate number of samples in a bin.
    function : callable
        Function of the averages, of shape (..., quantities).
    """
    bins = [
        one
        for part in chains
        for one in np.array_split(part, max(1, len(part) // length))
        if len(one)
    ]
    sizes, sums = np.array([len(one) for one in bins]), np.array([one.sum(axis=0) for one in bins])
    value = float(function(sums.sum(axis=0) / sizes.sum()))
    if len(bins) < 2:
        return value, math.nan
    rest = function((sums.sum(axis=0) - sums) / (sizes.sum() - sizes)[:, np.newaxis])
    return value, float(np.sqrt((len(bins) - 1) * rest.var()))


def susceptibility(*chains: ArrayLike, volume: int) -> tuple[float, float]:
    """Return the susceptibility V (<x^2> - <x>^2) without bias, and its error.

    The square of the mean of n samples is too large by 2 tau_int / n of the variance, which is
    corrected for. The error is that of `estimate` for the series of V (x - <x>)^2 or that of the
    jackknife with bins, whichever is larger. It has the bias of the susceptibility, and is
    corrected in the same way. The length of a bin is 10 tau_int of x or of (x - <x>)^2, whichever
    is longer, but short enough for 20 bins; so in short series the bins are not independent.
    Since the error is proportional to the susceptibility, it is too small where that is, and is
    taken for a value that is `RAISED` of itself larger.

    Parameters
    ----------
    *chains : array_like of float, shape (samples,)
        Measurements of x, in the order of each Markov chain.
    volume : int
        The factor V, a number of sites.

    Returns
    -------
    value, error : float
        The error is NaN if there are fewer than two bins. Both are NaN without measurements.
    """
    parts = [np.asarray(chain, dtype=np.float64) for chain in chains]
    samples = sum(part.size for part in parts)
    if not samples:
        return math.nan, math.nan
    mean = np.concatenate(parts).mean()
    parts = [part - mean for part in parts]  # a shift of x changes nothing but rounding errors
    squares = estimate(*(part**2 for part in parts))
    own = estimate(*parts).tau_int
    tau = max(own, squares.tau_int)
    powers = [np.stack([part, part**2], axis=1) for part in parts]

    def variance(mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(volume * (mean[..., 1] - mean[..., 0] ** 2))

    value, error = jackknifed(powers, bin_length(samples, tau), variance)
    lost = 2 * own / samples
    factor = 1 / (1 - lost) if lost < LARGEST_BIAS else 1.0
    error = max(error, volume * squares.error) if math.isfinite(error) else error
    value, error = factor * value, factor**2 * error
    return value, error * (1 + RAISED * error / value) if value > 0 else error


RAISED = 1 / 3
"""Part of its error by which a susceptibility is raised to take its error there. The distribution
is skew, so that no symmetric error contains the truth as often as it should within one and two
errors: for 20 independent measurements with autocorrelation, this brings 88 to 91 % within two
errors to 90 to 92 %, and keeps 66 to 70 % within one (``tests/tools/coverage.py``)."""

LARGEST_BIAS = 0.5
"""Largest relative bias of a susceptibility that is corrected for; then nothing is known of it."""


def bin_length(samples: int, tau_int: float) -> int:
    """Return the length of a jackknife bin: `TAUS_IN_A_BIN` tau_int, but at least 20 bins."""
    wanted = math.ceil(TAUS_IN_A_BIN * np.nan_to_num(tau_int))
    return int(max(1, min(wanted, samples // LEAST_BINS)))


def jackknife(series: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """Return the means of a series without each bin in turn.

    Parameters
    ----------
    series : ndarray of float64, shape (samples, ...)
        Samples along the first axis.
    length : int
        Approximate number of samples in a bin.

    Returns
    -------
    ndarray of float64, shape (bins, ...)
        The covariance matrix of the mean is that of these, times (bins - 1).
    """
    bins = np.array_split(series, max(2, len(series) // length))
    total = series.sum(axis=0)
    return np.array([(total - one.sum(axis=0)) / (len(series) - len(one)) for one in bins])
