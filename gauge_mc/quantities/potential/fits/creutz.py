"""Creutz ratios from Wilson loops on axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis.timeseries.gamma_method import MIN_FOR_ERRORS
from gauge_mc.analysis.timeseries.notation import with_error
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.options import LEVEL, tag_of_levels
from gauge_mc.fits.shared.quoted import QuotedNumber
from gauge_mc.options import Option
from gauge_mc.quantities.potential.analysis.loop_ratios import LoopGrid, creutz_ratios
from gauge_mc.quantities.potential.analysis.loop_tables import LOOP_COLUMNS, read_loops
from gauge_mc.quantities.potential.analysis.loops import PathLoops
from gauge_mc.results import documented, result_field
from gauge_mc.run.thermalisation import SKIP

DIAGONALS = 4
"""Number of diagonals T = R, R + 1, … in the report: four columns fit 80 characters."""

QUOTED_ERROR = 0.1
"""Largest relative error of the ratio that is quoted, if one is known so well."""


@documented
@dataclass(frozen=True)
class CreutzRatios:
    """Creutz ratios as they are written to a file."""

    smearing: int = result_field("Iterations of smearing of the loops used.")
    configurations: int = result_field("Number of configurations.")
    ensemble: dict[str, str] = result_field("Group, beta and lattice of the ensemble.")
    r: list[int] = result_field("Extents R of the ratios.")
    t: list[int] = result_field("Extents T of the ratios.")
    chi: list[list[float]] = result_field(
        "Ratio for each R and T; NaN where a loop is not positive."
    )
    error: list[list[float]] = result_field(
        "Standard error for each R and T; NaN where a loop is not positive."
    )


@dataclass(frozen=True, repr=False)
class CreutzResult(FitResult):
    """Creutz ratios of an ensemble."""

    ratios: LoopGrid
    """The ratios chi(R, T) with their errors."""
    loops: PathLoops
    """The loops from which the ratios were computed."""
    ensemble: Mapping[str, str]
    """Group, beta and lattice of the ensemble."""

    @property
    def tag(self) -> str:
        """The smearing level, if the table has several."""
        return tag_of_levels([self.loops.smearing], self.loops.levels)

    def values(self) -> dict[str, Any]:
        """Return the ratios as plain values, for JSON."""
        found = CreutzRatios(
            self.loops.smearing,
            int(self.loops.sweeps.size),
            dict(self.ensemble),
            self.ratios.r.tolist(),
            self.ratios.t.tolist(),
            self.ratios.value.tolist(),
            self.ratios.error.tolist(),
        )
        return {
            "observable": "Creutz ratios chi = -ln W(r,t) W(r-1,t-1) / (W(r,t-1) W(r-1,t))",
            "units": "lattice units",
            **asdict(found),
        }

    def report(self) -> list[Any]:
        """Return a table of the ratios chi(R, T) with T >= R.

        On the diagonal T = R, chi tends to the string tension; for large T it tends to
        V(R) - V(R - 1). Ratios smaller than their errors are left out.
        """
        grid = self.ratios
        table = Table(title="Creutz ratios χ(R, T) in lattice units")
        table.add_column("R")
        for k in range(DIAGONALS):
            table.add_column(f"T = R + {k}" if k else "T = R", justify="right")
        for i, r in enumerate(grid.r):
            known = [k for k in range(DIAGONALS) if i + k < grid.t.size]
            pairs = [(float(grid.value[i, i + k]), float(grid.error[i, i + k])) for k in known]
            cells = [with_error(*pair) if pair[1] < abs(pair[0]) else "" for pair in pairs]
            if any(cells):
                table.add_row(str(r), *cells)
        return [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return chi(R, R) of the largest R at which it is known well, or else the best known."""
        grid = self.ratios
        diagonal = zip(grid.value.diagonal().tolist(), grid.error.diagonal().tolist(), strict=True)
        numbers = [
            QuotedNumber(f"χ({r}, {t})", *pair)
            for r, t, pair in zip(grid.r, grid.t, diagonal, strict=False)
        ]
        known = [one for one in numbers if one.known and one.error < abs(one.value)]
        well = [one for one in known if one.error <= QUOTED_ERROR * abs(one.value)]
        return well[-1:] or sorted(known, key=lambda one: one.error / abs(one.value))[:1]

    def unquoted(self) -> str:
        """Return why there is no ratio; see `FitResult.unquoted`."""
        return "all ratios χ(R, R) are smaller than their errors"


class CreutzFit(Fit):
    """chi(R, T) = -ln [W(R,T) W(R-1,T-1) / (W(R,T-1) W(R-1,T))]."""

    name: ClassVar[str] = "creutz"
    summary: ClassVar[str] = "Creutz ratios from Wilson loops on axis"
    columns: ClassVar[tuple[str, ...]] = LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (CreutzRatios,)
    fewest: ClassVar[int] = MIN_FOR_ERRORS
    options: ClassVar[tuple[Option, ...]] = (LEVEL, SKIP)

    def carry_out(self, table: Path, **options: Any) -> CreutzResult:
        """Compute the ratios from the loops of a table; see `Fit.carry_out`."""
        loops, ensemble = read_loops(table, options.get(LEVEL.name), options.get(SKIP.name, 0))
        return CreutzResult(creutz_ratios(loops[0]), loops[0], ensemble)


FITS.register(CreutzFit())
