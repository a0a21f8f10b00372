"""Figures of a page: all plots, time series with their statistics, and charts for notebooks."""

from __future__ import annotations

import base64
import io
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries import autocorrelation
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData
from gauge_mc.fits.files import FitOfOtherTablesError, exactly_of_tables, is_of_other_tables
from gauge_mc.libraries import load
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.drawing import draw, options_to_draw
from gauge_mc.plots.figures.files import FigureFormat, drawn_as, figure_bytes, kept_figures
from gauge_mc.plots.figures.pictures import SUPERSCRIPTS
from gauge_mc.quantities.potential.static_potential import StaticPotential
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.charts import WIDTH, Chart, ChartLine
from gauge_mc.reports.markup import Markup, element, folded
from gauge_mc.reports.page import ChainSeries, Quantity, Subject, columns_of, single
from gauge_mc.run.thermalisation import SKIP, sentences_about

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_DRAWN = 2000
"""Number of points of a frame above which it has no chart."""

SYMBOLS = {
    "langle": "⟨", "rangle": "⟩", "beta": "β", "kappa": "κ", "mu": "μ", "tau": "τ", "chi": "χ",
    "sigma": "σ", "rho": "ρ", "lambda": "λ", "Delta": "Δ", "delta": "δ", "xi": "ξ", "gamma": "γ",
    "epsilon": "ε", "Lambda": "Λ", "Sigma": "Σ", "pi": "π", "alpha": "α", "nu": "ν", "times": "×",
    "sqrt": "√", "pm": "±", "ell": "ℓ", "infty": "∞", "cdot": "·", "approx": "≈", "Gamma": "Γ",
    "hat": "", "mathrm": "", "mathit": "", "bar": "", "left": "", "right": "", "quad": " ",
}  # fmt: skip
"""Symbols of mathematical text as letters."""


def plain(label: str) -> str:
    """Return a label of Matplotlib as plain text, such as ``⟨|L|⟩`` for its mathematical text."""

    def words(match: re.Match[str]) -> str:
        inner = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", match[1])
        inner = re.sub(r"\\([A-Za-z]+) ?", lambda x: SYMBOLS.get(x[1], x[1]), inner)
        inner = re.sub(r"\\[,;:! ]", " ", inner).replace("{-}", "−").replace("{=}", "=")
        inner = re.sub(r"\^(\{\d+\}|\d)", lambda x: x[1].translate(SUPERSCRIPTS), inner)
        return re.sub(r"[{}\\]", "", inner).replace(" ⟩", "⟩")

    text = re.sub(r"(?<!\\)\$(.*?)(?<!\\)\$", words, label, flags=re.S)
    return " ".join(text.replace(r"\$", "$").split())


def charts_of(figure: Figure, title: str) -> list[Chart]:
    """Return a chart for every frame of a figure that consists of curves and points with errors.

    Frames with logarithmic axes, with clouds of points, and with more than `MOST_DRAWN` points
    have none.
    """
    charts, cloud = [], load("matplotlib.collections").PathCollection
    for axes in figure.axes:
        curves = _without_guides([*_curves(axes)])
        if any(isinstance(c, cloud) for c in axes.collections):
            continue
        size = sum(curve.x.size for curve in curves)
        if {axes.get_xscale(), axes.get_yscale()} != {"linear"} or not 0 < size <= MOST_DRAWN:
            continue
        x = np.unique(np.concatenate([curve.x for curve in curves]))
        lines = [curve.line(x, number) for number, curve in enumerate(curves)]
        across, up = (plain(x) for x in (_across(axes), axes.get_ylabel()))
        heading = f"{up} against {across}" if up and across else up or across or title
        charts.append(Chart(heading, across, up, x, lines, f"{title}: {heading}."))
    return charts


def _without_guides(curves: list[_DrawnCurve]) -> list[_DrawnCurve]:
    """Return curves without lines that have no name and only join the points of others."""
    points = [(curve.x.tolist(), curve.y.tolist()) for curve in curves if not curve.joined]
    named = [(curve, bool(curve.label) or not curve.joined) for curve in curves]
    return [x for x, has in named if has or (x.x.tolist(), x.y.tolist()) not in points]


def _across(axes: Axes) -> str:
    """Return the label of the horizontal axis, which may be that of a frame that shares it."""
    xlabel = axes.get_xlabel()
    siblings = axes.get_shared_x_axes().get_siblings(axes)
    return xlabel or next((x.get_xlabel() for x in siblings if x.get_xlabel()), "")


