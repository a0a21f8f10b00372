"""Entropy density and trace anomaly against the flow time, with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.errors import UsageError
from gauge_mc.fits.energy_momentum import (
    EnergyMomentumFit,
    FlowThermodynamics,
    flow_thermodynamics,
)
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import GREY, WIDTH, look

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 3.4
"""Height of the figure in inches."""


class EnergyMomentumPlot(Plot):
    """s / T^3 and (e - 3 p) / T^4 from the gradient flow against t T^2, with the limits t -> 0."""

    name = "energy-momentum"
    summary = "entropy density and trace anomaly from the gradient flow, against its time"
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = EnergyMomentumFit.options

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the extrapolations of one scan; see `Plot.draw`."""
        if len(runs) > 1:
            raise UsageError("Only one scan can be drawn at a time; name only one.")
        plot_energy_momentum(flow_thermodynamics(runs[0], options), file)
        return []


PLOTS.register(EnergyMomentumPlot())


def plot_energy_momentum(found: FlowThermodynamics, path: Path) -> None:
    """Plot entropy density and trace anomaly at the flow times of the fit, and their limits.

    Parameters
    ----------
    found : FlowThermodynamics
        The results.
    path : Path
        File to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`.
    """
    title = f"{GROUPS[found.ensemble['group']].label}, {found.lattice}"
    extent = int(found.lattice.split("x")[-1])
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        entropy, anomaly = figure.subplots(1, 2)
        entries = []
        for number, one in enumerate(found.states):
            x = np.array(one.t) / extent**2
            handle = _draw(entropy, x, one.entropy_at, one.entropy, number)
            _draw(anomaly, x, one.anomaly_at, one.anomaly, number)
            entries.append((handle, rf"$\beta={one.beta:.12g}$"))
        limit = entropy.axhline(4 * found.ideal_pressure, color=GREY, linewidth=1, linestyle="--")
        entries.append((limit, "ideal gas"))
        entropy.set_ylabel("$s/T^3$")
        anomaly.set_ylabel(r"$(\varepsilon-3p)/T^4$")
        for axes in (entropy, anomaly):
            axes.set_xlabel("$t\\,T^2$")
        add_heading(figure, entropy, entries, title, columns=4)


def _draw(axes: Axes, x: Any, values: Sequence[Estimate], limit: Estimate, number: int) -> Any:
    """Draw values along the flow and a larger symbol for their limit, and return its handle."""
    style = look(number)
    axes.errorbar(
        x,
        [one.value for one in values],
        [one.error for one in values],
        color=style["color"],
        marker=".",
        linestyle="none",
        linewidth=0.8,
    )
    return axes.errorbar([0], [limit.value], [limit.error], **style, linestyle="none", markersize=5)
