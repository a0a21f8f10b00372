"""Averages of Monte Carlo time series, with errors that include autocorrelation."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load
from gauge_mc.results import documented, result_field

DIGITS = 5
"""Number of significant digits of a value whose error is unknown."""

LEAST_ERROR = 1e-290
"""Smallest error that is shown; the powers of ten for smaller ones overflow."""


def with_error(value: float, error: float, systematic: float | None = None) -> str:
    """Return a value with its error in brackets, in units of the last digit.

    The error is rounded by the rule of the Particle Data Group (Review of Particle Physics,
    introduction): to two digits if its three leading digits are 100 to 354, to one digit if they
    are 355 to 949, and up to 1000, with two digits, if they are 950 to 999.
    """
    second = systematic if systematic is not None and math.isfinite(systematic) else 0.0
    if not math.isfinite(error):
        return f"{value:.{DIGITS}g}"
    if not math.isfinite(value) or error < LEAST_ERROR:
        return f"{value:.10g}"
    exponent = min(math.floor(math.log10(max(abs(value), error))), 0)
    if exponent < -4:
        scale = 10.0**-exponent
        return f"{with_error(value * scale, error * scale, second * scale)}e{exponent:03d}"
    leading = math.floor(math.log10(error))
    digits = round(error / 10.0 ** (leading - 2))
    place = leading if 354 < digits <= 949 else leading - 1
    if digits > 949:
        place = leading
        error = 10.0 ** (leading + 1)
    errors = [round(error / 10.0**place), *filter(None, [round(second / 10.0**place)])]
    if place >= 0:
        number, shown = f"{round(value, -place):.0f}", [f"{error * 10**place}" for error in errors]
    elif max(errors) * 10.0**place >= 1:
        number, shown = f"{value:.{-place}f}", [f"{x * 10.0**place:.{-place}f}" for x in errors]
    else:
        number, shown = f"{value:.{-place}f}", [f"{error}" for error in errors]
    return number + "".join(f"({x})" for x in shown)


def with_decimals(value: float, error: float, decimals: int) -> str:
    """Return a value with a number of decimals, and its error in brackets in units of the last."""
    text = f"{value:.{decimals}f}"
    if not (math.isfinite(value) and math.isfinite(error) and error > 0):
        return text
    units = round(error * 10**decimals)
    if decimals and units >= 10**decimals:
        return f"{text}({error:.{decimals}f})"
    return f"{text}({units})"


def with_exponent(value: float, error: float, decimals: int) -> str:
    """Return a value with its error as in ``3.12(12)e-09``; see `with_decimals`."""
    _, letter, exponent = f"{value:.{decimals}e}".partition("e")
    scale = 10.0 ** int(exponent or 0)
    return f"{with_decimals(value / scale, error / scale, decimals)}{letter}{exponent}"


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


def estimate(
    *chains: ArrayLike, tau_exp: float | None = None, spacings: Sequence[int] = ()
) -> Estimate:
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
    spacings : sequence of int
        Updates between the measurements of each chain; by default they are equal. Otherwise the
        autocorrelation function is that of all pairs at lags in units of the greatest common
        divisor, by which the window is chosen. A lag contributes to tau_int with the fraction of
        the samples whose chains have it.

    Returns
    -------
    Estimate
        The error is the square root of 2 tau_int variance / samples. Thus tau_int, in samples, is
        the mean over the samples of that of their chains. It is never below 1/2:
        anticorrelation never reduces the quoted error. A constant series has the error 0 and
        tau_int 1/2. The error of a single sample is NaN. If the series is empty or contains a NaN
        or an infinity, all results are NaN. If the series is shorter than `MIN_TAUS` times tau_int,
        which then comes out too small more often than not, the error is that for tau_int plus half
        of its own error, if there is any autocorrelation. From 20 independent samples on, errors of
        series with one time scale then contain the truth as often as they should
        (``docs/studies/coverage.py``). With a weak slow mode, which the sum misses, the error is
        too small; `Estimate.cautions` says so where longer bins show it.

    Raises
    ------
    ValueError
        If tau_exp is not positive, or is not None although the spacings differ.
    """
    if tau_exp is not None and not tau_exp > 0:
        raise ValueError(f"tau_exp is {tau_exp}; it must be positive.")
    if tau_exp is not None and len({*spacings}) > 1:
        raise ValueError("tau_exp in samples has no meaning for chains of several spacings.")
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
    gamma = autocovariance(*parts, spacings=spacings)
    window = _window(gamma, x.size)
    shares = _shares([part.size for part in parts], spacings, window)
    variance, tau = _unbiased(gamma, shares, x.size)
    if tau_exp is not None:
        tau = max(tau, _with_tail(gamma, x.size, tau_exp))
    tau_error = 2 * tau * math.sqrt(max(float(shares[1:].sum()) + 0.5 - tau, 0.0) / x.size)
    average = Estimate(mean, math.sqrt(2 * tau * variance / x.size), tau, tau_error, x.size)
    if not average.reliable:
        unsure = tau_error / tau if tau > UNCORRELATED else 0.0
        average = replace(average, error=average.error * math.sqrt(1 + unsure / 2))
    return average.compared(partial(_largest_growth, parts, tau_exp))


