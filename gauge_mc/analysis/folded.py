"""Folded correlators of hadrons and their effective masses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.arrays import Array, Integers

LARGEST_MASS = 50.0
"""Upper end of the masses among which an effective mass is looked for, in lattice units."""

SKEWNESS = 3.0
"""Size of the relative error of a correlator, in units of its inverse, from which on the errors of
effective masses grow because the distribution of correlators is skew. For correlators that are
known to 10 %, they are 4 % larger. With 20 independent measurements of correlators that fluctuate
as much as they are large, 93 instead of 88 % of effective masses are within two errors of the truth
(``tests/tools/lattice_coverage.py``)."""

BISECTIONS = 60
"""Number of times that this range is halved, after which it is as small as a rounding error."""


@dataclass(frozen=True)
class EffectiveEnergies:
    """Effective energies E(R, t) along one path, which tend to an energy level for large t."""

    path: str
    """Direction of the spatial lines; empty for energies without a distance, such as masses."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    r: Integers
    """Numbers of steps along the path, of shape (R,)."""
    distances: Array
    """Distances of the static charges in lattice units, of shape (R,)."""
    start: int
    """First t; the others follow in steps of `step`."""
    series: Array
    """Linearised time series of E(R, t), NaN where it is not known, of shape (configurations, R,
    T).
    """
    precision: Array
    """Larger one of the relative errors of the two correlators, at t and t + `step`, of shape (R,
    T).
    """
    step: int = 1
    """Distance of the values of t."""

    @property
    def t(self) -> range:
        """The values of t."""
        return range(self.start, self.start + self.series.shape[2] * self.step, self.step)


@dataclass(frozen=True)
class Correlator:
    """A folded correlator that decays with the mass of a hadron."""

    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    values: Array
    """The correlator at t = 0, 1, …, T // 2, of shape (configurations, T // 2 + 1)."""
    extent: int
    """Extent T of the lattice in time."""
    periodic: bool = True
    """True for A [exp(-m t) + exp(-m (T - t))], False for A exp(-m t) alone."""

    def curve(self, t: Array | Integers) -> Callable[[Array], tuple[Array, Array]]:
        """Return the curve at times t as a function of ln |A| and m, with its derivatives."""
        sign = math.copysign(1.0, self.values.mean(axis=0)[1])

        def of(parameters: Array) -> tuple[Array, Array]:
            log, mass = parameters
            forward = sign * np.exp(log - mass * t)
            back = self.periodic * sign * np.exp(log - mass * (self.extent - t))
            slope = -t * forward - (self.extent - t) * back
            return forward + back, np.stack([forward + back, slope], axis=1)

        return of

    def two_states(self, t: Integers) -> Callable[[Array], tuple[Array, Array]]:
        """Return the curve of two states as a function of ln |A|, m, b and ln d.

        The second state has the mass m + d and the amplitude A b.
        """
        one = self.curve(t)

        def of(parameters: Array) -> tuple[Array, Array]:
            log, mass, weight, gap = parameters
            ground, slopes = one(np.array([log, mass]))
            excited, others = one(np.array([log, mass + np.exp(gap)]))
            both, by_gap = ground + weight * excited, weight * np.exp(gap) * others[:, 1]
            by_mass = slopes[:, 1] + weight * others[:, 1]
            return both, np.stack([both, by_mass, excited, by_gap], axis=1)

        return of

    def effective(self) -> EffectiveEnergies:
        """Return the effective masses m(t) for t = 1, 2, …, T // 2 - 1.

        m(t) is the mass with which the curve of `Correlator` gives C(t) / C(t + 1). The logarithm
        of an average with the relative error d is too small by d^2/2, which is corrected for. An
        average that happens to lack rare large values has an error that is too small as well; so
        errors are larger by a factor of sqrt[1 + (`SKEWNESS` d)^2], with the larger d of the two.
        """
        mean = self.values.mean(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.log(mean[1:-1] / mean[2:])
            relative = self.values / mean - 1
        t = np.arange(1, mean.size - 1)
        mass, slope = self._solve(ratio, self.extent / 2 - t)
        change = (relative[:, 1:-1] - relative[:, 2:]) / slope
        errors = np.array([estimate(one).error for one in relative.T])
        precision = np.maximum(errors[1:-1], errors[2:])
        precision[np.isnan(mass)] = np.nan
        bias = (errors[2:] ** 2 - errors[1:-1] ** 2) / (2 * slope)
        wider = np.sqrt(1 + (SKEWNESS * precision) ** 2)
        series, nothing = mass - bias + change * wider, np.zeros(1, dtype=np.int64)
        shaped = series[:, np.newaxis], precision[np.newaxis]
        return EffectiveEnergies("", self.sweeps, nothing, np.zeros(1), 1, *shaped)

    def _solve(self, ratio: Array, half: Array) -> tuple[Array, Array]:
        """Return the masses with ln C(t)/C(t + 1) = ratio, and the derivative of ratio by them."""
        if not self.periodic:
            return np.where(ratio > 0, ratio, np.nan), np.ones_like(ratio)
        low, high = np.zeros_like(ratio), np.full_like(ratio, LARGEST_MASS)
        for _ in range(BISECTIONS):
            middle = (low + high) / 2
            below = _log_cosh(middle * half) - _log_cosh(middle * (half - 1)) < ratio
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        mass = np.where((ratio > 0) & (high < LARGEST_MASS), high, np.nan)
        slope = half * np.tanh(mass * half) - (half - 1) * np.tanh(mass * (half - 1))
        return mass, slope


def _log_cosh(x: Array) -> Array:
    return np.asarray(np.logaddexp(x, -x))
