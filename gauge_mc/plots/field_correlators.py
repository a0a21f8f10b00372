"""Electric and magnetic correlators on the Polyakov loop, in units of leading order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.thermodynamics.field_correlators import (
    FieldCorrelatorPoint,
    LoopFieldCorrelators,
    field_correlators,
    read_field_series,
)
from gauge_mc.analysis.thermodynamics.flow_columns import FIELD_COLUMNS
from gauge_mc.errors import GaugeError
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.run.thermalisation import SKIP

HEIGHT = 3.4
"""Height of the figure in inches."""

MOST_CURVES = 6
"""Maximum number of flow times that are shown."""

FRAMES = (
    ("electric_ratio", r"$G_E/G_\mathrm{norm}$"),
    ("magnetic_ratio", r"$G_B/G_\mathrm{norm}$"),
)
"""Attribute and label of the two frames."""


class FieldCorrelatorsPlot(TablePlot):
    """G_E and G_B of one run in units of leading order, against tau T, at several flow times."""

    name = "field-correlators"
    summary = "electric and magnetic correlators on the Polyakov loop against τT"
    subject: ClassVar[str] = "A correlator on the Polyakov loop"
    columns: ClassVar[tuple[str, ...]] = FIELD_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the correlators; see `TablePlot.draw_table`."""
        found = field_correlators(read_field_series(table, options.get(SKIP.name, 0)))
        plot_field_correlators(found, file, label)


PLOTS.register(FieldCorrelatorsPlot())


def plot_field_correlators(found: LoopFieldCorrelators, path: Path, title: str = "") -> None:
    """Plot G_E and G_B divided by G_norm against tau T, a curve for each flow time.

    Parameters
    ----------
    found : LoopFieldCorrelators
        The correlators.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.

    Raises
    ------
    GaugeError
        If no correlator is in the range of flow times, or G_norm is not known; see also
        `figure_file`.
    """
    shown = [one for one in found.points if one.inside and one.electric_ratio is not None]
    if not shown:
        raise GaugeError(
            "There is no correlator with a smoothing radius √(8t) between a and τ/3 whose leading "
            "order is known; measure the flow at more times, or choose a larger N_t."
        )
    times = sorted({one.t for one in shown})
    chosen = [times[n] for n in np.unique(np.linspace(0, len(times) - 1, MOST_CURVES).astype(int))]
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        frames, entries = figure.subplots(1, len(FRAMES)), []
        for axes, (name, label) in zip(frames, FRAMES, strict=True):
            entries = [(_curve(axes, shown, name, t, n), _text(t)) for n, t in enumerate(chosen)]
            axes.set_ylabel(label)
            axes.set_xlabel(r"$\tau T$")
        add_heading(figure, frames[0], entries, title, columns=3)


def _text(t: float) -> str:
    return rf"$\sqrt{{8t}}={np.sqrt(8 * t):.2f}\,a$"


def _curve(axes: Any, points: Sequence[FieldCorrelatorPoint], name: str, t: float, n: int) -> Any:
    """Draw the points of a flow time whose leading order is known, and return their handle."""
    own = [one for one in points if one.t == t and getattr(one, name) is not None]
    values = [getattr(one, name) for one in own]
    return axes.errorbar(
        [one.scaled for one in own],
        [one.value for one in values],
        [one.error for one in values],
        **look(n),
        linewidth=0.8,
        markersize=4,
    )
