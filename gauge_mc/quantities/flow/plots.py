"""The history of the topological charge and its distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.errors import GaugeError
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import (
    ZERO,
    draw_density,
    finish_distribution,
    normal_distribution,
    series_line,
)
from gauge_mc.plots.figures.pictures import (
    COLOURS,
    GREY,
    Abscissa,
    Frame,
    Guide,
    KeyEntry,
    Mark,
    Picture,
    Sketch,
    Stroke,
    look,
    minus,
)
from gauge_mc.plots.runs import TablePlot, caution
from gauge_mc.quantities.flow.curves import ENERGIES, FLOW_COLUMNS, Crossing, FlowCurve, read_flow
from gauge_mc.quantities.flow.scales import GOAL, TREE_LEVEL, definition, flow_scales
from gauge_mc.quantities.flow.topology import (
    CHOICE,
    TopologicalCharge,
    charges_at,
    choice_of_charge,
    topological_charge,
)
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    columns: ClassVar[tuple[str, ...]] = FLOW_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (GOAL, TREE_LEVEL, SKIP)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show both curves with their errors, for every discretisation of E."""
        choice = definition(options)
        flow = read_flow(table, options.get(SKIP.name, 0))
        with suppress(GaugeError):  # without t0 the curves are shown alone
            caution(*flow_scales(flow, **choice).cautions)
        target, corrected = choice["target"], choice["corrected"]
        curves = {name: FlowCurve.of(flow, name, corrected) for name in ENERGIES}
        dotted = {"color": GREY, "linestyle": ":"}
        level = Guide(target, style={**dotted, "linewidth": 1.0, "zorder": 0})
        upper: list[Mark] = [level, KeyEntry(style=dotted, text=f"target {target:g}")]
        lower: list[Mark] = [level]
        for i, (name, curve) in enumerate(curves.items()):
            look = {"color": COLOURS[i], "linestyle": DASHES[i]}
            point, width = (_crossing(partial(x, target)) for x in (curve.t0, curve.w0))
            square = width.map(lambda w: w**2, lambda w: 2 * w) if width else None
            upper.append(_curve(curve, curve.values(), look, 0))
            upper += _scale(point, target, look, name, "$t_0/a^2", point)
            lower.append(_curve(curve, curve.slopes(), look, 1))
            lower += _scale(square, target, look, name, "$w_0/a", width)
        last = [[float(c.t[-1] ** n * c.mean(c.t[-1], n)) for c in curves.values()] for n in (0, 1)]
        tops = [HEADROOM * max(target, *values) for values in last]
        slope = r"$t\,\frac{\mathrm{d}}{\mathrm{d}t}\,t^2\langle E\rangle$"
        ends = {"xlim": (0, flow.t[-1]), "ylim": (0, tops[1])}
        frames = [
            Frame(upper, "", r"$t^2\langle E\rangle$", {"ylim": (0, tops[0])}, _add_legend),
            Frame(lower, "$t/a^2$", slope, ends, _add_legend),
        ]
        words = [f"{flow.kind.capitalize()} flow"] if flow.kind else []
        title = ", ".join([*words, *["divided by tree-level artefacts"] * corrected])
        return Picture(frames, 5.6, title, layout={"nrows": 2, "sharex": True}, aligned=True)


PLOTS.register(FlowPlot())


def _add_legend(axes: Axes) -> None:
    """Add a legend in a frame."""
    axes.legend(loc="upper left")


def _crossing(find: Callable[[], Crossing]) -> Crossing | None:
    """Return a scale, or None if the flow does not reach it."""
    try:
        return find()
    except GaugeError:
        return None


def _curve(
    curve: FlowCurve, points: Sequence[Estimate], look: dict[str, Any], order: int
) -> Stroke:
    """Return the spline of a curve, with its error."""
    fine = np.linspace(curve.t[0], curve.t[-1], 600)
    error = np.interp(fine, curve.t, [point.error for point in points])
    return Stroke(fine, fine**order * curve.mean(fine, order), error, style=look)


def _scale(
    crossing: Crossing | None,
    target: float,
    look: dict[str, Any],
    name: str,
    symbol: str,
    shown: Crossing | None,
) -> list[Mark]:
    """Mark the flow time of a scale on the target line, and state the scale in the legend."""
    text = f"{name}: {symbol}={minus(shown.estimate)}$" if shown else f"{name}: not reached"
    named = Sketch(lambda axes: axes.plot([], [], **look, label=text))
    return [*([Abscissa(crossing.estimate, target, 0.2, style=look)] if crossing else []), named]


class TopologyPlot(TablePlot):
    """The topological charge of one run along the Markov chain, and its distribution."""

    name = "topology"
    summary = "history and distribution of the topological charge"
    fit: ClassVar[str] = "topology"
    subject: ClassVar[str] = "The topological charge"
    columns: ClassVar[tuple[str, ...]] = FLOW_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (*CHOICE, SKIP)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the charge at one flow time, and a normal distribution of the measured <Q^2>."""
        flow, choice = read_flow(table, options.get(SKIP.name, 0)), choice_of_charge(options)
        result = topological_charge(flow, **choice)
        caution(*result.cautions)
        charges = charges_at(flow, **choice).values
        edges = _edges(charges, 1 if result.rounded else 1 / result.alpha)
        density, _ = np.histogram(charges, edges, density=True)
        style = series_line(look(0)["color"]) | {"alpha": 0.9, "linewidth": 0.7}
        bars = [Sketch(partial(draw_density, density=density, edges=edges, look=look(0)))]
        square, words = result.square.value, r"normal distribution of this $\langle Q^2\rangle$"
        fine = np.linspace(edges[0], edges[-1], 400)
        normal = [normal_distribution(fine, 0.0, square, words)] if square > 0 else []
        label = "$Q$ (rounded)" if result.rounded else "$Q$"
        named = KeyEntry(style=style, text=_legend(result))
        series = [ZERO, Stroke(flow.sweeps, charges, style=style), named]
        frames = [
            Frame(series, "update", label, finish=lambda axes: axes.margins(x=0.02)),
            Frame([*bars, *normal], "distribution", finish=finish_distribution),
        ]
        about = f"{result.charge} charge at t/a² = {result.t:.4g}"
        layout = {"ncols": 2, "sharey": True, "width_ratios": (4, 1.2)}
        return Picture(frames, 3.2, about, layout=layout)


PLOTS.register(TopologyPlot())


def _edges(charges: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Return the edges of bins of this width, centred at its multiples: one for each sector."""
    beside = math.ceil(float(np.abs(charges).max()) / width)  # bins on each side of that around 0
    return np.asarray(width * (np.arange(-beside - 1, beside + 1) + 0.5))


def _legend(result: TopologicalCharge) -> str:
    """Return the moments and the autocorrelation time as text for a legend."""
    moments = [rf"$\langle Q\rangle={minus(result.mean)}$"]
    moments.append(rf"$\langle Q^2\rangle={minus(result.square)}$")
    if tau := result.mean.format_tau(result.updates or 1):
        unit = "updates" if result.updates else "configurations"
        moments.append(rf"$\tau_\mathrm{{int}}(Q)={tau}$ {unit}")
    return ",  ".join(moments)
