"""The equation of state by the integral method and by the flow: fits and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from gauge_mc.analysis.table_series import read_series
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, choice_of, empty_table, quoted_field, table_of
from gauge_mc.groups import GROUPS
from gauge_mc.options import Option
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import GREY, Frame, Guide, Mark, Picture, Symbols, look
from gauge_mc.plots.runs import ScanFigure, caution
from gauge_mc.quantities.flow.curves import ENERGIES, weights_of
from gauge_mc.quantities.flow.scales import ENERGY, GOAL, definition
from gauge_mc.quantities.plaquette import Plaquette
from gauge_mc.quantities.thermodynamics import integral
from gauge_mc.quantities.thermodynamics.field_correlators import (
    FlowedEnergies,
    FlowState,
    flow_state,
)
from gauge_mc.quantities.thermodynamics.observables import THERMAL_COLUMNS, ThermalFlow
from gauge_mc.quantities.transition.fit import EXTENT
from gauge_mc.results import documented, headings, result_field
from gauge_mc.run.thermalisation import SKIP, Skip, last_skipped

LITERATURE, RUNS, CRITICAL_COUPLINGS = "literature", "runs", "critical"

COLD = Option(
    "cold",
    str,
    "Folder of further runs at T = 0, such as another scan.",
    default="the same",
    metavar="FOLDER",
)
SCALE = Option(
    "scale",
    str,
    "Where the lattice spacing is from: lengths in the literature, several critical couplings, or "
    "t₀ of the runs at T = 0.",
    default=f"{LITERATURE} where it is known for the group and the action, else "
    f"{CRITICAL_COUPLINGS}, else {RUNS}",
    choices=(LITERATURE, CRITICAL_COUPLINGS, RUNS),
)
CRITICAL = Option(
    "critical",
    str,
    "Critical couplings: the one at the N_t of the runs sets T/T_c, and those at several N_t give "
    "the lattice spacing, 1/(N_t T_c).",
    metavar="NT:BETA,...",
)


class ThermodynamicsFitResult(DataResult[integral.ThermodynamicsResult]):
    """The equation of state at one temporal extent."""

    observable: ClassVar[str] = (
        "equation of state from differences of the action, by the integral method"
    )
    units: ClassVar[str] = "powers of the temperature; errors are statistical"

    def report(self) -> list[Any]:
        """Return tables of the differences of the action and of the states, and the limits."""
        differences = self._table("Differences of the action", ("difference", "beta_function"))
        names = ("anomaly", "pressure", "energy", "entropy")
        states = self._table(f"Equation of state on {self.found.lattice}", names)
        return [differences, states, *self._conclusions(), *self.found.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the equation of state at the highest temperature at which it is known."""
        states = [state for state in self.found.states if state.pressure]
        if not states:
            return []
        last = states[-1]
        where = f"β = {last.beta:.12g}" if last.ratio is None else f"T/T_c = {last.ratio:.4g}"
        errors = {"energy": last.scale_error, "anomaly": last.scale_error}
        names = ("pressure", "energy", "anomaly")
        return [quoted_field(last, name, errors.get(name), where) for name in names]

    def unquoted(self) -> str:
        """Return why there is no pressure; see `FitResult.unquoted`."""
        return "no pressure is known"

    def _table(self, title: str, names: tuple[str, ...]) -> Table:
        """Return a table of some fields of the states, as far as they are known."""
        result = self.found
        titles = {**headings(integral.ThermodynamicState), "length": f"T·{result.scale}"}
        shown = ("beta", *(["length"] if result.scale != INVERSE else []), "ratio", *names)
        heads = {name: titles[name] for name in shown}
        return table_of(title, integral.ThermodynamicState, result.states, 4, heads=heads)

    def _conclusions(self) -> list[str]:
        """Return the ideal gas and the scale, a line each."""
        result, p = self.found, self.found.ideal_pressure
        lines = [f"Ideal gas: p/T⁴ = {p:.4f}, ε/T⁴ = {3 * p:.4f}, s/T³ = {4 * p:.4f}."]
        if (q := result.ideal_pressure_on_lattice) is not None:
            lines.append(
                f"On a lattice with this N_t and infinite space: {q:.4f}, {3 * q:.4f}, {4 * q:.4f}."
            )
        if result.scale:
            lines.append(f"Scale: {result.scale} ({result.scale_source}).")
        return lines


