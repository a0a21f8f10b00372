"""The part that the fits of mesons and of baryons share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from gauge_mc.files.columns import TableColumns
from gauge_mc.fits import Fit, FitResult
from gauge_mc.fits.shared.options import AVERAGE, T_MAX, T_MIN
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number
from gauge_mc.options import Option
from gauge_mc.quantities.hadrons.analysis.correlators import (
    HadronCorrelators,
    describe_quarks,
    read_hadron_correlators,
)
from gauge_mc.quantities.hadrons.analysis.mass_series import MassSeries
from gauge_mc.quantities.hadrons.analysis.masses import Ranges
from gauge_mc.quantities.hadrons.analysis.results import ChiralFit, HadronMass, PcacMass, Spectrum
from gauge_mc.quantities.hadrons.analysis.spectrum import spectrum
from gauge_mc.quantities.hadrons.analysis.states import quarks_of
from gauge_mc.quantities.hadrons.fits.parts.report import chiral_table, mass_table, pcac_table
from gauge_mc.run.thermalisation import SKIP

UNITS = "lattice units; tau_int in configurations"

SYMBOLS = {"pion": "π", "rho": "ρ", "nucleon": "N", "delta": "Δ"}
"""Symbols of the hadrons that one quotes."""

Hadron = TypeVar("Hadron", HadronMass, PcacMass)


@dataclass(frozen=True, repr=False)
class SpectrumResult(FitResult):
    """Masses of hadrons of an ensemble."""

    observable: str
    """Description of the result."""
    spectrum: Spectrum
    """The masses with their fits."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        left_out = [str(one) for one in self.spectrum.left_out]
        found = asdict(self.spectrum) | {"left_out": left_out}
        return {"observable": self.observable, "units": UNITS, **found}

    def report(self) -> list[Any]:
        """Return tables of the masses and of their dependence on the quark mass."""
        found = self.spectrum
        return [
            mass_table(found),
            *([pcac_table(found)] if found.pcac else []),
            *([chiral_table(found)] if found.chiral else []),
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the masses of the lightest quarks, and where that of the pion vanishes.

        The source with the smallest error of a mass is taken.
        """
        found = self.spectrum
        at_rest = [one for one in found.masses if not any(one.momentum) and one.parity >= 0]
        proper = [one for one in at_rest if one.name in SYMBOLS] or at_rest
        where = _where([*proper, *found.pcac])
        masses: dict[str, HadronMass] = {}
        for one in sorted(_of_lightest_quarks(proper), key=lambda one: one.fit.mass.error):
            masses.setdefault(SYMBOLS.get(one.name, one.name), one)
        known = [one for one in SYMBOLS.values() if one in masses] or [*masses][:2]
        pcac = sorted(_of_lightest_quarks(found.pcac), key=lambda one: one.mass.error)
        critical = [one for one in found.chiral if one.kappa_c or one.m_c]
        return [
            *(_quoted_mass(f"a m_{one}{where}", masses[one]) for one in known),
            *(quoted_number(f"a m_PCAC{where}", one.mass) for one in pcac[:1]),
            *(
                quoted_number("κ_c" if one.kappa_c else "m_c", one.kappa_c or one.m_c)
                for one in critical[:1]
            ),
        ]

    def unquoted(self) -> str:
        """Return why there is no mass; see `FitResult.unquoted`."""
        return "no mass of a hadron at rest could be determined"


def _of_lightest_quarks(found: Sequence[Hadron]) -> list[Hadron]:
    """Return the masses of hadrons, or PCAC masses, with the lightest quarks."""
    lightest = min(map(_heaviness, found), default=None)
    return [one for one in found if _heaviness(one) == lightest]


def _heaviness(one: HadronMass | PcacMass) -> tuple[float, ...]:
    """Return numbers that grow with the masses of the quarks of a hadron."""
    return one.m1 + one.m2, 1 / one.kappa1 + 1 / one.kappa2, abs(one.mu1) + abs(one.mu2)


def _where(found: Sequence[HadronMass | PcacMass]) -> str:
    """Return the parameters of the lightest quarks in words; nothing if there are no others."""
    if len({*map(_heaviness, found)}) < 2:
        return ""
    lightest = min(found, key=_heaviness)
    return f" ({describe_quarks(*quarks_of(vars(lightest)))})"


def _quoted_mass(name: str, one: HadronMass) -> QuotedNumber:
    """Return a mass with the systematic error from the range of t, if it is known."""
    return quoted_number(name, one.fit.mass, one.fit.systematic)


def ranges_of(options: Mapping[str, Any]) -> Ranges:
    """Return the times that options choose.

    Raises
    ------
    UsageError
        If they leave too few times.
    """
    parts = options.get(T_MIN.name), options.get(T_MAX.name), options.get(AVERAGE.name, False)
    return Ranges(*parts)


class HadronFit(Fit):
    """Masses of hadrons from the correlators of a table."""

    correlators: ClassVar[TableColumns]
    """Columns of the table."""
    result: ClassVar[str]
    """Description of the result."""
    options: ClassVar[tuple[Option, ...]] = (T_MIN, T_MAX, AVERAGE, SKIP)

    @abstractmethod
    def series(self, correlators: HadronCorrelators, ranges: Ranges) -> MassSeries:
        """Fit the masses of all hadrons."""

    @abstractmethod
    def chiral(
        self, folder: Path, found: HadronCorrelators, series: MassSeries, options: Mapping[str, Any]
    ) -> list[ChiralFit]:
        """Extrapolate in the quark mass, given the folder of the table and its correlators."""

    def fitted(
        self, table: Path, options: Mapping[str, Any]
    ) -> tuple[HadronCorrelators, MassSeries]:
        """Return the correlators of a table and the fits to them."""
        ranges = ranges_of(options)
        found = read_hadron_correlators(table, self.correlators, options.get(SKIP.name, 0))
        return found, self.series(found, ranges)

    def carry_out(self, table: Path, **options: Any) -> SpectrumResult:
        """Fit all hadrons of a table; see `Fit.carry_out`."""
        correlators, series = self.fitted(table, options)
        chiral = self.chiral(table.parent, correlators, series, options)
        found = spectrum(correlators, series, chiral, options.get(SKIP.name, 0))
        return SpectrumResult(self.result, found)