@dataclass(frozen=True)
class _DrawnCurve:
    """A curve of a frame, or points with errors."""

    label: str
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    error: NDArray[np.float64] | None
    joined: bool

    def line(self, x: NDArray[np.float64], number: int) -> ChartLine:
        """Return the curve at the places of all curves."""
        places = np.searchsorted(x, self.x)
        values = placed(places, self.y, x.size)
        error = None if self.error is None else placed(places, self.error, x.size)
        look = "line" if self.joined else "points"
        label = self.label or f"curve {number + 1}"
        return ChartLine(label, values, error, number, look, joined=self.joined)


def _curves(axes: Axes) -> Iterator[_DrawnCurve]:
    """Yield the curves and the points with errors of a frame, as far as x tells points apart."""
    bars = load("matplotlib.container").ErrorbarContainer
    bar_lines: set[int] = set()
    for container in axes.containers:
        if isinstance(container, bars):
            data, caps, segments = container.lines
            bar_lines |= {id(line) for line in (data, *caps)}
            if data is not None:
                error = _error(segments[-1], container) if container.has_yerr else None
                yield from _curve(data, str(container.get_label()), error)
    for line in axes.lines:
        if id(line) not in bar_lines and line.get_transform() == axes.transData:
            yield from _curve(line, str(line.get_label()), None)


def _error(segments: Any, container: Any) -> NDArray[np.float64] | None:
    """Return half of the lengths of vertical bars; None if some points have none."""
    bars = [np.asarray(s, dtype=np.float64) for s in segments.get_segments()]
    if len(bars) != np.size(container.lines[0].get_xdata()) or any(len(x) < 2 for x in bars):
        return None
    return np.array([abs(x[1, 1] - x[0, 1]) / 2 for x in bars])


def _curve(line: Any, label: str, error: NDArray[np.float64] | None) -> Iterator[_DrawnCurve]:
    x, y = (np.asarray(datum, dtype=np.float64) for datum in line.get_data())
    finite = np.isfinite(x) & np.isfinite(y)
    order = np.argsort(x[finite], kind="stable")
    x, y = x[finite][order], y[finite][order]
    joined = line.get_linestyle() not in ("None", "none", " ", "")
    if x.size == 0 or np.unique(x).size < x.size or (joined and (np.diff(order) < 0).any()):
        return
    errors = None if error is None else error[finite][order]
    yield _DrawnCurve("" if label.startswith("_") else plain(label), x, y, errors, joined)


LARGEST = 120_000
"""Size of a drawing in bytes above which a picture takes its place."""

MOST_POINTS = 8000
"""Number of points of a figure above which it is not tried as a drawing."""

PICTURE_COLOURS = 64
"""Number of colours of such pictures."""

DPI = 130
"""Pixels per inch of such pictures."""