class ThermodynamicsFit(Fit):
    """The equation of state by the integral method."""

    name: ClassVar[str] = "thermodynamics"
    summary: ClassVar[str] = "pressure, energy and entropy density, from scans at T > 0 and T = 0"
    columns: ClassVar[tuple[str, ...]] = Plaquette.columns.names
    content: ClassVar[tuple[type[Any], ...]] = (
        integral.ThermodynamicsResult,
        integral.ThermodynamicState,
    )
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (EXTENT, COLD, SCALE, CRITICAL, ENERGY, GOAL, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> ThermodynamicsFitResult:
        """Find the equation of state from all runs in a folder; see `Fit.carry_out`."""
        return ThermodynamicsFitResult(thermodynamics(tables[0], options))


FITS.register(ThermodynamicsFit())


def _runs_of(folder: Path, options: Mapping[str, Any]) -> integral.BulkRuns:
    """Return the runs that options choose."""
    cold, skip = options.get(COLD.name), options.get(SKIP.name, 0)
    cold_folder = Path(cold) if cold else None
    return integral.read_bulk_runs(folder, cold_folder, skip, options.get(EXTENT.name))


def thermodynamics(folder: Path, options: dict[str, Any]) -> integral.ThermodynamicsResult:
    """Return the equation of state of the runs in a folder, as options choose it."""
    runs = _runs_of(folder, options)
    couplings, differences = runs.differences()
    extent, by_extent = runs.lattice.t, critical_couplings(options.get(CRITICAL.name, ""))
    critical = by_extent.get(extent)
    beta = couplings if critical is None else np.append(couplings, critical)
    cautions = [*runs.cautions]
    if runs.missing:
        lacking = ", ".join(f"{x:.12g}" for x in runs.missing)
        words = f"There is no run at T = 0 at β = {lacking}, which is left out: add runs there."
        cautions.append(words)
    scale = _scale(runs, beta, options, by_extent, cautions)
    at_critical = extent if scale and scale.name == INVERSE else math.nan
    if scale and critical is not None:
        at_critical = float(scale.length[-1])
        if not math.isfinite(at_critical):
            cautions.append(f"{scale.name} is not known at β = {critical:.12g}, so T/T_c is not.")
        size = couplings.size
        cut = (scale.length[:size], scale.slope[:size], scale.slope_error[:size])
        scale = integral.ScaleCurve(scale.name, scale.source, *cut)
    states = integral.equation_of_state(couplings, differences, extent, scale, at_critical)
    dimension, wilson = runs.group.dimension, runs.coupling.action.rectangle == 0
    return integral.ThermodynamicsResult(
        dict(runs.ensemble),
        str(runs.lattice),
        scale.name if scale else None,
        scale.source if scale else None,
        critical,
        states,
        integral.ideal_pressure(dimension),
        integral.ideal_pressure_on_lattice(dimension, extent) if wilson else None,
        [*cautions, *integral.cautions_of(states)],
    )


def _scale(
    runs: integral.BulkRuns,
    beta: Array,
    options: dict[str, Any],
    couplings: Mapping[int, float],
    cautions: list[str],
) -> integral.ScaleCurve | None:
    """Return the scale that options choose, and add cautions about it; None if there is none."""
    choice = choice_of(SCALE, options)
    literature = integral.known_scale(runs.coupling.action, runs.group, beta)
    curve: integral.ScaleCurve | None
    if choice == CRITICAL_COUPLINGS or (
        choice is None and literature is None and len(couplings) > 1
    ):
        # 1/T_c is N_t a at the critical coupling of N_t.
        points = [integral.MeasuredLength(c, n, EQUAL * n) for n, c in couplings.items()]
        source = f"{CRITICAL.flag}, a T_c = 1/N_t"
        curve = integral.measured_scale(INVERSE, source, points, beta)
        if curve is None:
            raise UsageError(
                "The lattice spacing follows from critical couplings at two N_t or more; give them "
                f"with {CRITICAL.flag}, as in 4:5.6925,6:5.8943."
            )
        curve = replace(curve, slope_error=np.where(np.isfinite(curve.slope), 0.0, math.nan))
    elif literature is not None and choice != RUNS:
        curve = literature
    elif choice == LITERATURE:
        raise UsageError(
            f"No length of {runs.group.label} with the action {runs.coupling.action.name} is known "
            f"at these couplings; leave {SCALE.flag} out, and let the runs at T = 0 measure the "
            "gradient flow."
        )
    else:
        curve = _of_runs(runs, beta, options, cautions)
    if curve is None:
        cautions.append(
            "The scale is not known, and so only the pressure is: let the runs at T = 0 measure "
            "the gradient flow, at two couplings or more."
        )
    elif not np.isfinite(curve.slope).all():
        cautions.append(f"{curve.name} is not known at all couplings, and so T and ε − 3p are not.")
    return curve


INVERSE = "1/T_c"
"""Length of the scale from critical couplings. The temperature times it is T/T_c."""

EQUAL = 1e-3
"""Relative error of all critical temperatures, to which the fit through them is indifferent."""


def critical_couplings(text: str) -> dict[int, float]:
    """Return critical couplings by N_t, given text such as ``4:5.6925,6:5.8943``."""
    couplings = {}
    for word in filter(None, text.split(",")):
        extent, _, beta = word.partition(":")
        try:
            couplings[int(extent)] = float(beta)
        except ValueError as error:
            raise UsageError(
                f"{CRITICAL.flag} is '{text}'; give temporal extents with their critical "
                "couplings, as in 4:5.6925,6:5.8943."
            ) from error
    if any(extent < 1 or not 0 < beta < math.inf for extent, beta in couplings.items()):
        raise UsageError(f"{CRITICAL.flag} is '{text}'; N_t and couplings must be positive.")
    return couplings


def _of_runs(
    runs: integral.BulkRuns, beta: Array, options: dict[str, Any], cautions: list[str]
) -> integral.ScaleCurve | None:
    """Return sqrt(t0) of the runs at T = 0 at all couplings, or None."""
    choice = definition(options)
    target = choice["target"]
    lengths, complaint = runs.lengths(choice["energy"], target, options.get(SKIP.name, 0))
    if complaint:
        cautions.append(complaint)
    source = f"t₀ of the runs at T = 0, where t²⟨E⟩ = {target:g}"
    return integral.measured_scale("√t₀", source, lengths, beta)


SMALLEST = 2.0
"""Default of the smallest radius sqrt(8 t)/a: below it lattice artefacts are large."""

RADIUS_MIN = Option(
    "radius_min",
    float,
    "Smallest smoothing radius √(8t)/a of the extrapolation in t.",
    default=f"{SMALLEST:g}",
    least=0.0,
)
RADIUS_MAX = Option(
    "radius_max", float, "Largest smoothing radius.", default="N_t/2, which covers the lattice"
)


@documented
@dataclass(frozen=True)
class FlowThermodynamics:
    """Thermodynamics at one temporal extent from the gradient flow."""

    ensemble: Mapping[str, str] = result_field("Group and action.")
    lattice: str = result_field("Extents of the lattice at T > 0.")
    energy: str = result_field("Discretisation of E.")
    states: Sequence[FlowState] = result_field("The couplings, ascending.")
    ideal_pressure: float = result_field("p / T^4 of the ideal gas in the continuum.")
    cautions: Sequence[str] = result_field("What to keep in mind, in sentences.", list)


class FlowThermodynamicsResult(DataResult[FlowThermodynamics]):
    """Thermodynamics from the gradient flow of the runs in a folder."""

    observable: ClassVar[str] = (
        "thermodynamics from the energy-momentum tensor of the gradient flow, t -> 0"
    )
    units: ClassVar[str] = "powers of the temperature; errors are statistical"

    def report(self) -> list[Any]:
        """Return a table of the extrapolated values, and the limits."""
        result, heads = self.found, headings(FlowState)
        title = f"Energy-momentum tensor on {result.lattice}, t → 0"
        table = empty_table(title, (), [*heads.values(), "√(8t)/a"])
        for state in result.states:
            first, last = (f"{math.sqrt(8 * t):.2f}" for t in (state.t[0], state.t[-1]))
            cells = [str(getattr(state, name)) for name in heads if name != "beta"]
            table.add_row(f"{state.beta:.12g}", *cells, f"{first} to {last}")
        p = result.ideal_pressure
        limits = f"Ideal gas: p/T⁴ = {p:.4f}, ε/T⁴ = {3 * p:.4f}, s/T³ = {4 * p:.4f}."
        return [table, limits, *result.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the entropy density and the trace anomaly at the largest coupling."""
        last = self.found.states[-1]
        where = f"β = {last.beta:.12g}"
        return [quoted_field(last, name, None, where) for name in ("entropy", "anomaly")]


class EnergyMomentumFit(Fit):
    """Entropy density and trace anomaly from the electric and magnetic energy along the flow."""

    name: ClassVar[str] = "energy-momentum"
    summary: ClassVar[str] = "entropy density and trace anomaly from the gradient flow of a scan"
    columns: ClassVar[tuple[str, ...]] = THERMAL_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (FlowThermodynamics, FlowState)
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (EXTENT, COLD, ENERGY, RADIUS_MIN, RADIUS_MAX, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> FlowThermodynamicsResult:
        """Extrapolate the runs in a folder to t = 0; see `Fit.carry_out`."""
        return FlowThermodynamicsResult(flow_thermodynamics(tables[0], options))


FITS.register(EnergyMomentumFit())


def flow_thermodynamics(folder: Path, options: Mapping[str, Any]) -> FlowThermodynamics:
    """Return the entropy density and the trace anomaly of the runs in a folder."""
    runs = _runs_of(folder, options)
    extent = runs.lattice.t
    radii = (options.get(RADIUS_MIN.name, SMALLEST), options.get(RADIUS_MAX.name, extent / 2))
    if not radii[0] < radii[1]:
        raise UsageError(
            f"The smoothing radii are from {radii[0]:g} to {radii[1]:g} with N_t = {extent}; "
            f"choose a larger N_t, or a range with {RADIUS_MIN.flag} and {RADIUS_MAX.flag}."
        )
    energy = options.get(ENERGY.name, next(iter(ENERGIES)))
    states, lacking = [], []
    for beta in sorted({x.coupling.beta for x in runs.hot}):
        sides = ([b for b in side if b.coupling.beta == beta] for side in (runs.hot, runs.cold))
        hot, zero = (_energies(side, energy, options.get(SKIP.name, 0)) for side in sides)
        if hot is None or zero is None:
            lacking.append(f"{beta:.12g}")
            continue
        states.append(flow_state(beta, hot, zero, extent, runs.group.colours, radii))
    if not states:
        raise GaugeError(
            "No coupling has runs at T > 0 and at T = 0 that measured electric and magnetic "
            "energies along the gradient flow; measure them on both."
        )
    cautions = [*runs.cautions]
    if lacking:
        cautions.append(
            f"At β = {', '.join(lacking)} the flow was not measured at both temperatures; these "
            "couplings are left out."
        )
    return FlowThermodynamics(
        dict(runs.ensemble),
        str(runs.lattice),
        energy,
        states,
        integral.ideal_pressure(runs.group.dimension),
        cautions,
    )


def _energies(runs: Sequence[integral.BulkRun], energy: str, skip: Skip) -> FlowedEnergies | None:
    """Return the energies of the runs at one coupling and temperature, or None."""
    paths = [path for run in runs if (path := integral.table_with(run.path, THERMAL_COLUMNS))]
    if not paths:
        return None
    skips = [last_skipped(path.parent, skip) for path in paths]
    table = read_series(paths, ThermalFlow.columns, "the thermal flow", skips)
    plaquette, clover = weights_of(energy)
    parts = table.values
    electric, magnetic = (
        clover * parts[name] + plaquette * parts[f"{name}_plaquette"]
        for name in ("electric", "magnetic")
    )
    loop = np.hypot(parts["loop_re"], parts["loop_im"])
    return FlowedEnergies(table.index["t"], electric, magnetic, loop)


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
    options: ClassVar[tuple[Option, ...]] = ThermodynamicsFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show all against T/T_c, the temperature times a length, or the coupling."""
        result = thermodynamics(scan, options)
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


def abscissae(result: integral.ThermodynamicsResult) -> tuple[np.ndarray[Any, Any], str]:
    """Return the abscissae of the states and the label of their axis: T/T_c if it is known."""
    for name, label in (("ratio", "$T/T_c$"), ("length", f"$T$ {result.scale}")):
        values = [getattr(state, name) for state in result.states]
        if any(value is not None for value in values):
            return np.array([np.nan if value is None else value for value in values]), label
    return np.array([state.beta for state in result.states]), r"$\beta$"


def _curve(
    x: np.ndarray[Any, Any],
    result: integral.ThermodynamicsResult,
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
    options: ClassVar[tuple[Option, ...]] = EnergyMomentumFit.options

    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Show both at the flow times of the fit, with larger symbols for their limits."""
        result = flow_thermodynamics(scan, options)
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
