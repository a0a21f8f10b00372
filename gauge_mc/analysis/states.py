"""Energies of states from correlators, averaged over fits of one and of two states.

An effective energy E(t) tends to the energy of a state, with corrections that fall as exp(-d t),
where d is the gap to the next state. A constant, or a constant and one such exponential, is fitted
from every first t on, and the fits are averaged with the weights of an information criterion, which
contains a penalty for every t that is left out (W. I. Jay and E. T. Neil, arXiv:2008.01069 and
2305.19417), and which are divided by the squares of the errors, because otherwise fits of noise
alone would count (S. R. Beane et al., arXiv:2003.12130).

How far E(t) falls from the first t on bounds the exponential there. With half of that and the same
error as a prior, it is bounded where the data do not bound it, and what the prior adds to the error
of a fit is part of the systematic error. A constant may be wrong by all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from gauge_mc.analysis.fitting import LinearFit, ModelAverage, Points
from gauge_mc.analysis.timeseries import Estimate, Replicas, estimate
from gauge_mc.arrays import Array, Integers

PRECISION = 0.1
"""Relative error of a correlator above which its logarithm is not used. The bias of the logarithm
is half the square of the relative error: 5 % of the error at this bound, and more above it."""

GAP = 0.5
"""Largest gap to the next state in lattice units, if nothing else is known."""

GAPS = np.geomspace(0.4, 1.0, 5)
"""Gaps of the fits of two states, which are averaged too, in units of the largest one. Larger gaps
describe further states at small t, and the next one would be missed."""

FALL = 1.5
"""Largest size of the exponential at the first t, in units of the fall of E(t) from there to the
average of the constants, which are above the level themselves."""

SHARE = 0.5
"""Size of the exponential at the first t by the prior, and its error, in units of the largest."""


@dataclass(frozen=True)
class State:
    """An energy, averaged over fits of one and of two states from all first t on."""

    energy: Estimate
    """The energy in lattice units, with its statistical error."""
    systematic: float
    """Standard deviation of the energy among the fits, within which the prior lets each vary."""
    series: Array
    """Linearised time series of the energy, of shape (configurations,)."""
    t_min: int
    """First t of the most probable fit."""
    t_max: int
    """Last t of all fits."""
    states: int
    """Number of states of the most probable fit."""
    fit: LinearFit
    """The most probable fit."""
    exponential: float = 0.0
    """Size that the exponential has at the first t for certain: the largest size by the prior minus
    the error of E(t) there, or 0."""


@dataclass(frozen=True)
class _Model:
    """A fit of one or two states from a t on."""

    states: int
    start: int
    fit: LinearFit
    series: Array
    error: float
    unknown: float
    """Error by what the prior allows."""

    @property
    def variance(self) -> float:
        return self.error**2 + self.unknown**2


def known_times(precision: Array, bound: float = PRECISION) -> int:
    """Return the number of times up to which a correlator is known well enough."""
    bad = ~(precision < bound)
    return int(np.argmax(bad)) if bad.any() else bad.size


def state_of(
    series: Array,
    replicas: Replicas,
    first: int,
    step: int = 1,
    gap: float = GAP,
    exponential: float = -math.inf,
) -> State:
    """Return the energy to which effective energies tend."""
    fits = _Fits(series, replicas, np.arange(series.shape[1]) * step, gap)
    constants = fits.of_one_state()
    largest = fits.largest(constants)
    prior = fits.prior(max(largest, exponential))
    models = [*fits.under(prior, constants), *fits.of_two_states(prior)]
    average = _average(models)
    history = average.weights @ _histories(models)
    energy, best = replicas.estimate(history), models[int(np.argmax(average.weights))]
    systematic = math.sqrt(max(average.error**2 - energy.error**2, 0.0))
    t_min, t_max = first + best.start * step, first + (series.shape[1] - 1) * step
    certain = max(0.0, largest - float(fits.points[0].error[0]))
    return State(energy, systematic, history, t_min, t_max, best.states, best.fit, certain)


@dataclass(frozen=True)
class _Prior:
    """Expectation of the exponential at the first t, before any fit."""

    largest: float
    """Its largest size, of the sign that it has in the data."""
    size: float
    """The modulus of that, or the error of the first energy if this is larger."""

    @property
    def value(self) -> float:
        """Its expected size."""
        return SHARE * self.largest

    @property
    def error(self) -> float:
        """The error of that."""
        return SHARE * self.size


@dataclass(frozen=True)
class _Fits:
    """Fits to effective energies from every first t on."""

    series: Array
    """Time series of the energies, of shape (configurations, times)."""
    replicas: Replicas
    times: Integers
    """Values of t after the first one, which is 0."""
    gap: float
    """Largest gap to the next state."""

    @cached_property
    def points(self) -> list[Points]:
        """The energies from each t on."""
        tau_int = float(np.mean([self.replicas.estimate(x).tau_int for x in self.series.T]))
        return [Points.shrunk(self.series[:, start:], tau_int) for start in range(self.times.size)]

    def of_one_state(self) -> list[_Model]:
        """Return the fits of constants, as if there were no other state."""
        return [
            self._model(1, start, points.fit(np.ones((points.mean.size, 1))))
            for start, points in enumerate(self.points)
        ]

    def largest(self, constants: list[_Model]) -> float:
        """Return the largest size of the exponential by the fall of the energies to constants."""
        return FALL * float(self.points[0].mean[0] - _average(constants).value)

    def prior(self, largest: float) -> _Prior:
        """Return the prior for the exponential."""
        return _Prior(largest, max(abs(largest), float(self.points[0].error[0])))

    def under(self, prior: _Prior, constants: list[_Model]) -> list[_Model]:
        """Return constants with the error that they have if the exponential is of full size."""
        fall = np.exp(-self.gap * self.times)
        return [
            replace(model, unknown=prior.size * abs(float(model.fit.projection[0] @ rest)))
            for model, rest in ((model, fall[model.start :]) for model in constants)
        ]

    def of_two_states(self, prior: _Prior) -> Iterator[_Model]:
        """Yield the fits of a constant and an exponential, of which the prior is a point more."""
        for start, points in enumerate(self.points[: max(1, self.times.size - 2)]):
            constant = np.append(np.ones(points.mean.size), 0.0)
            falls = np.exp(-np.outer(self.gap * GAPS, self.times[start:]))
            designs = [np.stack([constant, np.append(fall, 1.0)], axis=1) for fall in falls]
            for fit in points.with_prior(prior.value, prior.error).fits(np.stack(designs)):
                yield self._model(2, start, fit, prior)

    def _model(
        self, states: int, start: int, fit: LinearFit, prior: _Prior | None = None
    ) -> _Model:
        history = self.series[:, start:] @ fit.projection[0, : self.times.size - start]
        unknown = 0.0
        if prior:
            history = history + prior.value * fit.projection[0, -1]
            unknown = prior.error * abs(float(fit.projection[0, -1]))
        history = history.mean() + fit.growth * (history - history.mean())
        error = self.replicas.estimate(history).error
        return _Model(states, start, fit, history, error, unknown)


def _histories(models: list[_Model]) -> Array:
    return np.stack([model.series for model in models])


def _average(models: list[_Model]) -> ModelAverage:
    """Return the average over fits; the gaps of fits of two states share the weight of one."""
    shares = np.array([1.0 if model.states == 1 else 1 / GAPS.size for model in models])
    errors = np.sqrt([model.variance for model in models])
    return ModelAverage.of([x.fit for x in models], _histories(models).mean(axis=1), errors, shares)


LARGEST_MASS = 50.0
"""Upper end of the masses among which an effective mass is looked for, in lattice units."""

SKEWNESS = 3.0
"""Size of the relative error of a correlator, in units of its inverse, from which on the errors of
effective masses grow because the distribution of correlators is skew. For correlators that are
known to 10 %, they are 4 % larger. With 20 independent measurements of correlators that fluctuate
as much as they are large, 93 instead of 88 % of effective masses are within two errors of the truth
(``docs/studies/lattice_coverage.py``)."""

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
        curve = self.curve(t)

        def of(parameters: Array) -> tuple[Array, Array]:
            log, mass, weight, gap = parameters
            ground, slopes = curve(np.array([log, mass]))
            excited, upper_slopes = curve(np.array([log, mass + np.exp(gap)]))
            both, by_gap = ground + weight * excited, weight * np.exp(gap) * upper_slopes[:, 1]
            by_mass = slopes[:, 1] + weight * upper_slopes[:, 1]
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
        errors = np.array([estimate(x).error for x in relative.T])
        precision = np.maximum(errors[1:-1], errors[2:])
        precision[np.isnan(mass)] = np.nan
        bias = (errors[2:] ** 2 - errors[1:-1] ** 2) / (2 * slope)
        wider = np.sqrt(1 + (SKEWNESS * precision) ** 2)
        series, origin = mass - bias + change * wider, np.zeros(1, dtype=np.int64)
        shaped = series[:, np.newaxis], precision[np.newaxis]
        return EffectiveEnergies("", self.sweeps, origin, np.zeros(1), 1, *shaped)

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
