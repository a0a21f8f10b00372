"""Correlators of planes of Polyakov loops, and their effective masses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.analysis.thermodynamics.screening import (
    PLANE_COLUMNS,
    ScreeningMass,
    ScreeningMasses,
    ScreeningPoint,
    read_planes,
    screening,
)
from gauge_mc.domain.lattice import Lattice
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.files import figure_file
from gauge_mc.plots.figures.legends import add_heading
from gauge_mc.plots.figures.looks import WIDTH, look
from gauge_mc.plots.runs.table_plot import TablePlot
from gauge_mc.run.thermalisation import SKIP

HEIGHT = 3.4
"""Height of the figure in inches."""

SHOWN = 2.0
"""Number of errors above 0 from which on a correlator is shown on the logarithmic scale."""


class ScreeningPlot(TablePlot):
    """Correlators of planes of one run against the distance, with the fit, and effective masses."""

    name = "screening"
    summary = "correlators of planes of Polyakov loops, and their effective masses"
    subject: ClassVar[str] = "A correlator of planes"
    columns: ClassVar[tuple[str, ...]] = PLANE_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def draw_table(self, table: Path, file: Path, label: str, options: dict[str, Any]) -> None:
        """Draw the correlators; see `TablePlot.draw_table`."""
        found = screening(read_planes(table, options.get(SKIP.name, 0)))
        plot_screening(found, file, label)


PLOTS.register(ScreeningPlot())


def plot_screening(found: ScreeningMasses, path: Path, title: str = "") -> None:
    """Plot correlators divided by their first values, and effective masses with those of the fits.

    Parameters
    ----------
    found : ScreeningMasses
        The masses and correlators.
    path : Path
        File to write; its ending determines the format.
    title : str
        Title above the frames.

    Raises
    ------
    GaugeError
        See `figure_file`.
    """
    lattice = Lattice.parse(found.ensemble["lattice"])
    planes = max(lattice.extents[:3])
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        left, right = figure.subplots(1, 2)
        entries = []
        for n, mass in enumerate(found.masses):
            points = [one for one in found.points if one.part == mass.part]
            entries.append((_correlator(left, points, mass, n, planes, lattice.t), mass.part))
            _effective(right, points, mass, n)
        left.set_yscale("log")
        known = [line.get_ydata().min() for line in left.get_lines() if line.get_marker() != "None"]
        left.set_ylim(bottom=min(known) / 3)
        left.set_ylabel(r"$C(r)/C(0)$")
        right.set_ylabel(r"$m_\mathrm{eff}/T$")
        for axes in (left, right):
            axes.set_xlabel(r"$r/a$")
        add_heading(figure, left, entries, title, columns=2)


def _correlator(
    axes: Any, points: Sequence[ScreeningPoint], mass: ScreeningMass, n: int, planes: int, nt: int
) -> Any:
    """Draw a correlator where it is positive, and the curve of its fit; return the handle."""
    norm = points[0].correlator.value
    own = [one for one in points if one.correlator.value > SHOWN * one.correlator.error]
    m, r = mass.mass.value / nt, np.linspace(mass.r_min, mass.r_max, 200)
    shape = np.exp(-m * r) + np.exp(-m * (planes - r))
    axes.plot(r, mass.amplitude.value * shape / norm, color=look(n)["color"], linewidth=0.8)
    return axes.errorbar(
        [one.r for one in own],
        [one.correlator.value / norm for one in own],
        [one.correlator.error / norm for one in own],
        **look(n),
        linestyle="none",
        markersize=4,
    )


def _effective(axes: Any, points: Sequence[ScreeningPoint], mass: ScreeningMass, n: int) -> None:
    """Draw the effective masses, and the fitted mass with its error where it was fitted."""
    known = [(one.r + 0.5, one.effective_mass) for one in points if one.effective_mass]
    axes.errorbar(
        [r for r, _ in known],
        [one.value for _, one in known],
        [one.error for _, one in known],
        **look(n),
        linestyle="none",
        markersize=4,
    )
    low, high = mass.mass.value - mass.mass.error, mass.mass.value + mass.mass.error
    axes.fill_between(
        [mass.r_min, mass.r_max], low, high, color=look(n)["color"], alpha=0.3, linewidth=0
    )
