"""Curves in figures: averages and rates against a variable, time series and distributions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from gauge_mc.analysis.timeseries import Estimate, estimate, with_error
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.libraries import load
from gauge_mc.plots.figures import pictures
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.results import documented, result_field

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@documented
@dataclass(frozen=True)
class AveragePoint:
    """A point of a plot of averages."""

    quantity: str = result_field("Name of the quantity.")
    ensemble: str = result_field("Group and lattice of the ensemble.")
    beta: float = result_field("Coupling.")
    average: Estimate = result_field("The average.")


@dataclass(frozen=True)
class AveragesTable:
    """The averages that a plot shows, as a table for the terminal."""

    label: str
    """Name of the quantity."""
    points: Sequence[AveragePoint]
    """Averages, in the order of the curves."""

    @classmethod
    def of(cls, label: str, curves: Curves) -> AveragesTable:
        """Return the averages of curves."""
        named = [(name, *point) for name, points in curves for point in points]
        return cls(label, [AveragePoint(label, *x) for x in named])

    def __rich__(self) -> Table:
        """Return a table for the terminal."""
        shown = Table("ensemble", "β", self.label, "τ_int", "measurements")
        for point in self.points:
            average = point.average
            tau = with_error(average.tau_int, average.tau_int_error)
            shown.add_row(
                point.ensemble, f"{point.beta:g}", str(average), tau, str(average.samples)
            )
        return shown


Curves = Sequence[tuple[str, Sequence[tuple[float, Estimate]]]]
"""Curves of a plot: each has a label and points (value of the abscissa, average)."""


def draw_curves(axes: Axes, curves: Curves) -> None:
    """Draw averages with errors against a variable, joined by lines to guide the eye."""
    for i, (label, points) in enumerate(curves):
        x = np.array([x for x, _ in points])
        value = np.array([x.value for _, x in points])
        error = np.nan_to_num([x.error for _, x in points])
        axes.plot(x, value, color=pictures.look(i)["color"], alpha=0.4, linewidth=0.8)
        axes.errorbar(
            x, value, error, **pictures.look(i), linestyle="none", label=pictures.typeset(label)
        )


def draw_panels(panels: Sequence[tuple[str, Curves]], abscissa: str, path: Path) -> None:
    """Draw averages of several quantities against one variable, in panels below each other."""
    require(panels)
    for _, curves in panels:
        require(curves)
    with figure_file(path, (pictures.WIDTH, 2.4 + 1.8 * len(panels))) as figure:
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
        style = {"textcoords": "offset points", "va": "center", "color": pictures.look(i)["color"]}
        for x, point in points:
            axes.annotate(f"${pictures.minus(point)}$", (x, point.value), (12, 0), **style)


def integer_ticks(axes: Axes) -> None:
    """Put the ticks of the abscissa at integers only."""
    ticker = load("matplotlib.ticker")
    axes.xaxis.set_major_locator(ticker.MaxNLocator(integer=True))
    axes.xaxis.set_minor_locator(ticker.NullLocator())


def require(items: Sequence[object]) -> None:
    """Refuse an empty list of things to plot."""
    if not items:
        raise GaugeError("There is nothing to plot: no run with measurements was given.")


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
    """Draw rates on logarithmic axes, with the limits of a copy as dashed lines."""
    require([curve for curve in curves if curve.points])
    panels = [*dict.fromkeys(curve.panel for curve in curves)]
    labels = [*dict.fromkeys(curve.label for curve in curves)]
    size = (pictures.WIDTH + PANEL * (len(panels) - 1), 3.6 + 0.1 * len(labels))
    with figure_file(path, size) as figure:
        frames = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        handles: dict[str, Any] = {}
        for curve in curves:
            axes = frames[panels.index(curve.panel)]
            style = pictures.look(labels.index(curve.label))
            handles.setdefault(curve.label, _draw(axes, curve, style, ideal))
        for axes, panel in zip(frames, panels, strict=True):
            axes.set_title(pictures.typeset(panel))
            _set_axes(axes, ticks)
            axes.set_xlabel(abscissa)
        frames[0].set_ylabel(ordinate)
        entries = [(line, pictures.typeset(label)) for label, line in handles.items()]
        entries += _dashed(any(curve.limits for curve in curves), ideal)
        pictures.add_heading(figure, frames[0], entries, title, 2)


def _draw(axes: Axes, curve: RateCurve, style: dict[str, Any], ideal: bool) -> Any:
    """Draw a curve with its limits, and return its line."""
    x, rates = zip(*curve.points, strict=True)
    (line,) = axes.plot(x, rates, **style)
    if curve.limits:
        axes.plot(*zip(*curve.limits, strict=True), color=style["color"], dashes=(4, 2))
    if ideal:
        scaled = [rates[0] * y / x[0] for y in x]
        axes.plot(x, scaled, color=style["color"], linestyle=":", linewidth=0.8)
    return line


def _set_axes(axes: Axes, ticks: Sequence[tuple[float, str]]) -> None:
    """Make the axes logarithmic; positions in a list, which begin at 0, stay linear."""
    ticker = load("matplotlib.ticker")
    if ticks[0][0] > 0:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([x for x, _ in ticks], [pictures.typeset(text) for _, text in ticks])
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda y, _: f"{y:.6g}"))
    axes.minorticks_off()


def _dashed(limits: bool, ideal: bool) -> list[tuple[Any, str]]:
    """Return the entries of the legend for lines without markers."""
    line, grey = load("matplotlib.lines").Line2D, {"color": pictures.GREY, "linewidth": 1.0}
    entries = [(line([], [], dashes=(4, 2), **grey), "limit of a copy")] if limits else []
    return entries + ([(line([], [], linestyle=":", **grey), "proportional")] if ideal else [])


ZERO = pictures.Guide(0, style={"color": "0.7", "linewidth": 0.6, "zorder": 0})
"""The line at zero of a time series."""


@dataclass(frozen=True)
class History:
    """A time series of one run."""

    label: str
    """Name of the run in the legend."""
    sweeps: NDArray[np.int64]
    """Number of the update after which each measurement was made, ascending, of shape (samples,).
    """
    values: NDArray[Any]
    """The measurements, of shape (samples,)."""

    def after(self, update: int) -> History:
        """Return the measurements that were made after an update."""
        later = self.sweeps > update
        return History(self.label, self.sweeps[later], self.values[later])


def draw_history(
    axes: Axes, history: History, look: dict[str, Any], skip: int = 0, label: str = ""
) -> None:
    """Draw a series and its running mean, which is the mean of all values up to each update."""
    axes.plot(history.sweeps, history.values, **series_line(look["color"]), zorder=1)
    thermalised = history.after(skip)
    running = np.cumsum(thermalised.values) / np.arange(1, thermalised.values.size + 1)
    every = max(1, running.size // 8)  # about eight markers are legible
    marks = (every // 2, every)
    axes.plot(
        thermalised.sweeps, running, **mean_line(look), markevery=marks, zorder=3, label=label
    )


def series_line(colour: str) -> dict[str, Any]:
    """Return the style of the line that joins the measurements of a run."""
    return {"color": colour, "alpha": 0.55, "linewidth": 0.6}


def mean_line(look: dict[str, Any]) -> dict[str, Any]:
    """Return the style of a running mean, which is darker than the measurements below it."""
    rgb = load("matplotlib.colors").to_rgb(look["color"])
    return {**look, "color": tuple(0.6 * x for x in rgb), "linewidth": 1.4}


def shade_skipped(axes: Axes, histories: Sequence[History], skip: int) -> bool:
    """Shade the measurements that are left out of averages; return whether there are any."""
    first = min(history.sweeps[0] for history in histories)
    if skip >= first:
        axes.axvspan(first, skip + 0.5, color=pictures.SHADE, zorder=0)
    return bool(skip >= first)


def key_of_lines(looks: Sequence[dict[str, Any]], shaded: bool) -> list[tuple[Any, str]]:
    """Return handles and labels of a legend that says what the lines of a time series show."""
    style = looks[0] if len(looks) == 1 else {"color": pictures.GREY, "marker": ""}
    line, patch = load("matplotlib.lines").Line2D, load("matplotlib.patches").Patch
    entries = [
        (line([], [], **series_line(style["color"])), "each measurement"),
        (line([], [], **mean_line(style)), "running mean"),
    ]
    return [*entries, (patch(color=pictures.SHADE), "not averaged")] if shaded else entries


def draw_distribution(
    axes: Axes, history: History, look: dict[str, Any], horizontal: bool = True, filled: bool = True
) -> None:
    """Draw a histogram of a series that is not constant; for complex values, of real parts."""
    values = np.real(history.values)
    if not np.ptp(values) > 0:  # one bin around a single value would set the scale
        return
    bins = min(40, max(5, math.isqrt(values.size)))  # square-root rule, within legible limits
    density, edges = np.histogram(values, bins, density=True)
    draw_density(axes, density, edges, look, horizontal, filled)


def draw_density(
    axes: Axes,
    density: NDArray[Any],
    edges: NDArray[Any],
    look: dict[str, Any],
    horizontal: bool = True,
    filled: bool = True,
) -> None:
    """Draw a histogram, given its densities and the edges of its bins."""
    orientation: Any = "horizontal" if horizontal else "vertical"
    axes.stairs(density, edges, orientation=orientation, color=look["color"])
    if filled:
        shade = {"color": look["color"], "fill": True, "alpha": 0.2}
        axes.stairs(density, edges, orientation=orientation, **shade)


def normal_distribution(
    x: NDArray[Any], mean: float, variance: float, text: str
) -> pictures.Stroke:
    """Return a normal distribution beside a time series, for comparison with its own."""
    density = np.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return pictures.Stroke(
        density, x, style={"color": pictures.look(1)["color"], "linewidth": 1.2}, text=text
    )


def finish_distribution(axes: Axes) -> None:
    """Begin the densities of a distribution beside a time series at 0, without ticks."""
    axes.set_xlim(left=0)
    axes.tick_params(which="both", bottom=False, top=False, labelbottom=False)


def describe_history(
    history: History, symbol: str = r"\mathrm{mean}", with_unit: bool = True
) -> str:
    """Return the mean, its error and tau_int of a series as text for a legend."""
    result = estimate(history.values)
    steps = np.diff(history.sweeps)
    even = steps.size > 0 and (steps == steps[0]).all()
    step, unit = (int(steps[0]), "updates") if even else (1, "measurements")
    mean = f"${symbol}{'=' if symbol else ''}{pictures.minus(result)}$"
    if not math.isfinite(result.error):
        return mean
    tau_int = with_error(result.tau_int * step, result.tau_int_error * step)
    words = f" {unit}" if with_unit or not even else ""
    return f"{mean},  $\\tau_\\mathrm{{int}}={tau_int}${words}"


def check_history(history: History, skip: int = 0) -> None:
    """Refuse a series that cannot be drawn."""
    if history.values.size == 0 or not np.isfinite(history.values).all():
        raise GaugeError(
            f"The series of {history.label or 'the run'} is empty or contains a value that is not "
            "a number."
        )
    if skip < 0:
        raise UsageError(f"--skip is {skip}; give 0 or a positive number of updates.")
    last = history.sweeps[-1]
    if skip >= last:
        raise UsageError(
            f"--skip {skip} leaves no measurements of {history.label or 'the run'}, whose last one "
            f"was made after update {last}; skip less."
        )
