"""The potential V(R) at each distance, from plateaus of the effective potential V(R, t) in t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.fitting.linear_fit import LinearFit, can_invert, fit_linear, fit_models
from gauge_mc.analysis.potential.lattice_coulomb import improved_distance
from gauge_mc.analysis.potential.loops import Loops, effective_potential, log_loops
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, Estimate, estimate
from gauge_mc.errors import GaugeError, UsageError

Array = NDArray[np.float64]

LOOP_PRECISION = 0.1
"""Relative error of W above which ln W is not used. The bias of ln W is half the square of the
relative error: 5 % of the error at this bound, and more above it."""

AUTOMATIC = (
    "from {start}, later where a fit of a constant and an exponential sees them at one R alone"
)
"""Default rule for the first t of a plateau, in words, given the common start."""

COMMON = (
    "t = {first} on, where excited states shift the mean over R of V(R, t) by at most {tolerance}"
)
"""Common start of all plateaus, in words, given its t and the tolerance."""

OWN = "where excited states shift V(R) by at most {tolerance}, since the mean over R is never level"
"""Start of the plateaus in words, if excited states matter at all t in the mean over R."""

SHARES = {0.5: "half of its error", 1.0: "its error"}
"""Tolerated shifts by excited states, in words."""

CONTAMINATION = 0.5
"""Shift by excited states up to which a plateau is accepted without a caution, in units of its
error."""

LARGEST_SHIFT = 1.0
"""Shift that is accepted if there would be too few plateaus otherwise, in units of the error."""

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
        Systematic error from the range of t: from those that were averaged, or else the change with
        plateaus that begin one step later, beyond its statistical error; NaN if it is not known.
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
    later : Plateaus or None
        The same distances with plateaus that begin one step later, as far as there are further t;
        None if ranges were averaged, or if there is no plateau in t.
    single : Plateaus or None
        If ranges were averaged, the plateaus of the default rule, for forces: averages at
        neighbouring distances may be of different ranges, and the contribution of excited states
        does not cancel in their differences.
    """

    rule: str
    points: tuple[PlateauPoint, ...]
    sweeps: NDArray[np.int64]
    series: Array
    correlated: bool = False
    left_out: tuple[str, ...] = ()
    systematic: Array = field(default_factory=lambda: np.zeros((0, 0)))
    later: Plateaus | None = None
    single: Plateaus | None = None

    @property
    def tau_int(self) -> float:
        """Integrated autocorrelation time of V(R) in configurations, averaged over R."""
        return float(np.mean([one.potential.tau_int for one in self.points]))

    @property
    def averaged(self) -> bool:
        """Whether V(R) was averaged over ranges of t."""
        return self.later is None and any(math.isfinite(one.systematic) for one in self.points)

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

        It is the part of the scatter among averaged ranges that their statistical errors do not
        explain.
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
    tolerance: float = CONTAMINATION,
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
    tolerance : float
        Shift by excited states up to which a plateau is accepted, in units of its error:
        `CONTAMINATION` or `LARGEST_SHIFT`.

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
    how = _Fits(tau_int, correlated, least, average, tolerance)
    times = max((one.t for one in energies), key=len)
    common = how.common_start(everything, times) if t_min is None else t_min
    found: list[_Found] = []
    left_out = []
    for one, knowns in zip(energies, ranges, strict=True):
        for i, known in enumerate(knowns):
            part = None if known is None else how.part(known, one.t, common, t_min is None)
            if part is None:
                left_out.append(f"{one.path} R = {one.distances[i]:.4g}")
                continue
            found.append(how.point(one, i, part))
    if not found:
        raise _too_noisy()
    found.sort(key=lambda one: one.point.distance)
    last_rule = PRECISE.format(step=energies[0].step) if t_max is None else f"to t = {t_max}"
    plateaus = Plateaus(
        f"{how.rule(common, t_min)}, {last_rule}",
        tuple(one.point for one in found),
        loops[0].sweeps,
        np.stack([one.series for one in found], axis=1),
        correlated,
        tuple(left_out),
    )
    if average:
        return _with_scatter(plateaus, _systematic_covariance(found, tau_int))
    return _with_later(plateaus, [one.later for one in found])


def _with_scatter(plateaus: Plateaus, systematic: Array) -> Plateaus:
    """Return averages over ranges of t with their systematic covariance matrix."""
    errors = np.sqrt(np.maximum(np.diag(systematic), 0.0))
    points = (
        replace(one, systematic=float(error))
        for one, error in zip(plateaus.points, errors, strict=True)
    )
    return replace(plateaus, points=tuple(points), systematic=systematic)


