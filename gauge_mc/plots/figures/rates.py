"""Rates of benchmarks against the number of devices, the lattice or the precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from gauge_mc.libraries import load
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, WIDTH, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PANEL = 2.0
"""Width of each further panel in inches."""


class RateCurve(NamedTuple):
    """The rates of one thing."""

    label: str
    points: Sequence[tuple[float, float]]
    """Abscissas and rates."""
    limits: Sequence[tuple[float, float]]
    """Abscissas, and rates with which a copy would move its bytes."""
    panel: str = ""
    """Name of the panel in which it is drawn, beside others with the same ordinate."""


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
    panels = [*dict.fromkeys(one.panel for one in curves)]
    labels = [*dict.fromkeys(one.label for one in curves)]
    size = (WIDTH + PANEL * (len(panels) - 1), 3.6 + 0.1 * len(labels))
    with figure_file(path, size) as figure:
        frames = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        known: dict[str, Any] = {}
        for curve in curves:
            axes = frames[panels.index(curve.panel)]
            style = look(labels.index(curve.label))
            known.setdefault(curve.label, _draw(axes, curve, style, ideal))
        for axes, panel in zip(frames, panels, strict=True):
            axes.set_title(typeset(panel))
            _set_axes(axes, ticks)
            axes.set_xlabel(abscissa)
        frames[0].set_ylabel(ordinate)
        entries = [(line, typeset(label)) for label, line in known.items()]
        entries += _dashed(any(one.limits for one in curves), ideal)
        add_heading(figure, frames[0], entries, title, 2)


def _draw(axes: Axes, curve: RateCurve, style: dict[str, Any], ideal: bool) -> Any:
    """Draw a curve with its limits, and return its line."""
    x, rates = zip(*curve.points, strict=True)
    (line,) = axes.plot(x, rates, **style)
    if curve.limits:
        axes.plot(*zip(*curve.limits, strict=True), color=style["color"], dashes=(4, 2))
    if ideal:
        scaled = [rates[0] * one / x[0] for one in x]
        axes.plot(x, scaled, color=style["color"], linestyle=":", linewidth=0.8)
    return line


def _set_axes(axes: Axes, ticks: Sequence[tuple[float, str]]) -> None:
    """Make the axes logarithmic; positions in a list, which begin at 0, stay linear."""
    ticker = load("matplotlib.ticker")
    if ticks[0][0] > 0:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([x for x, _ in ticks], [typeset(text) for _, text in ticks])
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:.6g}"))
    axes.minorticks_off()


def _dashed(limits: bool, ideal: bool) -> list[tuple[Any, str]]:
    """Return the entries of the legend for lines without markers."""
    line, grey = load("matplotlib.lines").Line2D, {"color": GREY, "linewidth": 1.0}
    found = [(line([], [], dashes=(4, 2), **grey), "limit of a copy")] if limits else []
    return found + ([(line([], [], linestyle=":", **grey), "proportional")] if ideal else [])
