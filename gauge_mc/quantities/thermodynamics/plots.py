"""Electric and magnetic correlators on the Polyakov loop, in units of leading order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import GREY, Frame, Guide, Mark, Picture, Symbols, look
from gauge_mc.plots.runs import ScanFigure, TablePlot, caution
from gauge_mc.quantities.thermodynamics import fits
from gauge_mc.quantities.thermodynamics.field_correlators import (
    FIELD_COLUMNS,
    FieldCorrelatorPoint,
    field_correlators,
    read_field_series,
)
from gauge_mc.quantities.thermodynamics.integral import ThermodynamicsResult
from gauge_mc.run.thermalisation import SKIP

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
    fit: ClassVar[str] = "thermodynamics"
    options: ClassVar[tuple[Option, ...]] = fits.ThermodynamicsFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show all against T/T_c, the temperature times a length, or the coupling."""
        result = fits.thermodynamics(scan, options)
        caution(*result.cautions)
        x, label = abscissae(result)
        rest: list[Mark] = [
            _curve(x, result, name, factor, number, text)
            for number, (name, text, factor) in enumerate(CURVES)
        ]
        limits = {
            "ideal gas": (result.ideal_pressure, "--"),
            "ideal gas on the lattice": (result.ideal_pressure_on_lattice, ":"),
        }
        for text, (pressure, dashes) in limits.items():
            if pressure:
                style = {"color": GREY, "linewidth": 1, "linestyle": dashes}
                rest.append(Guide(3 * pressure, style=style, text=text))
        anomaly = _curve(x, result, "anomaly", 1.0, 3)
        frames = [
            Frame([anomaly, ZERO], label, r"$(\varepsilon-3p)/T^4$"),
            Frame([*rest, ZERO], label, r"$\varepsilon/T^4$, $3s/4T^3$, $3p/T^4$"),
        ]
        title = f"{GROUPS[result.ensemble['group']].label}, {result.lattice}"
        return Picture(frames, 3.4, title, columns=5)


PLOTS.register(ThermodynamicsPlot())


def abscissae(result: ThermodynamicsResult) -> tuple[np.ndarray[Any, Any], str]:
    """Return the abscissae of the states and the label of their axis: T/T_c if it is known."""
    for name, label in (("ratio", "$T/T_c$"), ("length", f"$T$ {result.scale}")):
        values = [getattr(state, name) for state in result.states]
        if any(value is not None for value in values):
            return np.array([np.nan if value is None else value for value in values]), label
    return np.array([state.beta for state in result.states]), r"$\beta$"


def _curve(
    x: np.ndarray[Any, Any],
    result: ThermodynamicsResult,
    name: str,
    factor: float,
    number: int,
    text: str = "",
) -> Symbols:
    """Return one quantity times a factor, where it is known."""
    values = [getattr(state, name) for state in result.states]
    points = [(a, b) for a, b in zip(x, values, strict=True) if b is not None and np.isfinite(a)]
    return Symbols(
        [a for a, _ in points],
        [factor * b.value for _, b in points],
        [factor * b.error for _, b in points],
        style={**look(number), "linestyle": "-", "linewidth": 0.8, "markersize": 4},
        text=text if points else "",
    )


class EnergyMomentumPlot(ScanFigure):
    """s / T^3 and (e - 3 p) / T^4 from the gradient flow against t T^2, with the limits t -> 0."""

    name = "energy-momentum"
    summary = "entropy density and trace anomaly from the gradient flow, against its time"
    fit: ClassVar[str] = "energy-momentum"
    options: ClassVar[tuple[Option, ...]] = fits.EnergyMomentumFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show both at the flow times of the fit, with larger symbols for their limits."""
        result = fits.flow_thermodynamics(scan, options)
        caution(*result.cautions)
        extent, entropy, anomaly = int(result.lattice.split("x")[-1]), list[Mark](), list[Mark]()
        for number, state in enumerate(result.states):
            x, symbol = np.array(state.t) / extent**2, look(number)
            small = {"color": symbol["color"], "marker": ".", "linewidth": 0.8}
            large = {**symbol, "markersize": 5}
            text = rf"$\beta={state.beta:.12g}$"
            entropy += [Symbols.of(x, state.entropy_at, small)]
            entropy += [Symbols.of([0], [state.entropy], large, text)]
            anomaly += [Symbols.of(x, state.anomaly_at, small)]
            anomaly += [Symbols.of([0], [state.anomaly], large)]
        dashed = {"color": GREY, "linewidth": 1, "linestyle": "--"}
        entropy.append(Guide(4 * result.ideal_pressure, style=dashed, text="ideal gas"))
        frames = [
            Frame(entropy, r"$t\,T^2$", "$s/T^3$"),
            Frame(anomaly, r"$t\,T^2$", r"$(\varepsilon-3p)/T^4$"),
        ]
        title = f"{GROUPS[result.ensemble['group']].label}, {result.lattice}"
        return Picture(frames, 3.4, title, columns=4)


PLOTS.register(EnergyMomentumPlot())


MOST_CURVES = 6
"""Maximum number of flow times that are shown."""


class FieldCorrelatorsPlot(TablePlot):
    """G_E and G_B of one run in units of leading order, against tau T, at several flow times."""

    name = "field-correlators"
    summary = "electric and magnetic correlators on the Polyakov loop against τT"
    fit: ClassVar[str] = "field-correlators"
    subject: ClassVar[str] = "A correlator on the Polyakov loop"
    columns: ClassVar[tuple[str, ...]] = FIELD_COLUMNS
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Show G_E and G_B divided by G_norm, a curve for each flow time."""
        correlators = field_correlators(read_field_series(table, options.get(SKIP.name, 0)))
        caution(*correlators.cautions)
        shown = [
            point
            for point in correlators.points
            if point.inside and point.electric_ratio is not None
        ]
        if not shown:
            raise GaugeError(
                "There is no correlator with a smoothing radius √(8t) between a and τ/3 whose "
                "leading order is known; measure the flow at more times, or choose a larger N_t."
            )
        times = sorted({x.t for x in shown})
        some = np.unique(np.linspace(0, len(times) - 1, MOST_CURVES).astype(int))
        selection = [times[n] for n in some]
        frames = [
            Frame(
                _curves(shown, selection, "electric_ratio"), r"$\tau T$", r"$G_E/G_\mathrm{norm}$"
            ),
            Frame(
                _curves(shown, selection, "magnetic_ratio", named=False),
                r"$\tau T$",
                r"$G_B/G_\mathrm{norm}$",
            ),
        ]
        return Picture(frames, 3.4, columns=3)


PLOTS.register(FieldCorrelatorsPlot())


def _curves(
    points: Sequence[FieldCorrelatorPoint], times: Sequence[float], name: str, named: bool = True
) -> list[Symbols]:
    """Return the points whose leading order is known, by flow time, which the legend may name."""
    curves = []
    for n, t in enumerate(times):
        shown = [point for point in points if point.t == t and getattr(point, name) is not None]
        style = {**look(n), "linestyle": "-", "linewidth": 0.8, "markersize": 4}
        text = rf"$\sqrt{{8t}}={np.sqrt(8 * t):.2f}\,a$" if named else ""
        values = [getattr(x, name) for x in shown]
        curves.append(Symbols.of([x.scaled for x in shown], values, style, text))
    return curves
