"""The beginning of a time series that has not thermalised."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.analysis.timeseries.gamma_method import LEAST_BINS, estimate

TRANSIENT = 4.0
"""Deviation of the first samples from the rest, in standard errors, that is taken for
thermalisation. Chance exceeds it in less than 1 % of series of at least 50 tau_int."""


def transient(series: ArrayLike) -> int:
    """Return how many samples at the beginning of a series deviate from the rest.

    The candidate is the number of samples without which the squared standard error of the mean,
    the variance divided by the number of samples left, is smallest (K. P. White, Simulation 69
    (1997) 323). It counts if the mean of these samples deviates from that of the others by more
    than `TRANSIENT` standard errors.

    Parameters
    ----------
    series : array_like of float, shape (samples,)
        Values along one chain.

    Returns
    -------
    int
        At most half of the samples; 0 if the series is stationary as far as can be seen.
    """
    x = np.asarray(series, dtype=np.float64)
    if not _searched(x):
        return 0
    return _counted(x, _candidate(x), TRANSIENT)


LEAST_LONG_BINS = 32
"""Minimum number of bins in which `thermalisation` looks for the end of a transient."""

SUSPECTED = 2.5
"""Deviation of the first samples from the rest, in standard errors, that `thermalisation` leaves
out. It is smaller than `TRANSIENT`, since leaving out samples without need costs little."""


def thermalisation(series: ArrayLike) -> int:
    """Return how many samples at the beginning of a series averages should leave out.

    The candidates are those of the rule of `transient` (MSER; K. P. White, Simulation 69 (1997)
    323) for the series itself and for its averages over bins of 2, 4, 8, … samples, as long as
    there are `LEAST_LONG_BINS` bins (K. P. White, M. J. Cobb and S. C. Spratt, Proc. 2000 Winter
    Simulation Conf., 755, take bins of 5). Bins find a transient that is long and small, which the
    noise of single samples hides. A candidate counts if the mean of its samples deviates from that
    of the others by more than `SUSPECTED` standard errors; the largest that counts is returned.

    Parameters
    ----------
    series : array_like of float, shape (samples,)
        Values along one chain.

    Returns
    -------
    int
        At most half of the samples; 0 if the series is stationary as far as can be seen.
    """
    x = np.asarray(series, dtype=np.float64)
    if not _searched(x):
        return 0
    candidates, length = {_candidate(x)}, 2
    while x.size // length >= LEAST_LONG_BINS:
        first = x.size % length
        count = _candidate(x[first:].reshape(-1, length).mean(axis=1))
        candidates.add(min(first + count * length, x.size // 2) if count else 0)
        length *= 2
    ordered = sorted(candidates, reverse=True)
    return next((count for count in ordered if _counted(x, count, SUSPECTED)), 0)


def _searched(x: NDArray[np.float64]) -> bool:
    """Return whether a series is one in which the end of a transient is looked for.

    It is neither short nor constant, and has no gaps.
    """
    return x.size >= LEAST_BINS and bool(np.isfinite(x).all()) and bool(np.ptp(x) > 0)


def _candidate(x: NDArray[np.float64]) -> int:
    """Return the number of samples without which the error of the mean seems smallest."""
    left = np.arange(x.size, x.size - x.size // 2, -1)
    later = (x - x[x.size // 2 :].mean())[::-1]
    first, second = (np.cumsum(later**n)[::-1][: left.size] / left for n in (1, 2))
    return int(np.argmin((second - first**2) / left))


def _counted(x: NDArray[np.float64], count: int, deviation: float) -> int:
    """Return a number of samples if their mean deviates from the rest by so many errors; else 0."""
    if count == 0:
        return 0
    rest = estimate(x[count:])
    error = rest.error * math.sqrt((x.size - count) / count + 1)
    return count if abs(x[:count].mean() - rest.value) > deviation * error else 0


def transient_end(sweeps: ArrayLike, *series: ArrayLike) -> int:
    """Return the last update of a transient in any of the series; 0 if there is none.

    Parameters
    ----------
    sweeps : array_like of int, shape (samples,)
        Number of the update after which each sample was measured, ascending.
    *series : array_like of float, shape (samples,)
        Values along one chain, one series for each quantity.
    """
    count = max((transient(one) for one in series), default=0)
    return int(np.asarray(sweeps)[count - 1]) if count else 0
