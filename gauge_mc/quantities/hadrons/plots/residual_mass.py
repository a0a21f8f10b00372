"""The residual mass of domain-wall quarks against time, with its plateau."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.errors import GaugeError
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import integer_ticks
from gauge_mc.plots.figures.labels import minus, typeset
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Stroke, Symbols
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quantities.hadrons.analysis.residual_mass import (
    ResidualMasses,
    ResidualTable,
    WallQuark,
    read_residual_table,
    residual_masses,
)
from gauge_mc.quantities.hadrons.fits.parts.hadron_fit import ranges_of
from gauge_mc.quantities.hadrons.fits.residual_mass import ResidualMassFit
from gauge_mc.run.thermalisation import SKIP

SHIFT = 0.06
"""Distance of the symbols of different quarks at the same t, in t/a."""


class ResidualMassPlot(TablePlot):
    """m_res(t) of domain-wall quarks, with the plateaus that were fitted."""

    name = "residual-mass"
    summary = "residual mass of domain-wall quarks against t, with its plateau"
    subject: ClassVar[str] = "The residual mass"
    columns: ClassVar[tuple[str, ...]] = ResidualMassFit.columns
    options: ClassVar[tuple[Option, ...]] = ResidualMassFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the residual mass; see `residual_mass_picture`."""
        skip = options.get(SKIP.name, 0)
        masses = read_residual_table(table, skip)
        return residual_mass_picture(masses, residual_masses(masses, ranges_of(options), skip))


PLOTS.register(ResidualMassPlot())


def residual_mass_picture(table: ResidualTable, fitted: ResidualMasses) -> Picture:
    """Return m_res(t) and, over the times that were fitted, its plateau with the error.

    Parameters
    ----------
    table : ResidualTable
        The sums.
    fitted : ResidualMasses
        The plateaus.

    Raises
    ------
    GaugeError
        If there is no midpoint.
    """
    ratios = {quark: table.ratio(quark) for quark in table.values}
    if all(one is None for one in ratios.values()):
        raise GaugeError(
            "The table has no correlators at the midpoint; measure with an even extent of the "
            "fifth direction and weights that are all 1."
        )
    plateaus = {WallQuark(one.m, one.source): one for one in fitted.masses}
    marks: list[Mark] = []
    for n, (quark, series) in enumerate(ratios.items()):
        if series is None:
            continue
        fit, found = plateaus[quark], [estimate(one) for one in series.T]
        text = rf"$m={quark.m:g}$, {typeset(quark.source)}"
        plateau = []
        if fit.m_res and fit.t_min is not None and fit.t_max is not None:
            line = {"color": look(n)["color"]}
            plateau = [Stroke.plateau((fit.t_min, fit.t_max), fit.m_res, line)]
            text += rf": $a\,m_\mathrm{{res}}={minus(fit.m_res)}$"
        t = 1 + np.arange(len(found)) + SHIFT * n
        marks += [Symbols.of(t, found, look(n), text), *plateau]
    frame = Frame(marks, "$t/a$", r"$a\,m_\mathrm{res}(t)$", finish=integer_ticks)
    return Picture([frame], 3.6, columns=2)
