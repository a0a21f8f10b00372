"""The transition of a scan: susceptibilities, Binder cumulants, and the infinite volume."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import susceptibility
from gauge_mc.analysis.transition.infinite_volume import (
    ISING_COLOURS,
    StraightLine,
    extrapolations,
)
from gauge_mc.analysis.transition.volume import ThermalCurve, ThermalVolume
from gauge_mc.errors import UsageError
from gauge_mc.fits.transition import EXTENT, REPLICAS, volumes_of
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS, Plot
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HEIGHT = 5.6
"""Height of the figure in inches."""

BAND = 0.25
"""Opacity of the band of errors around a curve."""

FRACTION = r"deconfined fraction"
"""Label of the axis of the deconfined fraction."""


class TransitionPlot(Plot):
    """Reweighted curves of a scan, histograms at the peaks, and the infinite volume."""

    name = "transition"
    summary = "susceptibility and Binder cumulant by reweighting, with β_c"
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (EXTENT, REPLICAS, SKIP)

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the transition of one scan; see `Plot.draw`."""
        if len(runs) > 1:
            raise UsageError("Only one scan can be drawn at a time; name only one.")
        read, volumes = volumes_of(runs[0], options)
        plot_transition(volumes, file, f"{read.group.label}, Nₜ = {volumes[0].lattice.t}")
        return []


PLOTS.register(TransitionPlot())


def plot_transition(volumes: Sequence[ThermalVolume], path: Path, title: str = "") -> None:
    """Plot the transition on several lattices.

    The frames are the susceptibility with the values of single runs, the Binder cumulant, the
    histogram of the modulus of the Polyakov loop at the peak, or for more than two colours the
    deconfined fraction, and the extrapolations to infinite volume.

    Parameters
    ----------
    volumes : sequence of ThermalVolume
        The lattices, smaller ones first.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`.
    """
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        (chi, binder), (other, infinite) = figure.subplots(2, 2)
        entries = []
        for number, volume in enumerate(volumes):
            own = look(number)
            handle = _draw_curve(chi, volume.susceptibility, own["color"])
            entries.append((handle, str(volume.lattice)))
            _draw_runs(chi, volume, own)
            _draw_curve(binder, volume.binder, own["color"])
            if volume.colours != ISING_COLOURS:
                _draw_curve(other, volume.fraction, own["color"])
            elif math.isfinite(volume.peak[0][0]):
                edges, density = volume.histogram
                other.stairs(density, edges, color=own["color"])
        chi.set_xlabel(r"$\beta$")
        chi.set_ylabel(r"$\chi$")
        binder.set_xlabel(r"$\beta$")
        binder.set_ylabel(r"$U$")
        if volumes[0].colours == ISING_COLOURS:
            other.set_xlabel("$|L|$")
            other.set_ylabel("density at the peak")
        else:
            other.set_xlabel(r"$\beta$")
            other.set_ylabel(FRACTION)
        _draw_infinite(infinite, extrapolations(volumes))
        for axes in (chi, binder, other, infinite):
            axes.locator_params(axis="x", nbins=5)
        add_heading(figure, chi, entries, title, columns=3)


def _draw_curve(axes: Axes, curve: ThermalCurve, colour: str) -> Any:
    """Draw a curve with the band of its errors, and return the line."""
    low, high = curve.value - curve.error, curve.value + curve.error
    axes.fill_between(curve.beta, low, high, color=colour, alpha=BAND, linewidth=0)
    return axes.plot(curve.beta, curve.value, color=colour, linewidth=1)[0]


def _draw_runs(axes: Axes, volume: ThermalVolume, style: Mapping[str, Any]) -> None:
    """Draw the susceptibility of the runs at each coupling by themselves."""
    for beta in volume.reweighting.beta:
        chains = [np.abs(one.loop) for one in volume.chains if one.beta == beta]
        value, error = susceptibility(*chains, volume=volume.space)
        axes.errorbar([beta], [value], [np.nan_to_num(error)], **style, linestyle="none")


def _draw_infinite(axes: Axes, lines: Mapping[str, StraightLine]) -> None:
    """Draw critical couplings against their distance from infinite volume, with lines."""
    for number, (name, line) in enumerate(lines.items()):
        style = look(number)
        largest = float(line.x.max())
        x = np.linspace(0, 1, 50)
        samples = line.parameters[:, :1] + line.parameters[:, 1:] * x * largest
        _draw_curve(axes, ThermalCurve(x, samples), style["color"])
        axes.errorbar(
            line.x / largest, line.values[0], line.errors, **style, linestyle="none", label=name
        )
    axes.set_xlabel("distance from infinite volume")
    axes.set_ylabel(r"$\beta_c$")
    if lines:
        axes.legend(loc="best")
