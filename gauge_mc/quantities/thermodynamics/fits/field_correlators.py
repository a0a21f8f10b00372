"""Correlators of electric and magnetic fields on the Polyakov loop, for the diffusion of quarks."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field
from gauge_mc.fits.shared.rows import table_of
from gauge_mc.options import Option
from gauge_mc.quantities.thermodynamics.analysis.field_correlators import (
    FieldCorrelatorPoint,
    LoopFieldCorrelators,
    field_correlators,
    read_field_series,
)
from gauge_mc.quantities.thermodynamics.analysis.flow_columns import FIELD_COLUMNS
from gauge_mc.run.thermalisation import SKIP

OBSERVABLE = "correlators of electric and magnetic fields on the Polyakov loop, divided by the loop"
UNITS = "powers of the temperature; t, radius and tau in lattice units; bare fields"


@dataclass(frozen=True, repr=False)
class FieldCorrelatorsResult(FitResult):
    """Correlators of fields on the Polyakov loop of an ensemble."""

    found: LoopFieldCorrelators
    """The correlators."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.found)}

    def report(self) -> list[Any]:
        """Return a table of the distances and flow times that are neither too small nor large."""
        rows = [one for one in self.found.points if one.inside]
        title = "Correlators on the Polyakov loop, a ≤ √(8t) ≤ τ/3"
        table = table_of(title, FieldCorrelatorPoint, rows, 4)
        return [*([table] if rows else []), *self.found.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the correlators at the largest distance and the longest flow time inside."""
        rows = [one for one in self.found.points if one.inside]
        if not rows:
            return []
        last = max(rows, key=lambda one: (one.tau, one.t))
        where = f"τT = {last.scaled:.4g}, √(8t)/a = {last.radius:.4g}"
        ends = "_ratio" if last.electric_ratio else ""
        return [
            quoted_field(last, f"{name}{ends}", None, where) for name in ("electric", "magnetic")
        ]

    def unquoted(self) -> str:
        """Return why there is no correlator; see `FitResult.unquoted`."""
        return "no flow time has a ≤ √(8t) ≤ τ/3"


class FieldCorrelatorsFit(Fit):
    """Correlators of electric and magnetic fields in units of those of leading order."""

    name: ClassVar[str] = "field-correlators"
    summary: ClassVar[str] = "electric and magnetic correlators, for the diffusion of heavy quarks"
    columns: ClassVar[tuple[str, ...]] = FIELD_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (LoopFieldCorrelators, FieldCorrelatorPoint)
    isotropic: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (SKIP,)

    def carry_out(self, table: Path, **options: Any) -> FieldCorrelatorsResult:
        """Average the correlators of a table; see `Fit.carry_out`."""
        series = read_field_series(table, options.get(SKIP.name, 0))
        return FieldCorrelatorsResult(field_correlators(series))


FITS.register(FieldCorrelatorsFit())
