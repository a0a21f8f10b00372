"""Ratios of Wilson loops in space and along t, and the anisotropy at which they agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.potential.anisotropy import Anisotropy
from gauge_mc.fits.anisotropy import AnisotropyFit
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, WIDTH, look
from gauge_mc.plots.runs.table_plot import TablePlot

HEIGHT = 6.4
"""Height of the figure in inches."""

LARGEST_ERROR = 0.25
"""Relative error above which a point is not drawn; it would hide the others."""


class AnisotropyPlot(TablePlot):
    """Ratios of Wilson loops in space and along t, and xi(x, y) with its average."""

    name = "anisotropy"
    summary = "ratios of Wilson loops in space and along t, and ξ(x, y)"
    subject: ClassVar[str] = "The anisotropy"
    columns: ClassVar[tuple[str, ...]] = AnisotropyFit.columns
    options: ClassVar[tuple[Option, ...]] = AnisotropyFit.options

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the ratios; see `TablePlot.draw_table`."""
        result = AnisotropyFit().carry_out(table, **options)
        plot_anisotropy(result.found, file, label)


PLOTS.register(AnisotropyPlot())


def plot_anisotropy(found: Anisotropy, path: Path, title: str = "") -> None:
    """Plot ln R_s(x, y) against y and ln R_t(x, t) against t / xi, and below them xi(x, y).

    Parameters
    ----------
    found : Anisotropy
        Ratios of loops and the anisotropies from them.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`.
    """
    xi, line = found.xi, load("matplotlib.lines").Line2D
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        ratios, points = figure.subplots(2, sharex=True, height_ratios=(3, 2))
        entries = []
        for i, x in enumerate(sorted({one.x for one in found.space})):
            own = {**look(i), "linestyle": "none"}
            hollow = {**own, "markerfacecolor": "white"}
            for every, unit, style in ((found.time, xi.value, hollow), (found.space, 1.0, own)):
                values = [(one.t / unit, one.value) for one in every if one.x == x]
                shown = [(at, one.value, one.error) for at, one in values]
                shown = [one for one in shown if one[2] < LARGEST_ERROR * abs(one[1])]
                if shown:
                    ratios.errorbar(*np.array(shown).T, **style)
            shown = [(one.y, one.xi.value, one.xi.error) for one in found.points if one.x == x]
            shown = [one for one in shown if one[2] < LARGEST_ERROR * abs(one[1])]
            if shown:
                at, value, error = np.array(shown).T
                points.errorbar(at + 0.06 * i, value, error, **own)
            entries.append((line([], [], **own), f"$x={x}$"))
        points.axhspan(xi.value - xi.error, xi.value + xi.error, color=GREY, alpha=0.4, zorder=0)
        entries.append((line([], [], color=GREY, linewidth=6, alpha=0.4), rf"$\xi={xi}$"))
        ratios.set_ylabel(r"$\ln R_s(x,y)$ (full), $\ln R_t(x,\xi y)$ (hollow)")
        points.set_xlabel("$y$")
        points.set_ylabel(r"$\xi(x,y)$")
        add_heading(figure, ratios, entries, title=title, columns=3)
