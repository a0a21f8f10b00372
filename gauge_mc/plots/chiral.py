"""Masses of hadrons against the quark mass, with their extrapolations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.hadrons.results import ChiralFit
from gauge_mc.errors import GaugeError
from gauge_mc.fits.baryons import BaryonFit
from gauge_mc.fits.mesons import MesonFit
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus, typeset
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, WIDTH, look
from gauge_mc.plots.mesons import symbol
from gauge_mc.plots.runs.labels import labels_of, one_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FRAME, HEAD = 2.6, 1.0
"""Height of a frame, and of the legend above all frames, in inches."""

QUARKS = {"pion^2": r"(a\,m_\pi)^2", "pcac": r"a\,m_\mathrm{PCAC}"}
"""Symbols of the quantities that vanish with the quark mass, as mathematical text."""


class ChiralPlot(Plot):
    """m_pi^2 and m_PCAC against 1/kappa or m, and masses of hadrons against m_pi^2, of one run."""

    name = "chiral"
    summary = "extrapolations in the quark mass, with κ_c"
    options: ClassVar[tuple[Option, ...]] = MesonFit.options

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the extrapolations of mesons, and of baryons if there are any; see `Plot.draw`."""
        run = one_run(runs, "The extrapolation")
        table = find_table_by_columns(run, MesonFit.columns)
        fits = list(MesonFit().carry_out(table, **options).spectrum.chiral)
        try:
            baryons = find_table_by_columns(run, BaryonFit.columns)
        except GaugeError:  # the plot does not need them
            baryons = None
        if baryons:
            fits += BaryonFit().carry_out(baryons, **options).spectrum.chiral
        plot_chiral(fits, file, labels_of([run])[0])
        return []


PLOTS.register(ChiralPlot())


def plot_chiral(fits: Sequence[ChiralFit], path: Path, title: str = "") -> None:
    """Plot masses against the quark mass, with straight lines to the chiral limit.

    Parameters
    ----------
    fits : sequence of ChiralFit
        Straight lines, with the points that they were fitted to.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is nothing to draw.
    """
    if not fits:
        raise GaugeError(
            "An extrapolation needs masses for at least two values of kappa, or of m; measure "
            "another one."
        )
    groups = [
        [one for one in fits if (one.quantity in QUARKS) == vanishing]
        for vanishing in (True, False)
    ]
    shown = [one for one in groups if one]
    with figure_file(path, (WIDTH, HEAD + FRAME * len(shown))) as figure:
        rows = figure.subplots(len(shown), squeeze=False)[:, 0]
        entries: list[tuple[Any, str]] = []
        for axes, group in zip(rows, shown, strict=True):
            for one in group:
                entries.append(_draw(axes, one, len(entries)))
            if group[0].quantity in QUARKS:
                axes.set_xlabel(r"$a\,m$" if group[0].m_c else r"$1/\kappa$")
                names = dict.fromkeys(QUARKS[one.quantity] for one in group)
                axes.set_ylabel(", ".join(f"${name}$" for name in names))
                axes.axhline(0, color="0.4", linewidth=0.8, zorder=0)
            else:
                axes.set_xlabel(r"$(a\,m_\pi)^2$")
                axes.set_ylabel(r"$a\,m$")
        hollow = {"color": GREY, "marker": "o", "markerfacecolor": "white", "linestyle": "none"}
        key = load("matplotlib.lines").Line2D([], [], **hollow)
        add_heading(figure, rows[0], [*entries, (key, "hollow: chiral limit")], title, 2)


def _draw(axes: Axes, fit: ChiralFit, order: int) -> tuple[Any, str]:
    """Draw a line with its points and its end in the chiral limit, and return its legend."""
    own = look(order)
    x, value, error = np.transpose([(one.x, one.value, one.error) for one in fit.points])
    drawn = axes.errorbar(x, value, error, **own, linestyle="none")
    limit = 1 / fit.kappa_c.value if fit.kappa_c else fit.m_c.value if fit.m_c else 0.0
    ends = np.array([limit, x.max()])
    axes.plot(ends, fit.intercept.value + fit.slope.value * ends, color=own["color"])
    style = {**own, "markerfacecolor": "white", "linestyle": "none"}
    if fit.kappa_c:
        scatter = fit.kappa_c.error / fit.kappa_c.value**2
        axes.errorbar([limit], [0.0], xerr=[scatter], **style)
        text = rf"${QUARKS[fit.quantity]}$: $\kappa_c={minus(fit.kappa_c)}$"
    elif fit.m_c:
        axes.errorbar([limit], [0.0], xerr=[fit.m_c.error], **style)
        text = rf"${QUARKS[fit.quantity]}$: $m_c={minus(fit.m_c)}$"
    else:
        axes.errorbar([0.0], [fit.intercept.value], [fit.intercept.error], **style)
        text = rf"$a\,m_{{{symbol(fit.quantity)}}}\to{minus(fit.intercept)}$"
    twisted = rf"$\mu={fit.mu:g}$, " if fit.mu else ""
    return drawn, f"{text}, {twisted}{typeset(fit.source)}"