class PlotsSection(Section):
    """Every registered plot, as ``gauge-mc plot`` draws it with its usual options."""

    name: ClassVar[str] = "plots"
    title: ClassVar[str] = "Further figures"
    place: ClassVar[int] = 50

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the figures, and why others were not possible."""
        plots, missing = [], []
        runs = {run.path: run.label for run in subject.runs}
        for name, plot in PLOTS.items():
            if plot.of_several or name in subject.drawn:
                continue
            groups = [{path: path.name} for path in subject.scans] if plot.of_scans else [runs]
            shown = []
            for labels in groups:
                try:
                    shown += _figures(plot, labels, subject)
                except GaugeError as error:
                    missing.append(element("li", f"{name}: {error}"))
            if shown:
                pictures = element("div", *shown, class_="pictures")
                plots.append(element("div", element("h3", name), pictures, class_="plot"))
        parts = [element("div", *plots, class_="plots")]
        if missing:
            parts.append(folded("Figures that these tables do not allow", element("ul", *missing)))
        return parts


SECTIONS.register(PlotsSection())


def figures_of_fit(fit: str, labels: dict[Path, str], subject: Subject) -> list[Markup]:
    """Return the first figure of what a fit determines, by the labels of runs or scans."""
    for plot in PLOTS.values():
        if plot.fit == fit:
            with suppress(GaugeError):  # which the other figures say
                figures = _figures(plot, labels, subject)
                subject.drawn.add(plot.name)
                return [element("div", *figures, class_="pictures")]
    return []


def _figures(plot: Plot, labels: dict[Path, str], subject: Subject) -> list[Markup]:
    """Return the figures of a plot, which may show results of fits that the page has made."""
    try:
        with exactly_of_tables():
            return _drawn(plot, labels, subject)
    except GaugeError as error:
        if plot.of_scans or not any(subject.results.get(path) for path in labels):
            raise
        with _with_results([*labels], subject) as copies, suppress(GaugeError):
            named = {copy: labels[path] for path, copy in copies.items()}
            stale = isinstance(error, FitOfOtherTablesError)
            notes = [f"{error} The figure shows a fit that was made for this page."] * stale
            return _drawn(plot, named, subject, notes)
        raise


@contextmanager
def _with_results(paths: Sequence[Path], subject: Subject) -> Iterator[dict[Path, Path]]:
    """Return folders with links to the files of runs, and the results of fits that runs lack."""
    with TemporaryDirectory() as scratch:
        copies = {}
        for number, path in enumerate(paths):
            copies[path] = copy = Path(scratch, str(number), path.resolve().name)
            copy.mkdir(parents=True)
            for file in path.iterdir():
                if file.is_file() and not is_of_other_tables(file):
                    (copy / file.name).symlink_to(file.resolve())
            for name, result in subject.results.get(path, {}).items():
                if not (copy / name).exists():
                    result.write(copy / name)
        yield copies


def _drawn(
    plot: Plot, labels: dict[Path, str], subject: Subject, notes: Sequence[str] = ()
) -> list[Markup]:
    """Return a figure of all runs, or one of each run if the plot takes only one.

    Notes are shown below it, beside its cautions.
    """
    try:
        return [_figure(plot, labels, subject, notes)]
    except UsageError:
        if len(labels) < 2:
            raise
    return [_figure(plot, {path: label}, subject, notes) for path, label in labels.items()]


def _figure(plot: Plot, labels: dict[Path, str], subject: Subject, notes: Sequence[str]) -> Markup:
    paths = [*labels]
    skip = {SKIP.name: subject.skip} if SKIP in plot.options else {}
    options, _ = options_to_draw(plot, paths, skip)  # averages say what is left out
    with (
        TemporaryDirectory() as scratch,
        drawn_as(FigureFormat(dpi=DPI)),
        kept_figures() as figures,
    ):
        file = Path(scratch, f"{plot.name}.svg")
        _, cautions = draw(plot, paths, file, options, single)
        kind, content = "svg+xml", b""
        if not figures:  # a plot of another package, which writes its file itself
            content = file.read_bytes()
        elif _points(figures[0]) <= MOST_POINTS:
            content = figure_bytes(figures[0], "svg")
        if figures and not 0 < len(content) <= LARGEST:
            kind, content = "png", _with_few_colours(figure_bytes(figures[0], "png"))
    names = ", ".join(labels.values())
    source = f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
    yet_said = subject.not_yet_said([*notes, *sentences_about(cautions)])
    word = plot.summary[:2].isalpha()  # and no symbol such as t²
    caption = f"{plot.summary[:1].upper() if word else plot.summary[:1]}{plot.summary[1:]}: {names}"
    picture = element("img", src=source, alt=caption)
    charts = [chart.html() for figure in figures[:1] for chart in charts_of(figure, caption)]
    live = folded("Values, to zoom and to read", *charts) if charts else ""
    below = [element("p", line, class_="caution") for line in yet_said]
    return element("figure", picture, element("figcaption", caption), live, *below)


def _with_few_colours(picture: bytes) -> bytes:
    """Return a picture with `PICTURE_COLOURS`, which makes it smaller by a factor of four or so."""
    image = load("PIL.Image")
    with image.open(io.BytesIO(picture)) as original, io.BytesIO() as file:
        few = original.convert("RGB").quantize(PICTURE_COLOURS, image.Quantize.FASTOCTREE, dither=0)
        few.save(file, "png", optimize=True)
        return file.getvalue()


def _points(figure: Figure) -> int:
    """Return the number of points of the lines and clouds of a figure."""
    lines = sum(np.size(line.get_xdata()) for axes in figure.axes for line in axes.lines)
    clouds = (c.get_offsets() for axes in figure.axes for c in axes.collections)
    return int(lines + sum(np.shape(cloud)[0] for cloud in clouds))


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
        for quantity in subject.quantities:
            charts = [
                history_chart(quantity),
                *correlation_chart(quantity),
                histogram_chart(quantity),
            ]
            parts.append(element("h3", f"{quantity.name} ({quantity.table})"))
            parts.append(element("div", *(chart.html() for chart in charts), class_="charts"))
        return parts


SECTIONS.register(SeriesSection())


def history_chart(quantity: Quantity) -> Chart:
    """Return the chart of a quantity along the chains, with running averages and their errors.

    Long series are drawn as the range from the smallest to the largest value in each piece.
    """
    updates = np.unique(np.concatenate([series.sweeps for series in quantity.series]))
    share = max(1, len(quantity.series) / MANY_RUNS)
    unbinned = updates.size <= MOST_PLACES / share
    edges = np.linspace(updates[0], updates[-1] + 1, int(PIECES / share) + 1)
    x = updates if unbinned else (edges[:-1] + edges[1:]) / 2
    lines: list[ChartLine] = []
    for number, chain in enumerate(quantity.series):
        mean, error = running(chain)
        name = f"{chain.label}: " if len(quantity.series) > 1 else ""
        if unbinned:
            places = np.searchsorted(updates, chain.sweeps)
            values = placed(places, chain.values, x.size)
            lines.append(ChartLine(f"{name}value", values, colour=number, look="thin"))
        else:
            places = np.searchsorted(edges, chain.sweeps, side="right") - 1
            low, high = _ranges(places, chain.values, x.size)
            lines.append(ChartLine(f"{name}smallest", low, colour=number, look="range"))
            lines.append(ChartLine(f"{name}largest", high, colour=number, look="range"))
        means, errors = (placed(places, series, x.size) for series in (mean, error))
        lines.append(ChartLine(f"{name}running average", means, errors, colour=number))
    cut = max(series.cut for series in quantity.series)
    caption = f"{quantity.name} after each update of {_runs(quantity)}, with its running average."
    finals = [f"{series.label}: {series.average.format()}" for series in quantity.series]
    description = f"{caption} Averages: {'; '.join(finals)}."
    if cut:
        description += f" Updates up to {cut} are left out of them."
    shown = float(cut) if cut >= updates[0] else None
    return Chart("Time series", "update", quantity.column.short, x, lines, description, shown)


def running(series: ChainSeries) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return running averages of what is kept, with errors by tau_int of the whole; else NaN."""
    thermalised = series.sweeps > series.cut
    values = series.values[thermalised]
    mean, error = (np.full(thermalised.size, math.nan) for _ in range(2))
    if values.size:
        n = np.arange(1, values.size + 1)
        shifted = values - values.mean()
        first, second = np.cumsum(shifted) / n, np.cumsum(shifted**2) / n
        tau = series.average.tau_int
        spread = np.sqrt(np.maximum(second - first**2, 0))
        mean[thermalised] = first + values.mean()
        error[thermalised] = np.where(n > 2 * tau, spread * np.sqrt(2 * tau / n), math.nan)
    return mean, error


