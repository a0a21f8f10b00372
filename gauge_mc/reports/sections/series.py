"""Time series with running averages, autocorrelation functions and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries.gamma_method import autocorrelation
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.charts import Chart, ChartLine
from gauge_mc.reports.markup import Markup, element
from gauge_mc.reports.subject import ChainSeries, Quantity, Subject

MOST_PLACES = 800
"""Number of updates of a chart up to which every measurement of a run is drawn."""

PIECES = 400
"""Number of pieces into which a longer series is divided, each drawn as a range."""

MANY_RUNS = 3
"""Number of runs in a chart from which on each has fewer places, so that the page stays small."""

MOST_LAGS = 200
"""Largest lag of an autocorrelation function, in measurements."""


class SeriesSection(Section):
    """Every quantity along the chain, with the cut of the thermalisation."""

    name: ClassVar[str] = "series"
    title: ClassVar[str] = "Time series"
    place: ClassVar[int] = 30

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return three charts for every quantity; see `Section.content`."""
        parts = []
        for one in subject.quantities:
            charts = [history_chart(one), *correlation_chart(one), histogram_chart(one)]
            parts.append(element("h3", f"{one.name} ({one.table})"))
            parts.append(element("div", *(chart.html() for chart in charts), class_="charts"))
        return parts


SECTIONS.register(SeriesSection())


def history_chart(quantity: Quantity) -> Chart:
    """Return the chart of a quantity along the chains, with running averages and their errors.

    Long series are drawn as the range from the smallest to the largest value in each piece.
    """
    updates = np.unique(np.concatenate([one.sweeps for one in quantity.series]))
    share = max(1, len(quantity.series) / MANY_RUNS)
    whole = updates.size <= MOST_PLACES / share
    edges = np.linspace(updates[0], updates[-1] + 1, int(PIECES / share) + 1)
    x = updates if whole else (edges[:-1] + edges[1:]) / 2
    lines: list[ChartLine] = []
    for number, one in enumerate(quantity.series):
        mean, error = running(one)
        name = f"{one.label}: " if len(quantity.series) > 1 else ""
        if whole:
            places = np.searchsorted(updates, one.sweeps)
            values, means, errors = (np.full(x.size, math.nan) for _ in range(3))
            values[places], means[places], errors[places] = one.values, mean, error
            lines.append(ChartLine(f"{name}value", values, colour=number, look="thin"))
        else:
            piece = np.searchsorted(edges, one.sweeps, side="right") - 1
            low, high = _ranges(piece, one.values, x.size)
            lines.append(ChartLine(f"{name}smallest", low, colour=number, look="range"))
            lines.append(ChartLine(f"{name}largest", high, colour=number, look="range"))
            means, errors = (_last(piece, own, x.size) for own in (mean, error))
        lines.append(ChartLine(f"{name}running average", means, errors, colour=number))
    cut = max(one.cut for one in quantity.series)
    what = f"{quantity.name} after each update of {_runs(quantity)}, with its running average."
    finals = [f"{one.label}: {one.average.format()}" for one in quantity.series]
    description = f"{what} Averages: {'; '.join(finals)}."
    if cut:
        description += f" Updates up to {cut} are left out of them."
    shown = float(cut) if cut >= updates[0] else None
    return Chart("Time series", "update", quantity.column.short, x, lines, description, shown)


def running(series: ChainSeries) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return running averages of what is kept, with errors by tau_int of the whole; else NaN."""
    kept = series.sweeps > series.cut
    values = series.values[kept]
    mean, error = (np.full(kept.size, math.nan) for _ in range(2))
    if values.size:
        n = np.arange(1, values.size + 1)
        shifted = values - values.mean()
        first, second = np.cumsum(shifted) / n, np.cumsum(shifted**2) / n
        tau = series.average.tau_int
        spread = np.sqrt(np.maximum(second - first**2, 0))
        mean[kept] = first + values.mean()
        error[kept] = np.where(n > 2 * tau, spread * np.sqrt(2 * tau / n), math.nan)
    return mean, error


def correlation_chart(quantity: Quantity) -> list[Chart]:
    """Return the chart of the autocorrelation functions; nothing if there is no fluctuation."""
    found = []
    for number, one in enumerate(quantity.series):
        kept = one.kept
        if kept.size >= 8 and np.ptp(kept) > 0 and np.ptp(np.diff(one.sweeps)) == 0:
            tau = one.average.tau_int
            lags = max(8, min(MOST_LAGS, math.ceil(12 * tau)))
            rho, error = autocorrelation(kept, lags, math.ceil(6 * tau))
            found.append((number, one, one.every or 1, tau, rho, error))
    if not found:
        return []
    x = np.unique(np.concatenate([every * np.arange(rho.size) for _, _, every, _, rho, _ in found]))
    lines, words = [], []
    for number, one, every, tau, rho, error in found:
        values, errors = (np.full(x.size, math.nan) for _ in range(2))
        places = np.searchsorted(x, every * np.arange(rho.size))
        values[places], errors[places] = rho, error
        name = f"{one.label}: " if len(found) > 1 else ""
        lines.append(ChartLine(f"{name}ρ", values, errors, colour=number))
        words.append(f"{one.label}: τ_int = {every * tau:.3g} updates")
    what = f"Autocorrelation function of {quantity.name}. {'; '.join(words)}."
    return [Chart("Autocorrelation", "distance in updates", "ρ", x, lines, what, zero=True)]


def histogram_chart(quantity: Quantity) -> Chart:
    """Return the chart of the distributions of what is kept."""
    kept = [one.kept for one in quantity.series]
    every = np.concatenate(kept)
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    count = min(40, max(5, math.isqrt(max(map(len, kept)))))
    edges = np.linspace(low, high, count + 1)
    lines = []
    for number, (one, values) in enumerate(zip(quantity.series, kept, strict=True)):
        numbers = np.histogram(values, edges)[0]
        density = numbers / max(1, values.size) / np.diff(edges)
        label = f"{one.label}: density" if len(kept) > 1 else "density"
        lines.append(ChartLine(label, np.append(density, density[-1]), colour=number, look="steps"))
    what = f"Distribution of {quantity.name} in {_runs(quantity)}."
    return Chart("Distribution", quantity.column.short, "density", edges, lines, what, zero=True)


def _runs(quantity: Quantity) -> str:
    return ", ".join(one.label for one in quantity.series)


def _ranges(
    piece: NDArray[np.int64], values: NDArray[np.float64], pieces: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the smallest and the largest value in each piece; NaN in empty ones."""
    low, high = np.full(pieces, math.inf), np.full(pieces, -math.inf)
    np.minimum.at(low, piece, values)
    np.maximum.at(high, piece, values)
    empty = low > high
    low[empty] = high[empty] = math.nan
    return low, high


def _last(
    piece: NDArray[np.int64], values: NDArray[np.float64], pieces: int
) -> NDArray[np.float64]:
    """Return the last value in each piece; NaN in empty ones."""
    found = np.full(pieces, math.nan)
    found[piece] = values  # of several values for one place, NumPy keeps the last
    return found
