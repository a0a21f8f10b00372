"""Screening masses from correlators of planes of Polyakov loops.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.analysis.fitting.curve_fit import CurveFit, fit_curve
from gauge_mc.analysis.fitting.linear_fit import POOR
from gauge_mc.analysis.table_series import read_series
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.quantities.hadrons.analysis.folded import Correlator
from gauge_mc.quantities.polyakov.analysis.free_energy import CONFINED, DECONFINED, SIGNIFICANT
from gauge_mc.quantities.potential.analysis.loop_tables import ensemble_of
from gauge_mc.results import documented, result_field

AXES = ("x", "y", "z")
"""Names of the axes of space."""

COLUMNS = TableColumns(
    Column("axis", str, "axis to which the planes are perpendicular: x, y or z", index=True),
    Column("r", int, "distance of the planes", index=True),
    Column("re", float, "product of the real parts of the averages over two planes"),
    Column("im", float, "product of the imaginary parts; 0 for SU(2)"),
)
"""Columns of a table of correlators of planes."""

PLANE_COLUMNS = (SWEEP, *COLUMNS.names)
"""Names of the columns of such a table."""

REAL, IMAGINARY, BOTH = "Re L", "Im L", "L"
"""Names of the parts of the loop."""

GUESSES = (0.5, 1.0, 2.0, 0.2, 0.1)
"""Masses at which a fit may begin."""

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
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
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
        "Its correlator, without the constant of the fit.", symbol="C(r)"
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


def read_planes(path: Path, skip: int = 0) -> PlaneSeries:
    """Read the correlators of an ensemble from the file of a table.

    The axes with the most planes are averaged, the others left out.

    Parameters
    ----------
    path : Path
        File of the table.
    skip : int
        Last update that is left out.

    Raises
    ------
    GaugeError
        If the table is not one of such correlators, is incomplete, or has too few configurations.
    """
    found = read_series(path, COLUMNS, "correlators of planes", skip)
    lattice = found.lattice
    rows = [
        (axis, r)
        for axis, extent in zip(AXES, lattice.extents[:3], strict=True)
        for r in range(extent // 2 + 1)
    ]
    if [*zip(found.index["axis"].tolist(), found.index["r"].tolist(), strict=True)] != rows:
        raise GaugeError(
            f"{path} is incomplete: it does not have all axes and distances; measure the "
            "correlators again."
        )
    longest = max(lattice.extents[:3])
    chosen = [n for n, (axis, _) in enumerate(rows) if lattice.extents[AXES.index(axis)] == longest]
    parts = [
        found.values[name][:, chosen].reshape(found.sweeps.size, -1, longest // 2 + 1).mean(axis=1)
        for name in ("re", "im")
    ]
    return PlaneSeries(ensemble_of(found.header), lattice, found.sweeps, longest, *parts)


def screening(
    series: PlaneSeries,
    r_min: int | None = None,
    r_max: int | None = None,
    phase: str | None = None,
) -> ScreeningMasses:
    """Return the screening masses of an ensemble.

    Parameters
    ----------
    series : PlaneSeries
        The correlators.
    r_min : int, optional
        Smallest distance of the fits. By default the smallest one, at least 1, from which on the
        form fits.
    r_max : int, optional
        Largest distance of the fits. By default half the lattice.
    phase : str, optional
        The form that is fitted. By default it is that of the deconfined phase if the constant of
        the real part is at least `SIGNIFICANT` errors above 0, and else that of the confined phase.

    Raises
    ------
    GaugeError
        If there are too few distances, or no fit converges.
    """
    last = series.planes // 2 if r_max is None else min(r_max, series.planes // 2)
    firsts = [r_min] if r_min is not None else [*range(1, max(2, last + 2 - LEAST_POINTS))]
    if last + 1 - firsts[0] < LEAST_POINTS:
        raise GaugeError(
            f"The fit needs {LEAST_POINTS} distances, and there are {max(0, last + 1 - firsts[0])} "
            f"from r = {firsts[0]} to {last}; choose a wider range, or a longer lattice."
        )
    search = _ScreenedFit(series, firsts, last)
    real = _deconfined(search, phase)
    if real is None:
        phase = CONFINED
        parts = [search.of(BOTH, series.real + series.imaginary, constant=False)]
    else:
        phase = DECONFINED
        parts = [real]
        if series.imaginary.any():
            parts.append(search.of(IMAGINARY, series.imaginary, constant=False))
    return ScreeningMasses(
        dict(series.ensemble),
        phase,
        [one.mass for one in parts],
        [point for one in parts for point in one.points],
        [caution for one in parts for caution in one.cautions],
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
            try:
                tried.append((first, self._fit(values, first, constant)))
            except GaugeError:
                continue
            if tried[-1][1].fit.p_value >= POOR:
                break
        if not tried:
            raise GaugeError(
                f"The decrease of the correlator of {part} cannot be fitted: choose another range "
                "with --r-min and --r-max, or measure more configurations."
            )
        good = [one for one in tried if one[1].fit.p_value >= POOR]
        first, fitted = good[0] if good else tried[-1]
        extent = self.series.lattice.t
        mass = estimate(extent * fitted.series[:, 0])
        found = ScreeningMass(
            part,
            mass,
            first,
            self.last,
            estimate(fitted.series[:, 1]),
            estimate(fitted.series[:, 2]) if constant else None,
            fitted.fit.chi2,
            fitted.fit.chi2_expected,
            fitted.fit.p_value,
        )
        cautions = []
        if not good:
            cautions.append(
                f"The form does not fit the correlator of {part} (p = {found.p_value:.2g}): "
                "measure on a longer lattice, or choose --r-min and --r-max."
            )
        if not mass.value > SIGNIFICANT * mass.error:
            cautions.append(f"The mass of {part} is less than {SIGNIFICANT:g} errors above 0.")
        level = fitted.series[:, 2:] if constant else 0.0  # it fluctuates with the correlator
        return _ScreenedPart(found, self._points(part, values - level), cautions)

    def _fit(self, values: Array, first: int, constant: bool) -> CurveFit:
        """Return the fit from a distance on, which begins at one of the guesses."""
        r = np.arange(first, self.last + 1)
        series = values[:, r]
        mean = series.mean(axis=0)
        tau = max(estimate(one).tau_int for one in series.T)
        planes = self.series.planes

        def curve(parameters: Array) -> tuple[Array, Array]:
            mass, amplitude, *rest = parameters.tolist()
            there, back = np.exp(-mass * r), np.exp(-mass * (planes - r))
            slope = amplitude * (-r * there - (planes - r) * back)
            columns = [slope, there + back, *([np.ones(r.size)] if constant else [])]
            return amplitude * (there + back) + sum(rest), np.stack(columns, axis=1)

        for mass in GUESSES:
            rest = [float(mean[-1])] if constant else []
            scale = np.exp(-mass * first) + np.exp(-mass * (planes - first))
            start = np.array([mass, (float(mean[0]) - sum(rest)) / scale, *rest])
            try:
                found = fit_curve(curve, start, series, tau, False)
            except GaugeError:
                continue
            if found.values[0] > 0:
                return found
        raise GaugeError("The fit does not converge; choose another range.")

    def _points(self, part: str, values: Array) -> list[ScreeningPoint]:
        """Return the correlators at all distances, with effective masses where they are known."""
        extent = self.series.lattice.t
        effective = Correlator(self.series.sweeps, values, self.series.planes).effective()
        found = []
        for r in range(values.shape[1]):
            mass = None
            if 1 <= r < values.shape[1] - 1 and np.isfinite(effective.precision[0, r - 1]):
                one = estimate(extent * effective.series[:, 0, r - 1])
                mass = one if one.value > SIGNIFICANT / 2 * one.error else None
            found.append(ScreeningPoint(part, r, estimate(values[:, r]), mass))
        return found


def _deconfined(search: _ScreenedFit, phase: str | None) -> _ScreenedPart | None:
    """Return the real part's mass, or nothing if the phase is the confined one."""
    if phase == CONFINED:
        return None
    try:
        found = search.of(REAL, search.series.real, constant=True)
    except GaugeError:  # without a constant the fit of its form need not converge
        if phase == DECONFINED:
            raise
        return None
    constant = found.mass.constant
    above = constant is not None and constant.value > SIGNIFICANT * constant.error
    return found if above or phase == DECONFINED else None