def _with_later(plateaus: Plateaus, later: Sequence[tuple[PlateauPoint, Array]]) -> Plateaus:
    """Return plateaus together with those that begin one step later."""
    if all(
        other.t_min == one.t_min for one, (other, _) in zip(plateaus.points, later, strict=True)
    ):
        return plateaus
    series = np.stack([one for _, one in later], axis=1)
    points = (
        replace(one, systematic=excess(change))
        for one, change in zip(plateaus.points, (series - plateaus.series).T, strict=True)
    )
    others = replace(plateaus, points=tuple(one for one, _ in later), series=series)
    return replace(plateaus, points=tuple(points), later=others)


def excess(change: Array) -> float:
    """Return the size of a change that its statistical error does not explain.

    Parameters
    ----------
    change : ndarray of float64, shape (samples,)
        Linearised time series of the change.
    """
    found = estimate(change)
    return math.sqrt(max(0.0, found.value**2 - found.error**2))


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
    """V(R) with its series, with the weights and series of the ranges that were averaged.

    `later` is V(R) from the plateau that begins one step later, if there is a later t.
    """

    point: PlateauPoint
    series: Array
    weights: Array
    ranges: Array
    later: tuple[PlateauPoint, Array]


@dataclass(frozen=True)
class _Fits:
    """How constants are fitted to plateaus, at all R alike."""

    tau_int: float
    correlated: bool
    least: int
    average: bool
    tolerance: float

    def rule(self, common: int | None, t_min: int | None) -> str:
        """Return the rule for the first t in words."""
        if t_min is not None:
            first = f"from t = {t_min}{' on' * self.average}"
        else:
            start = OWN if common is None else COMMON
            words = start.format(first=common, tolerance=SHARES[self.tolerance])
            first = AUTOMATIC.format(start=words)
        return f"{AVERAGED}, {first}" if self.average else first

    def common_start(self, everything: Sequence[Array], times: range) -> int | None:
        """Return the first t of all plateaus, or None if excited states matter at all t.

        It is the start of the plateau of the mean over R of E(t), in units of the scatter of E at
        the first t. Noise of one R moves it little, and excited states, which have the same sign
        everywhere, are seen best. The mean is of the half of the R that is known to the largest t.
        """
        count = sorted(one.shape[1] for one in everything)[len(everything) // 2]
        chosen = [one[:, :count] for one in everything if one.shape[1] >= count]
        mean = np.mean([one / one[:, 0].std() for one in chosen], axis=0)
        excited = self._excited(mean, times[:count])
        if self.average and excited is None:
            return times[0]
        index = self._automatic_start(mean, excited)
        return None if index is None else times[index]

    def part(self, known: Array, times: range, common: int | None, automatic: bool) -> _Part | None:
        """Return the plateau of E(t), which is known at the first of `times`, or None without any.

        It does not begin before the common start, where a single t is enough if that was found
        from the data, since other R have shown that E(t) is level from there on.
        """
        t = times[: known.shape[1]]
        excited, least = self._excited(known, t), self.least
        index: int | None = 0
        if automatic and (excited is not None or (common is None and not self.average)):
            index = self._automatic_start(known, excited)
        if index is None:
            return None
        if common is not None:
            start = sum(one < common for one in t)
            if automatic and index <= start:
                least = 1
            index = max(index, start)
        if index + least > len(t):
            return None
        return _Part(known[:, index:], t[index:], excited if excited is None else excited[index:])

    def point(self, energies: EffectiveEnergies, i: int, part: _Part) -> _Found:
        """Return V(R): from one range of t, or averaged over all of at least `least` t."""
        last = part.known.shape[1] - 1
        count = max(1, last + 2 - self.least) if self.average else 1
        parts = [part.known[:, n:] for n in range(count)]
        fits = [self._constant(one) for one in parts]
        series = np.array([one @ fit.projection[0] for one, fit in zip(parts, fits, strict=True)])
        weights = akaike_weights([fit.chi2 for fit in fits], [fit.chi2_expected for fit in fits])
        mean = np.tensordot(weights, series, axes=1)
        best = int(np.argmax(weights))
        path, steps = energies.path, int(energies.r[i])
        shifted = part.excited is not None and not self.average

        def point(first: int, fit: LinearFit, values: Array) -> PlateauPoint:
            return PlateauPoint(
                path=path,
                steps=steps,
                distance=float(energies.distances[i]),
                potential=estimate(values),
                t_min=part.t[first],
                t_max=part.t[-1],
                chi2=fit.chi2,
                chi2_expected=fit.chi2_expected,
                improved=improved_distance(path, steps) if path else math.nan,
            )

        found = point(best, fits[best], mean)
        if shifted:
            found = replace(found, shift=float(fits[0].projection[0] @ part.excited))
        step = min(1, last)
        fit = self._constant(part.known[:, step:])
        later = part.known[:, step:] @ fit.projection[0]
        return _Found(found, mean, weights, series, (point(step, fit, later), later))

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
                if ratio <= self.tolerance:
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