def growth(series: ArrayLike, tau_exp: float | None = None) -> float:
    """Return the ratio of the error of the mean from long bins to that of `estimate`.

    A slow mode that contributes little to the fluctuations is below the noise of the
    autocorrelation function, so that the automatic window misses it. Long bins see it. B bins
    determine an error to a relative precision of 1/sqrt(2 (B - 1)), and the Gamma method to half
    the relative error of tau_int.
    """
    x = np.asarray(series, dtype=np.float64)
    average = estimate(x, tau_exp=tau_exp)
    if x.size < LEAST_BINS * LEAST_IN_A_BIN or not average.error > 0:
        return 1.0
    largest, precision = 1.0, average.tau_int_error / (2 * average.tau_int)
    for count in LEAST_BINS * np.array([1, 2, 4, 8]):
        length = x.size // count
        if length >= LEAST_IN_A_BIN:
            bins = x[x.size - length * count :].reshape(count, length).mean(axis=1)
            ratio = float(bins.std(ddof=1) / math.sqrt(count) / average.error)
            if ratio - 1 > SIGNIFICANT_GROWTH * math.hypot(
                precision, 1 / math.sqrt(2 * (count - 1))
            ):
                largest = max(largest, ratio)
    return largest


LEAST_IN_A_BIN = 10
"""Minimum length of the bins that are compared with the error by the Gamma method."""

SIGNIFICANT_GROWTH = 3.5
"""Number of standard deviations from which on an error from bins is called larger."""


def _largest_growth(chains: Sequence[NDArray[np.float64]], tau_exp: float | None) -> float:
    return max(growth(chain, tau_exp) for chain in chains)


