"""The potential V(R) at each distance, from plateaus of the effective potential V(R, t) in t."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.lattice_coulomb import improved_distance
from gauge_mc.analysis.linear_fit import LinearFit, can_invert, fit_linear
from gauge_mc.analysis.loops import Loops, effective_potential, log_loops
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.errors import GaugeError, UsageError

Array = NDArray[np.float64]

MIN_CONFIGURATIONS = 10
"""Minimum number of configurations. With ten independent ones the error of an error is 24 %."""

LOOP_PRECISION = 0.1
"""Relative error of W above which ln W is not used. The bias of ln W is half the square of the
relative error: 5 % of the error at this bound, and more above it."""

AUTOMATIC = (
    "from one step after the first t at which V(R, t) exceeds the plateau of all later t "
    "by at most one standard deviation, never earlier than the plateau at a smaller R on the same "
    "path"
)
"""Default rule for the first t of a plateau, in words."""

PRECISE = f"to the last t with W(R, t + {{step}}) known to better than {LOOP_PRECISION:.0%}"
"""Default rule for the last t of a plateau, in words, given the distance of the values of t."""

AVERAGED = "averaged over all first t with Akaike weights"
"""Rule for the first t of a plateau that is an average over ranges, in words."""

LEAST_TIMES = 2
"""Minimum number of t in a plateau. Whether V(R, t) is level cannot be seen from one."""


@dataclass(frozen=True)
class EffectiveEnergies:
    """Effective energies E(R, t) along one path, which tend to an energy level for large t.

    Attributes
    ----------
    path : str
        Direction of the spatial lines.
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
        Scatter of V(R) among the ranges of t that were averaged; NaN if only one was used.
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
    """

    rule: str
    points: tuple[PlateauPoint, ...]
    sweeps: NDArray[np.int64]
    series: Array
    correlated: bool = False
    left_out: tuple[str, ...] = ()

    @property
    def tau_int(self) -> float:
        """Integrated autocorrelation time of V(R) in configurations, averaged over R."""
        return float(np.mean([one.potential.tau_int for one in self.points]))

    @property
    def independent(self) -> float:
        """Effective number of independent configurations."""
        return len(self.series) / (2 * self.tau_int)

    @property
    def covariance(self) -> Array:
        """Covariance matrix of V(R): the errors, and the correlations of the series."""
        errors = np.array([one.potential.error for one in self.points])
        return covariance_of(self.series, errors)


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
    found: list[tuple[PlateauPoint, Array]] = []
    left_out = []
    for one, knowns in zip(energies, ranges, strict=True):
        first = 0
        for i, known in enumerate(knowns):
            count = 0 if known is None else known.shape[1]
            lowest = sum(t < (t_min or 1) for t in one.t)
            if known is not None and t_min is None and not average:
                onset = _onset(known, tau_int, correlated)
                lowest = count if onset is None else max(first, onset + 1)
            if known is None or lowest + least > count:
                left_out.append(f"{one.path} R = {one.distances[i]:.4g}")
                continue
            first = lowest if lowest < count - 1 else first
            plateau = known[:, lowest:], one.t[lowest:count]
            parts = plateau, tau_int, correlated, least if average else None
            found.append(_point(one, i, *parts))
    if not found:
        raise _too_noisy()
    found.sort(key=lambda pair: pair[0].distance)
    if average:
        rule = AVERAGED if t_min is None else f"{AVERAGED} from t = {t_min} on"
    else:
        rule = AUTOMATIC if t_min is None else f"from t = {t_min}"
    last_rule = PRECISE.format(step=energies[0].step) if t_max is None else f"to t = {t_max}"
    return Plateaus(
        f"{rule}, {last_rule}",
        tuple(point for point, _ in found),
        loops[0].sweeps,
        np.stack([values for _, values in found], axis=1),
        correlated,
        tuple(left_out),
    )


def _too_noisy() -> GaugeError:
    return GaugeError(
        "The Wilson loops are too noisy for a plateau at any distance; measure more "
        "configurations, or choose smaller t_min and t_max."
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


def _point(
    energies: EffectiveEnergies,
    i: int,
    plateau: tuple[Array, range],
    tau_int: float,
    correlated: bool,
    least: int | None,
) -> tuple[PlateauPoint, Array]:
    """Return V(R) with its series: from one range of t, or averaged over those of `least` t."""
    known, times = plateau
    ends = range(1 if least is None else len(times) - least + 1)
    fits = [_constant(known[:, one:], tau_int, correlated) for one in ends]
    series = [known[:, one:] @ fit.projection[0] for one, fit in zip(ends, fits, strict=True)]
    weights = akaike_weights([fit.chi2 for fit in fits], [fit.chi2_expected for fit in fits])
    mean = np.tensordot(weights, series, axes=1)
    best = int(np.argmax(weights))
    path, steps = energies.path, int(energies.r[i])
    return PlateauPoint(
        path=path,
        steps=steps,
        distance=float(energies.distances[i]),
        potential=estimate(mean),
        t_min=times[best],
        t_max=times[-1],
        chi2=fits[best].chi2,
        chi2_expected=fits[best].chi2_expected,
        improved=improved_distance(path, steps),
        systematic=scatter(weights, np.mean(series, axis=1)) if least else math.nan,
    ), mean


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


def _constant(later: Array, tau_int: float, correlated: bool) -> LinearFit:
    """Fit a constant to V(t), which has the shape (configurations, t)."""
    return fit_linear(np.ones((later.shape[1], 1)), later, tau_int, correlated)


def _onset(known: Array, tau_int: float, correlated: bool) -> int | None:
    """Return the first index at which V(t) agrees with the plateau of all later t.

    See `AUTOMATIC`. It is None if there is no such t.
    """
    for t in range(known.shape[1] - 1):
        later = known[:, t + 1 :]
        plateau = later @ _constant(later, tau_int, correlated).projection[0]
        excess = estimate(known[:, t] - plateau)
        if excess.value <= excess.error:
            return t
    return None
