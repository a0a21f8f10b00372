"""Free energies of static charges at T > 0, from correlators of Polyakov loops."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.errors import UsageError
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.options import choice_of
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number
from gauge_mc.options import Option
from gauge_mc.quantities.polyakov.analysis.free_energy import (
    CONFINED,
    DECONFINED,
    SMALLEST,
    FreeEnergies,
    FreeEnergyPoint,
    free_energies,
)
from gauge_mc.quantities.polyakov.analysis.polyakov_correlators import (
    CORRELATOR_COLUMNS,
    read_correlators,
)
from gauge_mc.results import headings
from gauge_mc.run.thermalisation import SKIP

R_MIN = Option("r_min", float, "Smallest distance fitted.", f"{SMALLEST:g}")
R_MAX = Option("r_max", float, "Largest distance fitted.", "all")
PHASE = Option(
    "phase",
    str,
    "Form that is fitted: screening towards a constant, or a linear rise.",
    "deconfined if the constant differs from 0",
    choices=(DECONFINED, CONFINED),
)

OBSERVABLE = "free energy of two static charges from correlators of Polyakov loops, colour-averaged"
UNITS = "F, m and sigma in powers of T; distances in lattice units"


@dataclass(frozen=True, repr=False)
class FreeEnergyResult(FitResult):
    """Free energies of an ensemble."""

    found: FreeEnergies
    """The free energies, and their screening or string tension."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": OBSERVABLE, "units": UNITS, **asdict(self.found)}

    def report(self) -> list[Any]:
        """Return a table of the free energies, and what was fitted."""
        found, known = self.found, headings(FreeEnergyPoint)
        table = Table(title="Free energy of two static charges")
        for heading in known.values():
            table.add_column(heading, justify="right")
        for one in found.points:
            table.add_row(*(_cell(getattr(one, name)) for name in known))
        return [table, *self._conclusions(), *found.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the screening mass or the string tension, and F at infinite distance."""
        found = self.found
        name = "m/T" if found.phase == DECONFINED else "σ(T)/T²"
        return [quoted_number(name, found.mass), quoted_number("F(∞)/T", found.limit)]

    def _conclusions(self) -> list[str]:
        """Return the fitted parameters, a line each."""
        found = self.found
        name = "Screening mass m/T" if found.phase == DECONFINED else "String tension σ(T)/T²"
        quality = f"χ² = {found.chi2:.3g}, {found.chi2_expected:.3g} expected"
        lines = [f"{name} = {found.mass} ({quality}, p = {found.p_value:.2g})"]
        if found.limit:
            lines.append(f"F/T at infinite distance = {found.limit}")
        return lines


def _cell(value: object) -> str:
    """Return a result in words, empty if it is not known."""
    if isinstance(value, Estimate):
        return str(value)
    return "" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


class FreeEnergyFit(Fit):
    """The free energy of two static charges, with its screening mass or string tension."""

    name: ClassVar[str] = "free-energy"
    summary: ClassVar[str] = "F(R, T), Debye mass or string tension from Polyakov loops at T > 0"
    columns: ClassVar[tuple[str, ...]] = CORRELATOR_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (FreeEnergies, FreeEnergyPoint)
    isotropic: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (R_MIN, R_MAX, PHASE, SKIP)

    def carry_out(self, table: Path, **options: Any) -> FreeEnergyResult:
        """Fit the correlators of a table; see `Fit.carry_out`."""
        reach = options.get(R_MIN.name, SMALLEST), options.get(R_MAX.name, math.inf)
        if not 0 < reach[0] < reach[1]:
            raise UsageError(
                f"The distances of the fit are from {reach[0]:g} to {reach[1]:g}; choose "
                f"{R_MIN.flag} above 0 and below {R_MAX.flag}."
            )
        correlators, ensemble = read_correlators(table, options.get(SKIP.name, 0))
        return FreeEnergyResult(
            free_energies(correlators, ensemble, reach, choice_of(PHASE, options))
        )


FITS.register(FreeEnergyFit())
