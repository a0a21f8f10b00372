"""The force between static charges, and the scales that follow from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from gauge_mc.analysis.fitting.series_errors import covariance_of, excess
from gauge_mc.analysis.fitting.zeros import zero_interval
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.quantities.potential.analysis.derived import FORCES, FitFunction
from gauge_mc.quantities.potential.analysis.lattice_coulomb import force_distance
from gauge_mc.quantities.potential.analysis.loops import AXIS, step_length
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus
from gauge_mc.results import documented, result_field


@documented
@dataclass(frozen=True)
class ForcePoint:
    """The force F = [V(R) - V(R - d)] / d between neighbouring distances on a path."""

    path: str = result_field("Direction of the spatial lines; d is the length of a step.")
    steps: int = result_field("Number of steps of the larger distance.")
    distance: float = result_field(
        "Tree-level improved distance r_I, at which the force on the lattice is that in the "
        "continuum at tree level, in lattice units.",
    )
    force: Estimate = result_field("F a^2 at r_I.")
    scaled: Estimate = result_field("r_I^2 F.")


@documented
@dataclass(frozen=True)
class ForceScale:
    """A scale from the force at improved distances, interpolated by F = f1 + f2/r^2."""

    value: Estimate = result_field(
        "The scale in lattice units. Its statistical error is half the distance to the farther end "
        "of the r at which r^2 F is the wanted value within two standard deviations."
    )
    systematic: float = result_field(
        "Systematic error of the interpolation: the largest change of the scale with a "
        "further term f3/r^4 and a third point, the next lower or the next higher one, less "
        "the statistical error of the change in quadrature; NaN if there is no third point.",
    )
    r_low: float = result_field(
        "Smaller one of the two improved distances between which it was interpolated."
    )
    r_high: float = result_field("Larger one of these two distances.")
    ranges: float = result_field(
        "Systematic error from the range of t, as in `WindowFit`; NaN if it is not known.",
        math.nan,
    )

    def __str__(self) -> str:
        """Return the scale with its statistical and its systematic error, as in ``2.932(3)(2)``."""
        text = str(self.value)
        known = [one for one in (self.systematic, self.ranges) if math.isfinite(one)]
        if not known:
            return text
        number, _, error = text.partition("(")
        decimals = len(number.partition(".")[2])
        total = math.hypot(*known)
        whole = f"{total:.{decimals}f}" if "." in error else f"{total * 10**decimals:.0f}"
        return f"{text}({whole})"


def forces(plateaus: Plateaus) -> list[tuple[ForcePoint, Array]]:
    """Return the forces between neighbouring distances on each path, sorted by distance.

    They are at tree-level improved distances r_I, each with its derivatives by all V(R).
    """
    index = {(one.path, one.steps): i for i, one in enumerate(plateaus.points)}
    found = []
    for (path, steps), i in index.items():
        j = index.get((path, steps - 1))
        if j is None:
            continue
        gradient = np.zeros(len(index))
        gradient[[i, j]] = 1 / step_length(path), -1 / step_length(path)
        series, r = plateaus.series @ gradient, force_distance(path, steps)
        point = ForcePoint(path, steps, r, estimate(series), estimate(r**2 * series))
        found.append((point, gradient))
    return sorted(found, key=lambda pair: pair[0].distance)


def force_scales(
    force: Sequence[tuple[ForcePoint, Array]], plateaus: Plateaus
) -> dict[str, ForceScale]:
    """Return r0/a, r1/a and r_c/a from the force on axis, as far as it brackets them.

    The force is interpolated by F = f1 + f2/r^2 between the two nearest points (S. Necco and R.
    Sommer, hep-lat/0108008). The distances that the data do not exclude by two standard deviations
    are those at which r^2 F, interpolated so between all points, is within two errors of the wanted
    value (E. C. Fieller, J. R. Stat. Soc. B 16 (1954) 175); beyond the last point r^2 F goes on as
    between the last two, as far again in r^2. There is no scale if the distances go on beyond that,
    or below the first point. Errors from derivatives would be too small where r^2 F crosses the
    value between the wrong points, or where its slope is large by chance.

    Parameters
    ----------
    force : sequence of (ForcePoint, ndarray)
        The forces with their derivatives, from `forces`.
    plateaus : Plateaus
        The potential from which they are.
    """
    axis = [pair for pair in force if pair[0].path == AXIS]
    found = {}
    for name, target in FORCES.items():
        i = _bracketed(axis, target) - 1
        if i < 0:
            continue
        scale = _interpolated(axis[i : i + 2], target)
        if scale is None:
            continue
        error = _error(axis, target, scale.value, plateaus)
        if error is None:
            continue
        further = [axis[n : n + 3] for n in (i - 1, i) if 0 <= n <= len(axis) - 3]
        others = [_interpolated(points, target, scale.value) for points in further]
        found[name] = ForceScale(
            replace(estimate(scale.series(plateaus)), error=error),
            _largest_change(scale, [one for one in others if one], plateaus),
            axis[i][0].distance,
            axis[i + 1][0].distance,
            _ranges(name, scale, plateaus),
        )
    return found


def _ranges(name: str, scale: FitFunction, plateaus: Plateaus) -> float:
    """Return the systematic error of a scale from the force, from the range of t."""
    if plateaus.later:
        axis = [pair for pair in forces(plateaus.later) if pair[0].path == AXIS]
        later = _bracketed(axis, FORCES[name])
        found = later and _interpolated(axis[later - 1 : later + 1], FORCES[name])
        if not found:
            return math.nan
        return excess(found.series(plateaus.later) - scale.series(plateaus))
    return plateaus.systematic_error(scale.gradient) if plateaus.averaged else math.nan


def _bracketed(axis: Sequence[tuple[ForcePoint, Array]], target: float) -> int:
    """Return the index of the first force at which r^2 F has risen to a value, or 0 without any."""
    scaled = [point.scaled.value for point, _ in axis]
    rises = (n for n in range(1, len(scaled)) if scaled[n - 1] < target <= scaled[n])
    return next(rises, 0)


def _error(
    axis: Sequence[tuple[ForcePoint, Array]], target: float, value: float, plateaus: Plateaus
) -> float | None:
    """Return the error of the distance at which r^2 F has a value; None if its end is not known."""
    squares = np.array([point.distance**2 for point, _ in axis])
    scaled = np.array([point.scaled.value for point, _ in axis])
    errors = np.array([point.scaled.error for point, _ in axis])
    gradients = np.stack([gradient for _, gradient in axis], axis=1) * squares
    covariance = covariance_of(plateaus.series @ gradients, errors)
    # Between two points, and beyond the last two, r^2 F = f1 r^2 + f2 is a line in r^2.
    end = 2 * squares[-1] - squares[-2]
    x = np.concatenate([np.linspace(*pair, STEPS) for pair in pairwise([*squares, end])])
    left = np.clip(np.searchsorted(squares, x) - 1, 0, squares.size - 2)
    part = (x - squares[left]) / (squares[left + 1] - squares[left])
    weights = np.zeros((squares.size, x.size))
    weights[left, np.arange(x.size)] = 1 - part
    weights[left + 1, np.arange(x.size)] = part
    spread = np.sqrt(np.einsum("ix,ij,jx->x", weights, covariance, weights))
    ratio = np.abs(scaled @ weights - target) / spread
    begin, end = zero_interval(value**2, x, ratio, CERTAIN)
    if begin <= x[0] or end >= x[-1]:
        return None
    return max(value - math.sqrt(begin), math.sqrt(end) - value) / CERTAIN


CERTAIN = 2.0
"""Standard deviations by which other distances must be excluded on both sides."""

STEPS = 64
"""Distances between two points at which errors of r^2 F are computed."""


def _interpolated(
    points: Sequence[tuple[ForcePoint, Array]], target: float, near: float = math.inf
) -> FitFunction | None:
    """Return the r at which r^2 F = target, for F = f1 + f2/r^2 + f3/r^4 + … through all points.

    The result is the solution nearest to `near`, or None without a solution.
    """
    r = np.array([point.distance for point, _ in points])
    powers = -2.0 * np.arange(r.size)
    inverse = np.linalg.inv(r[:, None] ** powers)
    f = inverse @ [point.force.value for point, _ in points]
    polynomial = f - target * (np.arange(r.size) == 1)  # in r^2
    roots = [
        math.sqrt(one.real)
        for one in np.roots(polynomial)
        if abs(one.imag) < 1e-12 and one.real > 0
    ]
    if not roots:
        return None
    value = min(roots, key=lambda one: abs(one - near))
    terms = value ** (powers + 2)
    slope = float(terms @ (f * (powers + 2))) / value
    by_force = -(terms @ inverse) / slope
    gradients = np.stack([gradient for _, gradient in points])
    return FitFunction(value, np.asarray(by_force @ gradients))


def _largest_change(scale: FitFunction, others: Sequence[FitFunction], plateaus: Plateaus) -> float:
    """Return the largest deviation of other results that statistical errors do not explain."""
    squares = []
    for one in others:
        change = FitFunction(one.value - scale.value, one.gradient - scale.gradient)
        squares.append(change.value**2 - estimate(change.series(plateaus)).error ** 2)
    return math.sqrt(max(0.0, *squares)) if squares else math.nan
