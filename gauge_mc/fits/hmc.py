"""Acceptance, energies and cost of the trajectories of hybrid Monte Carlo."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis.trajectories import (
    TRAJECTORY_COLUMNS,
    Trajectories,
    read_trajectories,
    trajectory_averages,
)
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.options import SKIP
from gauge_mc.options import Option
from gauge_mc.updates.integrators import INTEGRATORS

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
        table = Table(title=f"{f.trajectories} trajectories of {f.steps} steps")
        table.add_column("quantity")
        table.add_column("value", justify="right")
        table.add_column("τ_int", justify="right")
        for name, one in (
            ("acceptance", f.acceptance),
            ("⟨ΔH⟩", f.change),
            ("⟨exp(−ΔH)⟩", f.weight),
            ("action per site", f.action),
        ):
            table.add_row(name, str(one), one.format_tau())
        if math.isfinite(f.predicted):  # not so where noise makes the mean of ΔH negative
            table.add_row("erfc(√⟨ΔH⟩/2)", f"{f.predicted:.4g}", "")
        table.add_row("force, rms", f"{f.force:.4g}", "")
        table.add_row("force, largest", f"{f.largest_force:.4g}", "")
        table.add_row("forces per trajectory", str(f.forces), "")
        table.add_row("forces per independent configuration", f"{f.cost:.3g}", "")
        return [table, *f.cautions, *self._cautions()]

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
    content: ClassVar[tuple[type[Any], ...]] = (Trajectories,)
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def carry_out(self, table: Path, **options: Any) -> HmcResult:
        """Average over the trajectories of a table; see `Fit.carry_out`."""
        found = read_trajectories(table, options.get(SKIP.name, 0))
        integrator = INTEGRATORS[found.ensemble["integrator"]]
        return HmcResult(trajectory_averages(found, integrator.forces))


FITS.register(HmcFit())
