"""Correlators of electric and magnetic fields on the Polyakov loop, for the diffusion of quarks.

With the fields E_i and B_i, which include the coupling, and the line W along t that they are on,

    G_E(tau) = -1/3 sum over i of <Re Tr [E_i W E_i W]> / <Re Tr W>,

and G_B the same without the sign (S. Caron-Huot, M. Laine and G. D. Moore, arXiv:0901.1195; A.
Bouttefeux and M. Laine, arXiv:2010.07316). The signs are those of hermitian fields; the table has
antihermitian ones. Both are positive, except where the clovers of the two fields overlap.

With the correlators G_E and G_B of fields that include the coupling, G = g^2 C_F G_norm + O(g^4),
C_F = (N^2 - 1) / (2 N). In the continuum both have (S. Caron-Huot, M. Laine and G. D. Moore,
arXiv:0901.1195)

    G_norm = pi^2 T^4 [cos^2(pi tau T) / sin^4(pi tau T) + 1 / (3 sin^2(pi tau T))],

and on a lattice with fields from the clover they are sums over momenta of the average of |p̂_mu
A_nu - p̂_nu A_mu|^2 cos^2(p_mu / 2) cos^2(p_nu / 2), with free gluons of the action along the flow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import ACTIONS, action_of
from gauge_mc.analysis.fitting import fit_linear
from gauge_mc.analysis.table_series import Skips, Tables, read_series
from gauge_mc.analysis.timeseries import Estimate, Replicas, centre_sector, estimate
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, quoted_field, table_of
from gauge_mc.flows import FLOWS, Flow
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import Frame, Picture, Symbols, look
from gauge_mc.plots.runs import TablePlot, caution
from gauge_mc.quantities.flow.curves import FLOW_KIND, METADATA, FlowedGluons, momenta
from gauge_mc.quantities.thermodynamics.observables import FIELD_COLUMNS, FieldCorrelators
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import SKIP


def continuum(extent: int) -> Array:
    """Return a^4 G_norm of the continuum at tau = 1, ..., N_t / 2, without flow."""
    x = np.pi * np.arange(1, extent // 2 + 1) / extent
    shape = (np.cos(x) / np.sin(x) ** 2) ** 2 + 1 / (3 * np.sin(x) ** 2)
    return np.asarray(np.pi**2 / extent**4 * shape)


def on_lattice(extent: int, t: Array, rectangle: float, kind: Flow) -> tuple[Array, Array]:
    """Return a^4 G_norm of electric and of magnetic fields on a lattice of infinite space."""
    space, measure = momenta(3)
    tau = np.arange(1, extent // 2 + 1)
    sums = np.zeros((2, t.size, tau.size))
    for number in range(extent // 2 + 1):
        energy = 2 * np.pi * number / extent
        states = 1 if 2 * number in (0, extent) else 2  # the average is even in the energy
        p = np.column_stack([space, np.full(len(space), energy)])
        cosine = np.cos(p / 2) ** 2
        clover = cosine[:, :, None] * cosine[:, None, :]
        gluons = FlowedGluons.of(p, rectangle, kind)
        wave = states * np.cos(energy * tau) / extent
        for n, planes in enumerate(_planes()):
            sums[n] += np.outer(gluons.averages(clover * planes, t) @ measure, wave)
    return -sums[0] / 3, sums[1] / 3


def _planes() -> tuple[Array, Array]:
    """Return 1 for the planes with and without direction t, of shape (4, 4), and else 0."""
    electric = np.zeros((4, 4))
    electric[3, :3] = electric[:3, 3] = 1
    magnetic = np.zeros((4, 4))
    magnetic[:3, :3] = 1
    return electric, magnetic


DIRECTIONS = 3
"""Number of directions of a field."""

LEAST_RADIUS, MOST_RADIUS = 1.0, 1 / 3
"""Smoothing radii between which a correlator is shown: the smallest one in units of a, below which
the flow does not yet suppress lattice artefacts, and the largest one in units of tau, above which
it reaches from one field to the other."""

SIGNIFICANT = 4.0
"""Number of errors above 0 that the Polyakov loop must have at least."""

ROUNDING = 1e-9


@dataclass(frozen=True)
class FieldSeries:
    """The correlators of an ensemble, turned to the sector of 1 of the centre."""

    ensemble: Mapping[str, str]
    """Group, beta, lattice, action and kind of the flow."""
    lattice: Lattice
    """Extents."""
    t: Array
    """Flow times t/a^2, ascending, of shape (times,)."""
    electric: Array
    """a^4 G_E times the Polyakov loop, of shape (configurations, times, N_t / 2)."""
    magnetic: Array
    """The same of magnetic fields."""
    loop: Array
    """Real part of the Polyakov loop, of shape (configurations, times)."""
    replicas: Replicas
    """Division of the configurations into chains."""


@documented
@dataclass(frozen=True)
class FieldCorrelatorPoint:
    """The correlators at one flow time and one distance."""

    t: float = result_field("Flow time t/a^2.")
    radius: float = result_field("Smoothing radius sqrt(8 t)/a.", symbol="√(8t)/a")
    tau: int = result_field("Distance tau/a along t.", symbol="τ/a")
    scaled: float = result_field("tau T.", symbol="τT")
    electric: Estimate = result_field("G_E / T^4.", symbol="G_E/T⁴")
    magnetic: Estimate = result_field("G_B / T^4.", symbol="G_B/T⁴")
    electric_ratio: Estimate | None = result_field(
        "G_E / G_norm with G_norm of the lattice and the flow, g^2 C_F in leading order; null "
        "where G_norm is not known or not positive.",
        symbol="G_E/G_norm",
    )
    magnetic_ratio: Estimate | None = result_field("G_B / G_norm.", symbol="G_B/G_norm")
    inside: bool = result_field(
        "Whether the smoothing radius is at least a and at most tau / 3, where the flow neither "
        "leaves lattice artefacts nor reaches from one field to the other."
    )


@documented
@dataclass(frozen=True)
class LoopFieldCorrelators:
    """Correlators of electric and magnetic fields on the Polyakov loop."""

    ensemble: Mapping[str, str] = result_field("Group, beta, lattice, action and flow.")
    loops: Sequence[Estimate] = result_field("The flowed Polyakov loop at the flow times.")
    points: Sequence[FieldCorrelatorPoint] = result_field("Correlators, by distance and flow time.")
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


def read_field_series(tables: Tables, skip: Skips = 0) -> FieldSeries:
    """Read the correlators of an ensemble from the file of a table, or of several chains.

    Every configuration is multiplied by the element of the centre that turns its loop to the
    sector of 1. This changes neither the action nor the ratio to the loop.
    """
    series = read_series(tables, FieldCorrelators.columns, "correlators of fields", skip)
    lattice = series.lattice
    distances, times = np.arange(1, lattice.t // 2 + 1), np.unique(series.index["t"])
    elements = np.stack([series.index["t"], series.index["tau"]])
    expected = np.stack([np.repeat(times, distances.size), np.tile(distances, times.size)])
    if not np.array_equal(elements, expected):
        raise GaugeError(
            f"{series.source} is incomplete: it does not have every distance at every flow time; "
            "measure the correlators again."
        )
    shape = (series.sweeps.size, times.size, distances.size)
    parts = {name: value.astype(np.float64).reshape(shape) for name, value in series.values.items()}
    electric, magnetic, loop = (
        parts[f"{name}_re"] + 1j * parts[f"{name}_im"] for name in ("electric", "magnetic", "loop")
    )
    colours = GROUPS[series.header["group"]].colours
    turn = np.asarray(np.exp(-2j * math.pi * centre_sector(loop, colours) / colours))
    return FieldSeries(
        series.stated(METADATA),
        lattice,
        times,
        (electric * turn).real / DIRECTIONS,
        -(magnetic * turn).real / DIRECTIONS,
        (loop * turn).real[:, :, 0],
        series.replicas,
    )


def field_correlators(series: FieldSeries) -> LoopFieldCorrelators:
    """Return the correlators divided by the loop, and by those of leading order."""
    extent, points, estimate = series.lattice.t, [], series.replicas.estimate
    norms = _norms(series)
    for n, tau in enumerate(range(1, extent // 2 + 1)):
        for k, t in enumerate(series.t):
            loop, both = series.loop[:, k], (series.electric, series.magnetic)
            electric, magnetic = (_ratio(x[:, k, n], loop) for x in both)
            radius = math.sqrt(8 * t)
            points.append(
                FieldCorrelatorPoint(
                    t=float(t),
                    radius=radius,
                    tau=tau,
                    scaled=tau / extent,
                    electric=estimate(electric * extent**4),
                    magnetic=estimate(magnetic * extent**4),
                    electric_ratio=_divided(series, electric, norms[0], (k, n)),
                    magnetic_ratio=_divided(series, magnetic, norms[1], (k, n)),
                    inside=LEAST_RADIUS - ROUNDING <= radius <= MOST_RADIUS * tau + ROUNDING,
                )
            )
    loops = [estimate(x) for x in series.loop.T]
    cautions = []
    if any(loop.value < SIGNIFICANT * loop.error for loop in loops):
        cautions.append(
            f"The Polyakov loop is less than {SIGNIFICANT:g} errors above 0, so that ratios to it "
            "mean nothing: measure in the deconfined phase, or more."
        )
    if norms[0] is None:
        cautions.append("G_norm is not known for this action and flow; ratios to it are left out.")
    if not any(x.inside for x in points):
        cautions.append(
            f"No flow time has a smoothing radius √(8t) between a and τ/3 with τ ≤ {extent // 2} "
            "a; measure the flow at more times, or choose a larger N_t."
        )
    return LoopFieldCorrelators(dict(series.ensemble), loops, points, cautions)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """Return the ratio of two averages as a series, linearised in both."""
    value = numerator.mean() / denominator.mean()
    return np.asarray(value + (numerator - value * denominator) / denominator.mean())


def _divided(
    series: FieldSeries, ratio: Array, norms: Array | None, at: tuple[int, int]
) -> Estimate | None:
    """Return the average of a ratio divided by a norm; None if that is unknown or not positive."""
    if norms is None or norms[at] <= 0:
        return None
    return series.replicas.estimate(ratio / norms[at])


def _norms(series: FieldSeries) -> tuple[Array | None, Array | None]:
    """Return a^4 G_norm of the lattice and the flow, None if they are not known."""
    words = series.ensemble.get("action", "")
    kind = FLOWS.get(series.ensemble.get(FLOW_KIND, ""))
    registered = words.partition(":")[0] in ACTIONS
    rectangle = action_of(series.ensemble).rectangle if registered else None
    if kind is None or kind.rectangle is None or rectangle is None:
        return None, None
    return on_lattice(series.lattice.t, series.t, rectangle, kind)


S_1 = 7 / 22 + np.euler_gamma / 2 - math.log(2)
S_2 = 27 / 484
"""Coefficients of one loop without quarks, for every N."""


def first_coefficient(colours: int) -> float:
    """Return b_0 = 11 N / (48 pi^2) of the beta function without quarks."""
    return 11 * colours / (48 * math.pi**2)


def running_coupling(scaled: Array, colours: int) -> Array:
    """Return g^2 of the MSbar scheme at the scale 1/sqrt(8 t), given t^2 <E> at T = 0.

    To one loop t^2 <E> = 3 (N^2 - 1) g^2 / (128 pi^2) (1 + c g^2), with c = N / (16 pi^2) (11/3
    gamma_E + 52/9 - 3 ln 3) (M. Luescher, arXiv:1006.4518, eq. 2.35).
    """
    c = colours / (16 * math.pi**2) * (11 / 3 * np.euler_gamma + 52 / 9 - 3 * math.log(3))
    x = 128 * math.pi**2 * scaled / (3 * (colours**2 - 1))
    return np.asarray((np.sqrt(1 + 4 * c * x) - 1) / (2 * c))


def alphas(coupling: Array, colours: int) -> tuple[Array, Array]:
    """Return alpha_U and alpha_E to one loop, given g^2."""
    b = first_coefficient(colours)
    return coupling * (1 + 2 * b * S_1 * coupling), (1 + 2 * b * S_2 * coupling) / (2 * b)


@dataclass(frozen=True)
class FlowedEnergies:
    """Electric and magnetic energy along the flow, of all configurations of one coupling."""

    t: Array
    """Flow times t/a^2, ascending, of shape (times,)."""
    electric: Array
    """a^4 E of the planes with direction t, of shape (configurations, times)."""
    magnetic: Array
    """The same of the planes in space."""
    loop: Array
    """Modulus of the Polyakov loop of the flowed links, of the same shape."""

    @property
    def total(self) -> Array:
        """a^4 E, of shape (configurations, times)."""
        return self.electric + self.magnetic

    def at(self, times: Array) -> FlowedEnergies:
        """Return the energies at some of the flow times."""
        mask = np.isin(self.t, times)
        values = (x[:, mask] for x in (self.electric, self.magnetic, self.loop))
        return FlowedEnergies(self.t[mask], *values)


@documented
@dataclass(frozen=True)
class FlowState:
    """Thermodynamics at one coupling from the gradient flow, in the limit t -> 0."""

    beta: float = result_field("Coupling.", symbol="β")
    t: Sequence[float] = result_field("Flow times t/a^2 of the extrapolation.")
    entropy_at: Sequence[Estimate] = result_field("(e + p) / T^4 at these times.")
    anomaly_at: Sequence[Estimate] = result_field("(e - 3 p) / T^4 at these times.")
    coupling: Sequence[float] = result_field("g^2 of the MSbar scheme at the scale 1/sqrt(8 t).")
    entropy: Estimate = result_field("s / T^3 = (e + p) / T^4, extrapolated.", symbol="s/T³")
    anomaly: Estimate = result_field("(e - 3 p) / T^4, extrapolated.", symbol="(ε−3p)/T⁴")
    energy: Estimate = result_field("e / T^4.", symbol="ε/T⁴")
    pressure: Estimate = result_field("p / T^4.", symbol="p/T⁴")
    loop_at: Sequence[Estimate] = result_field(
        "Modulus of the Polyakov loop of the flowed links at these times at T > 0, a renormalised "
        "loop if the time is kept in physical units."
    )


def flow_state(
    beta: float,
    hot: FlowedEnergies,
    cold: FlowedEnergies,
    extent: int,
    colours: int,
    radii: tuple[float, float],
) -> FlowState:
    """Return thermodynamics at one coupling.

    Straight lines in t are fitted at the flow times at which sqrt(8 t)/a is in a range. The
    coupling, from t^2 <E> at T = 0, is taken without its error, which is small.
    """
    common, rounding = np.intersect1d(hot.t, cold.t), 1e-9
    radius = np.sqrt(8 * common)
    times = common[(radius >= radii[0] - rounding) & (radius <= radii[1] + rounding)]
    if times.size < 2:
        raise GaugeError(
            f"At β = {beta:.12g} there are {times.size} flow times with √(8t)/a from {radii[0]:g} "
            f"to {radii[1]:g} at both temperatures, and two are needed: measure the flow at more "
            "times, choose a larger N_t, or widen the range with --radius-min and --radius-max."
        )
    hot, cold = hot.at(times), cold.at(times)
    coupling = running_coupling(times**2 * cold.total.mean(axis=0), colours)
    alpha_u, alpha_e = alphas(coupling, colours)
    entropy = extent**4 * 4 / 3 * (hot.magnetic - hot.electric) / alpha_u
    warm, zero = (-(extent**4) * x.total / alpha_e for x in (hot, cold))
    design = np.stack([np.ones(times.size), times], axis=1)
    tau = max(estimate(x).tau_int for x in entropy.T)
    lines = [fit_linear(design, x, tau, False).projection[0] for x in (entropy, warm)]
    differences = [_minus(estimate(a), estimate(b)) for a, b in zip(warm.T, zero.T, strict=True)]
    both, constant = (entropy @ lines[0], warm @ lines[1]), estimate(zero @ lines[1])
    s, trace = map(estimate, both)
    return FlowState(
        beta,
        times.tolist(),
        [estimate(x) for x in entropy.T],
        differences,
        coupling.tolist(),
        s,
        _minus(trace, constant),
        _combined(both, constant, 3 / 4, 1 / 4),
        _combined(both, constant, 1 / 4, -1 / 4),
        [estimate(x) for x in hot.loop.T],
    )


def _combined(both: tuple[Array, Array], constant: Estimate, a: float, b: float) -> Estimate:
    """Return a times the first series plus b times the second one minus a constant."""
    total = estimate(a * both[0] + b * both[1])
    value = total.value - b * constant.value
    return replace(total, value=value, error=math.hypot(total.error, b * constant.error))


def _minus(first: Estimate, second: Estimate) -> Estimate:
    """Return the difference of two independent averages."""
    error = math.hypot(first.error, second.error)
    return replace(first, value=first.value - second.value, error=error)


class FieldCorrelatorsResult(DataResult[LoopFieldCorrelators]):
    """Correlators of fields on the Polyakov loop of an ensemble."""

    observable: ClassVar[str] = (
        "correlators of electric and magnetic fields on the Polyakov loop, divided by the loop"
    )
    units: ClassVar[str] = (
        "powers of the temperature; t, radius and tau in lattice units; bare fields"
    )

    def report(self) -> list[Any]:
        """Return a table of the distances and flow times that are neither too small nor large."""
        rows = [point for point in self.found.points if point.inside]
        title = "Correlators on the Polyakov loop, a ≤ √(8t) ≤ τ/3"
        table = table_of(title, FieldCorrelatorPoint, rows, 4)
        return [*([table] if rows else []), *self.found.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the correlators at the largest distance and the longest flow time inside."""
        rows = [point for point in self.found.points if point.inside]
        if not rows:
            return []
        last = max(rows, key=lambda row: (row.tau, row.t))
        where = f"τT = {last.scaled:.4g}, √(8t)/a = {last.radius:.4g}"
        ends = "_ratio" if last.electric_ratio else ""
        names = (f"electric{ends}", f"magnetic{ends}")
        return [quoted_field(last, name, None, where) for name in names]

    def unquoted(self) -> str:
        """Return why there is no correlator; see `FitResult.unquoted`."""
        return "no flow time has a ≤ √(8t) ≤ τ/3"


