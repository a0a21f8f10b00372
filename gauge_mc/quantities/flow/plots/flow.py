"""The energy density along the gradient flow, with t0 and w0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.errors import GaugeError
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.looks import COLOURS, GREY
from gauge_mc.plots.figures.pictures import (
    Abscissa,
    Frame,
    Guide,
    KeyEntry,
    Mark,
    Picture,
    Sketch,
    Stroke,
)
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quantities.flow.analysis.curves import Crossing, FlowCurve
from gauge_mc.quantities.flow.analysis.records import ENERGIES, FLOW_COLUMNS, FlowTable, read_flow
from gauge_mc.quantities.flow.fits.scale import GOAL, TREE_LEVEL, definition
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
    subject: ClassVar[str] = "The gradient flow"
    columns: ClassVar[tuple[str, ...]] = FLOW_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (GOAL, TREE_LEVEL, SKIP)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show both curves with their errors, for every discretisation of E."""
        choice = definition(options)
        target, corrected = choice["target"], choice["corrected"]
        flow = read_flow(table, options.get(SKIP.name, 0))
        curves = {name: FlowCurve.of(flow, name, corrected) for name in ENERGIES}
        dotted = {"color": GREY, "linestyle": ":"}
        level = Guide(target, style={**dotted, "linewidth": 1.0, "zorder": 0})
        upper: list[Mark] = [level, KeyEntry(style=dotted, text=f"target {target:g}")]
        lower: list[Mark] = [level]
        for i, (name, curve) in enumerate(curves.items()):
            look = {"color": COLOURS[i], "linestyle": DASHES[i]}
            point, width = (_crossing(partial(one, target)) for one in (curve.t0, curve.w0))
            square = width.map(lambda w: w**2, lambda w: 2 * w) if width else None
            upper.append(_curve(curve, curve.values(), look, 0))
            upper += _scale(point, target, look, name, "$t_0/a^2", point)
            lower.append(_curve(curve, curve.slopes(), look, 1))
            lower += _scale(square, target, look, name, "$w_0/a", width)
        tops = [
            HEADROOM
            * max(target, *(float(c.t[-1] ** n * c.mean(c.t[-1], n)) for c in curves.values()))
            for n in range(2)
        ]
        slope = r"$t\,\frac{\mathrm{d}}{\mathrm{d}t}\,t^2\langle E\rangle$"
        ends = {"xlim": (0, flow.t[-1]), "ylim": (0, tops[1])}
        frames = [
            Frame(upper, "", r"$t^2\langle E\rangle$", {"ylim": (0, tops[0])}, _add_legend),
            Frame(lower, "$t/a^2$", slope, ends, _add_legend),
        ]
        title = ", ".join(_description(flow, corrected))
        return Picture(frames, 5.6, title, layout={"nrows": 2, "sharex": True}, aligned=True)


PLOTS.register(FlowPlot())


def _description(flow: FlowTable, corrected: bool) -> list[str]:
    """Return the kind of the flow and the treatment of E in words."""
    words = [f"{flow.kind.capitalize()} flow"] if flow.kind else []
    return [*words, "divided by tree-level artefacts"] if corrected else words


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
    error = np.interp(fine, curve.t, [one.error for one in points])
    return Stroke(fine, fine**order * curve.mean(fine, order), error, style=look)


def _scale(
    crossing: Crossing | None,
    target: float,
    look: dict[str, Any],
    name: str,
    symbol: str,
    shown: Crossing | None,
) -> list[Mark]:
    """Mark the flow time of a scale on the target line, and state the scale in the legend.

    Parameters
    ----------
    crossing : Crossing or None
        The flow time.
    target : float
        Value of the curve there.
    look : dict
        Colour and style of the curve.
    name, symbol : str
        Name of the discretisation, and symbol of the scale.
    shown : Crossing or None
        The scale.
    """
    text = f"{name}: {symbol}={minus(shown.estimate)}$" if shown else f"{name}: not reached"
    named = Sketch(lambda axes: axes.plot([], [], **look, label=text))
    return [*([Abscissa(crossing.estimate, target, 0.2, style=look)] if crossing else []), named]
