"""Thermodynamics from the energy-momentum tensor of the gradient flow, from a scan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_table
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field
from gauge_mc.numbers import counted
from gauge_mc.options import Option
from gauge_mc.quantities.flow.analysis.records import ENERGIES, weights_of
from gauge_mc.quantities.flow.fits.scale import ENERGY
from gauge_mc.quantities.thermodynamics.analysis.energy_momentum import (
    FlowedEnergies,
    FlowState,
    flow_state,
)
from gauge_mc.quantities.thermodynamics.analysis.flow_columns import THERMAL_COLUMNS
from gauge_mc.quantities.thermodynamics.analysis.ideal_gas import ideal_pressure
from gauge_mc.quantities.thermodynamics.fits.thermodynamics import COLD
from gauge_mc.quantities.transition.fits.transition import EXTENT
from gauge_mc.results import documented, headings, result_field
from gauge_mc.run.thermalisation import SKIP, Skip, last_skipped
from gauge_mc.scans.bulk_runs import BulkRun, BulkRuns, read_bulk_runs, table_with

SMALLEST = 2.0
"""Default of the smallest radius sqrt(8 t)/a: below it lattice artefacts are large."""

RADIUS_MIN = Option(
    "radius_min",
    float,
    "Smallest smoothing radius √(8t)/a of the extrapolation in t.",
    f"{SMALLEST:g}",
    least=0.0,
)
RADIUS_MAX = Option(
    "radius_max", float, "Largest smoothing radius.", "N_t/2, from where on it covers the lattice"
)

LEAST_CONFIGURATIONS = 10
"""Minimum number of configurations at a coupling."""

OBSERVABLE = "thermodynamics from the energy-momentum tensor of the gradient flow, t -> 0"
UNITS = "powers of the temperature; errors are statistical"


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


@dataclass(frozen=True, repr=False)
class FlowThermodynamicsResult(FitResult):
    """Thermodynamics from the gradient flow of the runs in a folder."""

    found: FlowThermodynamics
    """The results."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.found)}

    def report(self) -> list[Any]:
        """Return a table of the extrapolated values, and the limits."""
        found, known = self.found, headings(FlowState)
        table = Table(title=f"Energy-momentum tensor on {found.lattice}, t → 0")
        for heading in known.values():
            table.add_column(heading, justify="right")
        table.add_column("√(8t)/a", justify="right")
        for one in found.states:
            first, last = (f"{math.sqrt(8 * t):.2f}" for t in (one.t[0], one.t[-1]))
            cells = [str(getattr(one, name)) for name in known if name != "beta"]
            table.add_row(f"{one.beta:.12g}", *cells, f"{first} to {last}")
        p = found.ideal_pressure
        limits = f"Ideal gas: p/T⁴ = {p:.4f}, ε/T⁴ = {3 * p:.4f}, s/T³ = {4 * p:.4f}."
        return [table, limits, *found.cautions]

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

    def carry_out(self, table: Path, **options: Any) -> FlowThermodynamicsResult:
        """Extrapolate the runs in a folder to t = 0; see `Fit.carry_out`."""
        return FlowThermodynamicsResult(flow_thermodynamics(table, options))


FITS.register(EnergyMomentumFit())


def flow_thermodynamics(folder: Path, options: Mapping[str, Any]) -> FlowThermodynamics:
    """Return the entropy density and the trace anomaly of the runs in a folder.

    Raises
    ------
    UsageError
        If the range of smoothing radii is empty.
    GaugeError
        If runs or flow times are missing; see `read_bulk_runs` and `flow_state`.
    """
    skip, cold = options.get(SKIP.name, 0), options.get(COLD.name)
    runs = read_bulk_runs(folder, Path(cold) if cold else None, skip, options.get(EXTENT.name))
    extent = runs.lattice.t
    radii = (
        options.get(RADIUS_MIN.name, SMALLEST),
        options.get(RADIUS_MAX.name, extent / 2),
    )
    if not radii[0] < radii[1]:
        raise UsageError(
            f"The smoothing radii are from {radii[0]:g} to {radii[1]:g} with N_t = {extent}; "
            f"choose a larger N_t, or a range with {RADIUS_MIN.flag} and {RADIUS_MAX.flag}."
        )
    energy = options.get(ENERGY.name, next(iter(ENERGIES)))
    states, cautions = _states(runs, energy, skip, radii)
    return FlowThermodynamics(
        dict(runs.ensemble),
        str(runs.lattice),
        energy,
        states,
        ideal_pressure(runs.group.dimension),
        [*runs.cautions, *cautions],
    )


def _states(
    runs: BulkRuns, energy: str, skip: Skip, radii: tuple[float, float]
) -> tuple[list[FlowState], list[str]]:
    """Return the states at all couplings with the flow at both temperatures, and cautions.

    Raises
    ------
    GaugeError
        If there is no such coupling, or too few flow times.
    """
    found, lacking = [], []
    for beta in sorted({one.coupling.beta for one in runs.hot}):
        hot, cold = (
            _energies([one for one in side if one.coupling.beta == beta], energy, skip)
            for side in (runs.hot, runs.cold)
        )
        if hot is None or cold is None:
            lacking.append(f"{beta:.12g}")
            continue
        state = flow_state(beta, hot, cold, runs.lattice.t, runs.group.colours, radii)
        found.append(state)
    if not found:
        raise GaugeError(
            "No coupling has runs at T > 0 and at T = 0 that measured electric and magnetic "
            "energies along the gradient flow; measure them on both."
        )
    if not lacking:
        return found, []
    return found, [
        f"At β = {', '.join(lacking)} the flow was not measured at both temperatures; these "
        "couplings are left out."
    ]


def _energies(runs: Sequence[BulkRun], energy: str, skip: Skip) -> FlowedEnergies | None:
    """Return the energies of the runs at one coupling and temperature, or None.

    Raises
    ------
    GaugeError
        If there are few configurations, or they have different flow times.
    """
    paths = [path for one in runs if (path := table_with(one.path, THERMAL_COLUMNS))]
    tables = [read_table(path).after(last_skipped(path.parent, skip), str(path)) for path in paths]
    if not tables:
        return None
    weights = weights_of(energy)
    times = np.unique(tables[0]["t"])
    parts: dict[str, list[Any]] = {"electric": [], "magnetic": []}
    loops = []
    for path, table in zip(paths, tables, strict=True):
        rows = len(table) // times.size
        if not np.array_equal(table["t"], np.tile(times, rows)):
            raise GaugeError(
                f"{path} does not have the same flow times for all configurations and runs at one "
                "coupling; measure the flow again."
            )
        for name, found in parts.items():
            both = weights[1] * table[name] + weights[0] * table[f"{name}_plaquette"]
            found.append(np.asarray(both).reshape(rows, times.size))
        loops.append(np.hypot(table["loop_re"], table["loop_im"]).reshape(rows, times.size))
    electric, magnetic = (np.concatenate(one) for one in parts.values())
    if len(electric) < LEAST_CONFIGURATIONS:
        raise GaugeError(
            f"{paths[0]} has {counted(len(electric), 'configuration')}, and "
            f"{LEAST_CONFIGURATIONS} are needed; measure more."
        )
    return FlowedEnergies(times, electric, magnetic, np.concatenate(loops))
