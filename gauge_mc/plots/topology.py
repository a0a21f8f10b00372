"""The history of the topological charge and its distribution."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.flow.records import FLOW_COLUMNS, FlowTable, read_flow
from gauge_mc.analysis.flow.topology import TopologicalCharge, charges_at, topological_charge
from gauge_mc.fits.scale import ENERGY, GOAL, TREE_LEVEL
from gauge_mc.fits.topology import CHARGE, ROUND, TIME, choice_of_charge
from gauge_mc.libraries import load
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.labels import minus
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.figures.series import series_line
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 3.2
"""Height of the figure in inches."""


class TopologyPlot(TablePlot):
    """The topological charge of one run along the Markov chain, and its distribution."""

    name = "topology"
    summary = "history and distribution of the topological charge"
    subject: ClassVar[str] = "The topological charge"
    columns: ClassVar[tuple[str, ...]] = FLOW_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (CHARGE, TIME, ROUND, ENERGY, GOAL, TREE_LEVEL, SKIP)

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the charge at one flow time; see `TablePlot.draw_table`."""
        choice = choice_of_charge(options)
        plot_topology(read_flow(table, options.get(SKIP.name, 0)), file, label, **choice)


PLOTS.register(TopologyPlot())


def plot_topology(flow: FlowTable, path: Path, title: str = "", **choice: Any) -> None:
    """Plot the topological charge along the Markov chain beside its distribution.

    A normal distribution of the measured <Q^2> is drawn for comparison.

    Parameters
    ----------
    flow : FlowTable
        The gradient flow of an ensemble, with the charges.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.
    **choice : object
        Arguments of `charges_at`.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file` and `charges_at`.
    """
    result, charges = topological_charge(flow, **choice), charges_at(flow, **choice).values
    colour = look(0)["color"]
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        series, distribution = figure.subplots(1, 2, sharey=True, width_ratios=(4, 1.2))
        style = series_line(colour) | {"alpha": 0.9, "linewidth": 0.7}
        series.axhline(0, color="0.7", linewidth=0.6, zorder=0)
        series.plot(flow.sweeps, charges, **style)
        series.margins(x=0.02)
        series.set_xlabel("update")
        series.set_ylabel("$Q$ (rounded)" if result.rounded else "$Q$")
        edges = _edges(charges, 1 if result.rounded else 1 / result.alpha)
        density, _ = np.histogram(charges, edges, density=True)
        distribution.stairs(density, edges, orientation="horizontal", color=colour)
        distribution.stairs(
            density, edges, orientation="horizontal", color=colour, fill=True, alpha=0.2
        )
        normal = _draw_normal(distribution, result.square.value, edges)
        distribution.set_xlim(left=0)
        distribution.set_xlabel("distribution")
        distribution.tick_params(which="both", bottom=False, top=False, labelbottom=False)
        line = load("matplotlib.lines").Line2D
        entries = [(line([], [], **style), _legend(result))]
        if normal:
            entries.append((normal, r"normal distribution of this $\langle Q^2\rangle$"))
        about = f"{result.charge} charge at t/a² = {result.t:.4g}"
        add_heading(figure, series, entries, ", ".join(filter(None, (title, about))))


def _edges(charges: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Return the edges of bins of this width, centred at its multiples: one for each sector."""
    beside = math.ceil(float(np.abs(charges).max()) / width)  # bins on each side of that around 0
    return np.asarray(width * (np.arange(-beside - 1, beside + 1) + 0.5))


def _draw_normal(axes: Axes, square: float, edges: NDArray[np.float64]) -> Any:
    """Draw a normal distribution with mean 0 and return the line, or None without fluctuations."""
    if square <= 0:
        return None
    q = np.linspace(edges[0], edges[-1], 400)
    density = np.exp(-(q**2) / (2 * square)) / math.sqrt(2 * math.pi * square)
    return axes.plot(density, q, color=look(1)["color"], linewidth=1.2)[0]


def _legend(result: TopologicalCharge) -> str:
    """Return the moments and the autocorrelation time as text for a legend."""
    moments = [rf"$\langle Q\rangle={minus(result.mean)}$"]
    moments.append(rf"$\langle Q^2\rangle={minus(result.square)}$")
    tau = result.mean.format_tau(result.updates or 1)
    if tau:
        unit = "updates" if result.updates else "configurations"
        moments.append(rf"$\tau_\mathrm{{int}}(Q)={tau}$ {unit}")
    return ",  ".join(moments)
