"""The potential of several couplings in units of r0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gauge_mc.analysis.potential.derived import FORCES
from gauge_mc.analysis.potential.loops import AXIS
from gauge_mc.analysis.potential.static_potential import StaticPotential
from gauge_mc.analysis.potential.strings import LUSCHER
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import load
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import require
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, WIDTH, look
from gauge_mc.plots.potential import PlotOfPotentials, Runs

HEADROOM = 0.15
"""Free space above and below the points, in units of their range."""


class ScalingPlot(PlotOfPotentials):
    """r0 [V(R) - V(r0)] of several runs against R/r0, where all couplings should agree."""

    name = "scaling"
    summary = "r₀ [V(R) − V(r₀)] against R/r₀ for several β (needs fit potential)"

    def plot(self, runs: Runs, path: Path) -> None:
        """Plot the results; see `plot_scaling`."""
        plot_scaling(runs, path)


PLOTS.register(ScalingPlot())


def plot_scaling(runs: Sequence[tuple[str, StaticPotential]], path: Path) -> None:
    """Plot r0 [V(R) - V(r0)] against R/r0 for several runs, with the string of Luescher.

    r0 and V(r0) are from the fit with B free. The error bars are those of V(R); the error of r0 is
    in the legend. Points off axis are hollow.

    Parameters
    ----------
    runs : sequence of (str, StaticPotential)
        Label and result of each run.
    path : Path
        File to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is no run, or r0 is not known.
    """
    require(runs)
    for label, result in runs:
        if not (result.free and math.isfinite(result.free.fit.r0.value)):
            raise GaugeError(
                f"r0 of {label or 'the run'} is not known; leave it out, or fit another window."
            )
    line = load("matplotlib.lines").Line2D
    with figure_file(path, (WIDTH, 4.6)) as figure:
        axes = figure.subplots()
        entries, least, largest, values, hollow = [], 1.0, 1.0, [], False
        for i, (label, result) in enumerate(runs):
            fit, own = result.trusted().fit, look(i)
            r0 = fit.r0.value
            x = np.array([one.distance for one in result.points]) / r0
            y = r0 * (fit.continuum(result.points) - fit.potential(np.array([r0]))[0])
            error = r0 * np.array([one.potential.error for one in result.points])
            style = {**own, "linestyle": "none"}
            on_axis = np.array([one.path == AXIS for one in result.points])
            for some, face in ((on_axis, own["color"]), (~on_axis, "white")):
                inner = {**style, "capsize": 0, "markerfacecolor": face, "zorder": 2}
                axes.errorbar(x[some], y[some], error[some], **inner)
            hollow |= not on_axis.all()
            entries.append((line([], [], **style), f"{typeset(label)}:  $r_0/a={fit.r0}$"))
            least, largest = min(least, float(x.min())), max(largest, float(x.max()))
            values += y.tolist()
        fine = np.linspace(least, 1.05 * largest, 300)
        slope = FORCES["r0"] + LUSCHER
        string = slope * (fine - 1) + LUSCHER * (1 / fine - 1)
        axes.plot(fine, string, color=GREY, zorder=1)
        entries.append((line([], [], color=GREY), r"string with $B=-\pi/12$, no parameter"))
        if hollow:
            style = {"color": GREY, "marker": "o", "linestyle": "none", "markerfacecolor": "white"}
            entries.append((line([], [], **style), "hollow: off axis"))
        margin = HEADROOM * (max(values) - min(values))
        axes.set_xlim(0, 1.05 * largest)
        axes.set_ylim(min(values) - margin, max(values) + margin)
        axes.set_xlabel("$R/r_0$")
        axes.set_ylabel(r"$r_0\,[V(R)-V(r_0)]$")
        add_heading(figure, axes, entries, columns=2)
