"""The Polyakov loop in the complex plane, and the time series of its modulus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc.analysis.figures import (
    WIDTH,
    History,
    check_history,
    describe_history,
    draw_distribution,
    draw_history,
    figure_file,
    look,
    require,
)
from gauge_mc.observables import OBSERVABLES, SWEEP
from gauge_mc.plots import PLOTS, Plot, labels_of, require_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

REAL = 1e-12
"""Threshold below which an imaginary part counts as zero, as it is in SU(2)."""


class PolyakovPlot(Plot):
    """The Polyakov loop in the complex plane, and the time series of its modulus."""

    name = "polyakov"
    summary = "Polyakov loop in the complex plane, and its modulus"

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw all runs in one frame; see `Plot.draw`."""
        observable = OBSERVABLES[self.name]
        histories = []
        for label, run in zip(labels_of(runs), runs, strict=True):
            columns = require_table(run, observable).columns
            values = columns["re"] + 1j * columns["im"]
            histories.append(History(label, columns[SWEEP], values))
        plot_polyakov(histories, file)
        return []


PLOTS.register(PolyakovPlot())


def plot_polyakov(runs: Sequence[History], path: Path) -> None:
    """Plot Polyakov loops in the complex plane, and the time series of their modulus.

    Dotted lines show the directions of the centre Z(3). If all loops are real, as they are in
    SU(2), their distribution is shown instead of the plane.

    Parameters
    ----------
    runs : sequence of History
        Series of complex values: the lattice average of Tr/N for every measurement.
    path : Path
        File to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`. GaugeError is also raised if there is no data to plot.
    """
    require(runs)
    for run in runs:
        check_history(run)
    real = all(np.abs(np.imag(run.values)).max() < REAL for run in runs)
    with figure_file(path, (WIDTH, 3.3 + 0.2 * len(runs))) as figure:
        plane, series = figure.subplots(1, 2, width_ratios=(1, 1.2))
        for i, run in enumerate(runs):
            size = History(run.label, run.sweeps, np.abs(run.values))
            draw_history(series, size, look(i), describe_history(size))
            if real:
                draw_distribution(plane, run, look(i), horizontal=False)
            else:
                plane.scatter(
                    run.values.real, run.values.imag, s=9, alpha=0.6, linewidth=0, **look(i)
                )
        if real:
            _finish_line(plane)
        else:
            _finish_plane(plane)
        series.set_xlabel("update")
        series.set_ylabel("$|L|$")
        series.set_ylim(bottom=0)
        figure.legend(loc="outside upper center", title="running mean of $|L|$")


def _finish_line(axes: Axes) -> None:
    """Label a distribution of real Polyakov loops."""
    axes.axvline(0, color="0.5", linestyle=":", linewidth=0.8)
    axes.set_box_aspect(1)
    axes.set_ylim(bottom=0)
    axes.tick_params(which="both", left=False, right=False, labelleft=False)
    axes.set_xlabel("$L$")
    axes.set_ylabel("distribution")


def _finish_plane(axes: Axes) -> None:
    """Draw the directions of the centre of SU(3), and make the axes square and centred on 0."""
    reach = 1.1 * max(np.abs(axes.dataLim.get_points()).max(), 1e-6)
    for k in range(3):
        direction = 2 * reach * np.exp(2j * np.pi * k / 3)
        ends = (0, direction.real), (0, direction.imag)
        axes.plot(*ends, color="0.5", linestyle=":", linewidth=0.8, zorder=0)
    axes.set_xlim(-reach, reach)
    axes.set_ylim(-reach, reach)
    axes.set_box_aspect(1)
    axes.set_xlabel(r"Re$\,L$")
    axes.set_ylabel(r"Im$\,L$")
