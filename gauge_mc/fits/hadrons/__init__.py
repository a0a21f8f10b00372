"""The part that the fits of mesons and of baryons share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.analysis.hadrons.correlators import HadronCorrelators, read_hadron_correlators
from gauge_mc.analysis.hadrons.mass_series import MassSeries
from gauge_mc.analysis.hadrons.masses import Ranges
from gauge_mc.analysis.hadrons.results import ChiralFit, Spectrum
from gauge_mc.analysis.hadrons.spectrum import spectrum
from gauge_mc.fits import Fit, FitResult
from gauge_mc.fits.reports.hadrons import chiral_table, mass_table, pcac_table
from gauge_mc.fits.shared.options import AVERAGE, T_MAX, T_MIN
from gauge_mc.options import Option
from gauge_mc.run.thermalisation import SKIP

UNITS = "lattice units; tau_int in configurations"


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

    labels: ClassVar[tuple[str, ...]]
    """Columns that say which correlator a row belongs to."""
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
        found = read_hadron_correlators(table, self.labels, options.get(SKIP.name, 0))
        return found, self.series(found, ranges)

    def carry_out(self, table: Path, **options: Any) -> SpectrumResult:
        """Fit all hadrons of a table; see `Fit.carry_out`."""
        correlators, series = self.fitted(table, options)
        chiral = self.chiral(table.parent, correlators, series, options)
        found = spectrum(correlators, series, chiral, options.get(SKIP.name, 0))
        return SpectrumResult(self.result, found)
