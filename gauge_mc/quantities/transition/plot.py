"""The transition of a scan: susceptibilities, Binder cumulants, and the infinite volume."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import susceptibility
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Sketch, Stroke, Symbols
from gauge_mc.plots.runs import ScanFigure
from gauge_mc.quantities.transition.fit import EXTENT, REPLICAS, volumes_of
from gauge_mc.quantities.transition.results import StraightLine, extrapolations
from gauge_mc.quantities.transition.volume import ISING_COLOURS, ThermalCurve, ThermalVolume
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TransitionPlot(ScanFigure):
    """Reweighted curves of a scan, histograms at the peaks, and the infinite volume."""

    name = "transition"
    summary = "susceptibility and Binder cumulant by reweighting, with β_c"
    options: ClassVar[tuple[Option, ...]] = (EXTENT, REPLICAS, SKIP)

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show the transition on several lattices.

        The frames are the susceptibility with the values of single runs, the Binder cumulant, the
        histogram of the modulus of the Polyakov loop at the peak, or for more than two colours the
        deconfined fraction, and the extrapolations to infinite volume.
        """
        read, volumes = volumes_of(scan, options)
        chi, binder, other = list[Mark](), list[Mark](), list[Mark]()
        ising = volumes[0].colours == ISING_COLOURS
        for number, volume in enumerate(volumes):
            own = look(number)
            chi += [_curve(volume.susceptibility, own, str(volume.lattice)), *_runs(volume, own)]
            binder.append(_curve(volume.binder, own))
            if volume.colours != ISING_COLOURS:
                other.append(_curve(volume.fraction, own))
            elif math.isfinite(volume.peak[0][0]):
                edges, density = volume.histogram
                stairs = partial(_draw_stairs, density, edges, own["color"])
                other.append(Sketch(stairs))
        infinite = _infinite(extrapolations(volumes))
        names = ("$|L|$", "density at the peak") if ising else (r"$\beta$", "deconfined fraction")
        frames = [
            Frame(chi, r"$\beta$", r"$\chi$", finish=_set_few_ticks),
            Frame(binder, r"$\beta$", "$U$", finish=_set_few_ticks),
            Frame(other, *names, finish=_set_few_ticks),
            Frame(infinite, "distance from infinite volume", r"$\beta_c$", finish=_set_few_ticks),
        ]
        title = f"{read.group.label}, Nₜ = {volumes[0].lattice.t}"
        return Picture(frames, 5.6, title, columns=3, layout={"nrows": 2, "ncols": 2})


PLOTS.register(TransitionPlot())


def _set_few_ticks(axes: Axes) -> None:
    """Put few ticks on the horizontal axis, and add a legend of what has a label."""
    axes.locator_params(axis="x", nbins=5)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best")


def _draw_stairs(density: Any, edges: Any, colour: str, axes: Axes) -> Any:
    return axes.stairs(density, edges, color=colour)


def _curve(curve: ThermalCurve, style: Mapping[str, Any], text: str = "") -> Stroke:
    """Return a curve with the band of its errors."""
    line = {"color": style["color"], "linewidth": 1}
    return Stroke(curve.beta, curve.value, curve.error, style=line, text=text)


def _runs(volume: ThermalVolume, style: Mapping[str, Any]) -> Iterator[Symbols]:
    """Yield the susceptibility of the runs at each coupling by themselves."""
    for beta in volume.reweighting.beta:
        chains = [np.abs(one.loop) for one in volume.chains if one.beta == beta]
        value, error = susceptibility(*chains, volume=volume.space)
        yield Symbols([beta], [value], [np.nan_to_num(error)], style=style)


def _infinite(lines: Mapping[str, StraightLine]) -> list[Mark]:
    """Return critical couplings against their distance from infinite volume, with lines."""
    marks: list[Mark] = []
    for number, (name, line) in enumerate(lines.items()):
        largest = float(line.x.max())
        order = np.argsort(line.x)
        x = np.append(0, line.x[order] / largest)
        samples = line.parameters @ np.vstack([[1, 0, 0], line.design[order]]).T
        style = {**look(number), "label": name}
        marks.append(_curve(ThermalCurve(x, samples), style))
        marks.append(Symbols(line.x / largest, line.values[0], line.errors, style=style))
    return marks
