"""The scales t0 and w0 of the gradient flow, and the lattice spacing: fit and plot.

t0 is the flow time at which t^2 <E> has a given value (M. Luescher, arXiv:1006.4518), and w0^2 is
that at which t d/dt t^2 <E> has it (S. Borsanyi et al., arXiv:1203.4469). Both are determined from
the ensemble average of E.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import Estimate, caution_short, with_error
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.quoted import Goal, QuotedNumber, empty_table, quoted_field, quoted_number
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option, flag_of
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures import pictures
from gauge_mc.plots.runs import TablePlot, caution
from gauge_mc.quantities.flow import curves
from gauge_mc.results import documented, headings, result_field
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TARGET = 0.3
"""Default of the value that defines t0 and w0."""


NEGLIGIBLE = 0.2
"""Ratio of the interpolation error to the statistical error above which results carry a caution. At
this ratio it would increase the error by 2 %."""

LARGEST_RADIUS = 0.5
"""Smoothing radius sqrt(8 t0) in units of the extent above which results carry a caution."""


@documented
@dataclass(frozen=True)
class Spacing:
    """A lattice spacing in fm."""

    value: Estimate = result_field("a in fm, with its statistical error.")
    scale_error: float = result_field("Error of a in fm due to the error of the reference scale.")
    reference: float = result_field("The reference scale in fm.")
    reference_error: float = result_field("Error of the reference scale in fm.")
    source: str = result_field("Where the reference scale comes from, in words.")


@dataclass(frozen=True)
class Reference:
    """A scale in fm."""

    value: float
    """The scale in fm."""
    error: float
    """Its error in fm."""
    source: str
    """Where the value comes from, in words."""

    def spacing(self, scale: curves.Crossing) -> Spacing:
        """Return a in fm, given the scale in lattice units."""
        a = scale.map(lambda x: self.value / x, lambda x: -self.value / x**2)
        error = abs(a.value) * self.error / self.value
        return Spacing(a.estimate, error, self.value, self.error, self.source)


@documented
@dataclass(frozen=True, kw_only=True)
class FlowScales:
    """Scales of the gradient flow of an ensemble, in lattice units unless a unit is named."""

    energy: str = result_field("Discretisation of E.")
    target: float = result_field("Value that defines both scales.")
    tree_level: bool = result_field("Whether E was corrected at tree level.")
    configurations: int = result_field("Number of configurations.")
    updates: int | None = result_field("Updates between configurations; None if they differ.")
    t_max: float = result_field("Longest flow time measured.")
    t0: Estimate = result_field("t0/a^2; tau_int is in configurations.", symbol="t0/a²")
    t0_interpolation: float = result_field("Estimate of the interpolation error of t0/a^2.")
    w0: Estimate = result_field("w0/a; NaN if the flow is too short.", symbol="w0/a")
    w0_interpolation: float = result_field("Estimate of the interpolation error of w0/a.")
    radius: Estimate = result_field(
        "Smoothing radius sqrt(8 t0) in units of the smallest extent of the lattice.",
        symbol="√(8 t0)/L",
    )
    spacing_t0: Spacing | None = result_field(
        "The lattice spacing from t0; None without a reference scale in fm.",
        symbol="a from t0",
        unit="fm",
    )
    spacing_w0: Spacing | None = result_field(
        "The lattice spacing from w0; None without a reference scale in fm.",
        symbol="a from w0",
        unit="fm",
    )
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice and action of the ensemble, and the kind of the flow.", dict
    )
    cautions: list[str] = result_field("Cautions about these results, one sentence each.", list)


def flow_scales(
    flow: curves.FlowTable,
    energy: str = "clover",
    target: float = TARGET,
    corrected: bool = False,
    sqrt_t0: Reference | None = None,
    w0: Reference | None = None,
) -> FlowScales:
    """Determine t0 and w0 from the gradient flow of an ensemble.

    The errors are found by the Gamma method from the linearised series of each quantity: the
    fluctuations of E of each configuration, projected on the derivative of the quantity by <E>.
    """
    if not 0 < target < math.inf:
        raise UsageError(f"--target is {target:g}; give a positive number, such as {TARGET:g}.")
    curve = curves.FlowCurve.of(flow, energy, corrected)
    time, cautions = curve.t0(target), list[str]()
    try:
        width = curve.w0(target)
    except GaugeError as error:
        width = curves.Crossing(
            math.nan, np.full(flow.sweeps.size, math.nan), math.nan, flow.replicas
        )
        cautions.append(f"w0 is not known: {error}")
    extent = min(flow.lattice.extents)
    radius = time.map(
        lambda t: math.sqrt(8 * t) / extent, lambda t: math.sqrt(8 / t) / (2 * extent)
    )
    root = time.map(math.sqrt, lambda t: 0.5 / math.sqrt(t))
    return FlowScales(
        energy=energy,
        target=target,
        tree_level=corrected,
        configurations=int(flow.sweeps.size),
        updates=flow.updates,
        t_max=float(flow.t[-1]),
        t0=time.estimate,
        t0_interpolation=time.interpolation,
        w0=width.estimate,
        w0_interpolation=width.interpolation,
        radius=radius.estimate,
        spacing_t0=sqrt_t0.spacing(root) if sqrt_t0 else None,
        spacing_w0=w0.spacing(width) if w0 and math.isfinite(width.value) else None,
        ensemble=dict(flow.ensemble),
        cautions=[
            *cautions,
            *flow.replicas.cautions(flow.sweeps, time.series),
            *_cautions(time, width, radius.value),
        ],
    )


def _cautions(time: curves.Crossing, width: curves.Crossing, radius: float) -> list[str]:
    both = (time.estimate, width.estimate)
    tau_int = float(np.nanmax([x.tau_int + x.tau_int_error for x in both]))
    cautions = caution_short(time.series.size, tau_int)
    for name, crossing in (("t0", time), ("w0", width)):
        if crossing.interpolation > NEGLIGIBLE * crossing.estimate.error:
            cautions.append(
                f"The interpolation error of {name}, {crossing.interpolation:.1g}, is not "
                f"negligible beside its statistical error, {crossing.estimate.error:.1g}: measure "
                "the flow at more times."
            )
    return cautions + caution_large(radius)


def caution_large(radius: float) -> list[str]:
    """Return a sentence if the smoothing radius, over the smallest extent, is large."""
    words = f"The smoothing radius is {radius:.2g} times the smallest extent of the lattice, so "
    large = radius > LARGEST_RADIUS
    return [f"{words}that effects of the finite volume are large."] if large else []


ENERGY = Option(
    "energy",
    str,
    "Discretisation of E, for t0 and w0.",
    default=next(iter(curves.ENERGIES)),
    choices=tuple(curves.ENERGIES),
)
GOAL = Option(
    "target",
    float,
    "Value of t²<E> at t0, and of t d/dt t²<E> at w0². The literature has 0.3 for SU(3) and also "
    "0.1 for SU(2).",
    default=f"{TARGET:g}",
)
TREE_LEVEL = Option("tree_level", bool, "Divide E by its tree-level artefacts (arXiv:1406.0827).")
SQRT_T0 = Option(
    "sqrt_t0",
    float,
    "√t0 in fm, which sets the scale.",
    default=f"that of the group at the target {TARGET:g}, if it is known",
    metavar="FM",
)
SQRT_T0_ERROR = Option("sqrt_t0_error", float, "Error of √t0 in fm.", default="0", metavar="FM")
DEFINITION, SCALE = (ENERGY, GOAL, TREE_LEVEL), (SQRT_T0, SQRT_T0_ERROR)
"""Options that define t0, and those that state it in fm."""

W0 = Option("w0", float, "w0 in fm, for a second lattice spacing.", metavar="FM")
W0_ERROR = Option("w0_error", float, "Error of w0 in fm.", default="0", metavar="FM")

OBSERVABLE = (
    "t0 and w0 of the gradient flow: t²<E> at t0, and t d/dt t²<E> at w0², equal the target"
)
UNITS = "lattice units; tau_int in configurations; spacings in fm"


@dataclass(frozen=True, repr=False)
class ScaleResult(FitResult):
    """Scales of the gradient flow of an ensemble."""

    scales: FlowScales
    """t0, w0 and the lattice spacing."""
    flow: curves.FlowTable | None = None
    """The gradient flow from which they were determined."""

    def histories(self) -> dict[str, tuple[Integers, Array]]:
        """Return the series of t0 and w0; see `FitResult.histories`."""
        scales, crossings = self.scales, dict[str, curves.Crossing]()
        if self.flow is None:
            return {}
        curve = curves.FlowCurve.of(self.flow, scales.energy, scales.tree_level)
        crossings["t0"] = curve.t0(scales.target)
        if math.isfinite(scales.w0.value):
            crossings["w0"] = curve.w0(scales.target)
        names = headings(FlowScales)
        return {names[key]: (self.flow.sweeps, c.series) for key, c in crossings.items()}

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.scales)}

    def report(self) -> list[Any]:
        """Return a table of the scales with their errors."""
        scales = self.scales
        title = f"t²<E> = {scales.target:g} at t0, t d/dt t²<E> = {scales.target:g} at w0²"
        heads = ("value", "± interpolation", "± scale", "τ_int")
        below = {"caption": self._caption(), "caption_justify": "left"}
        table = empty_table(title, ["quantity"], heads, **below)
        for name, heading in headings(FlowScales).items():
            scale = getattr(scales, name)
            if isinstance(scale, Spacing):
                table.add_row(heading, *_cells(scale.value, scale=scale.scale_error))
            elif scale:
                interpolation = getattr(scales, f"{name}_interpolation", math.nan)
                table.add_row(heading, *_cells(scale, interpolation))
        return [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return t0, w0 and the lattice spacing; the second error of the latter is of the scale."""
        scales = self.scales
        heads = headings(FlowScales)
        spacings = [
            quoted_number(heads[name].partition(" (")[0], x.value, x.scale_error or None, "fm")
            for name in ("spacing_t0", "spacing_w0")
            if (x := getattr(scales, name))
        ]
        errors = {"t0": scales.t0_interpolation, "w0": scales.w0_interpolation}
        return [*(quoted_field(scales, *x) for x in errors.items()), *spacings]

    def _caption(self) -> str:
        scales = self.scales
        corrected = "divided by its tree-level artefacts" if scales.tree_level else "uncorrected"
        lines = [
            f"{scales.configurations} configurations{spaced(scales.updates)}, E from the "
            f"{scales.energy} discretisation, {corrected}.",
            "L is the smallest extent of the lattice. τ_int is in configurations.",
        ]
        if curves.FLOW_ANISOTROPY in scales.ensemble:
            xi = scales.ensemble[curves.FLOW_ANISOTROPY]
            lines.append(f"a is the lattice spacing in space; the flow has the anisotropy {xi}.")
        for name, spacing in (("√t0", scales.spacing_t0), ("w0", scales.spacing_w0)):
            if spacing:
                reference = with_error(spacing.reference, spacing.reference_error)
                lines.append(f"Scale: {name} = {reference} fm, {spacing.source}.")
        if not scales.spacing_t0:
            lines.append(f"Give √t0 in fm with {SQRT_T0.flag} for a lattice spacing.")
        return "\n".join([*lines, *scales.cautions])


