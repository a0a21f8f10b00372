"""The history of the topological charge and its distribution."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import Frame, KeyEntry, Picture, Sketch, Stroke
from gauge_mc.plots.figures.series import (
    ZERO,
    draw_density,
    finish_distribution,
    normal_distribution,
    series_line,
)
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quantities.flow.analysis.records import FLOW_COLUMNS, read_flow
from gauge_mc.quantities.flow.analysis.topology import (
    TopologicalCharge,
    charges_at,
    topological_charge,
)
from gauge_mc.quantities.flow.fits.scale import ENERGY, GOAL, TREE_LEVEL
from gauge_mc.quantities.flow.fits.topology import CHARGE, ROUND, TIME, choice_of_charge
from gauge_mc.run.thermalisation import SKIP


class TopologyPlot(TablePlot):
    """The topological charge of one run along the Markov chain, and its distribution."""

    name = "topology"
    summary = "history and distribution of the topological charge"
    subject: ClassVar[str] = "The topological charge"
    columns: ClassVar[tuple[str, ...]] = FLOW_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (CHARGE, TIME, ROUND, ENERGY, GOAL, TREE_LEVEL, SKIP)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show the charge at one flow time, and a normal distribution of the measured <Q^2>."""
        flow, choice = read_flow(table, options.get(SKIP.name, 0)), choice_of_charge(options)
        result = topological_charge(flow, **choice)
        charges = charges_at(flow, **choice).values
        edges = _edges(charges, 1 if result.rounded else 1 / result.alpha)
        density, _ = np.histogram(charges, edges, density=True)
        style = series_line(look(0)["color"]) | {"alpha": 0.9, "linewidth": 0.7}
        bars = [Sketch(partial(draw_density, density=density, edges=edges, look=look(0)))]
        square, words = result.square.value, r"normal distribution of this $\langle Q^2\rangle$"
        fine = np.linspace(edges[0], edges[-1], 400)
        normal = [normal_distribution(fine, 0.0, square, words)] if square > 0 else []
        label = "$Q$ (rounded)" if result.rounded else "$Q$"
        series = [
            ZERO,
            Stroke(flow.sweeps, charges, style=style),
            KeyEntry(style=style, text=_legend(result)),
        ]
        frames = [
            Frame(series, "update", label, finish=lambda axes: axes.margins(x=0.02)),
            Frame([*bars, *normal], "distribution", finish=finish_distribution),
        ]
        about = f"{result.charge} charge at t/a² = {result.t:.4g}"
        layout = {"ncols": 2, "sharey": True, "width_ratios": (4, 1.2)}
        return Picture(frames, 3.2, about, layout=layout)


PLOTS.register(TopologyPlot())


def _edges(charges: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Return the edges of bins of this width, centred at its multiples: one for each sector."""
    beside = math.ceil(float(np.abs(charges).max()) / width)  # bins on each side of that around 0
    return np.asarray(width * (np.arange(-beside - 1, beside + 1) + 0.5))


def _legend(result: TopologicalCharge) -> str:
    """Return the moments and the autocorrelation time as text for a legend."""
    moments = [rf"$\langle Q\rangle={minus(result.mean)}$"]
    moments.append(rf"$\langle Q^2\rangle={minus(result.square)}$")
    tau = result.mean.format_tau(result.updates or 1)
    if tau:
        unit = "updates" if result.updates else "configurations"
        moments.append(rf"$\tau_\mathrm{{int}}(Q)={tau}$ {unit}")
    return ",  ".join(moments)
