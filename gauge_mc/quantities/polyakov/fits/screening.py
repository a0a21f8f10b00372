"""Screening masses at T > 0, from correlators of planes of Polyakov loops."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.errors import UsageError
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.options import choice_of
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number
from gauge_mc.fits.shared.rows import table_of
from gauge_mc.options import Option
from gauge_mc.quantities.polyakov.analysis.free_energy import CONFINED
from gauge_mc.quantities.polyakov.analysis.screening import (
    PLANE_COLUMNS,
    ScreeningMass,
    ScreeningMasses,
    ScreeningPoint,
    read_planes,
    screening,
)
from gauge_mc.quantities.polyakov.fits.free_energy import PHASE
from gauge_mc.run.thermalisation import SKIP

R_MIN = Option("r_min", int, "Smallest distance fitted.", "first with a good fit", least=0)
R_MAX = Option("r_max", int, "Largest distance fitted.", "half the lattice", least=1)

OBSERVABLE = "screening masses from correlators of planes of Polyakov loops"
UNITS = "m in units of T; distances in lattice units; correlators of averages over planes"


@dataclass(frozen=True, repr=False)
class ScreeningResult(FitResult):
    """Screening masses of an ensemble."""

    found: ScreeningMasses
    """The masses, and the correlators."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.found)}

    def report(self) -> list[Any]:
        """Return tables of the correlators and of the masses."""
        found = self.found
        title = "Confined phase: m/T = σ(T)/T²" if found.phase == CONFINED else "Screening masses"
        return [
            table_of("Correlators of planes of Polyakov loops", ScreeningPoint, found.points, 3),
            table_of(title, ScreeningMass, found.masses, 3),
            *found.cautions,
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the mass of each part of the loop, or the string tension."""
        found = self.found
        name = "σ(T)/T²" if found.phase == CONFINED else "m/T"
        return [quoted_number(f"{name} ({one.part})", one.mass) for one in found.masses]


class ScreeningFit(Fit):
    """Screening masses of the real and the imaginary part of the Polyakov loop."""

    name: ClassVar[str] = "screening"
    summary: ClassVar[str] = "screening masses from planes of Polyakov loops at T > 0"
    columns: ClassVar[tuple[str, ...]] = PLANE_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (ScreeningMasses, ScreeningMass, ScreeningPoint)
    isotropic: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (R_MIN, R_MAX, PHASE, SKIP)

    def carry_out(self, table: Path, **options: Any) -> ScreeningResult:
        """Fit the correlators of a table; see `Fit.carry_out`."""
        first, last = options.get(R_MIN.name), options.get(R_MAX.name)
        if first is not None and last is not None and first >= last:
            raise UsageError(
                f"The distances of the fit are from {first} to {last}; choose {R_MIN.flag} below "
                f"{R_MAX.flag}."
            )
        series = read_planes(table, options.get(SKIP.name, 0))
        return ScreeningResult(screening(series, first, last, choice_of(PHASE, options)))


FITS.register(ScreeningFit())