def spaced(updates: int | None) -> str:
    """Return the separation of configurations in words, which may be empty."""
    return f", {updates} updates apart" if updates else ""


def _cells(value: Estimate, interpolation: float = math.nan, scale: float = math.nan) -> list[str]:
    if math.isnan(value.value):
        return ["unknown", "", "", ""]
    spline = f"{interpolation:.1g}" if math.isfinite(interpolation) else ""
    return [str(value), spline, f"{scale:.2g}" if scale > 0 else "", value.format_tau()]


FLOW_EVERY = 20
"""Updates from one flow to the next of runs for numbers of the flow. On coarse lattices a flow then
takes about as long as the updates."""

T0 = Goal(
    name="t0",
    summary="t0/a²",
    symbols=("t0/a²",),
    measure=f"flow:{FLOW_EVERY}",
    separation=FLOW_EVERY,
    options=(GOAL,),
)


class ScaleFit(Fit):
    """t0 and w0, at which t^2 <E> and t d/dt t^2 <E> reach a target."""

    name: ClassVar[str] = "scale"
    isotropic: ClassVar[bool] = True
    knows: ClassVar[str] = curves.FLOW_ANISOTROPY
    summary: ClassVar[str] = "t0 and w0 from the gradient flow, and the lattice spacing in fm"
    columns: ClassVar[tuple[str, ...]] = curves.FLOW_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (FlowScales,)
    options: ClassVar[tuple[Option, ...]] = (*DEFINITION, *SCALE, W0, W0_ERROR, SKIP)
    goals: ClassVar[tuple[Goal, ...]] = (
        T0,
        replace(T0, name="w0", summary="w0/a", symbols=("w0/a",)),
    )

    def carry_out(self, tables: Sequence[Path], **options: Any) -> ScaleResult:
        """Determine the scales from the flow of a table; see `Fit.carry_out`."""
        flow = curves.read_flow(tables, options.get(SKIP.name, 0))
        choice = definition(options)
        sqrt_t0 = reference_t0(flow.ensemble, choice["target"], options)
        w0 = given_reference(W0.name, options)
        return ScaleResult(flow_scales(flow, **choice, sqrt_t0=sqrt_t0, w0=w0), flow)


