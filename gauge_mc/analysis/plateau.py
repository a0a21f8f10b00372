"""The potential V(R) at each distance, from plateaus of the effective potential V(R, t) in t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.lattice_coulomb import improved_distance
from gauge_mc.analysis.linear_fit import LinearFit, can_invert, fit_linear, fit_models
from gauge_mc.analysis.loops import Loops, effective_potential, log_loops
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, Estimate, estimate
from gauge_mc.errors import GaugeError, UsageError

Array = NDArray[np.float64]

LOOP_PRECISION = 0.1
"""Relative error of W above which ln W is not used. The bias of ln W is half the square of the
relative error: 5 % of the error at this bound, and more above it."""

AUTOMATIC = (
    "from the first t at which excited states shift the plateau by at most a quarter of its error, "
    "if a fit of a constant and an exponential sees them, or else from one step after V(R, t) "
    "agrees with the plateau of all later t; never earlier than at a smaller R on the same path"
)
"""Default rule for the first t of a plateau, in words."""

CONTAMINATION = 0.25
"""Shift of a plateau by excited states up to which a plateau is accepted, and named without a
caution, in units of its error."""

SIGNIFICANT = 3.0
"""Number of standard deviations from which on excited states are seen."""

GOOD = 2.0
"""Ratio of chi2 to its expectation up to which a constant and an exponential describe V(t)."""

GAPS = np.linspace(0.2, 3.0, 57)
"""Energies of the excited state above the ground state, in lattice units, that are tried."""

PRECISE = f"to the last t with W(R, t + {{step}}) known to better than {LOOP_PRECISION:.0%}"
"""Default rule for the last t of a plateau, in words, given the distance of the values of t."""

AVERAGED = "averaged over first t with Akaike weights"
"""Rule for the first t of a plateau that is an average over ranges, in words."""

AVERAGED_FROM = (
    "from the first one at which excited states shift the plateau by at most a quarter of its "
    "error, according to a fit of a constant and an exponential"
)
"""Default rule for the first range that is averaged, in words."""

LEAST_TIMES = 2
"""Minimum number of t in a plateau. Whether V(R, t) is level cannot be seen from one."""


@dataclass(frozen=True)
class EffectiveEnergies:
    """Effective energies E(R, t) along one path, which tend to an energy level for large t.

    Attributes
    ----------
    path : str
        Direction of the spatial lines; empty for energies without a distance, such as masses.
    sweeps : ndarray of int64, shape (configurations,)
        Numbers (updates) of the configurations, ascending.
    r : ndarray of int64, shape (R,)
        Numbers of steps along the path.
    distances : ndarray of float64, shape (R,)
        Distances of the static charges in lattice units.
    start : int
        First t; the others follow in steps of `step`.
    series : ndarray of float64, shape (configurations, R, T)
        Linearised time series of E(R, t), NaN where it is not known.
    precision : ndarray of float64, shape (R, T)
        Larger one of the relative errors of the two correlators, at t and t + `step`.
    step : int
        Distance of the values of t.
    """

    path: str
    sweeps: NDArray[np.int64]
    r: NDArray[np.int64]
    distances: Array
    start: int
    series: Array
    precision: Array
    step: int = 1

    @property
    def t(self) -> range:
        """The values of t."""
        return range(self.start, self.start + self.series.shape[2] * self.step, self.step)


@dataclass(frozen=True)
class PlateauPoint:
    """V(R) at one distance: the plateau of V(R, t) = ln [W(R, t) / W(R, t + d)] / d.

    Attributes
    ----------
    path : str
        Direction of the spatial lines.
    steps : int
        Number of steps along the path.
    distance : float
        R in lattice units.
    potential : Estimate
        V(R) in lattice units.
    t_min, t_max : int
        First and last t of the plateau; of the most probable one if several were averaged.
    chi2, chi2_expected : float
        chi2 of the fit of a constant to the plateau, and its expectation.
    improved : float
        Tree-level improved distance d_I, at which 1/d_I is the Coulomb potential on the lattice.
    systematic : float
        Systematic error from the ranges of t that were averaged; NaN if only one was used.
    shift : float
        Shift of V(R) by excited states, as a fit of a constant and an exponential estimates it; NaN
        if they are not seen with three standard deviations, or if ranges were averaged.
    """

    path: str
    steps: int
    distance: float
    potential: Estimate
    t_min: int
    t_max: int
    chi2: float
    chi2_expected: float
    improved: float = math.nan
    systematic: float = math.nan
    shift: float = math.nan

    @property
    def contaminated(self) -> bool:
        """Whether excited states shift V(R) by more than is accepted."""
        return abs(self.shift) > CONTAMINATION * self.potential.error * (1 + 1e-9)


@dataclass(frozen=True)
class Plateaus:
    """V(R) at all distances that have a plateau, in order of R.

    Attributes
    ----------
    rule : str
        Rule by which the plateaus were chosen, in words.
    points : tuple of PlateauPoint
        V(R), one for each distance and path.
    sweeps : ndarray of int64, shape (configurations,)
        Numbers (updates) of the configurations, ascending.
    series : ndarray of float64, shape (configurations, points)
        Linearised time series of V(R). Their means are the potentials.
    correlated : bool
        True if the t of all plateaus are weighted by their inverse covariance matrix, False if by
        their errors alone.
    left_out : tuple of str
        Paths and distances that have loops, but no plateau.
    systematic : ndarray of float64, shape (points, points)
        Systematic covariance matrix of V(R) from the ranges of t that were averaged; 0 if only one
        was used. Eigenvalues may be negative, because it is a difference.
    """

    rule: str
    points: tuple[PlateauPoint, ...]
    sweeps: NDArray[np.int64]
    series: Array
    correlated: bool = False
    left_out: tuple[str, ...] = ()
    systematic: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def tau_int(self) -> float:
        """Integrated autocorrelation time of V(R) in configurations, averaged over R."""
        return float(np.mean([one.potential.tau_int for one in self.points]))

    @property
    def averaged(self) -> bool:
        """Whether V(R) was averaged over ranges of t."""
        return any(math.isfinite(one.systematic) for one in self.points)

    @property
    def independent(self) -> float:
        """Effective number of independent configurations."""
        return len(self.series) / (2 * self.tau_int)

    @property
    def covariance(self) -> Array:
        """Covariance matrix of V(R): the errors, and the correlations of the series."""
        errors = np.array([one.potential.error for one in self.points])
        return covariance_of(self.series, errors)

    def systematic_error(self, gradient: Array) -> float:
        """Return the systematic error of a quantity, given its derivatives by all V(R).

        It is the part of the scatter among ranges that their statistical errors do not explain.
        """
        return math.sqrt(max(0.0, float(gradient @ self.systematic @ gradient)))


def covariance_of(series: Array, errors: Array) -> Array:
    """Return the covariance matrix with the given errors and the correlations of the series.

    Parameters
    ----------
    series : ndarray of float64, shape (samples, quantities)
    errors : ndarray of float64, shape (quantities,)
    """
    scatter = series.std(axis=0)
    scale = np.divide(
        errors, scatter, out=np.zeros_like(errors), where=(errors > 0) & (scatter > 0)
    )
    unit = (series - series.mean(axis=0)) * scale
    return np.asarray(unit.T @ unit / len(unit))


def find_plateaus(
    loops: Sequence[Loops | EffectiveEnergies],
    t_min: int | None = None,
    t_max: int | None = None,
    single: bool = False,
    average: bool = False,
) -> Plateaus:
    """Fit a constant to the plateau of V(R, t) for every distance.

    All plateaus are weighted by the inverse covariance matrix of their t if that of the longest
    range can be estimated (see `can_invert`), and else all of them by the errors alone.

    Parameters
    ----------
    loops : sequence of Loops or EffectiveEnergies
        Loops along each path, measured on the same configurations, or energies from them.
    t_min : int, optional
        First t of all plateaus. By default chosen for each R by the rule `AUTOMATIC`.
    t_max : int, optional
        Last t of all plateaus, as far as the loops are positive. By default chosen for each R by
        the rule `PRECISE`.
    single : bool
        Whether a plateau may consist of one t. It may as well if `t_min` and `t_max` are equal.
    average : bool
        Whether to average over all ranges that end at the same t, each weighted by
        exp(-(chi2 - 2 <chi2>)/2), which is the criterion of Akaike (W. I. Jay and E. T. Neil,
        arXiv:2008.01069) and also holds for uncorrelated fits (J. Frison, arXiv:2302.06550).

    Returns
    -------
    Plateaus
        Plateaus of all distances that have one.

    Raises
    ------
    UsageError
        If `t_min` or `t_max` is beyond the measured loops.
    GaugeError
        If there are fewer than `MIN_CONFIGURATIONS` configurations, if paths have different
        configurations, if the loops do not fluctuate, or if no distance has a plateau.
    """
    _check_configurations(loops)
    energies = [_energies(one) if isinstance(one, Loops) else one for one in loops]
    _check_times(energies, t_min, t_max)
    least = 1 if single or (t_min is not None and t_min == t_max) else LEAST_TIMES
    ranges = [_known(one, t_max, least) for one in energies]
    everything = [known for one in ranges for known in one if known is not None]
    if not everything:
        raise _too_noisy()
    tau_int = float(np.mean([estimate(one).tau_int for known in everything for one in known.T]))
    longest = max(known.shape[1] for known in everything)
    correlated = can_invert(longest, len(everything[0]) / (2 * tau_int))
    how = _Fits(tau_int, correlated, least, average)
    found: list[_Found] = []
    left_out = []
    for one, knowns in zip(energies, ranges, strict=True):
        first = t_min or 1
        for i, known in enumerate(knowns):
            part = None if known is None else how.part(known, one.t, first, t_min is None)
            if part is None:
                left_out.append(f"{one.path} R = {one.distances[i]:.4g}")
                continue
            found.append(how.point(one, i, part))
            if t_min is None and len(part.t) > 1:
                first = part.t[0]
    if not found:
        raise _too_noisy()
    found.sort(key=lambda one: one.point.distance)
    if average:
        rule = f"{AVERAGED}, {AVERAGED_FROM if t_min is None else f'from t = {t_min} on'}"
    else:
        rule = AUTOMATIC if t_min is None else f"from t = {t_min}"
    last_rule = PRECISE.format(step=energies[0].step) if t_max is None else f"to t = {t_max}"
    systematic = _systematic_covariance(found, tau_int)
    errors = np.sqrt(np.maximum(np.diag(systematic), 0.0)) * (1.0 if average else math.nan)
    return Plateaus(
        f"{rule}, {last_rule}",
        tuple(
            replace(one.point, systematic=float(error))
            for one, error in zip(found, errors, strict=True)
        ),
        loops[0].sweeps,
        np.stack([one.series for one in found], axis=1),
        correlated,
        tuple(left_out),
        systematic,
    )


def _systematic_covariance(found: Sequence[_Found], tau_int: float) -> Array:
    """Return the systematic covariance matrix of V(R) from the choice among ranges of t.

    A model has a range of t at every R, at the same quantile of the weights: early ranges, which
    excited states affect alike, belong together. The matrix is the scatter among these models, less
    what is expected of it from the statistical errors of their differences.
    """
    ends = [np.cumsum(one.weights[:-1]) for one in found]
    total = np.zeros((len(found), len(found)))
    for low, high in pairwise(np.unique(np.concatenate([[0.0, 1.0], *ends]))):
        chosen = [int(np.searchsorted(end, (low + high) / 2)) for end in ends]
        change = np.stack(
            [one.ranges[n] - one.series for one, n in zip(found, chosen, strict=True)]
        )
        noise = np.atleast_2d(np.cov(change)) * 2 * tau_int / change.shape[1]
        mean = change.mean(axis=1)
        total += (high - low) * (np.outer(mean, mean) - noise)
    return total


def _too_noisy() -> GaugeError:
    return GaugeError(
        "The Wilson loops have no plateau at any distance: they are too noisy, or excited states "
        "contribute up to the largest t; measure more configurations, more smearing or a larger "
        "t_max, or choose t_min and t_max."
    )


def _energies(loops: Loops) -> EffectiveEnergies:
    """Return the effective potential, with the relative errors of the loops."""
    logs = log_loops(loops)
    errors = np.array([[estimate(one).error for one in row.T] for row in logs.transpose(1, 0, 2)])
    precision = np.maximum(errors[:, :-1], errors[:, 1:])
    parts = loops.path, loops.sweeps, loops.r, loops.distances
    return EffectiveEnergies(
        *parts, loops.t_step, effective_potential(loops), precision, loops.t_step
    )


def _check_configurations(loops: Sequence[Loops | EffectiveEnergies]) -> None:
    configurations = loops[0].sweeps
    if any(not np.array_equal(one.sweeps, configurations) for one in loops):
        raise GaugeError(
            "The paths have Wilson loops on different configurations; measure the missing ones."
        )
    check_enough(configurations.size, "Wilson loops")


def check_enough(configurations: int, what: str) -> None:
    """Refuse too few configurations for a potential.

    Raises
    ------
    GaugeError
        If there are fewer than `MIN_CONFIGURATIONS`.
    """
    if configurations < MIN_CONFIGURATIONS:
        raise GaugeError(
            f"The potential needs {what} on at least {MIN_CONFIGURATIONS} configurations; "
            f"measure more than these {configurations}."
        )


def _check_times(
    energies: Sequence[EffectiveEnergies], t_min: int | None, t_max: int | None
) -> None:
    times = max((one.t for one in energies), key=len)
    if not times:
        raise GaugeError(
            "The potential needs Wilson loops with at least two values of t; measure them with a "
            "larger t_max."
        )
    longest, step = times[-1], times.step
    first = 1 if t_min is None else t_min
    last = longest if t_max is None else t_max
    if not 1 <= first <= last <= longest or not any(first <= t <= last for t in times):
        multiples = f", multiples of {step}" if step > 1 else ""
        raise UsageError(
            f"No plateau can go from t = {first} to {last}: with loops up to t = {longest + step}, "
            f"choose t_min <= t_max between {times[0]} and {longest}{multiples}."
        )


def _known(energies: EffectiveEnergies, t_max: int | None, least: int) -> list[Array | None]:
    """Return E(t) for each R as far as it is known well enough, shape (configurations, t).

    It is None where fewer than `least` t are.
    """
    known: list[Array | None] = []
    for i, errors in enumerate(energies.precision):
        good = errors < LOOP_PRECISION if t_max is None else np.isfinite(errors)
        count = int(np.argmin(good)) if not good.all() else good.size
        if t_max is not None:
            count = min(count, sum(t <= t_max for t in energies.t))
        series = energies.series[:, i, : max(0, count)]
        if count > 0 and (np.ptp(series, axis=0) == 0).any():
            raise GaugeError(
                "The Wilson loops do not fluctuate, so the configurations are all the same; "
                "generate different ones."
            )
        known.append(series if count >= least else None)
    return known


@dataclass(frozen=True)
class _Part:
    """E(t) at the times t of a plateau, and the contribution of excited states."""

    known: Array
    t: range
    excited: Array | None


@dataclass(frozen=True)
class _Found:
    """V(R) with its series, and the weights and series of the ranges that were averaged."""

    point: PlateauPoint
    series: Array
    weights: Array
    ranges: Array


@dataclass(frozen=True)
class _Fits:
    """How constants are fitted to plateaus, at all R alike."""

    tau_int: float
    correlated: bool
    least: int
    average: bool

    def part(self, known: Array, times: range, first: int, automatic: bool) -> _Part | None:
        """Return the plateau of E(t), which is known at the first of `times`, or None without any.

        It does not begin before the time `first`.
        """
        t = times[: known.shape[1]]
        excited = self._excited(known, t)
        index: int | None = 0
        if automatic and (excited is not None or not self.average):
            index = self._automatic_start(known, excited)
        if index is None:
            return None
        index = max(index, sum(one < first for one in t))
        if index + self.least > len(t):
            return None
        return _Part(known[:, index:], t[index:], excited if excited is None else excited[index:])

    def point(self, energies: EffectiveEnergies, i: int, part: _Part) -> _Found:
        """Return V(R): from one range of t, or averaged over all of at least `least` t."""
        count = part.known.shape[1] - self.least + 1 if self.average else 1
        parts = [part.known[:, n:] for n in range(count)]
        fits = [self._constant(one) for one in parts]
        series = np.array([one @ fit.projection[0] for one, fit in zip(parts, fits, strict=True)])
        weights = akaike_weights([fit.chi2 for fit in fits], [fit.chi2_expected for fit in fits])
        mean = np.tensordot(weights, series, axes=1)
        best = int(np.argmax(weights))
        path, steps = energies.path, int(energies.r[i])
        shifted = part.excited is not None and not self.average
        point = PlateauPoint(
            path=path,
            steps=steps,
            distance=float(energies.distances[i]),
            potential=estimate(mean),
            t_min=part.t[best],
            t_max=part.t[-1],
            chi2=fits[best].chi2,
            chi2_expected=fits[best].chi2_expected,
            improved=improved_distance(path, steps) if path else math.nan,
            shift=float(fits[0].projection[0] @ part.excited) if shifted else math.nan,
        )
        return _Found(point, mean, weights, series)

    def _constant(self, later: Array) -> LinearFit:
        """Fit a constant to V(t), which has the shape (configurations, t)."""
        return fit_linear(np.ones((later.shape[1], 1)), later, self.tau_int, self.correlated)

    def _automatic_start(self, known: Array, excited: Array | None) -> int | None:
        """Return the index of the first t of a plateau by the rule `AUTOMATIC`, or None.

        If excited states shift the plateau too much everywhere, it consists of the last t, unless
        the shift exceeds its error. Values agree if the earlier one is larger by at most one
        standard deviation.
        """
        ratio = math.inf
        for t in range(known.shape[1] - self.least + 1):
            later = known[:, t:]
            plateau = self._constant(later).projection[0]
            if excited is not None:
                ratio = abs(plateau @ excited[t:]) / estimate(later @ plateau).error
                if ratio <= CONTAMINATION:
                    return t
            elif t > 0:
                excess = estimate(known[:, t - 1] - later @ plateau)
                if excess.value <= excess.error:
                    return t
        return known.shape[1] - self.least if ratio <= 1 else None

    def _excited(self, known: Array, times: range) -> Array | None:
        """Return c exp(-gap t) of a fit of E + c exp(-gap t), or None if c is not significant.

        The fit begins at the first t from which on it is good, but has at least four t.
        """
        for first in range(known.shape[1] - 3):
            later = known[:, first:]
            t = np.array(times[first:]) - times[first]
            designs = [np.stack([np.ones(t.size), np.exp(-gap * t)], axis=1) for gap in GAPS]
            fits = fit_models(designs, later, self.tau_int, self.correlated)
            chi2, expected = min((fit.chi2, fit.chi2_expected) for fit in fits)
            if chi2 <= GOOD * expected or t.size == 4:
                weights = np.exp((chi2 - np.array([fit.chi2 for fit in fits])) / 2)
                weights /= weights.sum()
                c = np.array([fit.projection[1] for fit in fits])  # by gap and t
                size = estimate(later @ (weights @ c))
                if size.value < SIGNIFICANT * size.error:
                    return None
                since = np.array(times) - times[first]
                parts = (c @ later.mean(axis=0))[:, None] * np.exp(-GAPS[:, None] * since)
                return np.asarray(weights @ parts)
        return None


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
