"""The energies of trajectories of hybrid Monte Carlo."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.analysis.trajectories import (
    FORCE,
    GAUGE,
    ITERATIONS,
    LARGEST,
    SMALLEST,
    TRAJECTORY_COLUMNS,
    TrajectoryTable,
    read_trajectories,
)
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import integer_ticks
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.figures.series import History, draw_distribution, series_line
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.run.thermalisation import SKIP

HEIGHT = 3.2
"""Height of the frame of the energy in inches."""

LOWER = 1.8
"""Height of the frames of forces and of iterations in inches."""


class HmcPlot(TablePlot):
    """The change of the energy in every trajectory of a run, and its distribution.

    With quarks, the forces of all terms of the action and the iterations of their solvers as well.
    """

    name = "hmc"
    summary = "ΔH with its distribution, acceptance; forces and iterations of quarks"
    subject: ClassVar[str] = "The energy of trajectories"
    columns: ClassVar[tuple[str, ...]] = TRAJECTORY_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the energies; see `TablePlot.draw_table`."""
        plot_energies(read_trajectories(table, options.get(SKIP.name, 0)), file, label)


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
    done = ~table.failed  # the energy of the others is not known
    sweeps, change = table.sweeps[done], table.columns["delta_h"][done]
    rejected = table.columns["accepted"][done] == 0
    mean, weight = estimate(change), estimate(np.exp(-change))
    acceptance = estimate(table.columns["accepted"])
    colour, other = look(0)["color"], look(1)["color"]
    line = load("matplotlib.lines").Line2D
    marks = {"marker": "x", "markersize": 3, "linestyle": "none", "color": other}
    terms, ends = table.terms, f"{SMALLEST}_"
    spectrum = any(name.startswith(ends) for name in table.columns)
    rows = 1 + 2 * bool(terms) + spectrum
    with figure_file(path, (WIDTH, HEIGHT + (rows - 1) * LOWER)) as figure:
        ratios = (HEIGHT, *[LOWER] * (rows - 1))
        frames = figure.subplots(
            rows, 2, squeeze=False, width_ratios=(4, 1.2), height_ratios=ratios
        )
        series, distribution = frames[0]
        distribution.sharey(series)
        distribution.tick_params(labelleft=False)
        style = series_line(colour)
        series.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        series.plot(sweeps, change, **style)
        series.plot(sweeps[rejected], change[rejected], **marks)
        series.margins(x=0.02)
        integer_ticks(series)
        frames[-1][0].set_xlabel("update")
        series.set_ylabel(r"$\Delta H$")
        for frame in frames[1:, 0]:
            frame.sharex(series)
        if terms:
            _draw_terms(frames[1:], table)
        draw_distribution(distribution, History("", sweeps, change), look(0))
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


def _draw_terms(frames: Any, table: TrajectoryTable) -> None:
    """Draw the forces of the terms of the action, and the iterations of their solvers.

    The ends of the spectrum follow where there is a rational function. Each row of frames has a
    series, and room for the names of the terms beside it.
    """
    (forces, names), (iterations, _), *rest = frames
    done = ~table.failed
    endings = {GAUGE: "", **{name: f"_{name}" for name in table.terms}}
    for place, (name, ending) in enumerate(endings.items()):
        style = series_line(look(place)["color"])
        forces.plot(table.sweeps[done], table.columns[f"{FORCE}{ending}"][done], **style)
        names.plot([], [], **style, label=name)
        counts = table.columns.get(f"{ITERATIONS}{ending}", np.zeros(1))
        if counts.any():
            iterations.plot(table.sweeps, counts, **style)
        for kind in (SMALLEST, LARGEST):
            if f"{kind}{ending}" in table.columns:
                rest[0][0].plot(table.sweeps[done], table.columns[f"{kind}{ending}"][done], **style)
    forces.set_yscale("log")
    forces.set_ylabel(r"rms $|F|$")
    iterations.set_ylabel("iterations")
    iterations.set_ylim(bottom=0)
    for series, _ in rest:
        series.set_yscale("log")
        series.set_ylabel("ends of the spectrum")
    for frame in frames[:, 1]:
        frame.axis("off")
    names.legend(loc="upper left", borderaxespad=0)
