"""Free energies of two static charges at T > 0, and how they are screened or confined.

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
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from gauge_mc.analysis.fitting.curve_fit import CurveFit, fit_curve
from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.polyakov.analysis.polyakov_correlators import Correlators
from gauge_mc.quantities.potential.analysis.loops import step_length
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
    """Return free energies at all distances, and the parameters of their decrease with R.

    Parameters
    ----------
    correlators : Correlators
        C(R) of an ensemble.
    ensemble : mapping of str to str
        Its metadata, with the lattice.
    reach : tuple of float
        Smallest and largest distance R/a of the fit.
    phase : str, optional
        The form that is fitted. By default it is that of the deconfined phase if C_inf is then at
        least `SIGNIFICANT` errors above 0, and else that of the confined phase.

    Raises
    ------
    GaugeError
        If there are too few distances, or the fit does not converge.
    """
    lattice = Lattice.parse(ensemble["lattice"])
    distances = np.array([steps * step_length(path) for path, steps in correlators.distances])
    order = np.argsort(distances, kind="stable")
    chosen = order[(distances[order] >= reach[0] - 1e-9) & (distances[order] <= reach[1] + 1e-9)]
    vectors = np.array(
        [[steps * int(one) for one in path] for path, steps in correlators.distances]
    )
    series = correlators.values[:, chosen]
    if chosen.size < 3:
        raise GaugeError(
            f"The fit needs three distances, and there are {chosen.size} from R = {reach[0]:g} "
            f"to {reach[1]:g}; choose a wider range, or measure more distances."
        )
    form = ImageSum(vectors[chosen], lattice)
    found, fitted = _fitted(form, series, phase)
    extent = correlators.extent
    mass = estimate(extent * fitted.series[:, 0])
    points = [
        _point(correlators, int(n), float(distances[n]), n in set(chosen.tolist())) for n in order
    ]
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
        found,
        points,
        mass,
        _logarithm(fitted.series[:, 2]) if found == DECONFINED else None,
        estimate(fitted.series[:, 1]),
        fitted.fit.chi2,
        fitted.fit.chi2_expected,
        fitted.fit.p_value,
        cautions,
    )


@dataclass(frozen=True)
class ImageSum:
    """The sum over images of exp(-m r) / r at several distances on a periodic lattice."""

    vectors: Array
    """Distances in space, of shape (points, 3)."""
    lattice: Lattice
    """Extents."""

    @property
    def lengths(self) -> Array:
        """Distances of all images, of shape (points, images)."""
        shifts = np.array([*product((-1, 0, 1), repeat=3)]) * np.array(self.lattice.extents[:3])
        return np.asarray(np.linalg.norm(self.vectors[:, None] + shifts, axis=2))

    def at(self, mass: float) -> tuple[Array, Array]:
        """Return the sums for a mass, and their derivatives by it, of shape (points,)."""
        r = self.lengths
        falling = np.exp(-mass * r)
        return (falling / r).sum(axis=1), -falling.sum(axis=1)

    def curve(self, parameters: Array) -> tuple[Array, Array]:
        """Return A times the sums, plus C_inf if there are three parameters, and derivatives."""
        mass, amplitude, *constant = parameters.tolist()
        sums, slopes = self.at(mass)
        columns = [amplitude * slopes, sums, *([np.ones(sums.size)] if constant else [])]
        return amplitude * sums + sum(constant), np.stack(columns, axis=1)


def _fitted(form: ImageSum, series: Array, phase: str | None) -> tuple[str, CurveFit]:
    """Return the phase and the fit of its form."""
    tau = max(estimate(one).tau_int for one in series.T)
    mean = series.mean(axis=0)
    if phase != CONFINED:
        try:
            found = _best(form, series, tau, float(mean[-1]))
        except GaugeError:
            if phase == DECONFINED:
                raise
        else:
            constant = estimate(found.series[:, 2])
            if phase == DECONFINED or constant.value > SIGNIFICANT * constant.error:
                return DECONFINED, found
    return CONFINED, _best(form, series, tau, None)


GUESSES = (0.5, 1.0, 2.0, 0.2)
"""Masses at which a fit may begin."""


def _best(form: ImageSum, series: Array, tau: float, constant: float | None) -> CurveFit:
    """Return the fit that converges from one of the guesses.

    Raises
    ------
    GaugeError
        If none converges.
    """
    mean = series.mean(axis=0)
    for mass in GUESSES:
        scale = float(form.at(mass)[0][0])
        rest = [] if constant is None else [constant]
        start = np.array([mass, (float(mean[0]) - sum(rest)) / scale, *rest])
        try:
            return fit_curve(form.curve, start, series, tau, False)
        except GaugeError:
            continue
    raise GaugeError(
        "The decrease of the correlator with R cannot be fitted: choose another range with "
        "--r-min and --r-max, or measure more configurations."
    )


def _point(correlators: Correlators, n: int, distance: float, fitted: bool) -> FreeEnergyPoint:
    path = correlators.distances[n][0]
    series = correlators.values[:, n]
    found = estimate(series)
    positive = found.value > 0
    scaled = distance / correlators.extent
    return FreeEnergyPoint(
        path, distance, scaled, found, _logarithm(series) if positive else None, fitted
    )


def _logarithm(series: Array) -> Estimate:
    """Return minus the logarithm of the mean of a series, which is positive."""
    found = estimate(series)
    return replace(found, value=-math.log(found.value), error=found.error / found.value)
