"""Averages against a variable in figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus, typeset
from gauge_mc.plots.figures.looks import WIDTH, look

Curves = Sequence[tuple[str, Sequence[tuple[float, Estimate]]]]
"""Curves of a plot: each has a label and points (value of the abscissa, average)."""


def draw_curves(axes: Axes, curves: Curves) -> None:
    """Draw averages with errors against a variable, joined by lines to guide the eye."""
    for i, (label, points) in enumerate(curves):
        x = np.array([one for one, _ in points])
        value = np.array([found.value for _, found in points])
        error = np.nan_to_num([found.error for _, found in points])
        axes.plot(x, value, color=look(i)["color"], alpha=0.4, linewidth=0.8)
        axes.errorbar(x, value, error, **look(i), linestyle="none", label=typeset(label))


def draw_panels(panels: Sequence[tuple[str, Curves]], abscissa: str, path: Path) -> None:
    """Draw averages of several quantities against one variable, in panels below each other.

    Parameters
    ----------
    panels : sequence of (str, curves)
        For each quantity the label of its axis and its curves, sorted by the variable.
    abscissa : str
        The label of the variable.
    path : Path
        The file to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is nothing to plot.
    """
    require(panels)
    for _, curves in panels:
        require(curves)
    with figure_file(path, (WIDTH, 2.4 + 1.8 * len(panels))) as figure:
        rows = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        values = {x for _, curves in panels for _, points in curves for x, _ in points}
        for axes, (name, curves) in zip(rows, panels, strict=True):
            draw_curves(axes, curves)
            axes.set_ylabel(name)
            if len(values) == 1:
                _write_values(axes, curves)
        if len(values) == 1:
            rows[-1].set_xticks(list(values), [f"{x:.12g}" for x in values])
            rows[-1].tick_params(which="minor", bottom=False, top=False)
        rows[-1].set_xlabel(abscissa)
        rows[0].legend(loc="best")
        figure.align_ylabels()


def _write_values(axes: Axes, curves: Curves) -> None:
    """Write the averages of points with the same abscissa next to them."""
    for i, (_, points) in enumerate(curves):
        for x, found in points:
            axes.annotate(
                f"${minus(found)}$",
                (x, found.value),
                (12, 0),
                textcoords="offset points",
                va="center",
                color=look(i)["color"],
            )


def integer_ticks(axes: Axes) -> None:
    """Put the ticks of the abscissa at integers only."""
    ticker = load("matplotlib.ticker")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def require(items: Sequence[object]) -> None:
    """Refuse an empty list of things to plot.

    Raises
    ------
    GaugeError
        If `items` is empty.
    """
    if not items:
        raise GaugeError("There is nothing to plot: no run with measurements was given.")
