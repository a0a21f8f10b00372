"""The equation of state of a scan against the temperature."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.looks import GREY, look
from gauge_mc.plots.figures.pictures import Frame, Guide, Mark, Picture, Symbols
from gauge_mc.plots.runs.table_plot import ScanFigure
from gauge_mc.quantities.thermodynamics.analysis.integral import ThermodynamicsResult
from gauge_mc.quantities.thermodynamics.fits.thermodynamics import ThermodynamicsFit, thermodynamics

CURVES = (
    ("energy", r"$\varepsilon/T^4$", 1.0),
    ("entropy", r"$3s/4T^3$", 0.75),
    ("pressure", r"$3p/T^4$", 3.0),
)
"""Attribute, label and factor of the curves that have the same limit, that of the ideal gas."""

ZERO = Guide(0, style={"color": GREY, "linewidth": 0.5})
"""The line at zero."""


class ThermodynamicsPlot(ScanFigure):
    """Trace anomaly, and energy density, entropy density and pressure with their ideal gas."""

    name = "thermodynamics"
    summary = "pressure, energy and entropy density against the temperature"
    options: ClassVar[tuple[Option, ...]] = ThermodynamicsFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show all against T/T_c, the temperature times a length, or the coupling."""
        found = thermodynamics(scan, options)
        x, label = abscissae(found)
        rest: list[Mark] = [
            _curve(x, found, name, factor, number, text)
            for number, (name, text, factor) in enumerate(CURVES)
        ]
        limits = {
            "ideal gas": (found.ideal_pressure, "--"),
            "ideal gas on the lattice": (found.ideal_pressure_on_lattice, ":"),
        }
        for text, (pressure, dashes) in limits.items():
            if pressure:
                style = {"color": GREY, "linewidth": 1, "linestyle": dashes}
                rest.append(Guide(3 * pressure, style=style, text=text))
        anomaly = _curve(x, found, "anomaly", 1.0, 3)
        frames = [
            Frame([anomaly, ZERO], label, r"$(\varepsilon-3p)/T^4$"),
            Frame([*rest, ZERO], label),
        ]
        title = f"{GROUPS[found.ensemble['group']].label}, {found.lattice}"
        return Picture(frames, 3.4, title, columns=5)


PLOTS.register(ThermodynamicsPlot())


def abscissae(found: ThermodynamicsResult) -> tuple[np.ndarray[Any, Any], str]:
    """Return the abscissae of the states and the label of their axis: T/T_c if it is known."""
    for name, label in (("ratio", "$T/T_c$"), ("length", f"$T$ {found.scale}")):
        values = [getattr(one, name) for one in found.states]
        if any(one is not None for one in values):
            return np.array([np.nan if one is None else one for one in values]), label
    return np.array([one.beta for one in found.states]), r"$\beta$"


def _curve(
    x: np.ndarray[Any, Any],
    found: ThermodynamicsResult,
    name: str,
    factor: float,
    number: int,
    text: str = "",
) -> Symbols:
    """Return one quantity times a factor, where it is known."""
    values = [getattr(one, name) for one in found.states]
    known = [(a, b) for a, b in zip(x, values, strict=True) if b is not None and np.isfinite(a)]
    return Symbols(
        [a for a, _ in known],
        [factor * b.value for _, b in known],
        [factor * b.error for _, b in known],
        style={**look(number), "linestyle": "-", "linewidth": 0.8, "markersize": 4},
        text=text,
    )
