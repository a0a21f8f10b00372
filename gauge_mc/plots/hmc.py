"""The energies of trajectories of hybrid Monte Carlo."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.analysis.trajectories import (
    TRAJECTORY_COLUMNS,
    TrajectoryTable,
    read_trajectories,
)
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, SKIP, Plot
from gauge_mc.plots.figures.curves import integer_ticks
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.figures.series import History, draw_distribution, series_line
from gauge_mc.plots.runs.labels import labels_of, one_run

HEIGHT = 3.2
"""Height of the figure in inches."""


class HmcPlot(Plot):
    """The change of the energy in every trajectory of a run, and its distribution."""

    name = "hmc"
    summary = "history and distribution of ΔH, with the acceptance"
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the energies of one run; see `Plot.draw`."""
        skip = options.get(SKIP.name, 0)
        run = one_run(runs, "The energy of trajectories")
        table = read_trajectories(find_table_by_columns(run, TRAJECTORY_COLUMNS), skip)
        plot_energies(table, file, labels_of([run])[0])
        return []


PLOTS.register(HmcPlot())


def plot_energies(table: TrajectoryTable, path: Path, title: str = "") -> None:
    """Plot the change of the energy along the Markov chain beside its distribution.

    Rejected trajectories are marked. The normal distribution with the measured <dH>, whose variance
    is 2 <dH>, is drawn for comparison.

    Parameters
    ----------
    table : TrajectoryTable
        The trajectories to draw.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`.
    """
    change, rejected = table.columns["delta_h"], table.columns["accepted"] == 0
    mean, weight = estimate(change), estimate(np.exp(-change))
    acceptance = estimate(table.columns["accepted"])
    colour, other = look(0)["color"], look(1)["color"]
    line = load("matplotlib.lines").Line2D
    marks = {"marker": "x", "markersize": 3, "linestyle": "none", "color": other}
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        series, distribution = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1.2))
        style = series_line(colour)
        series.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        series.plot(table.sweeps, change, **style)
        series.plot(table.sweeps[rejected], change[rejected], **marks)
        series.margins(x=0.02)
        integer_ticks(series)
        series.set_xlabel("update")
        series.set_ylabel(r"$\Delta H$")
        draw_distribution(distribution, History("", table.sweeps, change), look(0))
        entries = [
            (line([], [], **style), rf"$\langle\Delta H\rangle={minus(mean)}$"),
            (line([], [], **marks), f"rejected; acceptance {acceptance}"),
            (line([], [], linestyle="none"), rf"$\langle e^{{-\Delta H}}\rangle={minus(weight)}$"),
        ]
        if mean.value > 0:
            h = np.linspace(change.min(), change.max(), 200)
            density = np.exp(-((h - mean.value) ** 2) / (4 * mean.value))
            density /= math.sqrt(4 * math.pi * mean.value)
            normal = distribution.plot(density, h, color=other, linewidth=1.2)[0]
            entries.append((normal, r"normal distribution of variance $2\,\langle\Delta H\rangle$"))
        distribution.set_xlim(left=0)
        distribution.set_xlabel("distribution")
        distribution.tick_params(which="both", bottom=False, top=False, labelbottom=False)
        add_heading(figure, series, entries, title, columns=2)
