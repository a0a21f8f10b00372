"""The chiral condensate and its susceptibility."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_field
from gauge_mc.fits.shared.rows import table_of
from gauge_mc.numbers import counted
from gauge_mc.options import Option
from gauge_mc.quantities.condensate.analysis.condensate import (
    ChiralSusceptibility,
    CondensateLine,
    CondensateResult,
    CondensateResults,
    condensates,
    read_condensates,
)
from gauge_mc.quantities.condensate.analysis.records import CONDENSATE_COLUMNS
from gauge_mc.quarks.diagonal import LARGEST
from gauge_mc.run.thermalisation import SKIP

FLAVOURS = Option(
    "flavours",
    int,
    "Number of flavours of this mass in the whole susceptibility.",
    usual=2,
    least=1,
    most=100,
)

KAPPA_C = Option(
    "kappa_c",
    float,
    "Critical hopping parameter, from which the masses of straight lines are counted.",
    "no line without masses",
    least=1 / LARGEST,
    most=1,
)

DIGITS = 3
"""Number of digits of numbers without an error."""


@dataclass(frozen=True, repr=False)
class CondensateFitResult(FitResult):
    """Condensates of an ensemble.

    Attributes
    ----------
    found : CondensateResults
        The condensates.
    """

    found: CondensateResults

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "observable": "chiral condensate and its susceptibility",
            "units": "lattice units, not renormalised; tau_int in configurations",
            **asdict(self.found),
        }

    def report(self) -> list[Any]:
        """Return tables of the condensates and of their lines."""
        f = self.found
        title = "Lines in the quark mass"
        return [
            table_of("Condensates", CondensateResult, f.quarks, DIGITS),
            table_of("Susceptibilities", ChiralSusceptibility, f.susceptibilities, DIGITS),
            *([table_of(title, CondensateLine, f.lines, DIGITS)] if f.lines else []),
            f"{counted(f.configurations, 'configuration')} with {counted(f.sources, 'source')} "
            f"each, χ of {f.flavours} flavours.",
            *f.cautions,
        ]

    def quoted(self) -> list[QuotedNumber]:
        """Return the condensate of the lightest quark, and its susceptibility."""
        every = zip(self.found.quarks, self.found.susceptibilities, strict=True)
        first, second = min(every, key=lambda pair: pair[0].heaviness)
        where = first.where if len(self.found.quarks) > 1 else ""
        pairs: list[tuple[Any, str]] = [
            (first, "condensate"),
            *([(first, "twisted")] if first.twisted else []),
        ]
        pairs += [(second, name) for name in ("disconnected", "total")]
        return [quoted_field(one, name, None, where) for one, name in pairs]


class CondensateFit(Fit):
    """Averages of estimates by stochastic sources, with the noise apart."""

    name: ClassVar[str] = "condensate"
    summary: ClassVar[str] = "chiral condensate and its susceptibility"
    columns: ClassVar[tuple[str, ...]] = CONDENSATE_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (CondensateResults,)
    options: ClassVar[tuple[Option, ...]] = (FLAVOURS, KAPPA_C, SKIP)

    def carry_out(self, table: Path, **options: Any) -> CondensateFitResult:
        """Determine the condensates of all quarks; see `Fit.carry_out`."""
        skip = options.get(SKIP.name, 0)
        flavours = options.get(FLAVOURS.name, FLAVOURS.usual)
        read = read_condensates(table, skip)
        return CondensateFitResult(condensates(read, flavours, options.get(KAPPA_C.name), skip))


FITS.register(CondensateFit())
