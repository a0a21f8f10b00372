"""Susceptibilities against beta, kappa or a chemical potential, with their peaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.actions import BETA
from gauge_mc.extensions.quarks.crossover.fit import (
    SUSCEPTIBILITIES,
    CrossoverFit,
    CrossoverResult,
    crossover_of,
    curves_of,
    series_of_points,
)
from gauge_mc.extensions.quarks.diagonal import MU
from gauge_mc.extensions.quarks.dynamical.flavours import KAPPA
from gauge_mc.extensions.quarks.vectors.gamma import IMAGINARY_MU
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Stroke, Symbols
from gauge_mc.plots.runs import ScanFigure

AXES = {one.name: one.label for one in (BETA, KAPPA, MU, IMAGINARY_MU)}
"""Labels of parameters that are not their names."""

FRAMES = {
    "loop": r"$|L|$",
    "loop_susceptibility": r"$\chi_L$",
    "chiral_condensate": r"$-\langle\bar\psi\psi\rangle$",
    "chiral_susceptibility": r"$\chi_\mathrm{disc}$",
    "phase": r"$\arg\langle L\rangle/\pi$",
}
"""Labels of the quantities that are drawn, by their fields."""


class CrossoverPlot(ScanFigure):
    """Polyakov loop, condensate and their susceptibilities against one parameter."""

    name = "crossover"
    summary = "Polyakov loop, condensate and susceptibilities over β, κ or μ, with their peaks"
    options: ClassVar[tuple[Option, ...]] = CrossoverFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show what all runs in a folder have measured; see `crossover_picture`."""
        return crossover_picture(crossover_of(scan, options))


PLOTS.register(CrossoverPlot())


def crossover_picture(found: CrossoverResult) -> Picture:
    """Return a frame for every quantity that was measured, with its peak and the errors of it."""
    own = {curve: look(n) for n, curve in enumerate(curves_of(found.points))}
    frames: list[Frame] = []
    for field, label in FRAMES.items():
        marks: list[Mark] = []
        for curve, style in own.items():
            x, values = series_of_points(found.points, curve, field)
            thin = {"color": style["color"], "linewidth": 1}
            if x.size:
                text = "" if frames else ", ".join(filter(None, curve))
                marks.append(Symbols.of(x, values, style, text))
                marks += [
                    Stroke.plateau(one.position_range, one.height, thin)
                    for one in found.peaks
                    if SUSCEPTIBILITIES[one.susceptibility] == field
                    and (one.lattice, one.at) == curve
                ]
        if marks:
            frames.append(Frame(marks, AXES.get(found.over, found.over), label))
    rows = -(-len(frames) // 2)
    title = GROUPS[found.ensemble["group"]].label
    layout = {"nrows": rows, "ncols": min(2, len(frames))}
    return Picture(frames, 2.6 * rows, title, columns=2, layout=layout)
