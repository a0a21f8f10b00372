"""Peaks of the susceptibilities of Polyakov loop and condensate, from runs with quarks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

from gauge_mc.actions import BETA, couplings
from gauge_mc.fits import FITS, Fit, FitResult
from gauge_mc.fits.shared.quoted import QuotedNumber, quoted_number
from gauge_mc.fits.shared.rows import table_of
from gauge_mc.options import Option
from gauge_mc.quantities.transition.analysis.peaks import (
    CrossoverPoint,
    CrossoverResult,
    SusceptibilityPeak,
    peaks_of,
)
from gauge_mc.quantities.transition.fits.parts.crossover_runs import (
    SHARED,
    CrossoverRun,
    crossover_points,
    parameters_of,
    read_crossover_runs,
)
from gauge_mc.quantities.transition.fits.transition import EXTENT
from gauge_mc.quarks.vectors.angles import IMAGINARY_MU
from gauge_mc.run.thermalisation import SKIP
from gauge_mc.scans.thermal_runs import LOOP_COLUMNS

SAMPLES = Option(
    "samples",
    int,
    "Number of sets of points that are drawn within their errors.",
    metavar="N",
    usual=1000,
    least=10,
    most=100_000,
)

OVER = Option(
    "over",
    str,
    "The number x along a curve, if runs differ in several, such as beta or kappa.",
    "that in which runs differ",
    "NAME",
)

DIGITS = 6
"""Number of digits of numbers without an error."""

LOOPS = ("loop", "phase", "loop_susceptibility")
CONDENSATES = ("chiral_condensate", "chiral_susceptibility")
"""Fields of a point of both kinds, each of which has a table."""


@dataclass(frozen=True, repr=False)
class CrossoverFitResult(FitResult):
    """Peaks of susceptibilities against a parameter.

    Attributes
    ----------
    found : CrossoverResult
        The runs and the peaks.
    """

    found: CrossoverResult

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {
            "observable": "peaks of the susceptibilities of Polyakov loop and condensate",
            "units": "lattice units, not renormalised; imaginary_mu in units of pi T",
            **asdict(self.found),
        }

    def report(self) -> list[Any]:
        """Return tables of the runs and the peaks."""
        f = self.found
        tables = []
        for what, others in (("Polyakov loops", CONDENSATES), ("Condensates", LOOPS)):
            nothing: dict[str, Any] = dict.fromkeys(others)
            rows = [replace(one, **nothing) for one in f.points]
            rows = [one for one in rows if one.loop or one.chiral_condensate]
            if rows:
                title = f"{what} against x = {f.over}"
                tables.append(table_of(title, CrossoverPoint, rows, DIGITS, "left"))
        if f.peaks:
            title = f"Peaks, x = {f.over}"
            tables.append(table_of(title, SusceptibilityPeak, f.peaks, 3, "left"))
        return [*tables, *f.cautions]

    def quoted(self) -> list[QuotedNumber]:
        """Return the positions of the peaks on the largest lattice."""
        f = self.found
        largest = f.points[-1].lattice
        pairs = [(one, ", ".join(filter(None, (largest, one.at)))) for one in f.peaks]
        return [
            quoted_number(f"{f.over} at the peak of {one.susceptibility} ({where})", one.position)
            for one, where in pairs
            if one.lattice == largest
        ]

    def unquoted(self) -> str:
        """Return why there is no peak; see `FitResult.unquoted`."""
        return "no susceptibility has a peak between the runs"


class CrossoverFit(Fit):
    """Parabolas through the susceptibilities of runs that differ in one parameter."""

    name: ClassVar[str] = "crossover"
    summary: ClassVar[str] = (
        "peaks of susceptibilities of Polyakov loop and condensate over β, κ or μ, from runs with "
        "quarks"
    )
    columns: ClassVar[tuple[str, ...]] = LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (CrossoverResult, CrossoverPoint, SusceptibilityPeak)
    of_scans: ClassVar[bool] = True
    options: ClassVar[tuple[Option, ...]] = (EXTENT, OVER, SAMPLES, SKIP)

    def carry_out(self, table: Path, **options: Any) -> CrossoverFitResult:
        """Find the peaks from all runs in a folder; see `Fit.carry_out`."""
        return CrossoverFitResult(crossover_of(table, options))


FITS.register(CrossoverFit())


def crossover_of(folder: Path, options: dict[str, Any]) -> CrossoverResult:
    """Return the susceptibilities of the runs in a folder with their peaks, as options choose.

    Raises
    ------
    GaugeError
        See `read_crossover_runs`, `parameters_of` and `crossover_points`.
    """
    runs = read_crossover_runs(folder, options.get(EXTENT.name))
    over, others = parameters_of(folder, runs, options.get(OVER.name))
    points = crossover_points(runs, over, others, options.get(SKIP.name, 0))
    peaks, cautions = peaks_of(points, options.get(SAMPLES.name, SAMPLES.usual))
    header = runs[0].header
    usual = {one.name: one.usual for one in (*couplings(), IMAGINARY_MU)}
    fixed = {
        name: f"{value:.12g}"
        for name, value in runs[0].numbers.items()
        if all(one.numbers.get(name) == value for one in runs) and value != usual.get(name)
    }
    ensemble = {**{key: header[key] for key in SHARED if key in header}, **fixed}
    return CrossoverResult(ensemble, over, points, peaks, [*cautions, *_better(folder, runs, over)])


def _better(folder: Path, runs: Sequence[CrossoverRun], over: str) -> list[str]:
    """Return that runs which differ in beta alone can be reweighted."""
    quarks = {one.header.get("quarks") for one in runs}
    if over != BETA.name or len(quarks) > 1 or not all(one.loops for one in runs):
        return []
    return [
        "The quarks of all runs are the same, so that all measurements of the Polyakov loop count "
        f"at every β with gauge-mc fit transition {quote(str(folder))}."
    ]
