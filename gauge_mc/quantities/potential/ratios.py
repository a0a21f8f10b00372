"""Ratios of Wilson loops: Creutz ratios, and the renormalised anisotropy.

On a lattice with the spacings a in space and a / xi along t, the loops W_ss(x, y) in space and
W_st(x, t) with a side along t have equal ratios where their sides are equally long,

    R_s(x, y) = W_ss(x, y) / W_ss(x + 1, y) = R_t(x, xi y) = W_st(x, xi y) / W_st(x + 1, xi y),

up to effects of the lattice spacing and of short sides (T. R. Klassen, hep-lat/9803010): perimeters
and corners cancel in the ratios. Every (x, y) determines an anisotropy xi(x, y).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.actions import ANISOTROPY, ensemble_keys
from gauge_mc.analysis.fitting import fit_linear
from gauge_mc.analysis.table_series import TableSeries, read_series
from gauge_mc.analysis.timeseries import MIN_FOR_ERRORS, Estimate, estimate, with_error
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fits import FITS, DataResult, Fit, FitResult
from gauge_mc.fits.quoted import LEVEL, QuotedNumber, empty_table, quoted_number, tag_of_levels
from gauge_mc.options import Option
from gauge_mc.quantities.potential import loop_tables
from gauge_mc.quantities.potential.observables import SPACE, TIME, PlanarLoops
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
    chi: list[list[float]] = result_field("Ratio by R and T; NaN where a loop is not positive.")
    error: list[list[float]] = result_field("Standard error; NaN where a loop is not positive.")


@dataclass(frozen=True, repr=False)
class CreutzResult(FitResult):
    """Creutz ratios of an ensemble."""

    ratios: loop_tables.LoopGrid
    """The ratios chi(R, T) with their errors."""
    loops: loop_tables.PathLoops
    """The loops from which the ratios were computed."""
    ensemble: Mapping[str, str]
    """Group, beta and lattice of the ensemble."""
    lines: str = ""
    """Links of the static lines, if they are not those of the field."""

    @property
    def tag(self) -> str:
        """The smearing level, if the table has several."""
        return tag_of_levels([self.loops.smearing], self.loops.levels)

    def values(self) -> dict[str, Any]:
        """Return the ratios as plain values, for JSON."""
        loops, grid = self.loops, self.ratios
        lists = (x.tolist() for x in (grid.r, grid.t, grid.value, grid.error))
        ratios = CreutzRatios(loops.smearing, int(loops.sweeps.size), dict(self.ensemble), *lists)
        return {
            "observable": "Creutz ratios chi = -ln W(r,t) W(r-1,t-1) / (W(r,t-1) W(r-1,t))",
            "units": "lattice units",
            **asdict(ratios),
        }

    def report(self) -> list[Any]:
        """Return a table of the ratios chi(R, T) with T >= R.

        On the diagonal T = R, chi tends to the string tension; for large T it tends to
        V(R) - V(R - 1). Ratios smaller than their errors are left out.
        """
        grid = self.ratios
        heads = [f"T = R + {k}" if k else "T = R" for k in range(DIAGONALS)]
        table = empty_table("Creutz ratios χ(R, T) in lattice units", "R", heads)
        for i, r in enumerate(grid.r):
            offsets = [k for k in range(DIAGONALS) if i + k < grid.t.size]
            pairs = [(float(grid.value[i, i + k]), float(grid.error[i, i + k])) for k in offsets]
            cells = [with_error(*pair) if pair[1] < abs(pair[0]) else "" for pair in pairs]
            if any(cells):
                table.add_row(str(r), *cells)
        note = (
            f"The lines along t are of {self.lines} links, so that ratios of short loops are not "
            "those of plain loops; measure these to compare with others."
        )
        return [table, note] if self.lines else [table]

    def quoted(self) -> list[QuotedNumber]:
        """Return chi(R, R) of the largest R at which it is known well, or else the best known."""
        grid = self.ratios
        diagonal = zip(grid.value.diagonal().tolist(), grid.error.diagonal().tolist(), strict=True)
        numbers = [
            QuotedNumber(f"χ({r}, {t})", *pair)
            for r, t, pair in zip(grid.r, grid.t, diagonal, strict=False)
        ]
        ratios = [number for number in numbers if number.known and number.error < abs(number.value)]
        well = [x for x in ratios if x.error <= QUOTED_ERROR * abs(x.value)]
        return well[-1:] or sorted(ratios, key=lambda x: x.error / abs(x.value))[:1]

    def unquoted(self) -> str:
        """Return why there is no ratio; see `FitResult.unquoted`."""
        return "all ratios χ(R, R) are smaller than their errors"


class CreutzFit(Fit):
    """chi(R, T) = -ln [W(R,T) W(R-1,T-1) / (W(R,T-1) W(R-1,T))]."""

    name: ClassVar[str] = "creutz"
    summary: ClassVar[str] = "Creutz ratios from Wilson loops on axis"
    columns: ClassVar[tuple[str, ...]] = loop_tables.LOOP_COLUMNS
    content: ClassVar[tuple[type[Any], ...]] = (CreutzRatios,)
    fewest: ClassVar[int] = MIN_FOR_ERRORS
    options: ClassVar[tuple[Option, ...]] = (LEVEL, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> CreutzResult:
        """Compute the ratios from the loops of a table; see `Fit.carry_out`."""
        table = loop_tables.read_loops(tables, options.get(SKIP.name, 0))
        loops = loop_tables.select_loops(table, loop_tables.AXIS, options.get(LEVEL.name))
        return CreutzResult(
            loop_tables.creutz_ratios(loops),
            loops,
            loop_tables.ensemble_of(table.header),
            loop_tables.lines_of(table.header),
        )


FITS.register(CreutzFit())


POINTS = 4
"""Number of neighbouring t, with t = 0, through which a polynomial interpolates ln R_t(x, t)."""

BEYOND = 0.5
"""Distance in links beyond the largest t up to which the polynomial extrapolates."""

LARGEST_ERROR = 0.1
"""Largest relative error of an xi(x, y) that is used."""

AGREEMENT = 1.0, 2.0
"""Standard errors of their difference within which two averages agree: the first that agrees within
the first number is chosen, or else within the second. The difference is quoted."""


@documented
@dataclass(frozen=True)
class RatioPoint:
    """The anisotropy from one pair of ratios."""

    x: int = result_field("Extent x of the first loop in space.")
    y: int = result_field("Extent y of the first loop in space.")
    xi: Estimate = result_field("The anisotropy.")
    interpolation: float = result_field("Change of xi if the polynomial has one point less.")


@documented
@dataclass(frozen=True)
class LogRatio:
    """The logarithm of W(x, t) / W(x + 1, t)."""

    x: int = result_field("Extent x of the first loop.")
    t: int = result_field("Other extent of the first loop, which is along y for loops in space.")
    value: Estimate = result_field("The logarithm.")


@documented
@dataclass(frozen=True)
class Anisotropy:
    """The renormalised anisotropy of an ensemble."""

    xi: Estimate = result_field("Weighted average of xi(x, y).")
    systematic: float = result_field(
        "Change of the average if loops of the smallest extent are left out as well; NaN if "
        "there are no larger ones."
    )
    interpolation: float = result_field("Change of the average if polynomials have one point less.")
    least: int = result_field("Smallest x and y of the average.")
    chi2: float = result_field(
        "Scatter of xi(x, y) about the average (arXiv:2209.14188); 0 for one."
    )
    chi2_expected: float = result_field("Expectation of this scatter; 0 for one.")
    points: tuple[RatioPoint, ...] = result_field("All xi(x, y).")
    space: tuple[LogRatio, ...] = result_field("ln R_s(x, y).")
    time: tuple[LogRatio, ...] = result_field("ln R_t(x, t).")
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice, action and bare anisotropy, as far as the header states them."
    )
    configurations: int = result_field("Number of configurations.")

    @property
    def used(self) -> tuple[RatioPoint, ...]:
        """The points that are averaged."""
        return tuple(point for point in self.points if _is_used(point, self.least))


@dataclass(frozen=True)
class _WeightedAverage:
    """A weighted average of points, its series, and the scatter about it."""

    series: Array
    interpolation: float
    chi2: float
    expected: float


def read_anisotropy(path: Path, least: int | None = None, skip: int = 0) -> Anisotropy:
    """Determine the anisotropy from a table of planar loops.

    The average is over all xi(x, y) with x and y from `least` on whose error is below
    `LARGEST_ERROR`. By default `least` is the first number for which the average agrees with that
    from `least` + 1 on; see `AGREEMENT`. An average that no larger loops confirm is not trusted.
    """
    table = read_series(path, PlanarLoops.columns, "planar loops", skip, MIN_FOR_ERRORS)
    logs = {plane: _log_ratios(table, plane) for plane in (SPACE, TIME)}
    if not all(logs.values()):
        raise GaugeError(
            f"{path} has too few loops for a ratio of areas, which needs loops of two sizes in "
            "space and along t; measure larger ones, on a larger lattice if need be."
        )
    matches = [
        (x, y, *v)
        for (x, y), ratio in logs[SPACE].items()
        if (v := _matched(ratio, x, y, logs[TIME])) is not None
    ]
    series = {(x, y): values for x, y, values, _ in matches}
    points = tuple(RatioPoint(x, y, estimate(values), change) for x, y, values, change in matches)
    extent, average, following = _choose(points, series, least)
    xi = estimate(average.series)
    return Anisotropy(
        xi,
        abs(following.series.mean() - xi.value) if following else math.nan,
        average.interpolation,
        extent,
        average.chi2,
        average.expected,
        points,
        _estimates(logs[SPACE]),
        _estimates(logs[TIME]),
        table.stated(ensemble_keys()),
        table.sweeps.size,
    )


def _log_ratios(table: TableSeries, plane: str) -> dict[tuple[int, int], Array]:
    """Return the linearised series of ln [W(x, t) / W(x + 1, t)] by x and t, where W is positive.

    Their means are the logarithms of the ratios of means, and errors propagate linearly.
    """
    columns = (table.index[name].tolist() for name in ("plane", "r", "t"))
    elements = zip(*columns, table.values["loop"].T, strict=True)
    loops = {(x, y): loop for where, x, y, loop in elements if where == plane and loop.mean() > 0}
    logs = {at: np.log(loop.mean()) + loop / loop.mean() - 1 for at, loop in sorted(loops.items())}
    return {(x, y): log - logs[x + 1, y] for (x, y), log in logs.items() if (x + 1, y) in logs}


def _estimates(logs: dict[tuple[int, int], Array]) -> tuple[LogRatio, ...]:
    return tuple(LogRatio(x, t, estimate(log)) for (x, t), log in logs.items())


def _matched(
    ratio: Array, x: int, y: int, times: dict[tuple[int, int], Array]
) -> tuple[Array, float] | None:
    """Return the linearised series of xi(x, y), and its change with one point less; or None.

    There is none if the ratio in space is outside of the range of those along t, or is not
    determined at all.
    """
    extents = [0]
    while (x, extents[-1] + 1) in times:
        extents.append(extents[-1] + 1)
    curves = np.stack([np.zeros_like(ratio), *(times[x, t] for t in extents[1:])])
    means, target = curves.mean(axis=1), ratio.mean()
    # Beyond the last t the polynomials are trusted for BEYOND links, lest fluctuations decide.
    after = next((t for t in extents if means[t] >= target), extents[-1] + 1)
    interval = (after - 1.0, min(float(after), extents[-1] + BEYOND))
    solutions = []
    for count in (POINTS, POINTS - 1):
        first = max(0, min(after - count // 2, len(extents) - count))
        at = np.arange(first, min(first + count, len(extents)))
        low, high = (_lagrange(at, end) @ means[at] for end in interval)
        if not low <= target <= high:
            return None
        t, weights, slope = _solve(at, means[at], target, interval)
        solutions.append((t, (ratio - target - weights @ (curves[at] - means[at, None])) / slope))
    (t, change), (coarse, _) = solutions
    return (t + change) / y, abs(coarse - t) / y


def _solve(
    at: Integers, values: Array, target: float, interval: tuple[float, float]
) -> tuple[float, Array, float]:
    """Return where the polynomial through some points has a value, in an interval with one.

    Also return the weights of the points there, and the slope.
    """
    low, high = interval
    for _ in range(60):
        t = (low + high) / 2
        low, high = (t, high) if _lagrange(at, t) @ values < target else (low, t)
    step = 1e-5
    slope = float((_lagrange(at, t + step) - _lagrange(at, t - step)) @ values) / (2 * step)
    return t, _lagrange(at, t), slope


def _lagrange(at: Integers, t: float) -> Array:
    """Return the weights of the points of a polynomial at t."""
    return np.array([np.prod([(t - b) / (a - b) for b in at if b != a]) for a in at])


def _is_used(point: RatioPoint, least: int) -> bool:
    good = 0 < point.xi.error < LARGEST_ERROR * abs(point.xi.value)
    return good and min(point.x, point.y) >= least


def _choose(
    points: tuple[RatioPoint, ...], series: dict[tuple[int, int], Array], least: int | None
) -> tuple[int, _WeightedAverage, _WeightedAverage | None]:
    """Return the smallest extent, the average from it on, and from the following one on."""
    largest = max((min(point.x, point.y) for point in points if _is_used(point, 1)), default=0)
    if not largest:
        raise GaugeError(
            f"No ratio of loops determines the anisotropy to {LARGEST_ERROR:.0%}; measure more "
            "configurations, or loops with a larger --t-max."
        )
    if least is not None and not 1 <= least <= largest:
        raise UsageError(f"--least is {least}; choose it between 1 and {largest}.")
    averages = [_average(points, series, n) for n in range(1, largest + 1)]
    if least is not None:
        return least, averages[least - 1], averages[least] if least < largest else None
    for most in AGREEMENT:
        for n, (average, following) in enumerate(pairwise(averages), start=1):
            difference = estimate(average.series - following.series)
            if abs(difference.value) <= most * difference.error:
                return n, average, following
    raise GaugeError(
        "No average of the anisotropy can be trusted, because none agrees with that of larger "
        "loops; measure more configurations, or choose the smallest loops with --least N "
        f"(1 to {largest})."
    )


def _average(
    points: tuple[RatioPoint, ...], series: dict[tuple[int, int], Array], least: int
) -> _WeightedAverage:
    """Return the average of the points from an extent on, weighted by their errors alone."""
    used = [point for point in points if _is_used(point, least)]
    values = np.stack([series[x.x, x.y] for x in used], axis=1)
    if len(used) == 1:
        return _WeightedAverage(values[:, 0], used[0].interpolation, 0.0, 0.0)
    tau = max(x.xi.tau_int for x in used)
    fit = fit_linear(np.ones((len(used), 1)), values, tau, correlated=False)
    changes = np.array([x.interpolation for x in used])
    interpolation = float(fit.projection[0] @ changes)
    return _WeightedAverage(values @ fit.projection[0], interpolation, fit.chi2, fit.chi2_expected)


LEAST = Option(
    "least",
    int,
    "Smallest x and y of the loops that are averaged.",
    default="where xi(x, y) is flat",
    metavar="N",
)
"""The option of the fit."""


class AnisotropyResult(DataResult[Anisotropy]):
    """The renormalised anisotropy of an ensemble, and the values from all pairs of ratios."""

    observable: ClassVar[str] = "xi from W_ss(x,y)/W_ss(x+1,y) = W_st(x,xi y)/W_st(x+1,xi y)"
    units: ClassVar[str] = "x, y and t in links"

    def report(self) -> list[Any]:
        """Return a table of xi(x, y), and the average."""
        f = self.found
        ys = sorted({point.y for point in f.points})
        title = "Anisotropy ξ(x, y) from ratios of Wilson loops"
        table = empty_table(title, "x", [f"y = {y}" for y in ys])
        for x in sorted({point.x for point in f.points}):
            row = {point.y: point for point in f.points if point.x == x}
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

    joins: ClassVar[bool] = False
    name: ClassVar[str] = "anisotropy"
    summary: ClassVar[str] = "renormalised anisotropy from Wilson loops in space and along t"
    columns: ClassVar[tuple[str, ...]] = PlanarLoops.columns.names
    content: ClassVar[tuple[type[Any], ...]] = (Anisotropy,)
    fewest: ClassVar[int] = MIN_FOR_ERRORS
    options: ClassVar[tuple[Option, ...]] = (LEAST, SKIP)

    def carry_out(self, tables: Sequence[Path], **options: Any) -> AnisotropyResult:
        """Match the ratios of a table; see `Fit.carry_out`."""
        settings = options.get(LEAST.name), options.get(SKIP.name, 0)
        return AnisotropyResult(read_anisotropy(tables[0], *settings))


FITS.register(AnisotropyFit())
