"""Forms of V(R), averaged over windows in R, and the scales that follow from them.

Every form is fitted to all windows of distances, and the fits are averaged with the weights of an
information criterion that contains a penalty for every point that is left out (W. I. Jay and E. T.
Neil, arXiv:2008.01069). The smallest windows have two distances more than parameters, and
interpolate the force locally (R. Sommer, hep-lat/9310022). The scatter of the fits is the
systematic error, and errors of a poor fit count by the root of chi2 over its expectation more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import action_of
from gauge_mc.analysis.fitting import LinearFit, ModelAverage, Points
from gauge_mc.analysis.timeseries import Estimate, Replicas, with_error
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import UsageError
from gauge_mc.libraries import load
from gauge_mc.quantities.potential.loop_tables import lines_of
from gauge_mc.results import documented, result_field
from gauge_mc.temporal_links import TEMPORAL_LINKS

ROOT_SIGMA = 440.0
"""sqrt(sigma) in MeV, by which the spacing in fm is defined."""

HBAR_C = 197.3269804
"""hbar c in MeV fm (CODATA 2018; exact in the SI)."""

FORCES = {"r0": 1.65, "r1": 1.0, "rc": 0.65}
"""Values of r^2 F(r) that define r0 (R. Sommer, hep-lat/9310022), r1 (C. Bernard et al.,
hep-lat/0002028) and r_c (S. Necco and R. Sommer, hep-lat/0108008)."""

LUSCHER = -math.pi / 12
"""Coefficient of 1/R of a string that vibrates (M. Luescher, Nucl. Phys. B 180 (1981) 317)."""


@dataclass(frozen=True)
class Form:
    """A form of V(R) that is linear in its parameters, of which the first two are A and sigma.

    Attributes
    ----------
    name : str
        The form in symbols, where [1/R] is the Coulomb potential of the lattice.
    terms : callable
        Function of R and of [1/R], both of shape (points,), that returns the terms behind A and
        sigma R, each of shape (points,).
    slopes : tuple of (float, int)
        Factor and power of r in the contribution of each of these terms to r^2 F(r), which is 0 for
        artefacts of the lattice.
    fixed : float
        Coefficient of a further term [1/R] that is not fitted.
    """

    name: str
    terms: Callable[[Array, Array], Sequence[Array]]
    slopes: tuple[tuple[float, int], ...]
    fixed: float = 0.0

    def design(self, r: Array, lattice: Array) -> Array:
        """Return the derivatives of V(R) by the parameters, of shape (points, parameters)."""
        return np.stack([np.ones_like(r), r, *self.terms(r, lattice)], axis=1)

    def scaled_force(self, r: Array, order: int = 0) -> Array:
        """Return derivatives of r^2 F(r), or of its slope, by the parameters and by `fixed`."""
        columns = [np.zeros_like(r)]
        for factor, power in ((1.0, 2), *self.slopes, (-1.0, 0)):
            columns.append(factor * (power * r ** (power - 1) if order else r**power))
        return np.stack(columns, axis=1)


FORMS = (
    Form("A + σR + B[1/R]", lambda r, g: [g], ((-1.0, 0),)),
    Form("A + σR + B/R + C([1/R] − 1/R)", lambda r, g: [1 / r, g - 1 / r], ((-1.0, 0), (0.0, 0))),
    Form("A + σR + B[1/R] + C/R³", lambda r, g: [g, r**-3], ((-1.0, 0), (-3.0, -2))),
    Form("A + σR − π/12 [1/R]", lambda r, g: [], (), LUSCHER),
)
"""The forms that are averaged."""

LEAST_FREEDOM = 2
"""Minimum number of distances in a window beyond that of the parameters, so that chi2 can tell
whether the form fits."""


@dataclass(frozen=True)
class PotentialData:
    """V(R) at all distances and along all paths, in order of R."""

    replicas: Replicas
    """Division of the configurations into chains."""

    distances: Array
    """R in lattice units, of shape (points,)."""
    coulomb: Array
    """[1/R], the Coulomb potential of the lattice, of shape (points,)."""
    series: Array
    """Linearised time series of V(R), of shape (configurations, points)."""
    systematic: Array
    """Systematic errors of V(R), which vary together, of shape (points,)."""

    @cached_property
    def tau_int(self) -> float:
        """Integrated autocorrelation time in configurations, averaged over R."""
        return float(np.mean([self.replicas.estimate(values).tau_int for values in self.series.T]))

    @cached_property
    def points(self) -> Points:
        """V(R) with the shrunk covariance matrix, and the systematic errors, as if independent.

        A common shift of all V(R) would else be fitted, which the data cannot tell from others.
        """
        return Points.shrunk(self.series, self.tau_int, self.systematic)


@documented
@dataclass(frozen=True)
class FormFit:
    """A fit of a form of V(R) in one window."""

    form: str = result_field("The form in symbols; [1/R] is the Coulomb potential of the lattice.")
    r_min: float = result_field("Smallest distance.")
    r_max: float = result_field("Largest distance.")
    points: int = result_field("Number of points.")
    weight: float = result_field("Its weight in the averages.")
    parameters: tuple[float, ...] = result_field("A, σ and the coefficients of the other terms.")
    covariance: tuple[tuple[float, ...], ...] = result_field(
        "Their covariance matrix, with the systematic errors of V(R)."
    )
    chi2: float = result_field("chi2.")
    chi2_expected: float = result_field("Expectation of chi2.")
    p_value: float = result_field("Probability of a larger chi2 if the form is right.")

    @property
    def definition(self) -> Form:
        """The form that was fitted."""
        return next(form for form in FORMS if form.name == self.form)

    def curve(self, r: Array) -> tuple[Array, Array]:
        """Return V(r) without artefacts of the lattice, and its error, both of the shape of r."""
        form = self.definition
        design = form.design(r, 1 / r)
        variances = np.einsum("ri,ij,rj->r", design, np.array(self.covariance), design)
        return design @ self.parameters + form.fixed / r, np.sqrt(variances)

    def artefacts(self, r: Array, coulomb: Array) -> Array:
        """Return the artefacts of V(R) at distances r, given [1/R] there."""
        form = self.definition
        change = form.design(r, coulomb) - form.design(r, 1 / r)
        return np.asarray(change @ self.parameters + form.fixed * (coulomb - 1 / r))


@documented
@dataclass(frozen=True)
class PotentialScale:
    """A quantity from V(R), averaged over forms and windows."""

    value: Estimate = result_field("Its value with the statistical error.")
    systematic: float = result_field(
        "Systematic error: the scatter among forms and windows, and what the systematic errors of "
        "V(R) contribute."
    )

    @property
    def error(self) -> float:
        """The total error: both in quadrature."""
        return math.hypot(self.value.error, self.systematic)

    def __str__(self) -> str:
        return with_error(self.value.value, self.value.error, self.systematic)


@dataclass(frozen=True)
class _WindowFit:
    """A fit of a form, with its quantities as values and gradients by all V(R)."""

    form: Form
    r: Array
    fit: LinearFit
    points: Points
    parameters: Array
    quantities: dict[str, tuple[float, Array]]

    def shown(self, weight: float) -> FormFit:
        """Return the fit without its gradients."""
        parameters, ends = tuple(self.parameters.tolist()), (float(self.r[0]), float(self.r[-1]))
        covariance = self.fit.projection @ self.points.covariance @ self.fit.projection.T
        rows = tuple(map(tuple, covariance.tolist()))
        return FormFit(
            self.form.name, *ends, self.r.size, weight, parameters, rows, *self.fit.quality
        )


@dataclass(frozen=True)
class ScaleAverage:
    """Averages over forms and windows."""

    scales: dict[str, PotentialScale]
    """The quantities by name: ``sigma`` and those of `FORCES`."""
    histories: dict[str, Array]
    """Linearised time series of the quantities, of shape (configurations,)."""
    fits: tuple[FormFit, ...]
    """The fits with the largest weights for r0, or else for sigma, the most probable one first."""


MOST_SHOWN = 5
"""Number of fits in a result."""


def average_forms(
    data: PotentialData, r_min: float | None = None, r_max: float | None = None
) -> ScaleAverage:
    """Return the string tension and the scales, averaged over forms and windows of distances."""
    models = list(_models(data, r_min or 0.0, r_max or math.inf))
    if not models and (r_min or r_max):
        raise UsageError(
            f"Too few distances are from R = {r_min or 0:g} to {r_max or math.inf:g}: a fit needs "
            f"{2 + LEAST_FREEDOM}; choose a wider window with --r-min and --r-max."
        )
    scales, histories, shown = {}, {}, ()
    for name in ("sigma", *FORCES):
        candidates = [model for model in models if name in model.quantities]
        if not candidates:
            continue
        pairs = zip(*(model.quantities[name] for model in candidates), strict=True)
        values, gradients = map(np.array, pairs)
        fits = [model.fit for model in candidates]
        growth = np.array([fit.growth for fit in fits])
        variances = np.einsum("mi,ij,mj->m", gradients, data.points.sample, gradients)
        variances = growth**2 * variances + (gradients @ data.systematic) ** 2
        poor = np.array([max(1.0, fit.chi2 / fit.chi2_expected) for fit in fits])
        average = ModelAverage.of(fits, values, np.sqrt(poor * variances), np.ones(len(fits)))
        deviation = (data.series - data.points.mean) @ (growth * average.weights @ gradients)
        histories[name] = average.value + deviation
        statistical = data.replicas.estimate(histories[name])
        rest = math.sqrt(max(average.error**2 - statistical.error**2, 0.0))
        scales[name] = PotentialScale(statistical, rest)
        if name in ("sigma", "r0"):
            order = np.argsort(average.weights)[::-1][:MOST_SHOWN]
            shown = tuple(candidates[n].shown(float(average.weights[n])) for n in order)
    return ScaleAverage(scales, histories, shown)


def _models(data: PotentialData, low: float, high: float) -> Iterator[_WindowFit]:
    """Yield the fits of all forms to all windows."""
    r = data.distances
    every = np.unique(r[(r >= low - 1e-9) & (r <= high + 1e-9)].round(9))
    for i, j in combinations(range(every.size), 2):
        used = np.flatnonzero((r >= every[i] - 1e-9) & (r <= every[j] + 1e-9))
        forms = [x for x in FORMS if len(x.slopes) + 2 + LEAST_FREEDOM <= j - i + 1]
        if forms:
            points = data.points.chosen(used)
            yield from (_fitted(form, used, points, data) for form in forms)


def _fitted(form: Form, used: Integers, points: Points, data: PotentialData) -> _WindowFit:
    """Return the fit of a form to some points, with those scales that are within the window."""
    r, lattice = data.distances[used], data.coulomb[used]
    shift = form.fixed * lattice
    fit = points.fit(form.design(r, lattice), shift)
    parameters = fit.projection @ (points.mean - shift)
    gradients = np.zeros((parameters.size, data.distances.size))
    gradients[:, used] = fit.projection
    quantities = {"sigma": (float(parameters[1]), gradients[1])}
    grid = np.linspace(r[0], r[-1], STEPS)
    complete = np.append(parameters, form.fixed)
    force = form.scaled_force(grid) @ complete
    for name, target in FORCES.items():
        rises = np.flatnonzero((force[:-1] < target) & (force[1:] >= target))
        if rises.size:
            at = grid[rises[-1] : rises[-1] + 1] + (grid[1] - grid[0]) / 2
            for _ in range(NEWTON):
                slope = form.scaled_force(at, 1) @ complete
                at = at - (form.scaled_force(at) @ complete - target) / slope
            derivatives = -form.scaled_force(at)[0, :-1] / slope[0]
            quantities[name] = (float(at[0]), derivatives @ gradients)
    return _WindowFit(form, r, fit, points, parameters, quantities)


STEPS = 60
"""Number of r at which a crossing of r^2 F is looked for."""

NEWTON = 5
"""Number of Newton steps to the crossing, after which it is exact up to rounding."""


NODES = 400
"""Points of the Gauss quadrature, with which G is exact to 1e-10."""

BEGIN, END = -25.0, 13.0
"""Logarithm of the smallest and the largest parameter s of the integral; beyond, the integrand has
its asymptotic form (4 pi s)^(-3/2)."""


@cache
def propagator(x: int, y: int, z: int) -> float:
    """Return G of plain links and the Wilson action at a distance, in infinite volume.

    G is the integral over s > 0 of the product of exp(-2 s) I_n(2 s) with n = x, y, z, where I_n is
    a modified Bessel function.
    """
    scaled_bessel = load("scipy.special").ive
    nodes, weights = _quadrature()
    half = (END - BEGIN) / 2
    s = np.exp(BEGIN + half * (nodes + 1))
    product = np.prod([scaled_bessel(abs(n), 2 * s) for n in (x, y, z)], axis=0)
    tail = 2 * (4 * math.pi) ** -1.5 * math.exp(-END / 2)
    return float(half * weights @ (s * product) + tail)


@cache
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points and weights of the Gauss quadrature."""
    return np.polynomial.legendre.leggauss(NODES)


