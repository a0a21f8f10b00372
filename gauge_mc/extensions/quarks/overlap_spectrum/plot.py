"""The distribution of the index beside the flow's charge, and of the lowest eigenvalues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.extensions.quarks.overlap_spectrum.analysis import (
    LEAST_IN_A_SECTOR,
    MOST_SECTOR,
    FlowedCharges,
    OverlapSpectrumFit,
    common,
    overlap_spectrum,
    read_chains,
)
from gauge_mc.extensions.quarks.overlap_spectrum.observable import SpectrumTable
from gauge_mc.fits.shared.files import tables_of_chains
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look, minus
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Sketch, Stroke
from gauge_mc.plots.runs import TablePlot, labels_of, one_run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
        picture = _picture(*read_chains(tables, options))
        replace(picture, title=labels_of([tables[0].parent])[0]).draw(file)
        return []

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the histogram of the index and the distribution of the lowest eigenvalue."""
        return _picture(*read_chains([table], options))


PLOTS.register(OverlapSpectrumPlot())


def _picture(table: SpectrumTable, flow: FlowedCharges | None) -> Picture:
    """Return the figure of an ensemble; the charge of the flow is rounded to integers."""
    found = overlap_spectrum(table, flow)
    text = rf"index, $\langle\mathrm{{index}}^2\rangle={minus(found.square)}$"
    bars = [_bars(table.index, -BAR / 2 if flow else 0.0, 0, text)]
    if flow and found.flow:
        rounded = minus(found.flow.square_rounded)
        text = rf"$Q$ of the flow, rounded, $\langle Q^2\rangle={rounded}$"
        bars.append(_bars(flow.rounded()[common(table, flow)[1]], BAR / 2, 1, text))
    largest = float(table.projected[:, 0].max())
    frames = [
        Frame(bars, "index, $Q$" if flow else "index", "configurations", finish=_set_integers),
        Frame(
            _cumulative(table, 2 * largest),
            r"$a\,\lambda_1$",
            "cumulative distribution",
            {"ylim": (0, 1), "xlim": (0, 1.05 * largest)},
            lambda axes: axes.locator_params("x", nbins=5, prune="lower"),
        ),
    ]
    return Picture(frames, 3.4, columns=2)


def _set_integers(axes: Axes) -> None:
    """Put the ticks of both axes at integers."""
    axes.locator_params(integer=True)


def _bars(values: Any, shift: float, number: int, text: str) -> Mark:
    """Return a histogram of integers."""
    integers, counts = np.unique(values, return_counts=True)
    own = {"color": look(number)["color"]}

    def draw(axes: Axes) -> Any:
        axes.bar(integers + shift, counts, BAR, **own)
        return load("matplotlib.patches").Patch(**own)

    return Sketch(draw, text=text)


def _cumulative(table: SpectrumTable, end: float) -> list[Mark]:
    """Return the fraction of configurations of each sector with a smaller lowest eigenvalue."""
    marks: list[Mark] = []
    for nu in range(MOST_SECTOR + 1):
        own = np.sort(table.projected[np.abs(table.index) == nu, 0])
        if own.size >= LEAST_IN_A_SECTOR:
            fractions = np.arange(1, own.size + 1) / own.size
            style = {"color": look(nu + 2)["color"], "drawstyle": "steps-post"}
            text = rf"$\lambda_1$, $|\mathrm{{index}}|={nu}$"
            marks.append(Stroke([0, *own, end], [0, *fractions, 1], style=style, text=text))
    said = f"no $|\\mathrm{{index}}|$ with {LEAST_IN_A_SECTOR} configurations"
    centred: dict[str, Any] = {"ha": "center", "va": "center"}
    nothing = Sketch(lambda axes: axes.text(0.5, 0.5, said, transform=axes.transAxes, **centred))
    return marks or [nothing]
