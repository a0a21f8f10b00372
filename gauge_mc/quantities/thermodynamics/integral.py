"""Runs for bulk thermodynamics: the action at T > 0 and at T = 0, and the scale.

The equation of state by the integral method.

The pressure is the integral over the coupling of the difference of the action between T = 0 and T
> 0, and the trace anomaly is its derivative by the temperature (J. Engels et al., Phys. Lett. B 252
(1990) 625; G. Boyd et al., hep-lat/9602007). With the action per site divided by beta, s, which for
the Wilson action is 6 (1 - P) with the plaquette P,

    p / T^4 = N_t^4 integral d beta (s_0 - s_T),
    (e - 3 p) / T^4 = N_t^4 (-d beta / d ln a) (s_0 - s_T).

All results are linear in the averages of s, which are independent at different couplings, so that
their errors follow exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from gauge_mc.actions import Action, Coupling, LengthScale, ensemble_keys
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import read_heading
from gauge_mc.groups import GROUPS, Group
from gauge_mc.libraries import load
from gauge_mc.quantities.flow.curves import FLOW_COLUMNS, read_flow
from gauge_mc.quantities.flow.scales import flow_scales
from gauge_mc.quantities.transition import thermal_runs
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import Skip, last_skipped
from gauge_mc.updates.terms import weights

MOMENTA = 48
"""Number of points for each component of the momentum, by which the integral is exact to 1e-6."""


def ideal_pressure(dimension: int) -> float:
    """Return p/T^4 = (pi^2/45) (N^2 - 1) of the ideal gas (Stefan and Boltzmann)."""
    return dimension * math.pi**2 / 45


def ideal_pressure_on_lattice(dimension: int, extent: int) -> float:
    """Return p/T^4 of the ideal gas for the Wilson action, N_t links along t, and infinite space.

    It is minus the free energy, as the integral method gives it. In Feynman's gauge, each of the
    2 (N^2 - 1) polarisations has the energies E with sinh^2(E/2) = sum_i sin^2(k_i/2), and
    contributes -N_t^3 times the average of ln(1 - exp(-N_t E)) over the momenta k_i in (-pi, pi).
    Relative to the continuum it is 1 + (8/21) (pi/N_t)^2 + ....
    """
    squared, weights = _momenta(extent)
    energy = 2 * np.arcsinh(np.sqrt(squared))
    return float(-2 * dimension * extent**3 * (weights @ np.log1p(-np.exp(-extent * energy))))


def _momenta(extent: int) -> tuple[Array, Array]:
    """Return sum_i sin^2(k_i/2) and weights of the momenta in the average over a Brillouin zone.

    By symmetry the components are positive. Each is pi x^3 with the points x of Gauss and Legendre,
    denser at small momenta, which alone contribute at large N_t.
    """
    points, gauss = np.polynomial.legendre.leggauss(MOMENTA)
    x, gauss = (points + 1) / 2, gauss / 2
    power = 3 if extent > 2 else 1
    sines, jacobian = np.sin(math.pi / 2 * x**power) ** 2, gauss * power * x ** (power - 1)
    total = sines[:, None, None] + sines[:, None] + sines
    weight = jacobian[:, None, None] * jacobian[:, None] * jacobian
    return total.ravel(), weight.ravel()


MOST_ORDER = 3
"""Largest order of the polynomial in beta through ln(length / a) of the runs."""


@dataclass(frozen=True)
class ScaleCurve:
    """A length in units of the lattice spacing at several couplings, and its slope.

    All arrays have the shape (couplings,), with NaN where the length is not known.
    """

    name: str
    """The length, such as r0."""
    source: str
    """Where it is from, in words."""
    length: Array
    """The length divided by a."""
    slope: Array
    """-d ln(a) / d beta."""
    slope_error: Array
    """Error of the slope."""


def known_scale(action: Action, group: Group, beta: Array) -> ScaleCurve | None:
    """Return the length of the literature that is known at most of the couplings.

    The error of its slope is the largest difference from those of other lengths that are known at
    the same coupling, which is 0 if there is none.
    """
    by_coupling = [action.scales_at(group, float(x)) for x in beta]
    every = {scale.name: scale for scales in by_coupling for scale in scales}
    if not every:
        return None
    best = max(every.values(), key=lambda scale: sum(scale in scales for scales in by_coupling))
    rows = [_at(best, float(x), scales) for x, scales in zip(beta, by_coupling, strict=True)]
    length, slope, error = np.array(rows).T
    return ScaleCurve(best.name, best.source, length, slope, error)


def _at(
    best: LengthScale, beta: float, scales: Sequence[LengthScale]
) -> tuple[float, float, float]:
    """Return a length at one coupling, its slope, and the spread of slopes."""
    if best not in scales:
        return math.nan, math.nan, math.nan
    slope = best.slope(beta)
    return best.length(beta), slope, max(abs(x.slope(beta) - slope) for x in scales)


@dataclass(frozen=True)
class MeasuredLength:
    """A length that was measured at one coupling."""

    beta: float
    """The coupling."""
    value: float
    """The length in units of the lattice spacing."""
    error: float
    """Its error."""


def measured_scale(
    name: str, source: str, points: Sequence[MeasuredLength], beta: Array
) -> ScaleCurve | None:
    """Return a length that was measured at some couplings, by a polynomial in beta.

    The polynomial is fitted to ln(length / a), weighted by the errors. Its order is 3, but 2 if the
    length is known at three or four couplings, and 1 at two.
    """
    at = np.array([point.beta for point in points])
    count = np.unique(at).size
    if count < 2:
        return None
    order = min(MOST_ORDER, count - 1 if count < 4 else count - 2)
    values = np.array([math.log(point.value) for point in points])
    errors = np.array([point.error / point.value for point in points])
    middle = at.mean()
    weights = 1 / errors
    fit = np.linalg.pinv(np.vander(at - middle, order + 1, increasing=True) * weights[:, None])
    projection = fit * weights  # of the values to the coefficients
    x = beta - middle
    powers = np.arange(1, order + 1)
    terms = powers * np.vander(x, order, increasing=True)
    slopes = np.concatenate([np.zeros((x.size, 1)), terms], axis=1)
    inside = (beta >= at.min()) & (beta <= at.max())
    logarithm = np.vander(x, order + 1, increasing=True) @ projection @ values
    slope, spread = slopes @ projection @ values, (slopes @ projection) ** 2 @ errors**2
    arrays = (np.exp(logarithm), slope, np.sqrt(spread))
    return ScaleCurve(name, source, *(np.where(inside, array, np.nan) for array in arrays))


SIGNIFICANT = 3.0
"""Number of errors from which on a number is called different from zero."""

COARSE = 0.05
"""Difference of two ways to integrate, relative to the pressure, above which a caution is given."""


@documented
@dataclass(frozen=True)
class ThermodynamicState:
    """Pressure, energy density and entropy density at one coupling."""

    beta: float = result_field("Coupling.", symbol="β")
    length: float | None = result_field(
        "The temperature times the length of the scale; null where the length is not known."
    )
    ratio: float | None = result_field(
        "The temperature in units of the critical one; null without a critical coupling.",
        symbol="T/T_c",
    )
    difference: Estimate = result_field(
        "Action per site divided by beta at T = 0, minus that at T > 0.", symbol="s₀ − s_T"
    )
    beta_function: float | None = result_field(
        "-d beta / d ln a; null where the scale is not known.", symbol="−dβ/d ln a"
    )
    anomaly: Estimate | None = result_field("Trace anomaly (e - 3p)/T^4.", None, symbol="(ε−3p)/T⁴")
    pressure: Estimate | None = result_field("p / T^4.", None, symbol="p/T⁴")
    energy: Estimate | None = result_field("Energy density e / T^4.", None, symbol="ε/T⁴")
    entropy: Estimate | None = result_field("Entropy density s / T^3.", None, symbol="s/T³")
    scale_error: float | None = result_field(
        "Error of the trace anomaly, the energy and the entropy that is due to the scale.", None
    )
    pressure_interpolation: float | None = result_field(
        "Difference between the integrals of a spline and of straight lines.", None
    )


@documented
@dataclass(frozen=True)
class ThermodynamicsResult:
    """The equation of state at one temporal extent."""

    ensemble: Mapping[str, str] = result_field("Group and action.")
    lattice: str = result_field("Extents of the lattice at T > 0.")
    scale: str | None = result_field("The length of the scale; null if none is known.")
    scale_source: str | None = result_field("Where the scale is from; null if none is known.")
    critical_beta: float | None = result_field("Critical coupling that was given, or null.")
    states: Sequence[ThermodynamicState] = result_field("The couplings, ascending.")
    ideal_pressure: float = result_field("p / T^4 of the ideal gas in the continuum.")
    ideal_pressure_on_lattice: float | None = result_field(
        "p / T^4 of the ideal gas for the Wilson action and this N_t, and infinite space; null for "
        "other actions."
    )
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


def integration_weights(x: Array, smooth: bool = True) -> Array:
    """Return the matrix that maps values at points x to the integrals from the first point."""
    if smooth:
        spline = load("scipy.interpolate").CubicSpline(x, np.eye(x.size))
        return np.asarray(spline.antiderivative()(x))
    steps = np.diff(x) / 2
    pieces = np.zeros((x.size, x.size))
    rows = np.arange(1, x.size)
    pieces[rows, rows - 1] = steps
    pieces[rows, rows] += steps
    return np.cumsum(pieces, axis=0)


def action_difference(cold: Sequence[Array], hot: Sequence[Array]) -> Estimate:
    """Return s_0 - s_T from series of the action per site divided by beta at T = 0 and T > 0."""
    zero, warm = estimate(*cold), estimate(*hot)
    value, error = zero.value - warm.value, math.hypot(zero.error, warm.error)
    return Estimate(value, error, math.nan, math.nan, zero.samples + warm.samples)


def equation_of_state(
    beta: Array,
    differences: Sequence[Estimate],
    extent: int,
    scale: ScaleCurve | None,
    critical: float = math.nan,
) -> list[ThermodynamicState]:
    """Return pressure, energy density and entropy density at all couplings.

    The pressure is 0 at the first coupling.
    """
    unknown = np.full(beta.size, math.nan)
    curve = scale or ScaleCurve("", "", unknown, unknown, unknown)
    pressure, straight = (extent**4 * integration_weights(beta, smooth) for smooth in (True, False))
    anomaly = np.diag(extent**4 / curve.slope)
    matrices = pressure, straight, anomaly, anomaly + 3 * pressure, anomaly + 4 * pressure
    quantities = zip(*(_linear(matrix, differences) for matrix in matrices), strict=True)
    return [
        ThermodynamicState(
            beta=float(beta[n]),
            length=_known(curve.length[n] / extent),
            ratio=_known(curve.length[n] / critical),
            difference=differences[n],
            beta_function=_known(1 / curve.slope[n]),
            anomaly=_finite(trace),
            pressure=p,
            energy=_finite(energy),
            entropy=_finite(entropy),
            scale_error=_known(abs(trace.value) * curve.slope_error[n] / curve.slope[n]),
            pressure_interpolation=abs(p.value - x.value),
        )
        for n, (p, x, trace, energy, entropy) in enumerate(quantities)
    ]


def _linear(matrix: Array, differences: Sequence[Estimate]) -> list[Estimate]:
    """Return quantities that are linear in the differences of the action, with their errors.

    The matrix of the coefficients has the shape (couplings, couplings).
    """
    values = matrix @ np.array([d.value for d in differences])
    errors = np.sqrt(matrix**2 @ np.array([d.error**2 for d in differences]))
    rows = zip(values.tolist(), errors.tolist(), differences, strict=True)
    return [Estimate(value, error, math.nan, math.nan, x.samples) for value, error, x in rows]


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _finite(value: Estimate) -> Estimate | None:
    return value if math.isfinite(value.value) else None


def cautions_of(states: Sequence[ThermodynamicState]) -> list[str]:
    """Return what to keep in mind about the pressure, in sentences."""
    cautions = []
    first = states[0].difference
    if abs(first.value) > SIGNIFICANT * first.error:
        cautions.append(
            f"At the smallest coupling, β = {states[0].beta:.12g}, s₀ − s_T is {first} and not 0, "
            "so that the pressure there is not negligible: add smaller couplings."
        )
    last = states[-1]
    if last.pressure and last.pressure_interpolation is not None:
        difference = last.pressure_interpolation
        if difference > max(last.pressure.error, COARSE * abs(last.pressure.value)):
            cautions.append(
                f"The pressure at the largest coupling changes by {difference:.2g} if straight "
                "lines instead of a spline are integrated; add runs at couplings in between."
            )
    return cautions


@dataclass(frozen=True)
class BulkRun:
    """One run with the action along its chain."""

    path: Path
    """The run directory."""
    coupling: Coupling
    """The action with its coupling."""
    lattice: Lattice
    """Extents."""
    density: Array
    """The action per site divided by beta, of shape (samples,)."""

    @property
    def cold(self) -> bool:
        """Whether the temperature is that of T = 0: N_t is not below the extents in space."""
        return self.lattice.t >= min(self.lattice.extents[:3])


@dataclass(frozen=True)
class BulkRuns:
    """Runs with one action at T > 0 on one lattice, and at T = 0."""

    ensemble: Mapping[str, str]
    """Keys of the headers that all runs share, such as group and action."""
    lattice: Lattice
    """The lattice at T > 0."""
    hot: Sequence[BulkRun]
    """The runs on it."""
    cold: Sequence[BulkRun]
    """The runs at T = 0, at every coupling those on the largest lattice."""
    cautions: list[str] = field(default_factory=list)
    """Sentences about what was left out."""

    @property
    def group(self) -> Group:
        """The gauge group."""
        return GROUPS[self.ensemble["group"]]

    @property
    def coupling(self) -> Coupling:
        """The action, with the coupling of the first run."""
        return self.hot[0].coupling

    def differences(self) -> tuple[Array, list[Estimate]]:
        """Return the differences of the action at all couplings with runs at both temperatures."""
        beta = sorted({x.coupling.beta for x in self.hot})
        pairs = [(b, _at_coupling(self.hot, b), _at_coupling(self.cold, b)) for b in beta]
        matched = [(b, hot, cold) for b, hot, cold in pairs if cold]
        if len(matched) < 2:
            raise GaugeError(
                f"The pressure is an integral over couplings at which there are runs on "
                f"{self.lattice} and at T = 0, on a lattice of equal extents, and there are "
                f"{len(matched)}; add runs, or name the folder of those at T = 0 with --cold."
            )
        couplings = np.array([b for b, _, _ in matched])
        return couplings, [action_difference(cold, hot) for _, hot, cold in matched]

    @property
    def missing(self) -> list[float]:
        """Couplings with runs at T > 0 but none at T = 0."""
        hot, cold = ({x.coupling.beta for x in side} for side in (self.hot, self.cold))
        return sorted(hot - cold)

    def lengths(self, energy: str, target: float, skip: Skip) -> tuple[list[MeasuredLength], str]:
        """Return sqrt(t0)/a of the runs at T = 0 that measured the gradient flow."""
        points, complaint = [], ""
        for run in self.cold:
            path = table_with(run.path, FLOW_COLUMNS)
            if path is None:
                continue
            try:
                t0 = flow_scales(read_flow(path, last_skipped(run.path, skip)), energy, target).t0
            except GaugeError as error:
                complaint = complaint or f"√t₀ at β = {run.coupling.beta:.12g} is left out: {error}"
                continue
            root = math.sqrt(t0.value)
            points.append(MeasuredLength(run.coupling.beta, root, t0.error / (2 * root)))
        return points, complaint


def _at_coupling(runs: Iterable[BulkRun], beta: float) -> list[Array]:
    """Return the chains at a coupling."""
    return [run.density for run in runs if run.coupling.beta == beta]


def read_bulk_runs(
    folder: Path, cold: Path | None = None, skip: Skip = 0, extent: int | None = None
) -> BulkRuns:
    """Read the runs in a folder that are needed for the equation of state."""
    every, shared = _read(folder, skip, {})
    if cold:
        more, shared = _read(cold, skip, shared)
        if not any(x.cold for x in more):
            raise GaugeError(
                f"There is no run at T = 0 in {cold}, on a lattice with at least as many links "
                "along t as in some direction of space; name another folder, or leave --cold out."
            )
        every += [x for x in more if x.cold]
    hot = [x for x in every if not x.cold and extent in (None, x.lattice.t)]
    if not hot:
        raise GaugeError(
            f"There is no run at T > 0 in {folder}, with fewer links along t"
            f"{f', {extent},' if extent else ''} than in space; name the folder of a scan that has "
            "measured the loops of its action."
        )
    thermal_runs.check_one_extent(folder, (x.lattice for x in hot))
    lattice = max((x.lattice for x in hot), key=lambda x: x.sites)
    smaller = sorted({str(x.lattice) for x in hot} - {str(lattice)})
    words = "The runs on {} are left out, which is smaller than {}."
    cautions = [words.format(x, lattice) for x in smaller]
    hot_runs = [x for x in hot if x.lattice == lattice]
    return BulkRuns(shared, lattice, hot_runs, _largest([x for x in every if x.cold]), cautions)


def _largest(runs: Sequence[BulkRun]) -> list[BulkRun]:
    """Return the runs on the largest lattice at each coupling."""
    sites: dict[float, int] = {}
    for run in runs:
        sites[run.coupling.beta] = max(sites.get(run.coupling.beta, 0), run.lattice.sites)
    return [run for run in runs if run.lattice.sites == sites[run.coupling.beta]]


def _read(
    folder: Path, skip: Skip, shared: Mapping[str, str]
) -> tuple[list[BulkRun], Mapping[str, str]]:
    """Return the runs in a folder, and the keys of their headers that they share."""
    if not folder.is_dir():
        raise GaugeError(f"{folder} is not a folder; name one that has runs.")
    runs = []
    for path in sorted(path for path in folder.iterdir() if path.is_dir()):
        headers = (read_heading(p)[0] for p in sorted(path.glob("*.csv")))
        stated = (header for header in headers if {"group", "beta", "lattice"} <= header.keys())
        if (header := next(stated, None)) is None:
            continue
        keys = (*(key for key in ensemble_keys() if key not in thermal_runs.VARYING), *weights())
        ensemble = {key: header[key] for key in keys if key in header}
        thermal_runs.check_equal(shared or ensemble, ensemble, path)
        shared = ensemble
        coupling = Coupling.of_metadata(header)
        if coupling.action.factors:
            raise GaugeError(
                f"{path} has the bare anisotropy {coupling.action.anisotropy:g}, and the equation "
                "of state is for equal lattice spacings in space and along t; use isotropic runs."
            )
        updates, density = thermal_runs.action_series(path, coupling)
        last = last_skipped(path, skip)
        density = density[updates > last]
        if density.size < thermal_runs.LEAST_MEASUREMENTS:
            raise GaugeError(
                f"{path} has measured the loops of its action at {density.size} updates after "
                f"update {last}, and {thermal_runs.LEAST_MEASUREMENTS} are needed; continue the "
                "run."
            )
        runs.append(BulkRun(path, coupling, Lattice.parse(header["lattice"]), density))
    return runs, shared


def table_with(run: Path, columns: Sequence[str]) -> Path | None:
    """Return the table of a run that has some columns, or None."""
    paths = sorted(run.glob("*.csv"))
    return next((path for path in paths if {*columns} <= {*read_heading(path)[1]}), None)
