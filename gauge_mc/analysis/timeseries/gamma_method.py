"""Mean and error of a time series by the Gamma method."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.analysis.timeseries.estimates import Estimate

STRETCH = 1.5
"""S of the automatic window, the assumed ratio of the exponential to the integrated autocorrelation
time. U. Wolff, hep-lat/0306017, sect. 3.3, recommends 1 to 2."""

UNCORRELATED = 0.5
"""tau_int of independent samples. Where no autocorrelation is seen, its error does not count."""

LEAST_BINS = 20
"""Minimum number of bins, which determine an error to 16 %."""

MIN_FOR_ERRORS = 2
"""Minimum number of configurations for an error at all."""

MIN_CONFIGURATIONS = 10
"""Minimum number of configurations. With ten independent ones the error of an error is 24 %."""


def estimate(*chains: ArrayLike, tau_exp: float | None = None) -> Estimate:
    """Return mean and error of a stationary time series by the Gamma method.

    The autocorrelation function is summed up to a window W. There the systematic error of the
    truncation, exp(-W/tau), falls below the statistical error of a longer sum (U. Wolff,
    hep-lat/0306017, sect. 3.3 with S = 1.5). The bias is corrected by eq. (49) of that paper, and
    the error of tau_int is that of its eq. (42).

    Parameters
    ----------
    *chains : array_like of float, shape (samples,)
        Equally spaced measurements in the order of the Markov chain. Several chains are
        independent replica of one ensemble and may have different lengths.
    tau_exp : float, optional
        Exponential autocorrelation time of the slowest mode, in samples, such as tau_int of the
        squared topological charge. The sum then ends at the last lag up to which the normalised
        autocorrelation function rho exceeds three times its error, and tau_exp max(rho, 2 error)
        there is added for the tail, which is an upper bound (S. Schaefer, R. Sommer and F. Virotta,
        arXiv:1009.5228, sect. 4). It is used if it is larger than the sum by the automatic window.

    Returns
    -------
    Estimate
        tau_int is never below 1/2: anticorrelation never reduces the quoted error. A constant
        series has the error 0 and tau_int 1/2. The error of a single sample is NaN. If the series
        is empty or contains a NaN or an infinity, all results are NaN. If the series is shorter
        than `MIN_TAUS` times tau_int, which then comes out too small more often than not, the
        error is that for tau_int plus half of its own error, if there is any autocorrelation. From
        20 independent samples on, errors of series with one time scale then contain the truth as
        often as they should (``tests/tools/coverage.py``). With a weak slow mode, which the sum
        misses, the error is too small; `Estimate.cautions` says so where longer bins show it.

    Raises
    ------
    ValueError
        If tau_exp is not positive.
    """
    if tau_exp is not None and not tau_exp > 0:
        raise ValueError(f"tau_exp is {tau_exp}; it must be positive.")
    parts = [np.asarray(chain, dtype=np.float64).ravel() for chain in chains]
    x = np.concatenate(parts)
    nan = math.nan
    if x.size == 0 or not np.isfinite(x).all():
        return Estimate(nan, nan, nan, nan, x.size)
    mean = float(x.mean())
    if x.size == 1:
        return Estimate(mean, nan, nan, nan, 1)
    if np.ptp(x) == 0:
        return Estimate(float(x[0]), 0.0, 0.5, 0.0, x.size)
    gamma = autocovariance(*parts)
    window = _window(gamma, x.size)
    variance, tau = _unbiased(gamma, window, x.size)
    if tau_exp is not None:
        tau = max(tau, _with_tail(gamma, x.size, tau_exp))
    tau_error = 2 * tau * math.sqrt(max(window + 0.5 - tau, 0.0) / x.size)
    found = Estimate(mean, math.sqrt(2 * tau * variance / x.size), tau, tau_error, x.size)
    if not found.reliable:
        unsure = tau_error / tau if tau > UNCORRELATED else 0.0
        found = replace(found, error=found.error * math.sqrt(1 + unsure / 2))
    return found.compared(partial(_largest_growth, parts, tau_exp))


def growth(series: ArrayLike, tau_exp: float | None = None) -> float:
    """Return the ratio of the error of the mean from long bins to that of `estimate`.

    A slow mode that contributes little to the fluctuations is below the noise of the
    autocorrelation function, so that the automatic window misses it. Long bins see it. B bins
    determine an error to a relative precision of 1/sqrt(2 (B - 1)), and the Gamma method to half
    the relative error of tau_int.

    Parameters
    ----------
    series : array_like of float, shape (samples,)
        Values along one chain.
    tau_exp : float, optional
        Exponential autocorrelation time in samples, whose tail the error contains; see `estimate`.

    Returns
    -------
    float
        The largest ratio, of 20, 40, 80 and 160 bins, that is above 1 by `SIGNIFICANT_GROWTH`
        standard deviations; 1 if there is none.
    """
    x = np.asarray(series, dtype=np.float64)
    found = estimate(x, tau_exp=tau_exp)
    if x.size < LEAST_BINS * LEAST_IN_A_BIN or not found.error > 0:
        return 1.0
    largest, own = 1.0, found.tau_int_error / (2 * found.tau_int)
    for count in LEAST_BINS * np.array([1, 2, 4, 8]):
        length = x.size // count
        if length >= LEAST_IN_A_BIN:
            bins = x[x.size - length * count :].reshape(count, length).mean(axis=1)
            ratio = float(bins.std(ddof=1) / math.sqrt(count) / found.error)
            if ratio - 1 > SIGNIFICANT_GROWTH * math.hypot(own, 1 / math.sqrt(2 * (count - 1))):
                largest = max(largest, ratio)
    return largest


LEAST_IN_A_BIN = 10
"""Minimum length of the bins that are compared with the error by the Gamma method."""

SIGNIFICANT_GROWTH = 3.5
"""Number of standard deviations from which on an error from bins is called larger."""


def _largest_growth(chains: Sequence[NDArray[np.float64]], tau_exp: float | None) -> float:
    return max(growth(one, tau_exp) for one in chains)


def autocorrelation(
    series: ArrayLike, lags: int, window: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the normalised autocorrelation function of a series with its errors.

    The errors are those of M. Luescher, hep-lat/0409106, eq. (E.11).

    Parameters
    ----------
    series : array_like of float, shape (samples,)
        Values along one chain, which are not all equal.
    lags : int
        Largest lag, in samples; at most half of the samples are taken.
    window : int
        Lag after which the autocorrelation is neglected in the errors, in samples.

    Returns
    -------
    rho : ndarray, shape (lags + 1,)
        The function from lag 0 on, where it is 1.
    error : ndarray, shape (lags + 1,)
        Its errors.
    """
    x = np.asarray(series, dtype=np.float64)
    gamma = autocovariance(x)
    rho = gamma / gamma[0]
    both = np.concatenate([rho[:0:-1], rho])  # rho(-t) = rho(t)
    zero, count = rho.size - 1, min(lags, rho.size // 2)
    errors = [0.0]
    for lag in range(1, count + 1):
        k = np.arange(1, min(rho.size - lag, lag + window + 1))
        terms = both[zero + k + lag] + both[zero + k - lag] - 2 * rho[lag] * rho[k]
        errors.append(math.sqrt(float(terms @ terms) / x.size))
    return rho[: count + 1], np.array(errors)


def _with_tail(gamma: NDArray[np.float64], samples: int, tau_exp: float) -> float:
    """Return the upper bound on tau_int of arXiv:1009.5228, sect. 4, given tau_exp in samples.

    The error of rho is that of M. Luescher, hep-lat/0409106, eq. (E.11).
    """
    rho = gamma / gamma[0]
    both = np.concatenate([rho[:0:-1], rho])  # rho(-t) = rho(t)
    zero, total = rho.size - 1, 0.5
    error = 0.0
    for lag in range(1, rho.size // 2):
        k = np.arange(1, min(rho.size - lag, lag + math.ceil(6 * tau_exp)))
        terms = both[zero + k + lag] + both[zero + k - lag] - 2 * rho[lag] * rho[k]
        error = math.sqrt(float(terms @ terms) / samples)
        if rho[lag] < SEEN * error:
            return float(total + tau_exp * max(rho[lag], 2 * error))
        total += rho[lag]
    return float(total + tau_exp * max(rho[rho.size // 2], 2 * error))


SEEN = 3.0
"""Size of the autocorrelation function, in units of its error, down to which it is summed before a
tail is added."""


def autocovariance(*chains: ArrayLike) -> NDArray[np.float64]:
    """Return the autocovariance of chains about their common mean (hep-lat/0306017, eq. 31).

    Parameters
    ----------
    *chains : array_like of float, shape (samples,)
        See `estimate`.

    Returns
    -------
    ndarray of float64, shape (longest // 2 + 1,)
        Autocovariance at the lags 0, 1, 2, … up to half the length of the longest chain.
    """
    parts = [np.asarray(chain, dtype=np.float64) for chain in chains]
    mean = np.concatenate(parts).mean()
    longest = max(part.size for part in parts)
    lags = np.arange(longest // 2 + 1)
    padded = (np.fft.rfft(part - mean, 2 * longest) for part in parts)
    products = sum(np.fft.irfft(np.abs(part) ** 2)[: lags.size] for part in padded)
    return np.asarray(products / sum(np.maximum(part.size - lags, 0) for part in parts))


def _window(gamma: NDArray[np.float64], samples: int) -> int:
    """Return the first lag W at which g(W) = exp(-W/tau) - tau/sqrt(W samples) is negative.

    This is eq. (52) of hep-lat/0306017, with tau from its eq. (51). Where tau_int is at most 1/2,
    tau is set to a tiny positive number, so that the sum stops.
    """
    lags = np.arange(1, gamma.size)
    tau_int = 0.5 + np.cumsum(gamma[1:]) / gamma[0]
    tau = np.full(lags.size, 1e-6)
    slow = tau_int > 0.5
    tau[slow] = STRETCH / np.log((2 * tau_int[slow] + 1) / (2 * tau_int[slow] - 1))
    negative = np.exp(-lags / tau) < tau / np.sqrt(lags * samples)
    return int(lags[np.argmax(negative)]) if negative.any() else gamma.size - 1


def _unbiased(gamma: NDArray[np.float64], window: int, samples: int) -> tuple[float, float]:
    """Return the variance and tau_int, corrected for the bias of the subtracted mean."""
    # An apparent anticorrelation is mostly noise, and trusting it would make errors vanish. So the
    # sum is not allowed below its value for independent samples.
    bias = max(gamma[0] + 2 * gamma[1 : window + 1].sum(), gamma[0]) / samples
    unbiased = gamma[: window + 1] + bias
    tau_int = 0.5 + unbiased[1:].sum() / unbiased[0]
    return float(unbiased[0]), max(float(tau_int), 0.5)
