"""Free energies of static charges and screening masses at T > 0, from Polyakov loops.

The correlator of two Polyakov loops is C(R) = exp(-F(R, T) / T), where F is the free energy of two
static charges, averaged over their colours (L. D. McLerran and B. Svetitsky, Phys. Rev. D 24 (1981)
450). At large R it is a sum over the states of a transfer matrix along a direction in space, so
that

    C(R) = C_inf + A exp(-m R) / R.

Above T_c, C_inf is the square of the average loop and m the mass of the lightest state, which in
leading order of perturbation theory is twice the Debye mass. Below T_c, C_inf is 0, and m =
sigma(T) / T with the string tension at the temperature T, for which 1/R is the leading term of a
string that fluctuates (O. Kaczmarek et al., hep-lat/9908010). All images of the charges on the
periodic lattice are summed.

The average p of the Polyakov loops over a plane is an operator of the transfer matrix along an axis
of space, without momentum in the plane. So its correlator is a sum over states of

    A [exp(-m r) + exp(-m (N - r))]

on N planes, without the factor 1/r of two single charges. Above T_c the real and the imaginary part
of p have states of their own: even and odd ones under charge conjugation, which begin with two and
three electric gluons in perturbation theory (P. Arnold and L. G. Yaffe, hep-ph/9508280). The
vacuum adds a constant to that of the real part. Below T_c the centre is a symmetry, so that both
parts have the same states: those of a flux tube around the lattice in t, of mass sigma(T) / T.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from gauge_mc.analysis.fitting import POOR, CurveFit, fit_curve
from gauge_mc.analysis.states import Correlator
from gauge_mc.analysis.table_series import Skips, Tables, read_series
from gauge_mc.analysis.timeseries import Estimate, Replicas
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.polyakov.observables import AXES, PLANES, Correlators
from gauge_mc.quantities.potential.loop_tables import ensemble_of, step_length
from gauge_mc.results import documented, result_field

SMALLEST = 2.0
"""Default of the smallest distance in the fit."""

DECONFINED, CONFINED = "deconfined", "confined"
"""Names of the phases."""

SIGNIFICANT = 4.0
"""Number of errors from which on the constant C_inf says that charges are not confined."""


@documented
@dataclass(frozen=True)
class FreeEnergyPoint:
    """The free energy at one distance."""

    path: str = result_field("Direction of the distance.", symbol="path")
    distance: float = result_field("Distance R/a.", symbol="R/a")
    scaled: float = result_field("R T.", symbol="R T")
    correlator: Estimate = result_field("C(R), with Tr / N.", symbol="C(R)")
    free_energy: Estimate | None = result_field(
        "F(R, T) / T = -ln C(R); null where C(R) is not positive.", symbol="F/T"
    )
    fitted: bool = result_field("Whether it is in the range of the fit.")


@documented
@dataclass(frozen=True)
class FreeEnergies:
    """Free energies of two static charges, and their screening or string tension."""

    ensemble: Mapping[str, str] = result_field("Group, beta and lattice of the ensemble.")
    phase: str = result_field("Form that was fitted: ``deconfined`` or ``confined``.")
    points: Sequence[FreeEnergyPoint] = result_field("All distances, ascending.")
    mass: Estimate = result_field(
        "m / T: the screening mass in the deconfined phase, and sigma(T) / T^2 in the confined one."
    )
    limit: Estimate | None = result_field(
        "F / T at infinite distance, -ln C_inf; null in the confined phase."
    )
    amplitude: Estimate = result_field("A, in lattice units.")
    chi2: float = result_field("chi2 of the fit.")
    chi2_expected: float = result_field("Its expectation.")
    p_value: float = result_field("Probability of a larger chi2 if the form is right.")
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


def free_energies(
    correlators: Correlators,
    ensemble: Mapping[str, str],
    reach: tuple[float, float] = (SMALLEST, math.inf),
    phase: str | None = None,
) -> FreeEnergies:
    """Return free energies at all distances, and the parameters of their decrease with R."""
    lattice = Lattice.parse(ensemble["lattice"])
    distances = np.array([steps * step_length(path) for path, steps in correlators.distances])
    order = np.argsort(distances, kind="stable")
    selection = order[(distances[order] >= reach[0] - 1e-9) & (distances[order] <= reach[1] + 1e-9)]
    vectors = np.array([[steps * int(x) for x in path] for path, steps in correlators.distances])
    series = correlators.values[:, selection]
    if selection.size < 3:
        raise GaugeError(
            f"The fit needs three distances, and there are {selection.size} from R = {reach[0]:g} "
            f"to {reach[1]:g}; choose a wider range, or measure more distances."
        )
    form = image_sum(vectors[selection], lattice)
    fitted_phase, fitted = _fitted(form, series, phase, correlators.replicas)
    estimate = correlators.replicas.estimate
    mass = estimate(correlators.extent * fitted.series[:, 0])
    used = set(selection.tolist())
    points = [_point(correlators, int(n), float(distances[n]), n in used) for n in order]
    cautions = []
    if fitted.fit.p_value < POOR:
        cautions.append(
            f"The form does not fit (p = {fitted.fit.p_value:.2g}): leave out small distances with "
            "--r-min."
        )
    if not mass.value > 0:
        cautions.append("The mass is not positive: C(R) does not decrease within its errors.")
    return FreeEnergies(
        dict(ensemble),
        fitted_phase,
        points,
        mass,
        _logarithm(estimate(fitted.series[:, 2])) if fitted_phase == DECONFINED else None,
        estimate(fitted.series[:, 1]),
        *fitted.fit.quality,
        cautions,
    )


CorrelatorForm = Callable[[float], tuple[Array, Array]]
"""A function of the mass that returns values, shape (points,), and their derivatives by it."""


def image_sum(vectors: Array, lattice: Lattice) -> CorrelatorForm:
    """Return the sum over images of exp(-m r) / r on a periodic lattice.

    The distances in space are vectors, shape (points, 3).
    """
    shifts = np.array([*product((-1, 0, 1), repeat=3)]) * np.array(lattice.extents[:3])
    r = np.linalg.norm(vectors[:, None] + shifts, axis=2)

    def form(mass: float) -> tuple[Array, Array]:
        falling = np.exp(-mass * r)
        return (falling / r).sum(axis=1), -falling.sum(axis=1)

    return form


def _fitted(
    form: CorrelatorForm, series: Array, phase: str | None, replicas: Replicas
) -> tuple[str, CurveFit]:
    """Return the phase and the fit of its form."""
    data = form, series, replicas, GUESSES
    if phase != CONFINED and (screened := _falling_fit(*data, True)):
        constant = replicas.estimate(screened.series[:, 2])
        if phase == DECONFINED or constant.value > SIGNIFICANT * constant.error:
            return DECONFINED, screened
    if phase != DECONFINED and (rising := _falling_fit(*data, False)):
        return CONFINED, rising
    raise GaugeError(
        "The decrease of the correlator with R cannot be fitted: choose another range with "
        "--r-min and --r-max, or measure more configurations."
    )


GUESSES = (0.5, 1.0, 2.0, 0.2)
"""Masses at which a fit may begin."""


def _falling_fit(
    form: CorrelatorForm,
    series: Array,
    replicas: Replicas,
    guesses: Sequence[float],
    constant: bool,
    least: float = -math.inf,
) -> CurveFit | None:
    """Return the fit of an amplitude times a form, perhaps plus a constant, its third parameter.

    It begins at each guess of the mass in turn until it converges with a mass above `least`; None
    if it never does. The series has the shape (configurations, points).
    """

    def curve(parameters: Array) -> tuple[Array, Array]:
        mass, amplitude, *rest = parameters.tolist()
        values, slopes = form(mass)
        columns = [amplitude * slopes, values, *([np.ones(values.size)] if constant else [])]
        return amplitude * values + sum(rest), np.stack(columns, axis=1)

    mean, tau = series.mean(axis=0), max(replicas.estimate(x).tau_int for x in series.T)
    for mass in guesses:
        rest = [float(mean[-1])] if constant else []
        start = np.array([mass, (float(mean[0]) - sum(rest)) / float(form(mass)[0][0]), *rest])
        with suppress(GaugeError):
            fit = fit_curve(curve, start, series, tau, False)
            if fit.values[0] > least:
                return fit
    return None


def _point(correlators: Correlators, n: int, distance: float, fitted: bool) -> FreeEnergyPoint:
    path, series = correlators.distances[n][0], correlators.values[:, n]
    mean = correlators.replicas.estimate(series)
    energy = _logarithm(mean) if mean.value > 0 else None
    scaled = distance / correlators.extent
    return FreeEnergyPoint(path, distance, scaled, mean, energy, fitted)


def _logarithm(mean: Estimate) -> Estimate:
    """Return minus the logarithm of a mean, which is positive."""
    return replace(mean, value=-math.log(mean.value), error=mean.error / mean.value)


REAL, IMAGINARY, BOTH = "Re L", "Im L", "L"
"""Names of the parts of the loop."""

PLANE_GUESSES = (0.5, 1.0, 2.0, 0.2, 0.1)
"""Masses at which a fit of planes may begin."""

LEAST_POINTS = 4
"""Least number of distances in a fit."""


@dataclass(frozen=True)
class PlaneSeries:
    """Correlators of an ensemble, averaged over the longest axes of space."""

    ensemble: Mapping[str, str]
    """Group, beta and lattice."""
    lattice: Lattice
    """Extents."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending in every chain, of shape
    (configurations,)."""
    replicas: Replicas
    """Division of the configurations into chains."""
    planes: int
    """Number N of planes."""
    real: Array
    """Correlators of the real parts at r = 0, 1, …, N / 2, of shape (configurations, N / 2 + 1)."""
    imaginary: Array
    """Correlators of the imaginary parts."""


@documented
@dataclass(frozen=True)
class ScreeningPoint:
    """A correlator at one distance."""

    part: str = result_field("Part of the loop: Re L, Im L, or L for both.", symbol="part")
    r: int = result_field("Distance r/a of the planes.", symbol="r/a")
    correlator: Estimate = result_field(
        "Its correlator without the fitted constant.", symbol="C(r)"
    )
    effective_mass: Estimate | None = result_field(
        "m / T from r and r + 1; null where it is not known.", symbol="m_eff/T"
    )


@documented
@dataclass(frozen=True)
class ScreeningMass:
    """The screening mass of a part of the loop."""

    part: str = result_field("Part of the loop: Re L, Im L, or L for both.", symbol="part")
    mass: Estimate = result_field("m / T.", symbol="m/T")
    r_min: int = result_field("Smallest distance in the fit.", symbol="r from")
    r_max: int = result_field("Largest distance in the fit.", symbol="to")
    amplitude: Estimate = result_field("Amplitude A.")
    constant: Estimate | None = result_field(
        "Constant that is fitted too, about the square of the loop.", symbol="constant"
    )
    chi2: float = result_field("chi2 of the fit.", symbol="χ²")
    chi2_expected: float = result_field("Its expectation.", symbol="expected")
    p_value: float = result_field("Probability of a larger chi2.", symbol="p")


@documented
@dataclass(frozen=True)
class ScreeningMasses:
    """Screening masses of an ensemble."""

    ensemble: Mapping[str, str] = result_field("Group, beta and lattice of the ensemble.")
    phase: str = result_field("Form that was fitted: ``deconfined`` or ``confined``.")
    masses: Sequence[ScreeningMass] = result_field("The masses, one of each part of the loop.")
    points: Sequence[ScreeningPoint] = result_field("The correlators, by part and distance.")
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


def read_planes(tables: Tables, skip: Skips = 0) -> PlaneSeries:
    """Read the correlators of an ensemble from the file of a table, or of several chains.

    The axes with the most planes are averaged, the others left out.
    """
    series = read_series(tables, PLANES, "correlators of planes", skip)
    lattice = series.lattice
    rows = [
        (axis, r)
        for axis, extent in zip(AXES, lattice.extents[:3], strict=True)
        for r in range(extent // 2 + 1)
    ]
    if [*zip(series.index["axis"].tolist(), series.index["r"].tolist(), strict=True)] != rows:
        raise GaugeError(
            f"{series.source} is incomplete: it does not have all axes and distances; measure the "
            "correlators again."
        )
    longest = max(lattice.extents[:3])
    columns = [
        n for n, (axis, _) in enumerate(rows) if lattice.extents[AXES.index(axis)] == longest
    ]
    parts = [
        series.values[x][:, columns].reshape(series.sweeps.size, -1, longest // 2 + 1).mean(axis=1)
        for x in ("re", "im")
    ]
    chains = series.sweeps, series.replicas
    return PlaneSeries(ensemble_of(series.header), lattice, *chains, longest, *parts)


def screening(
    series: PlaneSeries,
    r_min: int | None = None,
    r_max: int | None = None,
    phase: str | None = None,
) -> ScreeningMasses:
    """Return the screening masses of an ensemble."""
    last = series.planes // 2 if r_max is None else min(r_max, series.planes // 2)
    firsts = [r_min] if r_min is not None else [*range(1, max(2, last + 2 - LEAST_POINTS))]
    if last + 1 - firsts[0] < LEAST_POINTS:
        raise GaugeError(
            f"The fit needs {LEAST_POINTS} distances, and there are {max(0, last + 1 - firsts[0])} "
            f"from r = {firsts[0]} to {last}; choose a wider range, or a longer lattice."
        )
    search = _ScreenedFit(series, firsts, last)
    real = None
    if phase != CONFINED:
        # Without a constant the fit of its form need not converge.
        with nullcontext() if phase == DECONFINED else suppress(GaugeError):
            real = search.of(REAL, series.real, constant=True)
    if real and phase != DECONFINED:
        constant = real.mass.constant
        above = constant is not None and constant.value > SIGNIFICANT * constant.error
        real = real if above else None
    if real is None:
        parts = [search.of(BOTH, series.real + series.imaginary, constant=False)]
    else:
        parts = [real]
        if series.imaginary.any():
            parts.append(search.of(IMAGINARY, series.imaginary, constant=False))
    return ScreeningMasses(
        dict(series.ensemble),
        DECONFINED if real else CONFINED,
        [part.mass for part in parts],
        [point for part in parts for point in part.points],
        [caution for part in parts for caution in part.cautions],
    )


@dataclass(frozen=True)
class _ScreenedPart:
    """The mass and the correlators of a part of the loop."""

    mass: ScreeningMass
    points: list[ScreeningPoint]
    cautions: list[str]


@dataclass(frozen=True)
class _ScreenedFit:
    """The search for the range of a fit."""

    series: PlaneSeries
    firsts: Sequence[int]
    last: int

    def of(self, part: str, values: Array, constant: bool) -> _ScreenedPart:
        """Return the mass of a part of the loop: of the first range in which the form fits."""
        tried: list[tuple[int, CurveFit]] = []
        for first in self.firsts:
            if self.last + 1 - first < LEAST_POINTS:
                break
            if fit := self._fit(values, first, constant):
                tried.append((first, fit))
                if fit.fit.p_value >= POOR:
                    break
        if not tried:
            raise GaugeError(
                f"The decrease of the correlator of {part} cannot be fitted: choose another range "
                "with --r-min and --r-max, or measure more configurations."
            )
        good = [x for x in tried if x[1].fit.p_value >= POOR]
        first, fitted = good[0] if good else tried[-1]
        extent = self.series.lattice.t
        estimate = self.series.replicas.estimate
        mass = estimate(extent * fitted.series[:, 0])
        screening = ScreeningMass(
            part,
            mass,
            first,
            self.last,
            estimate(fitted.series[:, 1]),
            estimate(fitted.series[:, 2]) if constant else None,
            *fitted.fit.quality,
        )
        cautions = []
        if not good:
            cautions.append(
                f"The form does not fit the correlator of {part} (p = {screening.p_value:.2g}): "
                "measure on a longer lattice, or choose --r-min and --r-max."
            )
        if not mass.value > SIGNIFICANT * mass.error:
            cautions.append(f"The mass of {part} is less than {SIGNIFICANT:g} errors above 0.")
        level = fitted.series[:, 2:] if constant else 0.0  # it fluctuates with the correlator
        return _ScreenedPart(screening, self._points(part, values - level), cautions)

    def _fit(self, values: Array, first: int, constant: bool) -> CurveFit | None:
        """Return the fit from a distance on, or None if it does not converge."""
        r, planes = np.arange(first, self.last + 1), self.series.planes

        def form(mass: float) -> tuple[Array, Array]:
            forward, back = np.exp(-mass * r), np.exp(-mass * (planes - r))
            return forward + back, -r * forward - (planes - r) * back

        data = form, values[:, r], self.series.replicas, PLANE_GUESSES
        return _falling_fit(*data, constant, 0.0)

    def _points(self, part: str, values: Array) -> list[ScreeningPoint]:
        """Return the correlators at all distances, with effective masses where they are known."""
        extent, estimate = self.series.lattice.t, self.series.replicas.estimate
        effective = Correlator(self.series.sweeps, values, self.series.planes).effective()
        points = []
        for r in range(values.shape[1]):
            mass = None
            if 1 <= r < values.shape[1] - 1 and np.isfinite(effective.precision[0, r - 1]):
                average = estimate(extent * effective.series[:, 0, r - 1])
                mass = average if average.value > SIGNIFICANT / 2 * average.error else None
            points.append(ScreeningPoint(part, r, estimate(values[:, r]), mass))
        return points