PERIOD = 64
"""Extent of the lattice on which the difference to the Wilson action with plain links is summed. It
falls with r^-3 or faster, so that its images change G by 1e-6 of 1 / (4 pi r) at most."""


@cache
def _difference(rectangle: float, alphas: tuple[float, ...]) -> Array:
    """G minus that of plain links and the Wilson action, at all distances of a lattice."""
    k = 2 * np.pi * np.fft.fftfreq(PERIOD)
    squares = np.stack(np.meshgrid(*3 * [4 * np.sin(k / 2) ** 2], indexing="ij"))
    plain = squares.sum(axis=0)
    plain[0, 0, 0] = 1.0  # where the difference vanishes
    form = np.ones_like(plain)
    if alphas:
        a1, a2, a3 = alphas
        for i, square in enumerate(squares):
            transverse = squares[[n for n in range(3) if n != i]]
            w = 1 + a2 * (1 + a3) - a2 / 4 * (1 + 2 * a3) * transverse.sum(axis=0)
            form -= a1 / 6 * square * (w + a2 * a3 / 4 * transverse.prod(axis=0))
    improved = plain - rectangle * (squares**2).sum(axis=0)
    spectrum = form**2 / improved - 1 / plain
    a1, a2, a3 = alphas or (0.0, 0.0, 0.0)  # the limit, averaged over directions
    spectrum[0, 0, 0] = 0.6 * rectangle - a1 / 3 * (1 + a2 * (1 + a3))
    return np.asarray(np.fft.ifftn(spectrum).real)


