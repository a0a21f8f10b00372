"""Time series in figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.libraries import load

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.looks import GREY, SHADE
from gauge_mc.plots.figures.looks import look as look_of
from gauge_mc.plots.figures.pictures import Guide, Stroke

ZERO = Guide(0, style={"color": "0.7", "linewidth": 0.6, "zorder": 0})
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
    """Draw a series and its running mean, which is the mean of all values up to each update.

    Parameters
    ----------
    axes : Axes
        Frame to draw in.
    history : History
        The time series.
    look : dict
        Colour and marker of the run.
    skip : int
        Last update that is left out of the running mean.
    label : str
        Label of the running mean in the legend.
    """
    axes.plot(history.sweeps, history.values, **series_line(look["color"]), zorder=1)
    kept = history.after(skip)
    running = np.cumsum(kept.values) / np.arange(1, kept.values.size + 1)
    every = max(1, running.size // 8)  # about eight markers are legible
    marks = (every // 2, every)
    axes.plot(kept.sweeps, running, **mean_line(look), markevery=marks, zorder=3, label=label)


def series_line(colour: str) -> dict[str, Any]:
    """Return the style of the line that joins the measurements of a run."""
    return {"color": colour, "alpha": 0.55, "linewidth": 0.6}


def mean_line(look: dict[str, Any]) -> dict[str, Any]:
    """Return the style of a running mean, which is darker than the measurements below it."""
    rgb = load("matplotlib.colors").to_rgb(look["color"])
    return {**look, "color": tuple(0.6 * one for one in rgb), "linewidth": 1.4}


def shade_skipped(axes: Axes, histories: Sequence[History], skip: int) -> bool:
    """Shade the measurements that are left out of averages; return whether there are any."""
    first = min(history.sweeps[0] for history in histories)
    if skip >= first:
        axes.axvspan(first, skip + 0.5, color=SHADE, zorder=0)
    return bool(skip >= first)


def key_of_lines(looks: Sequence[dict[str, Any]], shaded: bool) -> list[tuple[Any, str]]:
    """Return handles and labels of a legend that says what the lines of a time series show.

    Parameters
    ----------
    looks : sequence of dict
        Colours and markers of the runs. If there are several, the key is grey.
    shaded : bool
        Whether measurements are shaded, because they are left out of averages.
    """
    own = looks[0] if len(looks) == 1 else {"color": GREY, "marker": ""}
    line, patch = load("matplotlib.lines").Line2D, load("matplotlib.patches").Patch
    entries = [
        (line([], [], **series_line(own["color"])), "each measurement"),
        (line([], [], **mean_line(own)), "running mean"),
    ]
    return [*entries, (patch(color=SHADE), "not averaged")] if shaded else entries


def draw_distribution(
    axes: Axes,
    history: History,
    look: dict[str, Any],
    horizontal: bool = True,
    filled: bool = True,
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


def normal_distribution(x: NDArray[Any], mean: float, variance: float, text: str) -> Stroke:
    """Return a normal distribution beside a time series, for comparison with its own."""
    density = np.exp(-((x - mean) ** 2) / (2 * variance)) / math.sqrt(2 * math.pi * variance)
    return Stroke(density, x, style={"color": look_of(1)["color"], "linewidth": 1.2}, text=text)


def finish_distribution(axes: Axes) -> None:
    """Begin the densities of a distribution beside a time series at 0, without ticks."""
    axes.set_xlim(left=0)
    axes.tick_params(which="both", bottom=False, top=False, labelbottom=False)


def describe_history(
    history: History, symbol: str = r"\mathrm{mean}", with_unit: bool = True
) -> str:
    """Return the mean, its error and tau_int of a series as text for a legend.

    Parameters
    ----------
    history : History
        The time series.
    symbol : str
        Symbol of the mean, as mathematical text; empty for the number alone.
    with_unit : bool
        Whether to state the unit of tau_int, if that is updates.
    """
    result = estimate(history.values)
    steps = np.diff(history.sweeps)
    even = steps.size > 0 and (steps == steps[0]).all()
    step, unit = (int(steps[0]), "updates") if even else (1, "measurements")
    mean = f"${symbol}{'=' if symbol else ''}{minus(result)}$"
    if not math.isfinite(result.error):
        return mean
    tau_int = with_error(result.tau_int * step, result.tau_int_error * step)
    words = f" {unit}" if with_unit or not even else ""
    return f"{mean},  $\\tau_\\mathrm{{int}}={tau_int}${words}"


def check_history(history: History, skip: int = 0) -> None:
    """Refuse a series that cannot be drawn.

    Raises
    ------
    GaugeError
        If the series is empty or contains a value that is not a number.
    UsageError
        If `skip` is negative, or no measurement was made after the update `skip`.
    """
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
