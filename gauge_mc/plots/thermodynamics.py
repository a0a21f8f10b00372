"""The equation of state of a scan against the temperature."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.thermodynamics.integral import ThermodynamicsResult
from gauge_mc.errors import UsageError
from gauge_mc.fits.thermodynamics import ThermodynamicsFit, thermodynamics
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

CURVES = (
    ("energy", r"$\varepsilon/T^4$", 1.0),
    ("entropy", r"$3s/4T^3$", 0.75),
    ("pressure", r"$3p/T^4$", 3.0),
)
"""Attribute, label and factor of the curves that have the same limit, that of the ideal gas."""


class ThermodynamicsPlot(Plot):
    """Trace anomaly, and energy density, entropy density and pressure with their ideal gas."""

    name = "thermodynamics"
    summary = "pressure, energy and entropy density against the temperature"
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = ThermodynamicsFit.options

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the equation of state of one scan; see `Plot.draw`."""
        if len(runs) > 1:
            raise UsageError("Only one scan can be drawn at a time; name only one.")
        plot_thermodynamics(thermodynamics(runs[0], options), file)
        return []


PLOTS.register(ThermodynamicsPlot())


def plot_thermodynamics(found: ThermodynamicsResult, path: Path) -> None:
    """Plot an equation of state against T/T_c, the temperature times a length, or the coupling.

    Parameters
    ----------
    found : ThermodynamicsResult
        The equation of state.
    path : Path
        File to write; its ending determines the format.

    Raises
    ------
    UsageError, GaugeError
        See `figure_file`.
    """
    x, label = abscissae(found)
    title = f"{GROUPS[found.ensemble['group']].label}, {found.lattice}"
    with figure_file(path, (WIDTH, HEIGHT)) as figure:
        anomaly, rest = figure.subplots(1, 2)
        _draw(anomaly, x, found, "anomaly", 1.0, 3)
        entries = [
            (_draw(rest, x, found, name, factor, number), text)
            for number, (name, text, factor) in enumerate(CURVES)
        ]
        limit = rest.axhline(3 * found.ideal_pressure, color=GREY, linewidth=1, linestyle="--")
        entries.append((limit, "ideal gas"))
        if found.ideal_pressure_on_lattice:
            height = 3 * found.ideal_pressure_on_lattice
            line = rest.axhline(height, color=GREY, linewidth=1, linestyle=":")
            entries.append((line, "ideal gas on the lattice"))
        anomaly.set_ylabel(r"$(\varepsilon-3p)/T^4$")
        for axes in (anomaly, rest):
            axes.set_xlabel(label)
            axes.axhline(0, color=GREY, linewidth=0.5)
        add_heading(figure, anomaly, entries, title, columns=5)


def abscissae(found: ThermodynamicsResult) -> tuple[np.ndarray[Any, Any], str]:
    """Return the abscissae of the states and the label of their axis: T/T_c if it is known."""
    for name, label in (("ratio", "$T/T_c$"), ("length", f"$T$ {found.scale}")):
        values = [getattr(one, name) for one in found.states]
        if any(one is not None for one in values):
            return np.array([np.nan if one is None else one for one in values]), label
    return np.array([one.beta for one in found.states]), r"$\beta$"


def _draw(
    axes: Axes,
    x: np.ndarray[Any, Any],
    found: ThermodynamicsResult,
    name: str,
    factor: float,
    number: int,
) -> Any:
    """Draw one quantity times a factor where it is known, and return what stands for it."""
    values = [getattr(one, name) for one in found.states]
    known = [(a, b) for a, b in zip(x, values, strict=True) if b is not None and np.isfinite(a)]
    return axes.errorbar(
        [a for a, _ in known],
        [factor * b.value for _, b in known],
        [factor * b.error for _, b in known],
        **look(number),
        linewidth=0.8,
        markersize=4,
    )
