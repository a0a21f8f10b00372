"""Averages of Monte Carlo time series, with errors that include autocorrelation."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load

STRETCH = 1.5
"""S of the automatic window, the assumed ratio of the exponential to the integrated autocorrelation
time. U. Wolff, hep-lat/0306017, sect. 3.3, recommends 1 to 2."""

DIGITS = 5
"""Number of significant digits of a value whose error is unknown."""

MIN_TAUS = 50
"""Length of a series in units of tau_int below which tau_int, and thus the error, is uncertain."""

FEW_TAUS = 10
"""Length of a series in units of tau_int below which no error can be relied on."""

MIN_CONFIGURATIONS = 10
"""Minimum number of configurations. With ten independent ones the error of an error is 24 %."""

TRANSIENT = 4.0
"""Deviation of the first samples from the rest, in standard errors, that is taken for
thermalisation. Chance exceeds it in less than 1 % of series of at least 50 tau_int."""

FORM = re.compile(r"((?:.?[<>^])?[0-9]*)(?:\.([0-9]{1,2})([ef]))?")
"""Format of an estimate in an f-string: alignment and width, number of decimals, and kind."""

LEAST_BINS, TAUS_IN_A_BIN = 20, 10
"""Minimum number of jackknife bins, and the length of a bin in integrated autocorrelation times.

Bins of length 10 tau_int make the error about 5 % too small, as neighbouring bins are still
correlated. Twenty bins determine the error to 16 %."""


@dataclass(frozen=True)
class Estimate:
    """An average over a Markov chain.

    Attributes
    ----------
    value, error : float
        Mean and standard error, in the units of the series.
    tau_int, tau_int_error : float
        Integrated autocorrelation time and its error, in samples; 1/2 for independent samples.
    samples : int
        Number of samples.
    """

    value: float
    error: float
    tau_int: float
    tau_int_error: float
    samples: int

    @property
    def reliable(self) -> bool:
        """Whether the series is so long, `MIN_TAUS` times tau_int, that tau_int is known well."""
        return self.samples >= MIN_TAUS * (self.tau_int + self.tau_int_error)

    @property
    def cautions(self) -> list[str]:
        """A caution about the error of a series that is too short, in one sentence, or none."""
        return caution_short(self.samples, self.tau_int + self.tau_int_error)

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
        found = FORM.fullmatch(form)
        if not found:
            raise ValueError(
                f"An estimate has no format '{form}'; choose a number of decimals, as in .3f or "
                ".3e, a width, as in >12, or nothing."
            )
        width, decimals, kind = found.groups()
        text = self.format()
        if kind:
            written = with_decimals if kind == "f" else with_exponent
            text = written(self.value, self.error, int(decimals))
        return format(text, width)

    def __str__(self) -> str:
        return self.format()

    def __repr__(self) -> str:
        tau = self.format_tau()
        return f"<{self}, tau_int = {tau}>" if tau else f"<{self}>"


def with_error(value: float, error: float) -> str:
    """Return a value with its error in brackets, in units of the last digit.

    The error is rounded by the rule of the Particle Data Group (Review of Particle Physics,
    introduction): to two digits if its three leading digits are 100 to 354, to one digit if they
    are 355 to 949, and up to 1000, with two digits, if they are 950 to 999.

    Parameters
    ----------
    value, error : float
        The value, and its error in the same unit.

    Returns
    -------
    str
        For example ``0.65215(8)``, ``1.0(1.5)`` or ``3.12(12)e-09``. If the error is zero, the
        value alone; if it is not finite, and thus unknown, the value to `DIGITS` digits.
    """
    if not math.isfinite(error):
        return f"{value:.{DIGITS}g}"
    if not math.isfinite(value) or error <= 0:
        return f"{value:.10g}"
    exponent = min(math.floor(math.log10(max(abs(value), error))), 0)
    if exponent < -4:
        scale = 10.0**-exponent
        return f"{with_error(value * scale, error * scale)}e{exponent:03d}"
    leading = math.floor(math.log10(error))
    digits = round(error / 10.0 ** (leading - 2))
    place = leading if 354 < digits <= 949 else leading - 1
    if digits > 949:
        place = leading
        error = 10.0 ** (leading + 1)
    rounded = round(error / 10.0**place)
    if place >= 0:
        return f"{round(value, -place):.0f}({rounded * 10**place})"
    if rounded * 10.0**place >= 1:
        return f"{value:.{-place}f}({rounded * 10.0**place:.{-place}f})"
    return f"{value:.{-place}f}({rounded})"


def with_decimals(value: float, error: float, decimals: int) -> str:
    """Return a value with so many decimals, and its error in brackets in units of the last one.

    Parameters
    ----------
    value, error : float
        An error that is zero or not finite is left out.
    decimals : int
        Number of digits behind the decimal point.

    Returns
    -------
    str
        For example ``0.652(1)`` for three decimals, or ``1.00(1.50)`` for two.
    """
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
        error is that for tau_int plus its own error.

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
    if found.reliable:
        return found
    return replace(found, error=found.error * math.sqrt(1 + tau_error / tau))


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


def caution_slow(*series: ArrayLike) -> list[str]:
    """Return a caution if the error of any series grows with the length of bins; otherwise nothing.

    Parameters
    ----------
    *series : array_like of float, shape (samples,)
        Values along each chain.
    """
    return caution_growth(max(map(growth, series), default=1.0))


def caution_growth(factor: float, of: str = "", remedy: str = "") -> list[str]:
    """Return the caution that long bins show errors larger by a factor; nothing if it is 1.

    Parameters
    ----------
    factor : float
        Error of the mean from long bins, divided by that of `estimate`.
    of : str
        Name of the quantity.
    remedy : str
        What else can be done, after a comma.
    """
    if factor == 1:
        return []
    return [
        f"Long bins show errors{f' of the {of}' if of else ''} that are larger by a factor of "
        f"{factor:.1f}, as if there were slow modes that τ_int misses; make the run longer, or "
        f"multiply the errors by it{remedy}."
    ]


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
        What else can be done than to make the run longer, after a comma.
    """
    if not (mode.tau_int - 2 * mode.tau_int_error) * every > averages:
        return []
    return [
        f"The {of} has τ_int = {mode.format_tau(every)} updates, more than all averages. What "
        f"depends on it may fluctuate as slowly, unseen: make the run much longer{remedy}."
    ]


