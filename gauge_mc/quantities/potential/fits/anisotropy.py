"""The renormalised anisotropy from planar Wilson loops."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from gauge_mc.actions import ANISOTROPY
from gauge_mc.analysis.timeseries.gamma_method import MIN_FOR_ERRORS
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number
from gauge_mc.options import Option
from gauge_mc.quantities.potential.analysis.anisotropy import Anisotropy, read_anisotropy
from gauge_mc.run.thermalisation import SKIP

LEAST = Option(
    "least", int, "Smallest x and y of the loops that are averaged.", "where xi(x, y) is flat", "N"
)
"""The option of the fit."""


@dataclass(frozen=True, repr=False)
class AnisotropyResult(FitResult):
    """The renormalised anisotropy of an ensemble."""

    found: Anisotropy
    """The average, and the values from all pairs of ratios."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "observable": "xi from W_ss(x,y)/W_ss(x+1,y) = W_st(x,xi y)/W_st(x+1,xi y)",
            "units": "x, y and t in links",
            **asdict(self.found),
        }

    def report(self) -> list[Any]:
        """Return a table of xi(x, y), and the average."""
        f = self.found
        ys = sorted({one.y for one in f.points})
        table = Table(title="Anisotropy ξ(x, y) from ratios of Wilson loops")
        table.add_column("x")
        for y in ys:
            table.add_column(f"y = {y}", justify="right")
        for x in sorted({one.x for one in f.points}):
            row = {one.y: one for one in f.points if one.x == x}
            table.add_row(str(x), *(str(row[y].xi) if y in row else "" for y in ys))
        bare = float(f.ensemble.get(ANISOTROPY.name, 0))
        interpolation = f"± {f.interpolation:.1g} from the interpolation in t"
        lines = [
            f"ξ = {f.xi}, the average over x and y from {f.least} on",
            f"± {f.systematic:.2g} from the smallest x and y, {interpolation}"
            if math.isfinite(f.systematic)
            else f"{interpolation}; no larger loops are known well enough to confirm it",
            *([f"ξ/ξ₀ = {f.xi.value / bare:.5g} with ξ₀ = {bare:.6g}"] if bare else []),
            *f.xi.cautions,
        ]
        return [table, *lines]

    def quoted(self) -> list[QuotedNumber]:
        """Return the anisotropy, and its ratio to the bare one if that is known."""
        f = self.found
        systematic = math.hypot(*filter(math.isfinite, (f.systematic, f.interpolation)))
        xi = quoted_number("ξ", f.xi, systematic)
        bare = float(f.ensemble.get(ANISOTROPY.name, 0))
        if not bare:
            return [xi]
        return [xi, QuotedNumber("ξ/ξ₀", xi.value / bare, xi.error / bare, systematic / bare)]


class AnisotropyFit(Fit):
    """xi from R_s(x, y) = R_t(x, xi y); T. R. Klassen, hep-lat/9803010."""

    name: ClassVar[str] = "anisotropy"
    summary: ClassVar[str] = "renormalised anisotropy from Wilson loops in space and along t"
    columns: ClassVar[tuple[str, ...]] = ("plane", "r", "t", "loop")
    content: ClassVar[tuple[type[Any], ...]] = (Anisotropy,)
    fewest: ClassVar[int] = MIN_FOR_ERRORS
    options: ClassVar[tuple[Option, ...]] = (LEAST, SKIP)

    def carry_out(self, table: Path, **options: Any) -> AnisotropyResult:
        """Match the ratios of a table; see `Fit.carry_out`."""
        given = options.get(LEAST.name), options.get(SKIP.name, 0)
        return AnisotropyResult(read_anisotropy(table, *given))


FITS.register(AnisotropyFit())
