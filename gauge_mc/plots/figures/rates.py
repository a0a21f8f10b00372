"""Rates of benchmarks against the number of devices, the lattice or the precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gauge_mc.libraries import load
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, WIDTH, look


class RateCurve(NamedTuple):
    """The rates of one thing."""

    label: str
    points: Sequence[tuple[float, float]]
    """Abscissas and rates."""
    limits: Sequence[tuple[float, float]]
    """Abscissas, and rates with which a copy would move its bytes."""


def draw_rates(
    curves: Sequence[RateCurve],
    abscissa: str,
    ordinate: str,
    ticks: Sequence[tuple[float, str]],
    path: Path,
    title: str = "",
    ideal: bool = False,
) -> None:
    """Draw rates on logarithmic axes, with the limits of a copy as dashed lines.

    Parameters
    ----------
    curves : sequence of RateCurve
        The rates of each thing, of which at least one has points.
    abscissa, ordinate : str
        Labels of the axes.
    ticks : sequence of (float, str)
        Ticks of the abscissa with their labels.
    path : Path
        The file to write; its ending determines the format.
    title : str
        Title of the legend.
    ideal : bool
        Whether to draw rates proportional to the abscissa as dotted lines.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is nothing to plot.
    """
    require([one for one in curves if one.points])
    lines = load("matplotlib.lines")
    with figure_file(path, (WIDTH, 4.2 + 0.1 * len(curves))) as figure:
        axes = figure.subplots()
        for i, curve in enumerate(curves):
            style = look(i)
            x, rates = zip(*curve.points, strict=True)
            axes.plot(x, rates, **style, label=typeset(curve.label))
            if curve.limits:
                axes.plot(*zip(*curve.limits, strict=True), color=style["color"], dashes=(4, 2))
            if ideal:
                scaled = [rates[0] * one / x[0] for one in x]
                axes.plot(x, scaled, color=style["color"], linestyle=":", linewidth=0.8)
        if ticks[0][0] > 0:
            axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([x for x, _ in ticks], [typeset(text) for _, text in ticks])
        ticker = load("matplotlib.ticker")
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:.6g}"))
        axes.minorticks_off()
        axes.set_xlabel(abscissa)
        axes.set_ylabel(ordinate)
        handles, labels = axes.get_legend_handles_labels()
        entries = [*zip(handles, labels, strict=True)]
        grey = {"color": GREY, "linewidth": 1.0}
        if any(one.limits for one in curves):
            entries.append((lines.Line2D([], [], dashes=(4, 2), **grey), "limit of a copy"))
        if ideal:
            entries.append((lines.Line2D([], [], linestyle=":", **grey), "proportional"))
        add_heading(figure, axes, entries, title, 2)
