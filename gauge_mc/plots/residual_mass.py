"""The residual mass of domain-wall quarks against time, with its plateau."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.hadrons.residual_mass import (
    ResidualMasses,
    ResidualTable,
    WallQuark,
    read_residual_table,
    residual_masses,
)
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.errors import GaugeError
from gauge_mc.fits.hadrons import ranges_of
from gauge_mc.fits.residual_mass import ResidualMassFit
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import integer_ticks
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus, typeset
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.run.thermalisation import SKIP

HEIGHT = 3.6
"""Height of the figure in inches."""

BAND = 0.25
"""Opacity of the bands of plateaus."""

SHIFT = 0.06
"""Distance of the symbols of different quarks at the same t, in t/a."""


class ResidualMassPlot(TablePlot):
    """m_res(t) of domain-wall quarks, with the plateaus that were fitted."""

    name = "residual-mass"
    summary = "residual mass of domain-wall quarks against t, with its plateau"
    subject: ClassVar[str] = "The residual mass"
    columns: ClassVar[tuple[str, ...]] = ResidualMassFit.columns
    options: ClassVar[tuple[Option, ...]] = ResidualMassFit.options

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the residual mass; see `TablePlot.draw_table`."""
        skip = options.get(SKIP.name, 0)
        masses = read_residual_table(table, skip)
        plot_residual_mass(masses, residual_masses(masses, ranges_of(options), skip), file, label)


PLOTS.register(ResidualMassPlot())


def plot_residual_mass(
    table: ResidualTable, fitted: ResidualMasses, path: Path, title: str = ""
) -> None:
    """Plot m_res(t) and, over the times that were fitted, its plateau with the error.

    Parameters
    ----------
    table : ResidualTable
        The sums.
    fitted : ResidualMasses
        The plateaus.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frame.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is no midpoint.
    """
    ratios = {quark: table.ratio(quark) for quark in table.values}
    if all(one is None for one in ratios.values()):
        raise GaugeError(
            "The table has no correlators at the midpoint; measure with an even extent of the "
            "fifth direction and weights that are all 1."
        )
    plateaus = {WallQuark(one.m, one.source): one for one in fitted.masses}
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        axes, entries = figure.subplots(), []
        for n, (quark, series) in enumerate(ratios.items()):
            if series is None:
                continue
            own, fit = look(n), plateaus[quark]
            found = [estimate(one) for one in series.T]
            t = 1 + np.arange(len(found)) + SHIFT * n
            bars = [one.value for one in found], [one.error for one in found]
            drawn = axes.errorbar(t, *bars, **own, linestyle="none")
            text = rf"$m={quark.m:g}$, {typeset(quark.source)}"
            if fit.m_res and fit.t_min is not None and fit.t_max is not None:
                value, error = fit.m_res.value, fit.m_res.error
                ends = np.array([fit.t_min, fit.t_max])
                axes.plot(ends, [value, value], color=own["color"])
                low, high = value - error, value + error
                axes.fill_between(
                    ends, low, high, color=own["color"], alpha=BAND, linewidth=0
                )  # fmt: skip
                text += rf": $a\,m_\mathrm{{res}}={minus(fit.m_res)}$"
            entries.append((drawn, text))
        integer_ticks(axes)
        axes.set_xlabel("$t/a$")
        axes.set_ylabel(r"$a\,m_\mathrm{res}(t)$")
        add_heading(figure, axes, entries, title, 2)
