"""The distribution of the index beside the flow's charge, and of the lowest eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.overlap.records import SpectrumTable
from gauge_mc.analysis.overlap.spectrum import (
    LEAST_IN_A_SECTOR,
    MOST_SECTOR,
    FlowedCharges,
    common,
    overlap_spectrum,
)
from gauge_mc.fits.overlap_spectrum import OverlapSpectrumFit, read_chains
from gauge_mc.fits.shared.tables import tables_of_chains
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.runs.labels import labels_of, one_run
from gauge_mc.plots.runs.table_plot import TablePlot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 3.4
"""Height of the figure in inches."""

BAR = 0.4
"""Width of a bar of the histograms."""


class OverlapSpectrumPlot(TablePlot):
    """Histograms of the index and of the flow's charge, and the lowest eigenvalue by sector."""

    name = "overlap-spectrum"
    summary = "index of the overlap operator beside the flow's charge, lowest eigenvalues"
    subject: ClassVar[str] = "The spectrum of the overlap operator"
    columns: ClassVar[tuple[str, ...]] = OverlapSpectrumFit.columns
    options: ClassVar[tuple[Option, ...]] = OverlapSpectrumFit.options
    skips_each: ClassVar[bool] = True

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw a run, or the chains in a folder together; see `Plot.draw`."""
        tables = tables_of_chains(one_run(runs, self.subject), self.columns)
        if not tables:
            return super().draw(runs, file, **options)
        label = labels_of([tables[0].parent])[0]
        plot_overlap_spectrum(*read_chains(tables, options), file, label)
        return []

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the distributions; see `TablePlot.draw_table`."""
        plot_overlap_spectrum(*read_chains([table], options), file, label)


PLOTS.register(OverlapSpectrumPlot())


def plot_overlap_spectrum(
    table: SpectrumTable, flow: FlowedCharges | None, path: Path, title: str = ""
) -> None:
    """Plot the histogram of the index and the cumulative distribution of the lowest eigenvalue.

    Parameters
    ----------
    table : SpectrumTable
        The spectra of an ensemble.
    flow : FlowedCharges, optional
        The charge of the flow; its histogram, rounded to integers, is beside that of the index.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`.
    """
    found = overlap_spectrum(table, flow)
    patch = load("matplotlib.patches").Patch
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        histogram, distribution = figure.subplots(1, 2)
        text = rf"index, $\langle\mathrm{{index}}^2\rangle={minus(found.square)}$"
        _draw_counts(histogram, table.index, -BAR / 2 if flow else 0.0, 0)
        entries = [(patch(color=look(0)["color"]), text)]
        if flow and found.flow:
            _draw_counts(histogram, flow.rounded()[common(table, flow)[1]], BAR / 2, 1)
            rounded = minus(found.flow.square_rounded)
            text = rf"$Q$ of the flow, rounded, $\langle Q^2\rangle={rounded}$"
            entries.append((patch(color=look(1)["color"]), text))
        histogram.set_xlabel("index, $Q$" if flow else "index")
        histogram.set_ylabel("configurations")
        for axis in (histogram.xaxis, histogram.yaxis):
            axis.get_major_locator().set_params(integer=True)
        entries += _draw_cumulative(distribution, table)
        distribution.set_xlabel(r"$a\,\lambda_1$")
        distribution.set_ylabel("cumulative distribution")
        distribution.set_ylim(0, 1)
        distribution.set_xlim(0, 1.05 * float(table.projected[:, 0].max()))
        distribution.xaxis.get_major_locator().set_params(nbins=5, prune="lower")
        add_heading(figure, histogram, entries, title, 2)


def _draw_counts(axes: Axes, values: Any, shift: float, number: int) -> None:
    """Draw how often each integer occurs."""
    integers, counts = np.unique(values, return_counts=True)
    axes.bar(integers + shift, counts, BAR, color=look(number)["color"])


def _draw_cumulative(axes: Axes, table: SpectrumTable) -> list[Any]:
    """Draw the fraction of configurations of each sector with a smaller lowest eigenvalue."""
    entries, end = [], 2 * float(table.projected[:, 0].max())  # beyond the frame
    for nu in range(MOST_SECTOR + 1):
        own = np.sort(table.projected[np.abs(table.index) == nu, 0])
        if own.size >= LEAST_IN_A_SECTOR:
            fractions = np.arange(1, own.size + 1) / own.size
            style = {"color": look(nu + 2)["color"]}
            (line,) = axes.step([0, *own, end], [0, *fractions, 1], where="post", **style)
            entries.append((line, rf"$\lambda_1$, $|\mathrm{{index}}|={nu}$"))
    if not entries:
        said = f"no $|\\mathrm{{index}}|$ with {LEAST_IN_A_SECTOR} configurations"
        axes.text(0.5, 0.5, said, ha="center", va="center", transform=axes.transAxes)
    return entries
