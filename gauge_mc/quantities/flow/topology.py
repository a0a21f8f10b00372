"""The topological charge and its susceptibility."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import Estimate, caution_short
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.quoted import Goal, QuotedNumber, empty_table, quoted_field
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures import curves as drawn
from gauge_mc.plots.figures import pictures
from gauge_mc.plots.runs import TablePlot, caution
from gauge_mc.quantities.flow import curves, scales
from gauge_mc.quantities.potential.forms import HBAR_C
from gauge_mc.results import documented, headings, result_field
from gauge_mc.run.thermalisation import SKIP

LARGEST_ALPHA = 1.4
"""Largest factor that is tried in front of the charge before it is rounded."""

STEPS = 20
"""Number of factors that are tried per unit by which the largest charge changes. The search for the
best factor begins from as many of them, and has as many steps."""

MIN_CHANGES = 10
"""Minimum number of changes of the rounded charge along the chain. With fewer, neither
autocorrelation times nor errors can be estimated."""

LARGEST_DEVIATION = 0.2
"""Root-mean-square distance from integers above which rounding is questionable. It is 0.29 for
charges that are spread evenly between integers."""

ADMISSIBLE = 0.067
"""Bound on Re Tr(1 - U_p). Fields that respect it at all plaquettes fall into topological sectors
(M. Luescher, arXiv:1006.4518)."""

TOLERANCE = 1e-9
"""Relative rounding error of flow times."""


@documented
@dataclass(frozen=True, kw_only=True)
class TopologicalCharge:
    """The distribution of the topological charge Q of an ensemble at one flow time."""

    charge: str = result_field("Discretisation of Q.")
    t: float = result_field("Flow time t/a^2.")
    rule: str = result_field("How the flow time was chosen, in words.")
    rounded: bool = result_field("Whether Q was replaced by the nearest integer to alpha Q.")
    alpha: float = result_field("Factor that brings the charges nearest to integers.")
    deviation: float = result_field("Root-mean-square distance of alpha Q from integers.")
    configurations: int = result_field("Number of configurations.")
    updates: int | None = result_field("Updates between configurations; None if they differ.")
    changes: int = result_field("How often the rounded charge changes between configurations.")
    mean: Estimate = result_field("<Q>, with tau_int of Q in configurations.", symbol="<Q>")
    square: Estimate = result_field("<Q^2>, with tau_int of Q^2 in configurations.", symbol="<Q²>")
    kurtosis: Estimate = result_field(
        "(<Q^4> - 3 <Q^2>^2) / <Q^2>, which is -12 b2.", symbol="(<Q⁴> − 3<Q²>²)/<Q²>"
    )
    susceptibility: Estimate = result_field("chi_t a^4 = <Q^2> / V, with V sites.", symbol="χ_t a⁴")
    susceptibility_t0: Estimate | None = result_field(
        "chi_t t0^2; None if t0 is unknown.", symbol="χ_t t0²"
    )
    fourth_root: Estimate | None = result_field(
        "chi_t^(1/4) in MeV; None without a reference scale in fm.", symbol="χ_t^¼", unit="MeV"
    )
    fourth_root_scale_error: float | None = result_field(
        "Error of chi_t^(1/4) in MeV that is due to the error of the reference scale."
    )
    source: str = result_field("Where the reference scale comes from, in words.")
    s_max: float = result_field("Largest Re Tr(1 - U_p) in all configurations at this flow time.")
    inadmissible: float = result_field(
        "Fraction of configurations with a plaquette at which Re Tr(1 - U_p) is 0.067 or more."
    )
    t0: Estimate | None = result_field("t0/a^2; None if it is unknown.")
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble, and the kind of the flow.", dict
    )
    cautions: list[str] = result_field("Cautions about these results, one sentence each.", list)


@dataclass(frozen=True)
class Charges:
    """Topological charges of an ensemble at one flow time."""

    values: Array
    """Q, rounded if that was wanted, of shape (configurations,)."""
    index: int
    """Index of the flow time."""
    rule: str
    """How the flow time was chosen, in words."""
    alpha: float
    """Factor that brings the charges nearest to integers."""
    deviation: float
    """Their remaining distance from integers."""
    changes: int
    """How often the rounded charge changes."""
    t0: curves.Crossing | None
    """t0/a^2; None if it is unknown."""
    missing: str = ""
    """Why t0 is unknown, in a sentence."""


def best_factor(charges: Array) -> tuple[float, float]:
    """Return the factor that brings charges nearest to integers, and their remaining distance.

    alpha minimises sum (alpha Q - round(alpha Q))^2 for 1 <= alpha <= 1.4 (L. Del Debbio, H.
    Panagopoulos and E. Vicari, hep-th/0204125).
    """
    squares = float(charges @ charges)

    def deviation(alpha: float) -> float:
        scaled = alpha * charges
        return float(np.sqrt(np.mean((scaled - np.rint(scaled)) ** 2)))

    widest = (LARGEST_ALPHA - 1) * float(np.abs(charges).max())  # integers that Q runs through
    starts = np.linspace(1, LARGEST_ALPHA, math.ceil(STEPS * (1 + widest)) + 1)
    candidates = []
    for _, start in sorted((deviation(float(start)), float(start)) for start in starts)[:STEPS]:
        alpha, least = start, deviation(start)
        for _ in range(STEPS if squares else 0):  # a parabola in alpha for given integers
            better = float(np.clip(np.rint(alpha * charges) @ charges / squares, 1, LARGEST_ALPHA))
            if (smaller := deviation(better)) >= least:
                break
            alpha, least = better, smaller
        candidates.append((least, alpha))
    least, alpha = min(candidates)
    return alpha, least


def charges_at(
    flow: curves.FlowTable,
    charge: str = "clover",
    t: float | None = None,
    rounded: bool = False,
    energy: str = "clover",
    target: float = scales.TARGET,
    corrected: bool = False,
) -> Charges:
    """Return the topological charges of an ensemble at one flow time."""
    missing = ""
    try:
        t0: curves.Crossing | None = curves.FlowCurve.of(flow, energy, corrected).t0(target)
    except UsageError:
        raise
    except GaugeError as error:
        t0, missing = None, str(error)
    if t is None:
        goal = t0.value if t0 else float(flow.t[-1])
        rule = "the first measured time from t0 on" if t0 else "the last one"
    else:
        goal, rule = t, "as given"
        if not 0 <= t < math.inf:
            raise UsageError(f"--t is {t:g}; give a flow time between 0 and {flow.t[-1]:g}.")
        if t > flow.t[-1] * (1 + TOLERANCE):
            raise GaugeError(
                f"--t is {t:g}, but the flow ends at t/a² = {flow.t[-1]:g}; {flow.further(t)}."
            )
    last = flow.t.size - 1
    index = min(int(np.searchsorted(flow.t, goal * (1 - TOLERANCE))), last)
    values = flow.charge(charge)[:, index]
    alpha, deviation = best_factor(values)
    integers = np.rint(alpha * values) + 0.0  # no -0
    parts = flow.replicas.split(integers)
    changes = sum(int(np.count_nonzero(np.diff(part))) for part in parts)
    values = integers if rounded else values
    return Charges(values, index, rule, alpha, deviation, changes, t0, missing)


def topological_charge(
    flow: curves.FlowTable,
    charge: str = "clover",
    t: float | None = None,
    rounded: bool = False,
    energy: str = "clover",
    target: float = scales.TARGET,
    corrected: bool = False,
    sqrt_t0: scales.Reference | None = None,
) -> TopologicalCharge:
    """Determine the distribution of the topological charge at one flow time.

    The errors are found by the Gamma method from the linearised series of each quantity. They are
    NaN if the charge changes too rarely to estimate them.
    """
    charges = charges_at(flow, charge, t, rounded, energy, target, corrected)
    q, time = charges.values, charges.t0
    trusted = charges.changes >= MIN_CHANGES
    second = float(np.mean(q**2))
    susceptibility = second / flow.lattice.sites
    series_of_chi = q**2 / flow.lattice.sites
    in_t0 = root = scale_error = None
    if time:
        value = susceptibility * time.value**2
        series = series_of_chi * time.value**2
        series = series + 2 * susceptibility * time.value * (time.series - time.value)
        in_t0 = _estimate(flow, value, series, trusted)
        if sqrt_t0 and value > 0:
            mass = value**0.25 * HBAR_C / sqrt_t0.value
            root = _estimate(flow, mass, mass * (1 + (series / value - 1) / 4), trusted)
            scale_error = mass * sqrt_t0.error / sqrt_t0.value
    unknown = np.full((q.size, flow.t.size), math.nan)  # in flows of other programs
    peaks = flow.columns.get("s_max", unknown)[:, charges.index]
    found = TopologicalCharge(
        charge=charge,
        t=float(flow.t[charges.index]),
        rule=charges.rule,
        rounded=rounded,
        alpha=charges.alpha,
        deviation=charges.deviation,
        configurations=q.size,
        updates=flow.updates,
        changes=charges.changes,
        mean=_estimate(flow, float(q.mean()), q, trusted),
        square=_estimate(flow, second, q**2, trusted),
        kurtosis=_kurtosis(flow, q, trusted),
        susceptibility=_estimate(flow, susceptibility, series_of_chi, trusted),
        susceptibility_t0=in_t0,
        fourth_root=root,
        fourth_root_scale_error=scale_error,
        source=sqrt_t0.source if root and sqrt_t0 else "",
        s_max=float(peaks.max()),
        inadmissible=float(np.mean(peaks >= ADMISSIBLE) + 0 * peaks[0]),
        t0=time.estimate if time else None,
        ensemble=dict(flow.ensemble),
    )
    found.cautions.extend(_cautions(flow, charges, found))
    return found


def _kurtosis(flow: curves.FlowTable, q: Array, trusted: bool) -> Estimate:
    """Return (<Q^4> - 3 <Q^2>^2) / <Q^2>.

    The error is at least that for normally distributed charges, <Q^2> sqrt(24 * 2 tau_int / n),
    because the error of a sample that happens to lack large charges is too small by itself.
    """
    second, fourth = float(np.mean(q**2)), float(np.mean(q**4))
    if second == 0:
        return _estimate(flow, math.nan, np.full(q.size, math.nan), False)
    value = fourth / second - 3 * second
    change = (q**4 - fourth) / second - (fourth / second**2 + 3) * (q**2 - second)
    kurtosis = _estimate(flow, value, value + change, trusted)
    normal = second * math.sqrt(24 * 2 * kurtosis.tau_int / q.size)
    return replace(kurtosis, error=max(kurtosis.error, normal)) if trusted else kurtosis


def _estimate(flow: curves.FlowTable, value: float, series: Array, trusted: bool) -> Estimate:
    """Return the estimate of a quantity, without errors if they cannot be trusted."""
    if trusted:
        return replace(flow.replicas.estimate(series), value=value)
    return Estimate(value, math.nan, math.nan, math.nan, series.size)


def _cautions(flow: curves.FlowTable, charges: Charges, found: TopologicalCharge) -> list[str]:
    cautions, n = [], charges.values.size
    if charges.changes < MIN_CHANGES:
        cautions.append(
            f"Q changes {charges.changes} times in {n} configurations, too rarely to estimate "
            "autocorrelation times and errors: make the run much longer."
        )
    else:
        tau_int = max(x.tau_int + x.tau_int_error for x in (found.mean, found.square))
        cautions += caution_short(n, tau_int, "Q")
        cautions += flow.replicas.cautions(flow.sweeps, charges.values)
    if found.rounded and charges.deviation > LARGEST_DEVIATION:
        cautions.append(
            f"The charges differ from integers by {charges.deviation:.2f}, so that rounding them "
            "is questionable: choose a larger --t, or a finer lattice."
        )
    if charges.missing:
        cautions.append(f"t0 is not known: {charges.missing}")
    radius = math.sqrt(8 * found.t) / min(flow.lattice.extents)
    return cautions + scales.caution_large(radius)


CHARGE = Option(
    "charge",
    str,
    "Discretisation of Q.",
    default=next(iter(curves.CHARGES)),
    choices=tuple(curves.CHARGES),
)
TIME = Option(
    "t",
    float,
    "Flow time t/a² at which Q is taken; the first measured time that is not smaller.",
    default="t0, or the last time if the flow does not reach t0",
)
ROUND = Option("round", bool, "Round αQ to integers, with the α that brings αQ nearest to them.")

CHOICE = (CHARGE, TIME, ROUND, *scales.DEFINITION)
"""Options that choose the charge, for fits and plots."""

OBSERVABLE = "topological charge Q and susceptibility chi_t = <Q²>/V"
UNITS = "lattice units; tau_int in configurations; fourth_root in MeV"


@dataclass(frozen=True, repr=False)
class TopologyResult(FitResult):
    """The topological charge of an ensemble."""

    topology: TopologicalCharge
    """Moments of the charge, and the susceptibility."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.topology)}

    def report(self) -> list[Any]:
        """Return a table of the moments and of the susceptibility."""
        topology = self.topology
        title, heads = f"Topological charge at t/a² = {topology.t:g}", ("value", "± scale", "τ_int")
        below = {"caption": self._caption(), "caption_justify": "left"}
        table = empty_table(title, ["quantity"], heads, **below)
        for name, heading in headings(TopologicalCharge).items():
            moment = getattr(topology, name)
            if moment and math.isfinite(moment.value):
                scale = getattr(topology, f"{name}_scale_error", None)
                table.add_row(
                    heading, str(moment), f"{scale:.2g}" if scale else "", moment.format_tau()
                )
        return [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return the susceptibility; the second error in MeV is that of the scale."""
        topology = self.topology
        numbers = [quoted_field(topology, f"susceptibility{end}") for end in ("", "_t0")]
        return [*numbers, quoted_field(topology, "fourth_root", topology.fourth_root_scale_error)]

    def unquoted(self) -> str:
        """Return why the susceptibility has no error; see `FitResult.unquoted`."""
        return "Q changes too rarely to estimate errors"

    def _caption(self) -> str:
        topology = self.topology
        rounding = "rounded" if topology.rounded else "not rounded"
        lines = [
            f"{topology.configurations} configurations{scales.spaced(topology.updates)}; "
            f"Q from the {topology.charge} discretisation, {rounding}.",
            f"Flow time: {topology.rule}" + (f"; t0/a² = {topology.t0}." if topology.t0 else "."),
            f"α = {topology.alpha:.4f} brings αQ nearest to integers, within "
            f"{topology.deviation:.3f}; the integers change {topology.changes} times.",
            "τ_int is in configurations.",
        ]
        if math.isfinite(topology.s_max):
            lines.insert(
                3,
                f"Largest Re Tr(1 − U_p): {topology.s_max:.3g}; it reaches {ADMISSIBLE:g} in "
                f"{topology.inadmissible:.1%} of the configurations.",
            )
        if topology.fourth_root:
            lines.append(f"Scale: √t0 from {topology.source}.")
        return "\n".join([*lines, *topology.cautions])


class TopologyFit(Fit):
    """Moments of the topological charge, and its susceptibility."""

    name: ClassVar[str] = "topology"
    isotropic: ClassVar[bool] = True
    summary: ClassVar[str] = "topological charge and susceptibility from the gradient flow"
    columns: ClassVar[tuple[str, ...]] = curves.FLOW_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (TopologicalCharge,)
    options: ClassVar[tuple[Option, ...]] = (*CHOICE, *scales.SCALE, SKIP)
    goals: ClassVar[tuple[Goal, ...]] = (
        replace(scales.T0, name="chi-t", summary="χ_t a⁴", symbols=("χ_t a⁴",), configs=50),
    )

    def carry_out(self, tables: Sequence[Path], **options: Any) -> TopologyResult:
        """Determine the distribution of the charge from a table; see `Fit.carry_out`."""
        flow = curves.read_flow(tables, options.get(SKIP.name, 0))
        choice = choice_of_charge(options)
        sqrt_t0 = scales.reference_t0(flow.ensemble, choice["target"], options)
        return TopologyResult(topological_charge(flow, **choice, sqrt_t0=sqrt_t0))


FITS.register(TopologyFit())


def choice_of_charge(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the charge that options choose, as arguments of `charges_at`."""
    return {
        **scales.definition(options),
        "charge": options.get(CHARGE.name, CHARGE.default),
        "t": options.get(TIME.name),
        "rounded": options.get(ROUND.name, False),
    }


class TopologyPlot(TablePlot):
    """The topological charge of one run along the Markov chain, and its distribution."""

    name = "topology"
    summary = "history and distribution of the topological charge"
    fit: ClassVar[str] = "topology"
    subject: ClassVar[str] = "The topological charge"
    columns: ClassVar[tuple[str, ...]] = curves.FLOW_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (*CHOICE, SKIP)

    def picture(self, table: Path, options: dict[str, Any]) -> pictures.Picture:
        """Show the charge at one flow time, and a normal distribution of the measured <Q^2>."""
        flow, choice = curves.read_flow(table, options.get(SKIP.name, 0)), choice_of_charge(options)
        result, charges = topological_charge(flow, **choice), charges_at(flow, **choice).values
        caution(*result.cautions)
        # The bins are centred at multiples of their width, one for each sector.
        width = 1 if result.rounded else 1 / result.alpha
        beside = math.ceil(float(np.abs(charges).max()) / width)  # on each side of that around 0
        edges = width * (np.arange(-beside - 1, beside + 1) + 0.5)
        density, _ = np.histogram(charges, edges, density=True)
        look = pictures.look(0)
        style = drawn.series_line(look["color"]) | {"alpha": 0.9, "linewidth": 0.7}
        draw = partial(drawn.draw_density, density=density, edges=edges, look=look)
        bars: list[pictures.Mark] = [pictures.Sketch(draw)]
        if (square := result.square.value) > 0:
            words = r"normal distribution of this $\langle Q^2\rangle$"
            fine = np.linspace(edges[0], edges[-1], 400)
            bars.append(drawn.normal_distribution(fine, 0.0, square, words))
        label = "$Q$ (rounded)" if result.rounded else "$Q$"
        named = pictures.KeyEntry(style=style, text=_legend(result))
        series = [drawn.ZERO, pictures.Stroke(flow.sweeps, charges, style=style), named]
        frames = [
            pictures.Frame(series, "update", label, finish=lambda axes: axes.margins(x=0.02)),
            pictures.Frame(bars, "distribution", finish=drawn.finish_distribution),
        ]
        about = f"{result.charge} charge at t/a² = {result.t:.4g}"
        layout = {"ncols": 2, "sharey": True, "width_ratios": (4, 1.2)}
        return pictures.Picture(frames, 3.2, about, layout=layout)


PLOTS.register(TopologyPlot())


def _legend(result: TopologicalCharge) -> str:
    """Return the moments and the autocorrelation time as text for a legend."""
    moments = [rf"$\langle Q\rangle={pictures.minus(result.mean)}$"]
    moments.append(rf"$\langle Q^2\rangle={pictures.minus(result.square)}$")
    if tau := result.mean.format_tau(result.updates or 1):
        unit = "updates" if result.updates else "configurations"
        moments.append(rf"$\tau_\mathrm{{int}}(Q)={tau}$ {unit}")
    return ",  ".join(moments)
