"""Masses of hadrons from the exponential decay of their correlators."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc.analysis.fitting.curve_fit import CurveFit, fit_curve
from gauge_mc.analysis.fitting.linear_fit import can_invert
from gauge_mc.analysis.fitting.model_averages import akaike_weights, scatter
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.hadrons.analysis.folded import Correlator
from gauge_mc.quantities.potential.analysis.effective_energies import EffectiveEnergies
from gauge_mc.quantities.potential.analysis.plateau_search import LOOP_PRECISION, find_plateaus
from gauge_mc.results import documented, result_field

LARGEST_DECAY = 600.0
"""Largest product of the guess of a mass and the last t, beyond which exponentials vanish."""

LEAST_POINTS = 3
"""Minimum number of t in a fit: one more than the number of parameters."""

TWO_STATES_POINTS = 6
"""Minimum number of t in a fit of two states: two more than the number of parameters."""

LARGEST_BIAS = 0.25
"""Largest effect of a second state on a mass, in units of its error."""

LEAST_GAP = 0.2
"""Smallest guess of the gap between two states, in lattice units."""

TWO_STATES = (
    "from the first t from which the second state of a fit of two states moves the mass by at most "
    f"{LARGEST_BIAS:g} of its error, or if two states cannot be fitted, where the plateau of the "
    "effective mass begins"
)
"""Default rule for the first t of a fit, in words."""


@documented
@dataclass(frozen=True)
class MassFit:
    """A mass from a fit of a correlator."""

    mass: Estimate = result_field("The mass, or the energy at nonzero momentum, in lattice units.")
    amplitude: Estimate = result_field("A, in lattice units.")
    t_min: int = result_field(
        "First t of the fit; of the most probable one if several were averaged."
    )
    t_max: int = result_field(
        "Last t of the fit; of the most probable one if several were averaged."
    )
    chi2: float = result_field("chi2 of the fit.")
    chi2_expected: float = result_field(
        "Expectation of chi2, which is dof if the fit is correlated."
    )
    dof: int = result_field("Degrees of freedom.")
    correlated: bool = result_field(
        "True if the t are weighted by their inverse covariance matrix, False if by their "
        "errors alone.",
    )
    systematic: float = result_field(
        "Scatter of the mass among the ranges of t that were averaged; NaN if only one was used.",
        math.nan,
    )


@dataclass(frozen=True)
class Ranges:
    """The choice of the times that are fitted.

    Raises
    ------
    UsageError
        If `t_min` is not below `t_max`, or negative.
    """

    t_min: int | None = None
    """First t. By default chosen by the rule `TWO_STATES`."""
    t_max: int | None = None
    """Last t. By default the last that is known to better than 10 %."""
    average: bool = False
    """Whether to average over all first t with Akaike weights; see `find_plateaus`."""

    def __post_init__(self) -> None:
        first = 1 if self.t_min is None else self.t_min
        if first < 1:
            raise UsageError(f"--t-min is {first}; choose a time from 1 on.")
        if self.t_max is not None and self.t_max < first + LEAST_POINTS - 1:
            raise UsageError(
                f"--t-max is {self.t_max}; a fit from t = {first} on needs at least "
                f"{first + LEAST_POINTS - 1}."
            )

    def last(self, precision: Array, after: int = 1) -> int:
        """Return the last t to fit.

        Parameters
        ----------
        precision : ndarray of float64, shape (T,)
            Relative errors for t = 1, 2, …, of the correlators from t to t + `after`.
        after : int
            Number of times after t to which what is fitted at t reaches.
        """
        good = precision < LOOP_PRECISION if self.t_max is None else np.isfinite(precision)
        count = int(np.argmin(good)) if not good.all() else good.size
        return count + after if self.t_max is None else min(count + after, self.t_max)


def fit_mass(correlator: Correlator, ranges: Ranges) -> tuple[MassFit, Array]:
    """Fit the mass of a correlator, and return it with its linearised time series.

    Parameters
    ----------
    correlator : Correlator
        Folded correlator.
    ranges : Ranges
        The choice of the times that are fitted.

    Returns
    -------
    MassFit
        The mass in lattice units with its error, and the fit.
    ndarray of float64, shape (configurations,)
        Series whose mean is the mass.

    Raises
    ------
    GaugeError
        If no range of t is known well enough, or a fit does not converge.
    """
    effective = correlator.effective()
    last = ranges.last(effective.precision[0])
    first = 1 if ranges.t_min is None else ranges.t_min
    if correlator.extent // 2 - first + 1 < LEAST_POINTS:
        raise GaugeError(
            f"A fit needs {LEAST_POINTS} times from t = {first} on, but those of the correlator of "
            f"a lattice with T = {correlator.extent} end at t = {correlator.extent // 2}; use a "
            "longer lattice, or a smaller --t-min."
        )
    if last - first + 1 < LEAST_POINTS:
        raise too_noisy()
    used = correlator.values[:, first : last + 1]
    if (np.ptp(used, axis=0) == 0).any():
        raise GaugeError(
            "The correlators do not fluctuate, so the configurations are all the same; generate "
            "different ones."
        )
    if ranges.t_min is None and not ranges.average:
        first = min(_onset(effective, last), last + 1 - LEAST_POINTS)
    tau_int = float(np.mean([estimate(one).tau_int for one in used.T]))
    correlated = can_invert(used.shape[1], len(used) / (2 * tau_int))
    # After the correction of the bias it may have any sign and size.
    guess = min(abs(float(effective.series[:, 0].mean(axis=0)[last - 2])), LARGEST_DECAY / last)
    fitter = _Fitter(correlator, last, guess, tau_int, correlated)
    if ranges.t_min is None and not ranges.average:
        first = fitter.onset() or first
    ends = range(first, last + 2 - LEAST_POINTS) if ranges.average else [first]
    fits = [fitter.one_state(one) for one in ends]
    chi2 = [one.fit.chi2 for one in fits]
    expected = [one.fit.chi2_expected for one in fits]
    weights = akaike_weights(chi2, expected)
    best = int(np.argmax(weights))
    logs, masses = np.tensordot(weights, [one.series for one in fits], axes=1).T
    size = math.copysign(math.exp(logs.mean()), correlator.values.mean(axis=0)[1])
    return MassFit(
        mass=estimate(masses),
        amplitude=estimate(size * (1 + logs - logs.mean())),
        t_min=ends[best],
        t_max=last,
        chi2=chi2[best],
        chi2_expected=expected[best],
        dof=fits[best].fit.dof,
        correlated=correlated,
        systematic=scatter(weights, np.array([one.values[1] for one in fits]))
        if ranges.average
        else math.nan,
    ), masses


def too_noisy() -> GaugeError:
    """Return the error for a correlator of which no range can be fitted."""
    return GaugeError(
        "The correlator is too noisy for a fit; measure more configurations, or give the last time "
        "to fit by --t-max."
    )


def _onset(effective: EffectiveEnergies, last: int) -> int:
    """Return the first t of the plateau of an effective mass, which is from t and t + 1.

    The rule for plateaus is for an approach from above. If source and sink differ, amplitudes of
    excited states may be negative and the mass may rise. So the rule holds for both signs, and the
    later plateau counts.
    """
    try:
        return max(
            find_plateaus([one], t_max=last - 1).points[0].t_min
            for one in (effective, replace(effective, series=-effective.series))
        )
    except GaugeError as error:  # which speaks of loops
        raise GaugeError(
            f"The effective mass has no plateau up to t = {last}, because excited states "
            "contribute or because it is too noisy; give --t-min, measure more configurations, or "
            "use a longer lattice."
        ) from error


@dataclass(frozen=True)
class _Fitter:
    """Fits of a correlator up to the same last t.

    Attributes
    ----------
    correlator : Correlator
        Folded correlator.
    last : int
        Last t.
    guess : float
        Guess of the mass.
    tau_int, correlated
        See `fit_linear`.
    """

    correlator: Correlator
    last: int
    guess: float
    tau_int: float
    correlated: bool

    def one_state(self, first: int) -> CurveFit:
        """Fit one state from a time on."""
        t = np.arange(first, self.last + 1)
        curve, values = self.correlator.curve(t), self.correlator.values[:, t]
        unit = curve(np.array([0.0, self.guess]))[0]
        log = math.log(max(float(values.mean(axis=0)[-1] / unit[-1]), 1e-300))
        start = np.array([log, self.guess])
        found = fit_curve(curve, start, values, self.tau_int, self.correlated)
        log, mass = found.values
        if self.correlator.periodic and mass < 0:  # with -mass the curve is the same
            start = np.array([log - self.correlator.extent * mass, -mass])
            found = fit_curve(curve, start, values, self.tau_int, self.correlated)
        return found

    def two_states(self, first: int) -> CurveFit:
        """Fit two states from a time on, beginning with those of the late times."""
        late = self.one_state((first + self.last) // 2).values
        t = np.arange(first, self.last + 1)
        values, gap = self.correlator.values[:, t], max(late[1], LEAST_GAP)
        ground = self.correlator.curve(t)(late)[0]
        excited = self.correlator.curve(t)(late + np.array([0.0, gap]))[0]
        weight = (values.mean(axis=0)[0] - ground[0]) / excited[0]
        start = np.array([*late, weight, math.log(gap)])
        curve = self.correlator.two_states(t)
        return fit_curve(curve, start, values, self.tau_int, self.correlated)

    def onset(self) -> int | None:
        """Return the first t from which one state may be fitted by the rule `TWO_STATES`.

        It is None if two states cannot be fitted.
        """
        for first in range(1, self.last + 2 - TWO_STATES_POINTS):
            try:
                two = self.two_states(first)
            except GaugeError:
                continue
            expected = two.fit.chi2_expected
            if two.fit.chi2 <= expected + 2 * math.sqrt(2 * expected):
                return self._onset_of(two, first)
        return None

    def _onset_of(self, two: CurveFit, start: int) -> int:
        """Return the first t at which the second state moves the mass by little."""
        for first in range(start, self.last + 2 - LEAST_POINTS):
            t = np.arange(first, self.last + 1)
            whole = self.correlator.two_states(t)(two.values)[0]
            excited = whole - self.correlator.curve(t)(two.values[:2])[0]
            try:
                one = self.one_state(first)
            except GaugeError:
                continue
            bias = abs(one.fit.projection[1] @ excited)
            if bias < LARGEST_BIAS * estimate(one.series[:, 1]).error:
                return first
        return self.last + 1 - LEAST_POINTS
