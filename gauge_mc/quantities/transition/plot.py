"""The transition of a scan: susceptibilities, Binder cumulants, and the infinite volume."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import (
    HOLLOW,
    Frame,
    KeyEntry,
    Mark,
    Picture,
    Sketch,
    Stroke,
    Symbols,
)
from gauge_mc.plots.runs import ScanFigure, caution
from gauge_mc.quantities.transition.fit import EXTENT, REPLICAS, volumes_of
from gauge_mc.quantities.transition.results import StraightLine, cautions_of, extrapolations
from gauge_mc.quantities.transition.thermal_runs import loop_observable
from gauge_mc.quantities.transition.volume import (
    ISING_COLOURS,
    NEAR_AXIS,
    ThermalCurve,
    ThermalVolume,
    near_axis,
)
from gauge_mc.run.thermalisation import SKIP

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class TransitionPlot(ScanFigure):
    """Reweighted curves of a scan, histograms at the peaks, and the infinite volume."""

    name = "transition"
    summary = "susceptibility and Binder cumulant by reweighting, with β_c"
    fit: ClassVar[str] = "transition"
    options: ClassVar[tuple[Option, ...]] = (EXTENT, REPLICAS, SKIP)

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show the transition on several lattices.

        The frames are the susceptibility and the Binder cumulant, the deconfined fraction, or for
        two colours the histogram of the modulus of the Polyakov loop at the peak, and the critical
        couplings against their distance from infinite volume.
        """
        read, volumes = volumes_of(scan, options)
        caution(*cautions_of(volumes))
        ising = volumes[0].colours == ISING_COLOURS
        declared = {one.name: one for one in OBSERVABLES[loop_observable()].derived}
        chi, binder = declared["susceptibility"], declared["binder"]
        marks: tuple[list[Mark], list[Mark], list[Mark]] = [], [], []
        for n, volume in enumerate(volumes):
            marks[0].extend(_curve(volume, volume.susceptibility, chi.estimate, n, named=True))
            marks[1].extend(_curve(volume, volume.binder, binder.estimate, n))
            if not ising:
                marks[2].extend(_curve(volume, volume.fraction, partial(_fraction, volume), n))
            elif np.interp(volume.peak[0][0], volume.beta, volume.covered) == 1:  # not NaN
                edges, density = volume.histogram
                stairs = partial(_draw_stairs, density, edges, look(n)["color"])
                marks[2].append(Sketch(stairs))
        of_modulus = "$|L|$", r"density at the peak of $\chi$"
        frames = [
            Frame(marks[0], r"$\beta$", f"${chi.symbol}=${chi.axis}"),
            Frame(marks[1], r"$\beta$", f"${binder.symbol}=${binder.axis}"),
            Frame(marks[2], *(of_modulus if ising else (r"$\beta$", FRACTION))),
            _infinite(extrapolations(volumes), ising),
        ]
        frames = [replace(one, finish=_set_few_ticks) for one in frames]
        title = f"{read.group.label}, Nₜ = {volumes[0].lattice.t}"
        return Picture(frames, 5.6, title, columns=3, layout={"nrows": 2, "ncols": 2})


FRACTION = r"deconfined fraction $(3p-1)/2$"
"""Label of the deconfined fraction; see `ThermalVolume`."""

PLOTS.register(TransitionPlot())


def _set_few_ticks(axes: Axes) -> None:
    """Put few ticks on the horizontal axis, and add a legend of what has a label."""
    axes.locator_params(axis="x", nbins=5)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="best")


def _draw_stairs(density: Any, edges: Any, colour: str, axes: Axes) -> Any:
    return axes.stairs(density, edges, color=colour)


def _curve(
    volume: ThermalVolume,
    curve: ThermalCurve,
    measured: Callable[[list[Any], Lattice], tuple[float, float]],
    number: int,
    named: bool = False,
) -> Iterator[Mark]:
    """Yield a curve with its errors where histograms overlap, and the values of single runs."""
    style, text = look(number), str(volume.lattice) if named else ""
    line = {"color": style["color"], "linewidth": 1}
    ends = np.flatnonzero(np.diff(volume.covered)) + 1
    for part in np.split(np.arange(curve.beta.size), ends)[::2]:
        rows = curve.beta[part], curve.value[part], curve.error[part]
        yield Stroke(*rows, style=line, text="" if part[0] else text)
    for beta in volume.reweighting.beta:
        loops = [one.loop for one in volume.chains if one.beta == beta]
        chains = [{"abs": np.abs(loop), "loop": loop} for loop in loops]
        value, error = measured(chains, volume.lattice)
        yield Symbols([beta], [value], [np.nan_to_num(error)], style=style)


def _fraction(volume: ThermalVolume, chains: list[Any], lattice: Lattice) -> tuple[float, float]:
    near = estimate(*(near_axis(one["loop"], volume.colours) for one in chains))
    return (near.value - NEAR_AXIS) / (1 - NEAR_AXIS), near.error / (1 - NEAR_AXIS)


def _infinite(lines: Mapping[str, StraightLine], ising: bool) -> Frame:
    """Return critical couplings against their distance from infinite volume, with their limits.

    A line is drawn if it has a degree of freedom, so that the points could disagree with it.
    """
    marks, crossed = list[Mark](), [name.startswith("crossings") for name in lines]
    several = len({*crossed}) > 1  # whose distances are defined differently
    for number, (name, line) in enumerate(lines.items()):
        form = CROSSED if crossed[number] else PEAKS[ising]
        unit, order = line.x.max() if several else 1.0, np.argsort(line.x)
        x = np.append(0, line.x[order]) / unit
        curve = ThermalCurve(x, line.parameters @ np.vstack([[1, 0, 0], line.design[order]]).T)
        style = look(number)
        full = {**style, "label": f"{name},\n$x={form}$" if several else name}
        if line.dof:
            stroke = {"color": style["color"], "linewidth": 1}
            marks.append(Stroke(x, curve.value, curve.error, style=stroke))
        marks.append(Symbols(line.x / unit, line.values[0], line.errors, style=full))
        limit = {**style, "markerfacecolor": "white"}
        marks.append(Symbols([0], curve.value[:1], curve.error[:1], style=limit))
    if marks:
        marks.append(KeyEntry(style=HOLLOW, text="hollow: infinite volume"))
    label = r"x/x_\mathrm{max}" if several else CROSSED if any(crossed) else PEAKS[ising]
    return Frame(marks, f"${label}$", r"$\beta_c$")


PEAKS = "(N_t/N_s)^3", r"(N_t/N_s)^{1/\nu}"
"""Distance of a peak from infinite volume at a transition of first order, and for SU(2)."""

CROSSED = r"(s^{-\omega}-l^{-\omega})/(l^{1/\nu}-s^{1/\nu})"
"""Distance of a crossing for SU(2), with N_s/N_t of the smaller and of the larger lattice."""
