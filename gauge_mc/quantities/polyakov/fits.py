"""Free energies and screening masses from correlators of Polyakov loops."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.errors import UsageError
from gauge_mc.fits import FITS, DataResult, Fit
from gauge_mc.fits.quoted import QuotedNumber, choice_of, quoted_number, table_of
from gauge_mc.options import Option
from gauge_mc.quantities.polyakov.observables import (
    CORRELATOR_COLUMNS,
    PLANE_COLUMNS,
    read_correlators,
)
from gauge_mc.quantities.polyakov.screening import (
    CONFINED,
    DECONFINED,
    SMALLEST,
    FreeEnergies,
    FreeEnergyPoint,
    ScreeningMass,
    ScreeningMasses,
    ScreeningPoint,
    free_energies,
    read_planes,
    screening,
)
from gauge_mc.run.thermalisation import SKIP

R_MIN = Option("r_min", float, "Smallest distance fitted.", default=f"{SMALLEST:g}")
R_MAX = Option("r_max", float, "Largest distance fitted.", default="all")
PHASE = Option(
    "phase",
    str,
    "Form that is fitted: screening towards a constant, or a linear rise.",
    default="deconfined if the constant differs from 0",
    choices=(DECONFINED, CONFINED),
)


class FreeEnergyResult(DataResult[FreeEnergies]):
    """Free energies of an ensemble, and their screening or string tension."""

    observable: ClassVar[str] = (
        "free energy of two static charges from correlators of Polyakov loops, colour-averaged"
    )
    units: ClassVar[str] = "F, m and sigma in powers of T; distances in lattice units"

    def report(self) -> list[Any]:
        """Return a table of the free energies, and what was fitted."""
        found = self.found
        table = table_of("Free energy of two static charges", FreeEnergyPoint, found.points, 4)
        name = "Screening mass m/T" if found.phase == DECONFINED else "String tension σ(T)/T²"
        quality = f"χ² = {found.chi2:.3g}, {found.chi2_expected:.3g} expected"
        lines = [f"{name} = {found.mass} ({quality}, p = {found.p_value:.2g})"]
        if found.limit:
            lines.append(f"F/T at infinite distance = {found.limit}")
        return [table, *lines, *found.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the screening mass or the string tension, and F at infinite distance."""
        found = self.found
        name = "m/T" if found.phase == DECONFINED else "σ(T)/T²"
        return [quoted_number(name, found.mass), quoted_number("F(∞)/T", found.limit)]


class FreeEnergyFit(Fit):
    """The free energy of two static charges, with its screening mass or string tension."""

    name: ClassVar[str] = "free-energy"
    summary: ClassVar[str] = "F(R, T), Debye mass or string tension from Polyakov loops at T > 0"
    columns: ClassVar[tuple[str, ...]] = CORRELATOR_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (FreeEnergies, FreeEnergyPoint)
    isotropic: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (R_MIN, R_MAX, PHASE, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> FreeEnergyResult:
        """Fit the correlators of a table; see `Fit.carry_out`."""
        reach = options.get(R_MIN.name, SMALLEST), options.get(R_MAX.name, math.inf)
        if not 0 < reach[0] < reach[1]:
            raise UsageError(
                f"The distances of the fit are from {reach[0]:g} to {reach[1]:g}; choose "
                f"{R_MIN.flag} above 0 and below {R_MAX.flag}."
            )
        correlators, ensemble = read_correlators(tables, options.get(SKIP.name, 0))
        phase = choice_of(PHASE, options)
        return FreeEnergyResult(free_energies(correlators, ensemble, reach, phase))


FITS.register(FreeEnergyFit())


class ScreeningResult(DataResult[ScreeningMasses]):
    """Screening masses of an ensemble, and the correlators."""

    observable: ClassVar[str] = "screening masses from correlators of planes of Polyakov loops"
    units: ClassVar[str] = (
        "m in units of T; distances in lattice units; correlators of averages over planes"
    )

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
    options: ClassVar[tuple[Option, ...]] = (
        Option("r_min", int, "Smallest distance fitted.", default="first with a good fit", least=0),
        Option("r_max", int, "Largest distance fitted.", default="half the lattice", least=1),
        PHASE,
        SKIP,
    )

    def carry_out(self, tables: Sequence[Path], **options: Any) -> ScreeningResult:
        """Fit the correlators of a table; see `Fit.carry_out`."""
        first, last = options.get(R_MIN.name), options.get(R_MAX.name)
        if first is not None and last is not None and first >= last:
            raise UsageError(
                f"The distances of the fit are from {first} to {last}; choose {R_MIN.flag} below "
                f"{R_MAX.flag}."
            )
        series = read_planes(tables, options.get(SKIP.name, 0))
        return ScreeningResult(screening(series, first, last, choice_of(PHASE, options)))


FITS.register(ScreeningFit())