FITS.register(ScaleFit())


def definition(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the definition of t0 that options choose, as arguments of `flow_scales`."""
    target = options.get(GOAL.name, TARGET)
    if not 0 < target < math.inf:
        raise UsageError(f"{GOAL.flag} is {target:g}; give a positive number, such as {TARGET:g}.")
    return {
        "energy": options.get(ENERGY.name, ENERGY.default),
        "target": target,
        "corrected": options.get(TREE_LEVEL.name, False),
    }


def reference_t0(
    ensemble: Mapping[str, str], target: float, options: Mapping[str, Any]
) -> Reference | None:
    """Return sqrt(t0) in fm: the one that was given, or that of the group if it is known."""
    reference = given_reference(SQRT_T0.name, options)
    group = GROUPS[ensemble["group"]] if ensemble.get("group") in GROUPS else None
    if reference or target != TARGET or group is None or group.sqrt_t0 is None:
        return reference
    return Reference(*group.sqrt_t0)


def given_reference(name: str, options: Mapping[str, Any]) -> Reference | None:
    """Return a scale in fm that was given by options, or None."""
    value, error = options.get(name), options.get(f"{name}_error")
    flag, error_flag = flag_of(name), flag_of(f"{name}_error")
    if value is None and error is None:
        return None
    if value is None:
        raise UsageError(f"{error_flag} has no effect without {flag}; give {flag} as well.")
    if not 0 < value < math.inf:
        raise UsageError(f"{flag} is {value:g}; give a positive length in fm.")
    error = 0.0 if error is None else error
    if not 0 <= error < math.inf:
        raise UsageError(f"{error_flag} is {error:g}; give 0 or a positive length in fm.")
    return Reference(value, error, f"given with {flag}")


HEADROOM = 1.5
"""Upper end of an axis, in units of the target or of the largest value at the end of the flow. It
leaves room for the legend."""

DASHES = ("-", "--", "-.")
"""Line styles of the discretisations, which may lie on top of each other."""


class FlowPlot(TablePlot):
    """t^2 <E> and t d/dt t^2 <E> of one run against the flow time, with t0 and w0."""

    name = "flow"
    summary = "t²<E> and its derivative along the gradient flow, with t0 and w0"
    fit: ClassVar[str] = "scale"
    subject: ClassVar[str] = "The gradient flow"
    columns: ClassVar[tuple[str, ...]] = curves.FLOW_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (GOAL, TREE_LEVEL, SKIP)

    def picture(self, table: Path, options: dict[str, Any]) -> pictures.Picture:
        """Show both curves with their errors, for every discretisation of E."""
        choice = definition(options)
        flow = curves.read_flow(table, options.get(SKIP.name, 0))
        with suppress(GaugeError):  # without t0 the curves are shown alone
            caution(*flow_scales(flow, **choice).cautions)
        target, corrected = choice["target"], choice["corrected"]
        ends = [[target], [target]]
        dotted = {"color": pictures.GREY, "linestyle": ":"}
        level = pictures.Guide(target, style={**dotted, "linewidth": 1.0, "zorder": 0})
        entry = pictures.KeyEntry(style=dotted, text=f"target {target:g}")
        marks: list[list[pictures.Mark]] = [[level, entry], [level]]
        for i, energy in enumerate(curves.ENERGIES):
            curve = curves.FlowCurve.of(flow, energy, corrected)
            fine = np.linspace(curve.t[0], curve.t[-1], 600)
            style = {"color": pictures.COLOURS[i], "linestyle": DASHES[i]}
            both = (curve.t0, curve.values(), "$t_0/a^2"), (curve.w0, curve.slopes(), "$w_0/a")
            for order, (find, points, symbol) in enumerate(both):
                line = fine**order * curve.mean(fine, order)
                error = np.interp(fine, curve.t, [point.error for point in points])
                marks[order].append(pictures.Stroke(fine, line, error, style=style))
                ends[order].append(float(line[-1]))
                text = f"{energy}: not reached"
                with suppress(GaugeError):  # a flow that is too short
                    scale = find(target)
                    text = f"{energy}: {symbol}={pictures.minus(scale.estimate)}$"
                    t = scale.map(lambda w: w**2, lambda w: 2 * w) if order else scale
                    marks[order].append(pictures.Abscissa(t.estimate, target, 0.2, style=style))
                marks[order].append(pictures.Stroke([], [], style={**style, "label": text}))

        def add_legend(axes: Axes) -> None:
            axes.legend(loc="upper left")

        tops = [{"ylim": (0, HEADROOM * max(values))} for values in ends]
        slope = r"$t\,\frac{\mathrm{d}}{\mathrm{d}t}\,t^2\langle E\rangle$"
        lower = {"xlim": (0, flow.t[-1]), **tops[1]}
        frames = [
            pictures.Frame(marks[0], "", r"$t^2\langle E\rangle$", tops[0], add_legend),
            pictures.Frame(marks[1], "$t/a^2$", slope, lower, add_legend),
        ]
        words = [f"{flow.kind.capitalize()} flow"] if flow.kind else []
        title = ", ".join([*words, *["divided by tree-level artefacts"] * corrected])
        layout = {"nrows": 2, "sharex": True}
        return pictures.Picture(frames, 5.6, title, layout=layout, aligned=True)


PLOTS.register(FlowPlot())