class FieldCorrelatorsFit(Fit):
    """Correlators of electric and magnetic fields in units of those of leading order."""

    name: ClassVar[str] = "field-correlators"
    summary: ClassVar[str] = "electric and magnetic correlators, for the diffusion of heavy quarks"
    columns: ClassVar[tuple[str, ...]] = FIELD_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (LoopFieldCorrelators, FieldCorrelatorPoint)
    isotropic: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> FieldCorrelatorsResult:
        """Average the correlators of a table; see `Fit.carry_out`."""
        series = read_field_series(tables, options.get(SKIP.name, 0))
        return FieldCorrelatorsResult(field_correlators(series))


FITS.register(FieldCorrelatorsFit())


MOST_CURVES = 6
"""Maximum number of flow times that are shown."""


class FieldCorrelatorsPlot(TablePlot):
    """G_E and G_B of one run in units of leading order, against tau T, at several flow times."""

    name = "field-correlators"
    summary = "electric and magnetic correlators on the Polyakov loop against τT"
    fit: ClassVar[str] = "field-correlators"
    subject: ClassVar[str] = "A correlator on the Polyakov loop"
    columns: ClassVar[tuple[str, ...]] = FIELD_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show G_E and G_B divided by G_norm, a curve for each flow time."""
        correlators = field_correlators(read_field_series(table, options.get(SKIP.name, 0)))
        caution(*correlators.cautions)
        shown = [x for x in correlators.points if x.inside and x.electric_ratio is not None]
        if not shown:
            raise GaugeError(
                "There is no correlator with a smoothing radius √(8t) between a and τ/3 whose "
                "leading order is known; measure the flow at more times, or choose a larger N_t."
            )
        times = sorted({x.t for x in shown})
        some = np.unique(np.linspace(0, len(times) - 1, MOST_CURVES).astype(int))
        selection = [times[n] for n in some]
        frames = [
            Frame(
                _curves(shown, selection, "electric_ratio"), r"$\tau T$", r"$G_E/G_\mathrm{norm}$"
            ),
            Frame(
                _curves(shown, selection, "magnetic_ratio", named=False),
                r"$\tau T$",
                r"$G_B/G_\mathrm{norm}$",
            ),
        ]
        return Picture(frames, 3.4, columns=3)


PLOTS.register(FieldCorrelatorsPlot())


def _curves(
    points: Sequence[FieldCorrelatorPoint], times: Sequence[float], name: str, named: bool = True
) -> list[Symbols]:
    """Return the points whose leading order is known, by flow time, which the legend may name."""
    curves = []
    for n, t in enumerate(times):
        shown = [point for point in points if point.t == t and getattr(point, name) is not None]
        style = {**look(n), "linestyle": "-", "linewidth": 0.8, "markersize": 4}
        text = rf"$\sqrt{{8t}}={np.sqrt(8 * t):.2f}\,a$" if named else ""
        values = [getattr(x, name) for x in shown]
        curves.append(Symbols.of([x.scaled for x in shown], values, style, text))
    return curves
