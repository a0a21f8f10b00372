"""Charts below what notebooks show of runs, tables and potentials."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gauge_mc.files.table import TableData
from gauge_mc.quantities.potential.analysis.static_potential import StaticPotential
from gauge_mc.reports.charts import WIDTH, Chart, ChartLine
from gauge_mc.reports.markup import Markup, element
from gauge_mc.reports.sections.series import history_chart
from gauge_mc.reports.subject import ChainSeries, Quantity, columns_of

CURVE = 60
"""Number of places at which the curve of a fit is drawn."""


def cell(chart: Chart) -> Markup:
    """Return a chart with its title, as a part of the output of a cell."""
    place = f"margin: 0; width: 100%; max-width: {WIDTH}px"
    title = element("figcaption", chart.title)
    return element("figure", title, chart.drawing(), style=place)


def table_cell(table: TableData, cut: int = 0) -> Markup:
    """Return the first quantity of a table along the chain, with its running average.

    Parameters
    ----------
    table : TableData
        A table.
    cut : int
        Last update that is left out of the average.

    Returns
    -------
    Markup
        Nothing if the table has several rows per measurement, or no quantity with an average.
    """
    for column, sweeps, values in columns_of(table):
        series = ChainSeries("the chain", sweeps, values, cut if (sweeps > cut).any() else 0)
        chart = history_chart(Quantity("", column, [series]))
        return cell(replace(chart, title=column.average or column.short))
    return Markup("")


def potential_cell(result: StaticPotential) -> Markup:
    """Return V(R) with errors, and the fit with free B if one can be trusted."""
    fit = result.free.fit if result.free else None
    points = sorted(result.points, key=lambda one: one.distance)
    r = np.array([one.distance for one in points])
    own = fit.continuum(points) if fit else np.array([one.potential.value for one in points])
    places = np.unique(np.concatenate([r, np.linspace(fit.r_min, fit.r_max, CURVE) if fit else r]))
    value, error = (np.full(places.size, math.nan) for _ in range(2))
    at = np.searchsorted(places, r)
    value[at], error[at] = own, [one.potential.error for one in points]
    lines = [ChartLine("V", value, error, look="points")]
    if fit:
        curve, band = fit.potential(places)
        inside = (places >= fit.r_min) & (places <= fit.r_max)
        curve, band = (np.where(inside, one, math.nan) for one in (curve, band))
        lines.append(ChartLine("fit", curve, band, 1))
    words = f"Static potential at {r.size} distances"
    scale = f", r₀/a = {fit.r0}" if fit else ""
    return cell(Chart("Static potential", "R/a", "a V(R)", places, lines, f"{words}{scale}."))
