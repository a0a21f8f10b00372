"""Acceptance, energies and cost of the trajectories of hybrid Monte Carlo."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number
from gauge_mc.numbers import counted
from gauge_mc.options import Option
from gauge_mc.quantities.trajectories.analysis.trajectories import (
    GAUGE,
    TRAJECTORY_COLUMNS,
    ActionTerm,
    TermForces,
    Trajectories,
    TrajectoryTable,
    read_trajectories,
    trajectory_averages,
    unequal_levels,
)
from gauge_mc.run.thermalisation import SKIP
from gauge_mc.updates.integrators import INTEGRATORS
from gauge_mc.updates.levels import TimeScales, TrajectoryLevel, gauge_level
from gauge_mc.updates.quarks import DynamicalQuarks, quark_terms
from gauge_mc.updates.run_monomials import NamedMonomial, monomial_terms

TRUSTED = 3.0
"""Deviation of <exp(-dH)> from 1 in errors from which on it is said."""


@dataclass(frozen=True, repr=False)
class HmcResult(FitResult):
    """Averages over the trajectories of an ensemble.

    Attributes
    ----------
    found : Trajectories
        Averages over the trajectories after the thermalisation.
    """

    found: Trajectories

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "observable": "acceptance, energies and forces of trajectories",
            "units": "tau_int in trajectories, cost in forces",
            **asdict(self.found),
        }

    def report(self) -> list[Any]:
        """Return a table of the averages, and cautions."""
        f = self.found
        table = Table(title=f"{f.trajectories} trajectories of {counted(f.steps, 'step')}")
        table.add_column("quantity")
        table.add_column("value", justify="right")
        table.add_column("τ_int", justify="right")
        for name, one in self._averages():
            table.add_row(name, str(one), one.format_tau())
        if math.isfinite(f.predicted):  # not so where noise makes the mean of ΔH negative
            table.add_row("erfc(√⟨ΔH⟩/2)", f"{f.predicted:.4g}", "")
        if len(f.terms) == 1:
            table.add_row("force, rms", f"{f.force:.4g}", "")
            table.add_row("force, largest", f"{f.largest_force:.4g}", "")
            table.add_row("forces per trajectory", str(f.forces), "")
            table.add_row("forces per independent configuration", f"{f.cost:.3g}", "")
            return [table, *f.cautions, *self._cautions()]
        if f.failed:
            table.add_row("trajectories with a failed solver", str(f.failed), "")
        table.add_row("iterations per trajectory", f"{f.iterations:.4g}", "")
        table.add_row("iterations per independent configuration", f"{f.cost_in_iterations:.3g}", "")
        hint = unequal_levels(f.terms)
        return [table, self._terms(), *f.cautions, *self._cautions(), *([hint] if hint else [])]

    def quoted(self) -> list[QuotedNumber]:
        """Return the acceptance and the energies."""
        return [quoted_number(name, one) for name, one in self._averages()[:3]]

    def _averages(self) -> list[tuple[str, Estimate]]:
        """Return the names of the averages, and their values."""
        f = self.found
        return [
            ("acceptance", f.acceptance),
            ("⟨ΔH⟩", f.change),
            ("⟨exp(−ΔH)⟩", f.weight),
            ("action per site", f.action),
        ]

    def _terms(self) -> Table:
        """Return a table of the terms of the action, with the iterations of their solvers."""
        table = Table(title="terms of the action")
        table.add_column("term", no_wrap=True)
        heads = ("level", "forces", "step", "rms F", "max F", "F·step", "solver")
        for head in heads:
            table.add_column(head, justify="right")
        for one in self.found.terms:
            table.add_row(
                one.name,
                str(one.level),
                str(one.forces),
                f"{one.step:.3g}",
                f"{one.force:.3g}",
                f"{one.largest_force:.3g}",
                f"{one.kick:.2g}",
                f"{one.iterations:.0f}" if one.iterations else "",
            )
        return table

    def _cautions(self) -> list[str]:
        """Return a caution if the energies are not distributed as they must be, or nothing."""
        f = self.found
        if abs(f.weight.value - 1) <= TRUSTED * f.weight.error:
            return []
        return [
            "⟨exp(−ΔH)⟩ is not 1 within its error: the chain has not thermalised, is too short, or "
            "its steps are too large; leave more out with --skip, or give more --steps."
        ]


class HmcFit(Fit):
    """Acceptance, <exp(-dH)> and cost of trajectories."""

    name: ClassVar[str] = "hmc"
    summary: ClassVar[str] = "acceptance, ΔH and cost of hybrid Monte Carlo"
    columns: ClassVar[tuple[str, ...]] = TRAJECTORY_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (Trajectories, TermForces)
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def carry_out(self, table: Path, **options: Any) -> HmcResult:
        """Average over the trajectories of a table; see `Fit.carry_out`."""
        found = read_trajectories(table, options.get(SKIP.name, 0))
        return HmcResult(trajectory_averages(found, *terms_of(found)))


def terms_of(table: TrajectoryTable) -> tuple[ActionTerm, list[ActionTerm]]:
    """Return where the gauge action acts, and the terms of the action of quarks."""
    known = table.ensemble
    levels = TrajectoryLevel.several(known.get("levels", ""))
    count, own = max(len(levels), 1), gauge_level(levels)
    quarks = DynamicalQuarks.several(known.get("quarks", ""))
    named = NamedMonomial.several(known.get(NamedMonomial.option, ""))
    terms = [*quark_terms(quarks, count), *monomial_terms(named, count)]
    acting = {own, *(one.level for one in terms)}
    scales = TimeScales.of(levels, INTEGRATORS[known["integrator"]], acting)
    forces = scales.forces(int(table.columns["steps"][-1]))
    others = [ActionTerm(one.title, one.level, forces[one.level]) for one in terms]
    return ActionTerm(GAUGE, own, forces[own]), others


FITS.register(HmcFit())
