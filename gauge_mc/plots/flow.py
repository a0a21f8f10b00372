"""The energy density along the gradient flow, with t0 and w0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.flow.curves import Crossing, FlowCurve
from gauge_mc.analysis.flow.records import ENERGIES, FLOW_COLUMNS, FlowTable, read_flow
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.errors import GaugeError
from gauge_mc.fits.scale import GOAL, TREE_LEVEL, definition
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import COLOURS, GREY, WIDTH
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 5.6
"""Height of the figure in inches."""

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

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw all discretisations of E; see `TablePlot.draw_table`."""
        choice = definition(options)
        flow = read_flow(table, options.get(SKIP.name, 0))
        title = ", ".join([label, *_description(flow, choice["corrected"])])
        plot_flow(flow, file, choice["target"], choice["corrected"], title)


PLOTS.register(FlowPlot())


def _description(flow: FlowTable, corrected: bool) -> list[str]:
    """Return the kind of the flow and the treatment of E in words."""
    words = [f"{flow.kind.capitalize()} flow"] if flow.kind else []
    return [*words, "divided by tree-level artefacts"] if corrected else words


def plot_flow(
    flow: FlowTable, path: Path, target: float, corrected: bool = False, title: str = ""
) -> None:
    """Plot t^2 <E> and t d/dt t^2 <E> with their errors, for every discretisation of E.

    Parameters
    ----------
    flow : FlowTable
        The gradient flow of an ensemble.
    path : Path
        File to write; its ending determines the format.
    target : float
        Value that defines t0 and w0.
    corrected : bool
        Whether to divide E by its lattice artefacts at tree level.
    title : str
        Title above the frames.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file` and `FlowCurve.of`.
    """
    curves = {name: FlowCurve.of(flow, name, corrected) for name in ENERGIES}
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        upper, lower = figure.subplots(2, sharex=True)
        for axes in (upper, lower):
            axes.axhline(target, color=GREY, linestyle=":", linewidth=1.0, zorder=0)
        for i, (name, curve) in enumerate(curves.items()):
            look = {"color": COLOURS[i], "linestyle": DASHES[i]}
            width = _crossing(partial(curve.w0, target))
            _draw(upper, curve, curve.values(), look, 0)
            _draw(lower, curve, curve.slopes(), look, 1)
            _mark(upper, _crossing(partial(curve.t0, target)), target, look, name, "$t_0/a^2")
            square = width.map(lambda w: w**2, lambda w: 2 * w) if width else None
            _mark(lower, square, target, look, name, "$w_0/a", width)
        upper.set_ylabel(r"$t^2\langle E\rangle$")
        lower.set_ylabel(r"$t\,\frac{\mathrm{d}}{\mathrm{d}t}\,t^2\langle E\rangle$")
        lower.set_xlabel("$t/a^2$")
        lower.set_xlim(0, flow.t[-1])
        for order, axes in enumerate((upper, lower)):
            ends = [
                float(curve.t[-1] ** order * curve.mean(curve.t[-1], order))
                for curve in curves.values()
            ]
            axes.set_ylim(0, HEADROOM * max(target, *ends))
            axes.legend(loc="upper left")
        figure.align_ylabels()
        line = load("matplotlib.lines").Line2D
        key = [(line([], [], color=GREY, linestyle=":"), f"target {target:g}")]
        add_heading(figure, upper, key, title)


def _crossing(find: Callable[[], Crossing]) -> Crossing | None:
    """Return a scale, or None if the flow does not reach it."""
    try:
        return find()
    except GaugeError:
        return None


def _draw(
    axes: Axes, curve: FlowCurve, points: Sequence[Estimate], look: dict[str, Any], order: int
) -> None:
    """Draw the spline of a curve, and its error as a band."""
    fine = np.linspace(curve.t[0], curve.t[-1], 600)
    mean = fine**order * curve.mean(fine, order)
    error = np.interp(fine, curve.t, [one.error for one in points])
    axes.plot(fine, mean, **look)
    axes.fill_between(
        fine, mean - error, mean + error, color=look["color"], alpha=0.25, linewidth=0
    )


def _mark(
    axes: Axes,
    crossing: Crossing | None,
    target: float,
    look: dict[str, Any],
    name: str,
    symbol: str,
    shown: Crossing | None = None,
) -> None:
    """Mark the flow time of a scale on the target line, and state its value in the legend.

    Parameters
    ----------
    axes : Axes
        Frame to draw in.
    crossing : Crossing or None
        The flow time.
    target : float
        Value of the curve there.
    look : dict
        Colour and style of the curve.
    name, symbol : str
        Name of the discretisation, and symbol of the scale.
    shown : Crossing, optional
        The scale in the legend, by default the flow time.
    """
    text = f"{name}: not reached"
    if crossing:
        text = f"{name}: {symbol}={minus((shown or crossing).estimate)}$"
        ends, error = np.array([0, target]), crossing.estimate.error
        low, high = crossing.value - error, crossing.value + error
        axes.plot(2 * [crossing.value], ends, color=look["color"], linewidth=0.8, zorder=0)
        axes.fill_betweenx(ends, low, high, color=look["color"], alpha=0.2, linewidth=0, zorder=0)
    axes.plot([], [], **look, label=text)