@dataclass(frozen=True)
class StaticGluons:
    """Static gluons at tree level, for an action and the links of static lines."""

    rectangle: float = 0.0
    """Coefficient c1 of rectangles."""
    alphas: tuple[float, ...] = ()
    """Parameters of HYP links along t; empty for plain ones."""

    @classmethod
    def of(cls, header: Mapping[str, str]) -> StaticGluons:
        """Return those of the loops in a table, as its header states the action and the lines."""
        kind = lines_of(header).lower()
        alphas = getattr(TEMPORAL_LINKS[kind], "alphas", ()) if kind else ()
        return cls(action_of(header).rectangle or 0.0, tuple(alphas))

    def propagator(self, path: str, steps: int) -> float:
        """Return G after a number of steps along a path, such as ``"110"``."""
        x, y, z = sorted(steps * int(digit) for digit in path)
        plain = propagator(x, y, z)
        if not self.alphas and not self.rectangle:
            return plain
        return plain + float(
            _difference(self.rectangle, self.alphas)[x % PERIOD, y % PERIOD, z % PERIOD]
        )

    def potential_distance(self, path: str, steps: int) -> float:
        """Return d_I of the potential: 1 / d_I = 4 pi G(d)."""
        return 1 / (4 * math.pi * self.propagator(path, steps))

    def force_distance(self, path: str, steps: int) -> float:
        """Return r_I of the force between a number of steps along a path and one less.

        With the length a of a step, 1 / r_I^2 = 4 pi [G(r - a) - G(r)] / a.
        """
        length = math.sqrt(sum(int(digit) ** 2 for digit in path))
        slope = (self.propagator(path, steps - 1) - self.propagator(path, steps)) / length
        return 1 / math.sqrt(4 * math.pi * slope)
