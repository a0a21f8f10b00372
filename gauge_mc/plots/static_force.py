"""The force between static charges, and the scales that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc.analysis.potential.derived import FORCES
from gauge_mc.analysis.potential.forces import ForcePoint
from gauge_mc.analysis.potential.loops import AXIS
from gauge_mc.analysis.potential.static_potential import StaticPotential
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, LINE, WIDTH, look
from gauge_mc.plots.potential import PlotOfPotentials, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SYMBOLS = {"r0": "r_0", "r1": "r_1", "rc": "r_c"}
"""Symbols of the scales, as mathematical text."""

HEADROOM = 1.06
"""Upper end of the axis in units of the largest force, with its error, and of that at r0."""

LARGEST_ERROR = 0.25
"""Maximum relative error of a force that is drawn; larger errors would hide the others."""


class ForcePlot(PlotOfPotentials):
    """r^2 F(r) of one or more runs at tree-level improved distances, with r0, r1 and r_c."""

    name = "static-force"
    summary = "r² F(r) at improved distances, with r₀, r₁ and r_c (needs fit potential)"

    def plot(self, runs: Runs, path: Path) -> None:
        """Plot the results; see `plot_force`."""
        plot_force(runs, path)


PLOTS.register(ForcePlot())


def plot_force(runs: Sequence[tuple[str, StaticPotential]], path: Path) -> None:
    """Plot r^2 F(r) with its error against r, for one or more runs.

    Points off axis are hollow. Forces with errors of more than a quarter are left out, and their
    number is stated. Bands show the scales of a single run, between the axis and the value that
    defines each.

    Parameters
    ----------
    runs : sequence of (str, StaticPotential)
        Label and result of each run.
    path : Path
        File to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is no run, or no force.
    """
    require(runs)
    for label, result in runs:
        if not result.force:
            raise GaugeError(
                f"The result of {label or 'the run'} has no forces; fit the potential again."
            )
    shown = [one for _, result in runs for one in result.force if _is_known(one)]
    if not shown:
        raise GaugeError(
            f"All forces have errors of more than {LARGEST_ERROR:.0%}; measure more configurations."
        )
    with figure_file(path, (WIDTH, 3.6 + 2.6 * LINE * len(runs))) as figure:
        axes = figure.subplots()
        entries = []
        for i, (label, result) in enumerate(runs):
            own = look(i)
            drawn = _draw(axes, result, own)
            text = _scales(result)
            entries.append((drawn, "\n".join(filter(None, (typeset(label), text)))))
            if len(runs) == 1:
                _mark(axes, result, own["color"])
        for name, target in FORCES.items():
            axes.axhline(target, color=GREY, linestyle=":", linewidth=0.8, zorder=0)
            axes.annotate(
                f"${SYMBOLS[name]}$",
                (1.01, target),
                xycoords=("axes fraction", "data"),
                va="center",
            )
        highest = max(one.scaled.value + one.scaled.error for one in shown)
        lowest = min(one.scaled.value - one.scaled.error for one in shown)
        axes.set_xlim(0, 1.05 * max(one.distance for one in shown))
        axes.set_ylim(min(0, HEADROOM * lowest), HEADROOM * max(highest, *FORCES.values()))
        axes.set_xlabel(r"$r_\mathrm{I}/a$")
        axes.set_ylabel(r"$r_\mathrm{I}^2\,F(r_\mathrm{I})$")
        add_heading(figure, axes, [*entries, *_key(runs, len(shown))], columns=1)


def _is_known(force: ForcePoint) -> bool:
    """Return whether a force is known well enough to be drawn."""
    return force.scaled.error < LARGEST_ERROR * abs(force.scaled.value)


def _key(runs: Sequence[tuple[str, StaticPotential]], shown: int) -> list[tuple[Any, str]]:
    """Return the entries of the legend that explain symbols, errors, and what is left out."""
    every = [one for _, result in runs for one in result.force]
    line = load("matplotlib.lines").Line2D
    entries = []
    if any(one.path != AXIS for one in every):
        style = {"color": GREY, "marker": "o", "linestyle": "none", "markerfacecolor": "white"}
        entries.append((line([], [], **style), "hollow: off axis"))
    words = []
    if any(result.force_scales for _, result in runs):
        words.append("errors of the scales: statistical, and of the interpolation")
    if left_out := len(every) - shown:
        points = f"{left_out} points" if left_out > 1 else "one point"
        words.append(f"not drawn: {points} with errors of more than {LARGEST_ERROR:.0%}")
    return [*entries, *((line([], [], linestyle="none"), one) for one in words)]


def _draw(axes: Axes, result: StaticPotential, own: dict[str, Any]) -> Any:
    """Draw the forces of a run, and return a handle for the legend."""
    for on_axis in (True, False):
        some = [one for one in result.force if (one.path == AXIS) == on_axis and _is_known(one)]
        axes.errorbar(
            [one.distance for one in some],
            [one.scaled.value for one in some],
            [one.scaled.error for one in some],
            **own,
            linestyle="none",
            markerfacecolor=own["color"] if on_axis else "white",
        )
    return load("matplotlib.lines").Line2D([], [], **own, linestyle="none")


def _mark(axes: Axes, result: StaticPotential, colour: str) -> None:
    """Show each scale with its error as a band below the value that defines it."""
    for name, scale in result.force_scales.items():
        value, error = scale.value.value, scale.value.error
        ends = np.array([0, FORCES[name]])
        axes.plot(2 * [value], ends, color=colour, linewidth=0.8, zorder=0)
        band = (value - error, value + error)
        axes.fill_betweenx(ends, *band, color=colour, alpha=0.25, linewidth=0, zorder=0)


def _scales(result: StaticPotential) -> str:
    """Return the scales with their statistical and systematic errors as text."""
    found = result.force_scales
    return ",  ".join(f"${SYMBOLS[name]}/a={one}$" for name, one in found.items())