def caution_short(samples: int, tau_int: float, of: str = "") -> list[str]:
    """Return a caution about a series that is shorter than `MIN_TAUS` times tau_int, or nothing.

    Parameters
    ----------
    samples : int
        Length of the series.
    tau_int : float
        Integrated autocorrelation time in samples.
    of : str
        Symbol of the quantity.
    """
    if not samples < MIN_TAUS * tau_int:
        return []
    length = (
        f"The series is only {samples / tau_int:.0f} τ_int{f' of {of}' if of else ''} long, and "
        f"{MIN_TAUS} τ_int are needed: "
    )
    if samples < FEW_TAUS * tau_int:
        return [f"{length}no error can be relied on; make the run longer, or average several."]
    return [f"{length}errors are increased by the error of τ_int, to be on the safe side."]


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
    if x.size < LEAST_BINS or not np.isfinite(x).all() or np.ptp(x) == 0:
        return 0
    left = np.arange(x.size, x.size - x.size // 2, -1)
    later = (x - x[x.size // 2 :].mean())[::-1]
    first, second = (np.cumsum(later**n)[::-1][: left.size] / left for n in (1, 2))
    count = int(np.argmin((second - first**2) / left))
    if count == 0:
        return 0
    rest = estimate(x[count:])
    error = rest.error * math.sqrt((x.size - count) / count + 1)
    return count if abs(x[:count].mean() - rest.value) > TRANSIENT * error else 0


def caution_series(sweeps: ArrayLike, *series: ArrayLike) -> list[str]:
    """Return cautions about series that are not thermalised, or have slow modes, or nothing.

    The parameters are those of `transient_end`. Slow modes are looked for only in series without a
    transient, which has the same effect.
    """
    return caution_transient(sweeps, *series) or caution_slow(*series)


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
        f"not thermalised; leave them out with --skip {last}."
    ]


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


def susceptibility(*chains: ArrayLike, volume: int) -> tuple[float, float]:
    """Return the susceptibility V (<x^2> - <x>^2) and its error by the jackknife.

    The length of a bin is 10 tau_int of x or of (x - <x>)^2, whichever is longer, but short enough
    for 20 bins.

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
    tau = max(estimate(*parts).tau_int, estimate(*(part**2 for part in parts)).tau_int)
    length = bin_length(samples, tau)
    bins = [
        one
        for part in parts
        for one in np.array_split(part, max(1, part.size // length))
        if one.size
    ]
    sums = np.array([(one.size, one.sum(), (one**2).sum()) for one in bins])
    value = volume * _variance(sums.sum(axis=0))
    if len(bins) < 2:
        return float(value), math.nan
    without = volume * _variance((sums.sum(axis=0) - sums).T)
    return float(value), float(np.sqrt((len(bins) - 1) * without.var()))


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


def _variance(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return <x^2> - <x>^2 from the number of samples and the sums of x and x^2."""
    count, first, second = sums
    return np.asarray(second / count - (first / count) ** 2)