def correlation_chart(quantity: Quantity) -> list[Chart]:
    """Return the chart of the autocorrelation functions; nothing if there is no fluctuation."""
    curves = []
    for number, chain in enumerate(quantity.series):
        thermalised = chain.kept
        if thermalised.size >= 8 and np.ptp(thermalised) > 0 and np.ptp(np.diff(chain.sweeps)) == 0:
            tau = chain.average.tau_int
            lags = max(8, min(MOST_LAGS, math.ceil(12 * tau)))
            rho, error = autocorrelation(thermalised, lags, math.ceil(6 * tau))
            curves.append((number, chain, chain.every or 1, tau, rho, error))
    if not curves:
        return []
    x = np.unique(
        np.concatenate([every * np.arange(rho.size) for _, _, every, _, rho, _ in curves])
    )
    lines, words = [], []
    for number, chain, every, tau, rho, error in curves:
        places = np.searchsorted(x, every * np.arange(rho.size))
        values, errors = (placed(places, series, x.size) for series in (rho, error))
        name = f"{chain.label}: " if len(curves) > 1 else ""
        lines.append(ChartLine(f"{name}ρ", values, errors, colour=number))
        words.append(f"{chain.label}: τ_int = {every * tau:.3g} updates")
    caption = f"Autocorrelation function of {quantity.name}. {'; '.join(words)}."
    return [Chart("Autocorrelation", "distance in updates", "ρ", x, lines, caption, zero=True)]


def histogram_chart(quantity: Quantity) -> Chart:
    """Return the chart of the distributions of what is kept."""
    samples = [series.kept for series in quantity.series]
    every = np.concatenate(samples)
    low, high = (float(every.min()), float(every.max())) if every.size else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    count = min(40, max(5, math.isqrt(max(map(len, samples)))))
    edges = np.linspace(low, high, count + 1)
    lines = []
    for number, (chain, values) in enumerate(zip(quantity.series, samples, strict=True)):
        numbers = np.histogram(values, edges)[0]
        density = numbers / max(1, values.size) / np.diff(edges)
        label = f"{chain.label}: density" if len(samples) > 1 else "density"
        lines.append(ChartLine(label, np.append(density, density[-1]), colour=number, look="steps"))
    caption = f"Distribution of {quantity.name} in {_runs(quantity)}."
    return Chart("Distribution", quantity.column.short, "density", edges, lines, caption, zero=True)


def _runs(quantity: Quantity) -> str:
    return ", ".join(series.label for series in quantity.series)


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


def placed(
    places: NDArray[np.int64], values: NDArray[np.float64], size: int
) -> NDArray[np.float64]:
    """Return an array with values at some places, the last one of several, and NaN elsewhere."""
    array = np.full(size, math.nan)
    array[places] = values
    return array


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
