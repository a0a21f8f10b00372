"""The equation of state of gluons, from a scan at T > 0 and T = 0."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from gauge_mc.arrays import Array
from gauge_mc.errors import UsageError
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.options import choice_of
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field
from gauge_mc.options import Option
from gauge_mc.quantities.flow.fits.scale import ENERGY, GOAL, definition
from gauge_mc.quantities.plaquette.observables.plaquette import Plaquette
from gauge_mc.quantities.thermodynamics.analysis.integral import (
    ThermodynamicsResult,
    ThermodynamicState,
    cautions_of,
    equation_of_state,
    ideal_gas,
)
from gauge_mc.quantities.thermodynamics.analysis.scale import (
    MeasuredLength,
    ScaleCurve,
    known_scale,
    measured_scale,
)
from gauge_mc.quantities.transition.fits.transition import EXTENT
from gauge_mc.results import headings
from gauge_mc.run.thermalisation import SKIP
from gauge_mc.scans.bulk_runs import BulkRuns, read_bulk_runs

LITERATURE, RUNS, CRITICAL_COUPLINGS = "literature", "runs", "critical"

COLD = Option(
    "cold", str, "Folder of further runs at T = 0, such as another scan.", "the same", "FOLDER"
)
SCALE = Option(
    "scale",
    str,
    "Where the lattice spacing is from: lengths in the literature, several critical couplings, or "
    "t₀ of the runs at T = 0.",
    f"{LITERATURE} where it is known for the group and the action, else {CRITICAL_COUPLINGS}, "
    f"else {RUNS}",
    choices=(LITERATURE, CRITICAL_COUPLINGS, RUNS),
)
CRITICAL = Option(
    "critical",
    str,
    "Critical couplings: that at the N_t of the runs is for T/T_c, and those at several N_t give "
    "the lattice spacing, 1/(N_t T_c).",
    metavar="NT:BETA,...",
)

OBSERVABLE = "equation of state from differences of the action, by the integral method"
UNITS = "powers of the temperature; errors are statistical"


@dataclass(frozen=True, repr=False)
class ThermodynamicsFitResult(FitResult):
    """The equation of state at one temporal extent."""

    found: ThermodynamicsResult
    """The equation of state."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.found)}

    def report(self) -> list[Any]:
        """Return tables of the differences of the action and of the states, and the limits."""
        differences = self._table("Differences of the action", ("difference", "beta_function"))
        states = self._table(
            f"Equation of state on {self.found.lattice}",
            ("anomaly", "pressure", "energy", "entropy"),
        )
        return [differences, states, *self._conclusions(), *self.found.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the equation of state at the highest temperature at which it is known."""
        known = [one for one in self.found.states if one.pressure]
        if not known:
            return []
        last = known[-1]
        where = f"β = {last.beta:.12g}" if last.ratio is None else f"T/T_c = {last.ratio:.4g}"
        errors = {"energy": last.scale_error, "anomaly": last.scale_error}
        names = ("pressure", "energy", "anomaly")
        return [quoted_field(last, name, errors.get(name), where) for name in names]

    def unquoted(self) -> str:
        """Return why there is no pressure; see `FitResult.unquoted`."""
        return "no pressure is known"

    def _table(self, title: str, names: tuple[str, ...]) -> Table:
        """Return a table of some fields of the states, as far as they are known."""
        found, known = self.found, headings(ThermodynamicState)
        shown = {
            name: f"T·{found.scale}" if name == "length" else known[name]
            for name in ("beta", *(["length"] if found.scale != INVERSE else []), "ratio", *names)
            if any(getattr(one, name) is not None for one in found.states)
        }
        table = Table(title=title)
        for heading in shown.values():
            table.add_column(heading, justify="right")
        for one in found.states:
            table.add_row(*(_cell(getattr(one, name)) for name in shown))
        return table

    def _conclusions(self) -> list[str]:
        """Return the ideal gas and the scale, a line each."""
        found, p = self.found, self.found.ideal_pressure
        lines = [f"Ideal gas: p/T⁴ = {p:.4f}, ε/T⁴ = {3 * p:.4f}, s/T³ = {4 * p:.4f}."]
        if (q := found.ideal_pressure_on_lattice) is not None:
            lines.append(
                f"On a lattice with this N_t and infinite space: {q:.4f}, {3 * q:.4f}, {4 * q:.4f}."
            )
        if found.scale:
            lines.append(f"Scale: {found.scale} ({found.scale_source}).")
        return lines


def _cell(value: object) -> str:
    """Return a result in words, empty if it is not known."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else str(value)


class ThermodynamicsFit(Fit):
    """The equation of state by the integral method."""

    name: ClassVar[str] = "thermodynamics"
    summary: ClassVar[str] = "pressure, energy and entropy density, from scans at T > 0 and T = 0"
    columns: ClassVar[tuple[str, ...]] = Plaquette.columns.names
    content: ClassVar[tuple[type[Any], ...]] = (ThermodynamicsResult, ThermodynamicState)
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (EXTENT, COLD, SCALE, CRITICAL, ENERGY, GOAL, SKIP)

    def carry_out(self, table: Path, **options: Any) -> ThermodynamicsFitResult:
        """Find the equation of state from all runs in a folder; see `Fit.carry_out`."""
        return ThermodynamicsFitResult(thermodynamics(table, options))


FITS.register(ThermodynamicsFit())


def thermodynamics(folder: Path, options: dict[str, Any]) -> ThermodynamicsResult:
    """Return the equation of state of the runs in a folder, as options choose it.

    Raises
    ------
    GaugeError
        If runs are missing; see `read_bulk_runs` and `BulkRuns.differences`.
    UsageError
        If there is no scale where one was asked for.
    """
    skip = options.get(SKIP.name, 0)
    cold = options.get(COLD.name)
    runs = read_bulk_runs(folder, Path(cold) if cold else None, skip, options.get(EXTENT.name))
    differences = runs.differences()
    extent, couplings = runs.lattice.t, critical_couplings(options.get(CRITICAL.name, ""))
    critical = couplings.get(extent)
    beta = differences.beta if critical is None else np.append(differences.beta, critical)
    cautions = [*runs.cautions, *_missing(runs)]
    scale = _scale(runs, beta, options, couplings, cautions)
    at_critical = extent if scale and scale.name == INVERSE else math.nan
    if scale and critical is not None:
        at_critical = float(scale.length[-1])
        if not math.isfinite(at_critical):
            cautions.append(f"{scale.name} is not known at β = {critical:.12g}, so T/T_c is not.")
        size = differences.beta.size
        cut = (scale.length[:size], scale.slope[:size], scale.slope_error[:size])
        scale = ScaleCurve(scale.name, scale.source, *cut)
    states = equation_of_state(differences, extent, scale, at_critical)
    continuum, on_lattice = ideal_gas(runs.group, runs.coupling.action.rectangle == 0, extent)
    return ThermodynamicsResult(
        dict(runs.ensemble),
        str(runs.lattice),
        scale.name if scale else None,
        scale.source if scale else None,
        critical,
        states,
        continuum,
        on_lattice,
        [*cautions, *cautions_of(states)],
    )


def _missing(runs: BulkRuns) -> list[str]:
    """Return a sentence about couplings without runs at T = 0."""
    if not runs.missing:
        return []
    couplings = ", ".join(f"{one:.12g}" for one in runs.missing)
    return [f"There is no run at T = 0 at β = {couplings}, which is left out: add runs there."]


def _scale(
    runs: BulkRuns,
    beta: Array,
    options: dict[str, Any],
    couplings: Mapping[int, float],
    cautions: list[str],
) -> ScaleCurve | None:
    """Return the scale that options choose, and add cautions about it; None if there is none."""
    chosen = choice_of(SCALE, options)
    known = known_scale(runs.coupling.action, runs.group, beta)
    found: ScaleCurve | None
    if chosen == CRITICAL_COUPLINGS or (chosen is None and known is None and len(couplings) > 1):
        found = _of_couplings(couplings, beta)
    elif known is not None and chosen != RUNS:
        found = known
    elif chosen == LITERATURE:
        raise UsageError(
            f"No length of {runs.group.label} with the action {runs.coupling.action.name} is known "
            f"at these couplings; leave {SCALE.flag} out, and let the runs at T = 0 measure the "
            "gradient flow."
        )
    else:
        found = _of_runs(runs, beta, options, cautions)
    if found is None:
        cautions.append(
            "The scale is not known, and so only the pressure is: let the runs at T = 0 measure "
            "the gradient flow, at two couplings or more."
        )
    elif not np.isfinite(found.slope).all():
        cautions.append(f"{found.name} is not known at all couplings, and so T and ε − 3p are not.")
    return found


def _of_couplings(couplings: Mapping[int, float], beta: Array) -> ScaleCurve:
    """Return 1/T_c, which is N_t a at the critical coupling of N_t.

    Raises
    ------
    UsageError
        If there are fewer than two critical couplings.
    """
    points = [MeasuredLength(one, extent, EQUAL * extent) for extent, one in couplings.items()]
    found = measured_scale(INVERSE, f"{CRITICAL.flag}, a T_c = 1/N_t", points, beta)
    if found is None:
        raise UsageError(
            f"The lattice spacing follows from critical couplings at two N_t or more; give them "
            f"with {CRITICAL.flag}, as in 4:5.6925,6:5.8943."
        )
    return replace(found, slope_error=np.where(np.isfinite(found.slope), 0.0, math.nan))


INVERSE = "1/T_c"
"""Length of the scale from critical couplings. The temperature times it is T/T_c."""

EQUAL = 1e-3
"""Relative error of all critical temperatures, to which the fit through them is indifferent."""


def critical_couplings(text: str) -> dict[int, float]:
    """Return critical couplings by N_t, given text such as ``4:5.6925,6:5.8943``.

    Raises
    ------
    UsageError
        If the text is not of this form.
    """
    found = {}
    for one in filter(None, text.split(",")):
        extent, _, beta = one.partition(":")
        try:
            found[int(extent)] = float(beta)
        except ValueError as error:
            raise UsageError(
                f"{CRITICAL.flag} is '{text}'; give temporal extents with their critical "
                "couplings, as in 4:5.6925,6:5.8943."
            ) from error
    if any(extent < 1 or not 0 < beta < math.inf for extent, beta in found.items()):
        raise UsageError(
            f"{CRITICAL.flag} is '{text}'; N_t and critical couplings must be positive."
        )
    return found


def _of_runs(
    runs: BulkRuns, beta: Array, options: dict[str, Any], cautions: list[str]
) -> ScaleCurve | None:
    """Return sqrt(t0) of the runs at T = 0 at all couplings, or None."""
    choice = definition(options)
    target = choice["target"]
    lengths, complaint = runs.lengths(choice["energy"], target, options.get(SKIP.name, 0))
    if complaint:
        cautions.append(complaint)
    source = f"t₀ of the runs at T = 0, where t²⟨E⟩ = {target:g}"
    return measured_scale("√t₀", source, lengths, beta)
