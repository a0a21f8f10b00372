"""Charts below what notebooks show of runs, tables and potentials."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from gauge_mc.files.table import TableData
from gauge_mc.quantities.potential.static_potential import StaticPotential
from gauge_mc.reports.charts import WIDTH, Chart, ChartLine
from gauge_mc.reports.figures import history_chart, placed
from gauge_mc.reports.markup import Markup, element
from gauge_mc.reports.page import ChainSeries, Quantity, columns_of

CURVE = 60
"""Number of places at which the curve of a fit is drawn."""


def cell(chart: Chart) -> Markup:
    """Return a chart with its title, as a part of the output of a cell."""
    place = f"margin: 0; width: 100%; max-width: {WIDTH}px"
    title = element("figcaption", chart.title)
    return element("figure", title, chart.drawing(), style=place)


def table_cell(table: TableData, cut: int = 0) -> Markup:
    """Return the first quantity of a table along the chain, with its running average."""
    for column, sweeps, values in columns_of(table):
        series = ChainSeries("the chain", sweeps, values, cut if (sweeps > cut).any() else 0)
        chart = history_chart(Quantity("", column, [series]))
        return cell(replace(chart, title=column.average or column.short))
    return Markup("")


def potential_cell(result: StaticPotential) -> Markup:
    """Return V(R) with errors, and the most probable fit, if there is one."""
    fit, r = result.best, result.distances
    places = np.unique(np.concatenate([r, np.linspace(fit.r_min, fit.r_max, CURVE) if fit else r]))
    at, errors = np.searchsorted(places, r), np.array([point.error for point in result.points])
    value, error = (placed(at, series, places.size) for series in (result.continuum, errors))
    lines = [ChartLine("V", value, error, look="points")]
    if fit:
        inside = (places >= fit.r_min) & (places <= fit.r_max)
        curve, band = (np.where(inside, y, math.nan) for y in fit.curve(places))
        lines.append(ChartLine("fit", curve, band, 1))
    scale = f", r₀/a = {result.scales['r0']}" if "r0" in result.scales else ""
    words = f"Static potential at {r.size} distances{scale}."
    return cell(Chart("Static potential", "R/a", "a V(R)", places, lines, words))
