"""Correlators of planes of Polyakov loops, and their effective masses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import look
from gauge_mc.plots.figures.pictures import (
    Frame,
    Mark,
    Picture,
    Sketch,
    Stroke,
    Symbols,
)
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.quantities.polyakov.analysis.screening import (
    ScreeningMass,
    ScreeningPoint,
)
from gauge_mc.quantities.polyakov.fits.screening import ScreeningFit

SHOWN = 2.0
"""Number of errors above 0 from which on a correlator is shown on the logarithmic scale."""


class ScreeningPlot(TablePlot):
    """Correlators of planes of one run against the distance, with the fit, and effective masses."""

    name = "screening"
    summary = "correlators of planes of Polyakov loops, and their effective masses"
    subject: ClassVar[str] = "A correlator of planes"
    columns: ClassVar[tuple[str, ...]] = ScreeningFit.columns
    options: ClassVar[tuple[Option, ...]] = ScreeningFit.options

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show correlators divided by their first values, and effective masses with those of fits.

        For errors see `TablePlot.picture`.
        """
        found = ScreeningFit().carry_out(table, **options).found
        lattice = Lattice.parse(found.ensemble["lattice"])
        left: list[Mark] = []
        right: list[Mark] = []
        for n, mass in enumerate(found.masses):
            points = [one for one in found.points if one.part == mass.part]
            left += _correlator(points, mass, n, lattice)
            right += _effective(points, mass, n)
        known = [np.subtract(one.y, one.error) for one in left if isinstance(one, Symbols)]
        logarithmic = {"yscale": "log", "ylim": (min(one.min() for one in known) / 3, None)}
        frames = [
            Frame(left, r"$r/a$", r"$C(r)/C(0)$", logarithmic),
            Frame(right, r"$r/a$", r"$m_\mathrm{eff}/T$"),
        ]
        return Picture(frames, 3.4, columns=2)


PLOTS.register(ScreeningPlot())


def _correlator(
    points: Sequence[ScreeningPoint], mass: ScreeningMass, n: int, lattice: Lattice
) -> list[Mark]:
    """Return the curve of a fit, and the correlator where it is positive."""
    norm, planes = points[0].correlator.value, max(lattice.extents[:3])
    own = [one for one in points if one.correlator.value > SHOWN * one.correlator.error]
    m, r = mass.mass.value / lattice.t, np.linspace(mass.r_min, mass.r_max, 200)
    shape = np.exp(-m * r) + np.exp(-m * (planes - r))
    line = {"color": look(n)["color"], "linewidth": 0.8}
    return [
        Stroke(r, mass.amplitude.value * shape / norm, style=line),
        Symbols(
            [one.r for one in own],
            [one.correlator.value / norm for one in own],
            [one.correlator.error / norm for one in own],
            style={**look(n), "markersize": 4},
            text=mass.part,
        ),
    ]


def _effective(points: Sequence[ScreeningPoint], mass: ScreeningMass, n: int) -> list[Mark]:
    """Return the effective masses, and the fitted mass with its error where it was fitted."""
    known = [(one.r + 0.5, one.effective_mass) for one in points if one.effective_mass]
    style = {**look(n), "markersize": 4}
    low, high = mass.mass.value - mass.mass.error, mass.mass.value + mass.mass.error
    band = {"color": look(n)["color"], "alpha": 0.3, "linewidth": 0}
    return [
        Symbols.of([r for r, _ in known], [one for _, one in known], style),
        Sketch(lambda axes: axes.fill_between([mass.r_min, mass.r_max], low, high, **band)),
    ]