def autocorrelation(
    series: ArrayLike, lags: int, window: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the normalised autocorrelation function of a series with its errors.

    The errors are those of M. Luescher, hep-lat/0409106, eq. (E.11).
    """
    x = np.asarray(series, dtype=np.float64)
    gamma = autocovariance(x)
    rho = gamma / gamma[0]
    count = min(lags, rho.size // 2)
    errors = [_error_of_rho(rho, lag, window, x.size) for lag in range(1, count + 1)]
    return rho[: count + 1], np.array([0.0, *errors])


def _error_of_rho(rho: NDArray[np.float64], lag: int, window: int, samples: int) -> float:
    """Return the error of rho at a lag by M. Luescher, hep-lat/0409106, eq. (E.11)."""
    k = np.arange(1, min(rho.size - lag, lag + window + 1))
    terms = rho[k + lag] + rho[np.abs(k - lag)] - 2 * rho[lag] * rho[k]
    return math.sqrt(float(terms @ terms) / samples)


def _with_tail(gamma: NDArray[np.float64], samples: int, tau_exp: float) -> float:
    """Return the upper bound on tau_int of arXiv:1009.5228, sect. 4, given tau_exp in samples."""
    rho, window = gamma / gamma[0], math.ceil(6 * tau_exp) - 1
    total, error = 0.5, 0.0
    for lag in range(1, rho.size // 2):
        error = _error_of_rho(rho, lag, window, samples)
        if rho[lag] < SEEN * error:
            return float(total + tau_exp * max(rho[lag], 2 * error))
        total += rho[lag]
    return float(total + tau_exp * max(rho[rho.size // 2], 2 * error))


SEEN = 3.0
"""Size of the autocorrelation function, in units of its error, down to which it is summed before a
tail is added."""


def autocovariance(*chains: ArrayLike, spacings: Sequence[int] = ()) -> NDArray[np.float64]:
    """Return the autocovariance of chains about their common mean (hep-lat/0306017, eq. 31)."""
    parts = [np.asarray(chain, dtype=np.float64) for chain in chains]
    mean = np.concatenate(parts).mean()
    longest = max(part.size for part in parts)
    steps = _steps(len(parts), spacings)
    lags = np.arange(max(x.size * step for x, step in zip(parts, steps, strict=True)) // 2 + 1)
    products, pairs = np.zeros(lags.size), np.zeros(lags.size)
    for part, step in zip(parts, steps, strict=True):
        count = min(len(lags[::step]), longest)
        power = np.abs(np.fft.rfft(part - mean, 2 * longest)) ** 2
        products[: count * step : step] += np.fft.irfft(power)[:count]
        pairs[: count * step : step] += np.maximum(part.size - np.arange(count), 0)
    paired = pairs > 0
    return np.interp(lags, lags[paired], products[paired] / pairs[paired])


def _steps(chains: int, spacings: Sequence[int]) -> list[int]:
    """Return the spacings of chains in units of their greatest common divisor."""
    unit = math.gcd(*spacings)
    return [spacing // unit for spacing in spacings] or [1] * chains


def _shares(lengths: Sequence[int], spacings: Sequence[int], window: int) -> NDArray[np.float64]:
    """Return the fraction of the samples whose chains have each lag from 0 to the window.

    The variance of the mean is the sum over the chains of N_r sum_t Gamma(t), with the lags t
    of each, divided by N^2.
    """
    shares = np.zeros(window + 1)
    for length, step in zip(lengths, _steps(len(lengths), spacings), strict=True):
        shares[::step] += length
    return shares / sum(lengths)


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


def _unbiased(
    gamma: NDArray[np.float64], shares: NDArray[np.float64], samples: int
) -> tuple[float, float]:
    """Return the variance and tau_int, corrected for the bias of the subtracted mean.

    The sum over the lags up to the window has the weights `shares`, which are 1 for equal spacings.
    """
    # An apparent anticorrelation is mostly noise, and trusting it would make errors vanish. So the
    # sum is not allowed below its value for independent samples.
    weights, window = shares[1:], shares.size - 1
    total = gamma[0] + 2 * (weights * gamma[1 : window + 1]).sum()
    unbiased = gamma[: window + 1] + max(total, gamma[0]) / samples
    tau_int = 0.5 + (weights * unbiased[1:]).sum() / unbiased[0]
    return float(unbiased[0]), max(float(tau_int), 0.5)


MIN_TAUS = 50
"""Length of a series in units of tau_int below which tau_int, and thus the error, is uncertain."""

FEW_TAUS = 10
"""Length of a series in units of tau_int below which no error can be relied on."""

FORM = re.compile(r"((?:.?[<>^])?[0-9]*)(?:\.([0-9]{1,2})([ef]))?")
"""Format of an estimate in an f-string: alignment and width, number of decimals, and kind."""


@documented
@dataclass(frozen=True)
class Estimate:
    """An average over a Markov chain."""

    value: float = result_field("Mean, in the units of the series.")
    error: float = result_field("Standard error, in the units of the series.")
    tau_int: float = result_field("Integrated autocorrelation time in samples; 1/2 if independent.")
    tau_int_error: float = result_field("Error of the autocorrelation time, in samples.")
    samples: int = result_field("Number of samples.")

    @property
    def reliable(self) -> bool:
        """Whether the series is so long, `MIN_TAUS` times tau_int, that tau_int is known well."""
        return self.samples >= MIN_TAUS * (self.tau_int + self.tau_int_error)

    def _growth(self) -> float:
        """Return the factor by which long bins show a larger error; `compared` replaces this."""
        return 1.0

    @property
    def length_cautions(self) -> list[str]:
        """A caution about the error of a series that is too short, in one sentence, or none."""
        return caution_short(self.samples, self.tau_int + self.tau_int_error)

    @property
    def cautions(self) -> list[str]:
        """Cautions about the error: a short series, or slow modes that tau_int misses.

        They are those of commands, which know the numbers of updates too and also say if the
        beginning of the series deviates from the rest. Slow modes are looked for by longer bins, in
        what `estimate` has returned.
        """
        return [*self.length_cautions, *caution_growth(self._growth())]

    def compared(self, growth: Callable[[], float]) -> Estimate:
        """Return this estimate with a function that compares its error with that of long bins."""
        average = replace(self)
        vars(average)["_growth"] = growth
        return average

    def format(self) -> str:
        """Return the value with its error in brackets, such as ``0.65215(8)``."""
        return with_error(self.value, self.error)

    def format_tau(self, every: int = 1) -> str:
        """Return tau_int with its error, or an empty string if it is unknown.

        Parameters
        ----------
        every : int
            Updates between measurements, to return tau_int in updates.
        """
        if math.isnan(self.tau_int):
            return ""
        return with_error(every * self.tau_int, every * self.tau_int_error)

    def to_gvar(self) -> Any:
        """Return a ``gvar.GVar`` with this value and error, independent of all others.

        Raises
        ------
        GaugeError
            If gvar is not installed, or the error is unknown.
        """
        gvar = load("gvar", "The conversion needs")
        return gvar.gvar(self.value, self._known_error)

    def to_pyerrors(self, name: str) -> Any:
        """Return a ``pyerrors.Obs`` with this value and error, as ``pyerrors.cov_Obs`` makes it.

        The history of the Markov chain is not part of an estimate. `gauge_mc.export` writes it to a
        file for pyerrors.

        Parameters
        ----------
        name : str
            Name of the source of the error. Observables with different names are independent.

        Raises
        ------
        GaugeError
            If pyerrors is not installed, or the error is unknown.
        """
        pyerrors = load("pyerrors", "The conversion needs")
        observable = pyerrors.cov_Obs(self.value, self._known_error**2, name)
        observable.gamma_method()
        return observable

    @property
    def _known_error(self) -> float:
        if not math.isfinite(self.error):
            raise GaugeError(f"The error of {self} is unknown; measure more than once.")
        return self.error

    def __float__(self) -> float:
        return float(self.value)

    def __format__(self, form: str) -> str:
        match = FORM.fullmatch(form)
        if not match:
            raise ValueError(
                f"An estimate has no format '{form}'; choose a number of decimals, as in .3f or "
                ".3e, a width, as in >12, or nothing."
            )
        width, decimals, kind = match.groups()
        text = self.format()
        if kind:
            formatter = with_decimals if kind == "f" else with_exponent
            text = formatter(self.value, self.error, int(decimals))
        return format(text, width)

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        tau = self.format_tau()
        return f"<{self}, tau_int = {tau}>" if tau else f"<{self}>"


def caution_short(samples: int, tau_int: float, of: str = "") -> list[str]:
    """Return a caution about a series that is shorter than `MIN_TAUS` times tau_int, or nothing."""
    if not samples < MIN_TAUS * tau_int:
        return []
    length = (
        f"The series is only {samples / tau_int:.0f} τ_int{f' of {of}' if of else ''} long, and "
        f"{MIN_TAUS} τ_int are needed: "
    )
    if samples < FEW_TAUS * tau_int:
        return [f"{length}no error can be relied on; make the run longer, or average several."]
    return [f"{length}errors are increased by the error of τ_int, to be on the safe side."]


def caution_growth(factor: float, of: str = "", remedy: str = "") -> list[str]:
    """Return the caution that long bins show errors larger by a factor; nothing if it is 1."""
    if factor == 1:
        return []
    return [
        f"Long bins show errors{f' of the {of}' if of else ''} that are larger by a factor of "
        f"{factor:.1f}, as if there were slow modes that τ_int misses; make the run longer, or "
        f"multiply the errors by it{remedy}."
    ]


TAUS_IN_A_BIN = 10
"""Length of a jackknife bin in integrated autocorrelation times. It makes the error about 5 % too
small, as neighbouring bins are still correlated."""


def kurtosis(*chains: ArrayLike) -> tuple[float, float]:
    """Return <x^4> / <x^2>^2 and its error by the jackknife.

    The length of a bin is 10 tau_int of x^2 or of x^4, whichever is longer, but short enough for 20
    bins.
    """
    parts = [np.asarray(chain, dtype=np.float64) for chain in chains]
    powers = [np.stack([part**2, part**4], axis=1) for part in parts]
    if not any(np.any(part) for part in parts):
        return math.nan, math.nan
    tau = max(estimate(*(power[:, n] for power in powers)).tau_int for n in range(2))
    length = bin_length(sum(part.size for part in parts), tau)
    return jackknifed(powers, length, lambda mean: mean[..., 1] / mean[..., 0] ** 2)


def centre_sector(loop: NDArray[np.complex128], colours: int) -> NDArray[np.intp]:
    """Return the element k of the centre, exp(2 pi i k / N), to which L is closest."""
    sector = np.rint(np.angle(loop) * colours / (2 * math.pi)).astype(np.intp)
    return np.asarray(sector % colours)


def phase_of_mean(*chains: ArrayLike) -> tuple[float, float]:
    """Return the phase of <z> in units of pi, from -1 to 1, and its error by the jackknife."""
    parts = [np.asarray(chain, dtype=np.complex128) for chain in chains]
    mean = np.concatenate(parts).mean() if any(map(len, parts)) else 0
    if mean == 0:
        return math.nan, math.nan
    # Along the mean the phase is 0, far from where it jumps.
    turned = [part * np.conj(mean) / abs(mean) for part in parts]
    pairs = [np.stack([part.real, part.imag], axis=1) for part in turned]
    tau = max(estimate(*(pair[:, n] for pair in pairs)).tau_int for n in range(2))
    length = bin_length(sum(part.size for part in parts), tau)
    _, error = jackknifed(pairs, length, lambda mean: np.arctan2(mean[..., 1], mean[..., 0]))
    return float(np.angle(mean)) / math.pi, error / math.pi


def jackknifed(
    chains: Sequence[NDArray[np.float64]],
    length: int,
    function: Callable[[NDArray[np.float64]], NDArray[np.float64]],
) -> tuple[float, float]:
    """Return a function of averages over several chains, and its error by the jackknife."""
    divided = (np.array_split(part, max(1, len(part) // length)) for part in chains)
    bins = [x for some in divided for x in some if len(x)]
    sizes, sums = np.array([len(b) for b in bins]), np.array([b.sum(axis=0) for b in bins])
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
    tau_int = estimate(*parts).tau_int
    tau = max(tau_int, squares.tau_int)
    powers = [np.stack([part, part**2], axis=1) for part in parts]

    def variance(mean: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(volume * (mean[..., 1] - mean[..., 0] ** 2))

    value, error = jackknifed(powers, bin_length(samples, tau), variance)
    lost = 2 * tau_int / samples
    factor = 1 / (1 - lost) if lost < LARGEST_BIAS else 1.0
    error = max(error, volume * squares.error) if math.isfinite(error) else error
    value, error = factor * value, factor**2 * error
    return value, error * (1 + RAISED * error / value) if value > 0 else error


RAISED = 1 / 3
"""Part of its error by which a susceptibility is raised to take its error there. The distribution
is skew, so that no symmetric error contains the truth as often as it should within one and two
errors: for 20 independent measurements with autocorrelation, this brings 88 to 91 % within two
errors to 90 to 92 %, and keeps 66 to 70 % within one (``docs/studies/coverage.py``)."""

LARGEST_BIAS = 0.5
"""Largest relative bias of a susceptibility that is corrected for; then nothing is known of it."""


def bin_length(samples: int, tau_int: float) -> int:
    """Return the length of a jackknife bin: `TAUS_IN_A_BIN` tau_int, but at least 20 bins."""
    length = math.ceil(TAUS_IN_A_BIN * np.nan_to_num(tau_int))
    return int(max(1, min(length, samples // LEAST_BINS)))


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
    return np.array([(total - b.sum(axis=0)) / (len(series) - len(b)) for b in bins])


TRANSIENT = 4.0
"""Deviation of the first samples from the rest, in standard errors, that is taken for
thermalisation. Chance exceeds it in less than 1 % of series of at least 50 tau_int."""


def transient(series: ArrayLike) -> int:
    """Return how many samples at the beginning of a series deviate from the rest.

    The candidate is the number of samples without which the squared standard error of the mean,
    the variance divided by the number of samples left, is smallest (K. P. White, Simulation 69
    (1997) 323). It counts if the mean of these samples deviates from that of the others by more
    than `TRANSIENT` standard errors.
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
    counts = np.arange(x.size, x.size - x.size // 2, -1)
    later = (x - x[x.size // 2 :].mean())[::-1]
    first, second = (np.cumsum(later**n)[::-1][: counts.size] / counts for n in (1, 2))
    return int(np.argmin((second - first**2) / counts))


def _counted(x: NDArray[np.float64], count: int, deviation: float) -> int:
    """Return a number of samples if their mean deviates from the rest by enough errors; else 0."""
    if count == 0:
        return 0
    rest = estimate(x[count:])
    error = rest.error * math.sqrt((x.size - count) / count + 1)
    return count if abs(x[:count].mean() - rest.value) > deviation * error else 0


def transient_end(sweeps: ArrayLike, *series: ArrayLike) -> int:
    """Return the last update of a transient in any of the series; 0 if there is none."""
    count = max((transient(s) for s in series), default=0)
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
    """
    chains = [x for x in (first, second) if x.sweeps.size]
    if len(chains) < 2:
        return None
    begin = max(int(chain.sweeps[0]) for chain in chains) - 1
    end = min(int(chain.sweeps[-1]) for chain in chains)
    edges = [end]
    while edges[-1] > begin + 1:
        edges.append(begin + (edges[-1] - begin) // 2)
    late = [_within(chain, edges[1], end) for chain in chains if len(edges) > 1]
    if len(late) < 2 or any(x.size < LEAST_BINS or not np.isfinite(x).all() for x in late):
        return None
    spreads = [(float(x.std()), max(0.5, estimate(x).tau_int)) for x in late]
    for number, (high, low) in enumerate(pairwise(edges)):
        values = [_within(chain, low, high) for chain in chains]
        if not all(value.size for value in values):
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
    """Return a caution if measurements are not equally spaced in the chain."""
    steps = np.diff(np.unique(sweeps))
    if not steps.size or np.ptp(steps) == 0:
        return []
    return [
        "The configurations are not equally spaced in the Markov chain, so that autocorrelation "
        "times and errors are approximate."
    ]


def caution_slow(*series: ArrayLike) -> list[str]:
    """Return a caution if the error of any series grows with the length of bins."""
    return caution_growth(max(map(growth, series), default=1.0))


def caution_slower(mode: Estimate, every: int, averages: float, of: str, remedy: str) -> list[str]:
    """Return a caution if a mode is slower than all averages by twice its error; else nothing."""
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


__all__ = ["Estimate", "estimate", "kurtosis", "susceptibility"]


Scalar = TypeVar("Scalar", bound=np.generic)

CHAIN_BITS = 40
"""Number of bits of the number of an update in a key, above which that of the chain begins."""


@dataclass(frozen=True)
class Replicas:
    """Division of the rows of a series into independent chains of one ensemble.

    Attributes
    ----------
    lengths : tuple of int
        Number of configurations of every chain.
    spacings : tuple of int
        Updates from one configuration to the next of every chain.
    names : tuple of str
        Names of several chains, for cautions about one of them; none for a single chain.
    """

    lengths: tuple[int, ...]
    spacings: tuple[int, ...]
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, *sweeps: ArrayLike) -> Replicas:
        """Return the division of chains, given the numbers of their updates.

        The spacing of a chain is the most frequent one. A chain with a single configuration, which
        has none, takes the largest one of the others.
        """
        steps = [np.unique(np.diff(chain), return_counts=True) for chain in sweeps]
        spacings = [int(step[np.argmax(counts)]) if step.size else 0 for step, counts in steps]
        most = max([1, *spacings])
        return cls(tuple(map(np.size, sweeps)), tuple(step or most for step in spacings))

    @classmethod
    def alone(cls, length: int) -> Replicas:
        """Return the division of a single chain of the given length."""
        return cls((length,), (1,))

    def split(self, series: NDArray[Scalar]) -> list[NDArray[Scalar]]:
        """Return the part of a series that belongs to every chain."""
        if len(series) != sum(self.lengths):
            raise ValueError(f"{len(series)} rows are not {sum(self.lengths)} configurations.")
        return np.split(series, np.cumsum(self.lengths)[:-1])

    def estimate(self, series: ArrayLike) -> Estimate:
        """Return mean and error of a series by the Gamma method over all chains."""
        return estimate(*self.split(np.asarray(series)), spacings=self.spacings)

    def keys(self, sweeps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return numbers of the configurations that differ between chains."""
        chains = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return np.asarray((chains << CHAIN_BITS) + sweeps)

    def where(self, mask: NDArray[np.bool_]) -> Replicas:
        """Return the division of the configurations that a mask chooses."""
        return replace(self, lengths=tuple(int(np.sum(part)) for part in self.split(mask)))

    def updates(self, sweeps: NDArray[np.int64]) -> int | None:
        """Return the updates from one configuration to the next, or None if they differ."""
        steps = np.unique(np.concatenate([np.diff(part) for part in self.split(sweeps)]))
        return int(steps[0]) if steps.size == 1 else None

    def cautions(self, sweeps: NDArray[np.int64], *series: NDArray[np.generic]) -> list[str]:
        """Return the cautions of `caution_series` about every chain, which several name."""
        parts = zip(*map(self.split, (sweeps, *series)), strict=True)
        places = [f"{name}: " for name in self.names] or [""] * len(self.lengths)
        by_chain = zip(places, map(caution_series, *zip(*parts, strict=True)), strict=True)
        return [place + words for place, x in by_chain for words in x]
