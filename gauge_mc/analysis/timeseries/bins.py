"""Bins of time series: susceptibilities, the jackknife."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.analysis.timeseries.estimates import (
    LEAST_BINS,
    Estimate,
    caution_growth,
    estimate,
    growth,
)

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


def centre_sector(loop: NDArray[np.complex128], colours: int) -> NDArray[np.intp]:
    """Return the element k of the centre, exp(2 pi i k / N), to which L is closest."""
    sector = np.rint(np.angle(loop) * colours / (2 * math.pi)).astype(np.intp)
    return np.asarray(sector % colours)


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
    divided = (np.array_split(part, max(1, len(part) // length)) for part in chains)
    bins = [one for some in divided for one in some if len(one)]
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
    candidates, length = {_candidate(x)}, 2
    while x.size // length >= LEAST_LONG_BINS:
        first = x.size % length
        count = _candidate(x[first:].reshape(-1, length).mean(axis=1))
        candidates.add(min(first + count * length, x.size // 2) if count else 0)
        length *= 2
    ordered = sorted(candidates, reverse=True)
    return next((count for count in ordered if _counted(x, count, SUSPECTED)), 0)


def _candidate(x: NDArray[np.float64]) -> int:
    """Return the number of samples without which the error of the mean seems smallest.

    It is 0 for a series that is short or constant, or has gaps.
    """
    if x.size < LEAST_BINS or not np.isfinite(x).all() or np.ptp(x) == 0:
        return 0
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


DISAGREEMENT = 4.0
"""Difference of two means, in standard errors, from which on chains disagree."""


class SampledChain(NamedTuple):
    """A quantity along a chain."""

    sweeps: NDArray[np.int64]
    """Numbers of updates, of shape (samples,), ascending."""
    values: NDArray[np.float64]
    """Values, of shape (samples,)."""


class Agreement(NamedTuple):
    """How two chains agree."""

    update: int
    """Last update of the stretches in which they disagree; 0 if there is none."""
    reached: bool
    """Whether they agree in the last half of the updates that both have done."""


def agreement(first: SampledChain, second: SampledChain) -> Agreement | None:
    """Return from where two chains agree.

    The updates that both have done are divided into stretches, of which each is as long as all
    before it together: the last is the second half, the one before it the second quarter, and so
    on. Chains agree in a stretch if their means in it differ by less than `DISAGREEMENT` standard
    errors, which follow from the fluctuations and autocorrelation times in the second halves. A
    stretch counts, with all before it, if they disagree in it. So an exponential approach is seen
    where it ends, and few comparisons are made.

    Parameters
    ----------
    first, second : SampledChain
        A quantity along two chains with the same parameters.

    Returns
    -------
    Agreement or None
        None if the second half has fewer than `LEAST_BINS` measurements of a chain, or values that
        are no numbers, so that nothing can be said.
    """
    chains = [one for one in (first, second) if one.sweeps.size]
    if len(chains) < 2:
        return None
    begin = max(int(one.sweeps[0]) for one in chains) - 1
    end = min(int(one.sweeps[-1]) for one in chains)
    edges = [end]
    while edges[-1] > begin + 1:
        edges.append(begin + (edges[-1] - begin) // 2)
    late = [_within(one, edges[1], end) for one in chains if len(edges) > 1]
    if len(late) < 2 or any(one.size < LEAST_BINS or not np.isfinite(one).all() for one in late):
        return None
    spreads = [(float(one.std()), max(0.5, estimate(one).tau_int)) for one in late]
    for number, (high, low) in enumerate(pairwise(edges)):
        values = [_within(one, low, high) for one in chains]
        if not all(one.size for one in values):
            break
        pairs = zip(spreads, values, strict=True)
        error = math.hypot(*(s * math.sqrt(min(1.0, 2 * tau / x.size)) for (s, tau), x in pairs))
        if abs(values[0].mean() - values[1].mean()) > DISAGREEMENT * error:
            return Agreement(high, number > 0)
    return Agreement(0, True)


def _within(chain: SampledChain, low: int, high: int) -> NDArray[np.float64]:
    """Return the values after an update, up to another one."""
    return chain.values[(chain.sweeps > low) & (chain.sweeps <= high)]


def caution_spacing(sweeps: ArrayLike) -> list[str]:
    """Return a caution if measurements are not equally spaced in the chain; otherwise nothing.

    Parameters
    ----------
    sweeps : array_like of int, shape (rows,)
        Numbers of the updates that were measured, each as often as there are rows.
    """
    steps = np.diff(np.unique(sweeps))
    if not steps.size or np.ptp(steps) == 0:
        return []
    return [
        "The configurations are not equally spaced in the Markov chain, so that autocorrelation "
        "times and errors are approximate."
    ]


def caution_slow(*series: ArrayLike) -> list[str]:
    """Return a caution if the error of any series grows with the length of bins; otherwise nothing.

    Parameters
    ----------
    *series : array_like of float, shape (samples,)
        Values along each chain.
    """
    return caution_growth(max(map(growth, series), default=1.0))


def caution_slower(mode: Estimate, every: int, averages: float, of: str, remedy: str) -> list[str]:
    """Return a caution if a mode is slower than all averages by twice its error; else nothing.

    Parameters
    ----------
    mode : Estimate
        A quantity that is known to change slowly.
    every : int
        Updates between its measurements.
    averages : float
        Largest tau_int of the averages, or that of the tails that their errors contain, in updates.
    of : str
        Name of the mode, such as ``squared topological charge``.
    remedy : str
        Advice beside a longer run, which begins with a comma.
    """
    if not (mode.tau_int - 2 * mode.tau_int_error) * every > averages:
        return []
    return [
        f"The {of} has τ_int = {mode.format_tau(every)} updates, more than all averages. What "
        f"depends on it may fluctuate as slowly, unseen: make the run much longer{remedy}."
    ]


def caution_series(sweeps: ArrayLike, *series: ArrayLike) -> list[str]:
    """Return cautions about series that are not thermalised, or have slow modes, or nothing.

    The parameters are those of `transient_end`. Slow modes are looked for only in series without a
    transient, which has the same effect.
    """
    return caution_transient(sweeps, *series) or caution_slow(*series)


def caution_transient(sweeps: ArrayLike, *series: ArrayLike) -> list[str]:
    """Return a caution if the beginning of any series deviates from its rest; otherwise nothing.

    The parameters are those of `transient_end`.
    """
    return caution_skip(transient_end(sweeps, *series))


def caution_skip(last: int) -> list[str]:
    """Return the caution that measurements up to an update deviate; nothing if it is 0."""
    if not last:
        return []
    return [
        f"The measurements up to update {last} deviate from the later ones, as if the chain had "
        f"not thermalised; leave them out with --skip {last}, or with --skip auto."
    ]
