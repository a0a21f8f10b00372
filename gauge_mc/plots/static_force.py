"""The force between static charges, and the scales that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc.analysis.figures import (
    GREY,
    LINE,
    WIDTH,
    add_heading,
    figure_file,
    look,
    require,
    typeset,
)
from gauge_mc.analysis.loops import AXIS
from gauge_mc.analysis.potential import FORCES, StaticPotential
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load
from gauge_mc.plots import PLOTS
from gauge_mc.plots.potential import PlotOfPotentials, Runs

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SYMBOLS = {"r0": "r_0", "r1": "r_1", "rc": "r_c"}
"""Symbols of the scales, as mathematical text."""

HEADROOM = 2.5
"""Upper end of the axis in units of the force that defines r0."""

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

    Points off axis are hollow. Bands show the scales of the first run, between the axis and the
    value that defines each.

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
                f"The result of {label or 'the run'} has no forces; run gauge-mc fit potential "
                "again."
            )
    with figure_file(path, (WIDTH, 3.4 + 2.6 * LINE * len(runs))) as figure:
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
        top = HEADROOM * max(FORCES.values())
        shown = [one.distance for _, r in runs for one in r.force if one.scaled.value < top]
        axes.set_xlim(0, 1.05 * max(shown, default=1.0))
        axes.set_ylim(0, top)
        axes.set_xlabel(r"$r_\mathrm{I}/a$")
        axes.set_ylabel(r"$r_\mathrm{I}^2\,F(r_\mathrm{I})$")
        add_heading(figure, axes, entries, columns=2)


def _draw(axes: Axes, result: StaticPotential, own: dict[str, Any]) -> Any:
    """Draw the forces of a run, and return a handle for the legend."""
    for on_axis in (True, False):
        some = [
            one
            for one in result.force
            if (one.path == AXIS) == on_axis
            and one.scaled.error < LARGEST_ERROR * abs(one.scaled.value)
        ]
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
