"""Susceptibilities against beta, kappa or a chemical potential, with their peaks."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import BETA
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import Frame, Mark, Picture, Stroke, Symbols
from gauge_mc.plots.runs.table_plot import ScanFigure
from gauge_mc.quantities.transition.analysis.peaks import (
    SUSCEPTIBILITIES,
    CrossoverResult,
    curves_of,
    series_of_points,
)
from gauge_mc.quantities.transition.fits.crossover import CrossoverFit, crossover_of
from gauge_mc.quarks.diagonal import MU
from gauge_mc.quarks.vectors.angles import IMAGINARY_MU
from gauge_mc.updates.quarks import KAPPA

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
    """Return a frame for every quantity that was measured, and parabolas at the peaks."""
    own = {curve: look(n) for n, curve in enumerate(curves_of(found.points))}
    frames: list[Frame] = []
    for field, label in FRAMES.items():
        marks: list[Mark] = []
        for curve, style in own.items():
            x, values = series_of_points(found.points, curve, field)
            if x.size:
                text = "" if frames else ", ".join(filter(None, curve))
                marks.append(Symbols.of(x, values, style, text))
                marks += [
                    Stroke(*_parabola(x, one.coefficients), style=_line(style))
                    for one in found.peaks
                    if SUSCEPTIBILITIES[one.susceptibility] == field
                    and (one.lattice, one.at) == curve
                ]
        if marks:
            frames.append(Frame(marks, AXES.get(found.over, found.over), label))
    rows = -(-len(frames) // 2)
    title = GROUPS[found.ensemble["group"]].label
    return Picture(
        frames, 2.6 * rows, title, columns=2, layout={"nrows": rows, "ncols": min(2, len(frames))}
    )


def _parabola(x: Any, coefficients: tuple[float, float, float]) -> tuple[Any, Any]:
    """Return the part of a parabola above 0 between the outermost runs."""
    at = np.linspace(x.min(), x.max(), 200)
    values = np.polynomial.polynomial.polyval(at, coefficients)
    return at[values > 0], values[values > 0]


def _line(style: Any) -> dict[str, Any]:
    return {"color": style["color"], "linewidth": 1}
