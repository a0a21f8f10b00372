"""The search for plateaus of the effective potential V(R, t) in t at all distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import can_invert
from gauge_mc.analysis.fitting.series_errors import excess
from gauge_mc.analysis.timeseries.gamma_method import MIN_CONFIGURATIONS, estimate
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.numbers import these
from gauge_mc.quantities.potential.analysis.effective_energies import (
    EffectiveEnergies,
    effective_energies,
)
from gauge_mc.quantities.potential.analysis.loops import PathLoops
from gauge_mc.quantities.potential.analysis.plateau_ranges import FittedPlateau, PlateauFits
from gauge_mc.quantities.potential.analysis.plateaus import CONTAMINATION, PlateauPoint, Plateaus

LOOP_PRECISION = 0.1
"""Relative error of W above which ln W is not used. The bias of ln W is half the square of the
relative error: 5 % of the error at this bound, and more above it."""

LARGEST_SHIFT = 1.0
"""Shift that is accepted if there would be too few plateaus otherwise, in units of the error."""

PRECISE = f"to the last t with W(R, t + {{step}}) known to better than {LOOP_PRECISION:.0%}"
"""Default rule for the last t of a plateau, in words, given the distance of the values of t."""

LEAST_TIMES = 2
"""Minimum number of t in a plateau. Whether V(R, t) is level cannot be seen from one."""


def find_plateaus(
    loops: Sequence[PathLoops | EffectiveEnergies],
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
    loops : sequence of PathLoops or EffectiveEnergies
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
    energies = [effective_energies(one) if isinstance(one, PathLoops) else one for one in loops]
    _check_times(energies, t_min, t_max)
    least = 1 if single or (t_min is not None and t_min == t_max) else LEAST_TIMES
    ranges = [_known(one, t_max, least) for one in energies]
    everything = [known for one in ranges for known in one if known is not None]
    if not everything:
        raise _too_noisy()
    tau_int = float(np.mean([estimate(one).tau_int for known in everything for one in known.T]))
    longest = max(known.shape[1] for known in everything)
    correlated = can_invert(longest, len(everything[0]) / (2 * tau_int))
    how = PlateauFits(tau_int, correlated, least, average, tolerance)
    times = max((one.t for one in energies), key=len)
    common = how.common_start(everything, times) if t_min is None else t_min
    found: list[FittedPlateau] = []
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


def _systematic_covariance(found: Sequence[FittedPlateau], tau_int: float) -> Array:
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


def _check_configurations(loops: Sequence[PathLoops | EffectiveEnergies]) -> None:
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
            f"measure more than {these(configurations)}."
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
