"""The renormalised anisotropy from ratios of Wilson loops in space and along t.

On a lattice with the spacings a in space and a / xi along t, the loops W_ss(x, y) in space and
W_st(x, t) with a side along t have equal ratios where their sides are equally long,

    R_s(x, y) = W_ss(x, y) / W_ss(x + 1, y) = R_t(x, xi y) = W_st(x, xi y) / W_st(x + 1, xi y),

up to effects of the lattice spacing and of short sides (T. R. Klassen, hep-lat/9803010): perimeters
and corners cancel in the ratios. Every (x, y) determines an anisotropy xi(x, y).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from gauge_mc.actions import ensemble_keys
from gauge_mc.analysis.fitting.linear_fit import fit_linear
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.analysis.timeseries.gamma_method import MIN_FOR_ERRORS, estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.results import documented, result_field

SPACE, TIME = "space", "time"
"""Values of the column ``plane``."""

METADATA = ensemble_keys()
"""Entries of the header that describe the ensemble."""

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
        "there are no larger ones.",
    )
    interpolation: float = result_field(
        "Change of the average if the polynomials have one point less.",
    )
    least: int = result_field("Smallest x and y of the average.")
    chi2: float = result_field(
        "Scatter of xi(x, y) about the average (arXiv:2209.14188); 0 for one."
    )
    chi2_expected: float = result_field("Expectation of this scatter; 0 for one.")
    points: tuple[RatioPoint, ...] = result_field("All xi(x, y).")
    space: tuple[LogRatio, ...] = result_field("ln R_s(x, y).")
    time: tuple[LogRatio, ...] = result_field("ln R_t(x, t).")
    ensemble: dict[str, str] = result_field(
        "Group, beta, lattice, action and bare anisotropy, as far as the header states them.",
    )
    configurations: int = result_field("Number of configurations.")

    @property
    def used(self) -> tuple[RatioPoint, ...]:
        """The points that are averaged."""
        return tuple(one for one in self.points if _is_used(one, self.least))


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

    Parameters
    ----------
    path : Path
        File of the table.
    least : int, optional
        Smallest x and y.
    skip : int
        Last update that is left out.

    Raises
    ------
    UsageError
        If no loops are left.
    GaugeError
        If the table is damaged or contains too little data, or no average can be trusted.
    """
    table = read_table(path).after(skip, str(path))
    logs = {plane: _log_ratios(table, plane, str(path)) for plane in (SPACE, TIME)}
    if not all(logs.values()):
        raise GaugeError(
            f"{path} has too few loops for a ratio of areas, which needs loops of two sizes in "
            "space and along t; measure larger ones, on a larger lattice if need be."
        )
    configurations = len(next(iter(logs[SPACE].values())))
    found = [
        (x, y, *one)
        for (x, y), ratio in logs[SPACE].items()
        if (one := _matched(ratio, x, y, logs[TIME])) is not None
    ]
    series = {(x, y): values for x, y, values, _ in found}
    points = tuple(RatioPoint(x, y, estimate(values), change) for x, y, values, change in found)
    chosen, average, following = _choose(points, series, least)
    xi = estimate(average.series)
    return Anisotropy(
        xi,
        abs(following.series.mean() - xi.value) if following else math.nan,
        average.interpolation,
        chosen,
        average.chi2,
        average.expected,
        points,
        _estimates(logs[SPACE]),
        _estimates(logs[TIME]),
        {name: table.header[name] for name in METADATA if name in table.header},
        configurations,
    )


def _log_ratios(table: TableData, plane: str, source: str) -> dict[tuple[int, int], Array]:
    """Return the linearised series of ln [W(x, t) / W(x + 1, t)] by x and t, where W is positive.

    Their means are the logarithms of the ratios of means, and errors propagate linearly.
    """
    try:
        mask = np.asarray(table["plane"]) == plane
        r, t = (np.asarray(table[name], int)[mask] for name in ("r", "t"))
        values = np.asarray(table["loop"], float)[mask]
    except (KeyError, ValueError) as error:
        raise GaugeError(
            f"The table {source} is damaged: it is not a table of planar loops."
        ) from error
    loops = {(x, y): values[(r == x) & (t == y)] for x, y in sorted({*zip(r, t, strict=True)})}
    counts = {len(one) for one in loops.values()}
    if len(counts) != 1 or counts == {0}:
        raise GaugeError(
            f"The table {source} does not have the same loops in {plane} on all configurations; "
            "measure them again."
        )
    if min(counts) < MIN_FOR_ERRORS:
        raise GaugeError("Errors need at least two configurations; measure loops on more of them.")
    logs = {
        (int(x), int(y)): np.log(one.mean()) + one / one.mean() - 1
        for (x, y), one in loops.items()
        if one.mean() > 0
    }
    return {(x, y): one - logs[x + 1, y] for (x, y), one in logs.items() if (x + 1, y) in logs}


def _estimates(logs: dict[tuple[int, int], Array]) -> tuple[LogRatio, ...]:
    return tuple(LogRatio(x, t, estimate(one)) for (x, t), one in logs.items())


def _matched(
    ratio: Array, x: int, y: int, times: dict[tuple[int, int], Array]
) -> tuple[Array, float] | None:
    """Return the linearised series of xi(x, y), and its change with one point less; or None.

    There is none if the ratio in space is outside of the range of those along t, or is not
    determined at all.
    """
    known = [0]
    while (x, known[-1] + 1) in times:
        known.append(known[-1] + 1)
    curves = np.stack([np.zeros_like(ratio), *(times[x, t] for t in known[1:])])
    means, target = curves.mean(axis=1), ratio.mean()
    # Beyond the last t the polynomials are trusted for BEYOND links, lest fluctuations decide.
    after = next((t for t in known if means[t] >= target), known[-1] + 1)
    interval = (after - 1.0, min(float(after), known[-1] + BEYOND))
    found = []
    for count in (POINTS, POINTS - 1):
        first = max(0, min(after - count // 2, len(known) - count))
        at = np.arange(first, min(first + count, len(known)))
        if (
            not _lagrange(at, interval[0]) @ means[at]
            <= target
            <= _lagrange(at, interval[1]) @ means[at]
        ):
            return None
        t, weights, slope = _solve(at, means[at], target, interval)
        found.append((t, (ratio - target - weights @ (curves[at] - means[at, None])) / slope))
    (t, change), (other, _) = found
    return (t + change) / y, abs(other - t) / y


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
    largest = max((min(one.x, one.y) for one in points if _is_used(one, 1)), default=0)
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
        for n, (one, following) in enumerate(pairwise(averages), start=1):
            difference = estimate(one.series - following.series)
            if abs(difference.value) <= most * difference.error:
                return n, one, following
    raise GaugeError(
        "No average of the anisotropy can be trusted, because none agrees with that of larger "
        "loops; measure more configurations, or choose the smallest loops with --least N "
        f"(1 to {largest})."
    )


def _average(
    points: tuple[RatioPoint, ...], series: dict[tuple[int, int], Array], least: int
) -> _WeightedAverage:
    """Return the average of the points from an extent on, weighted by their errors alone."""
    used = [one for one in points if _is_used(one, least)]
    values = np.stack([series[one.x, one.y] for one in used], axis=1)
    if len(used) == 1:
        return _WeightedAverage(values[:, 0], used[0].interpolation, 0.0, 0.0)
    tau = max(one.xi.tau_int for one in used)
    fit = fit_linear(np.ones((len(used), 1)), values, tau, correlated=False)
    changes = np.array([one.interpolation for one in used])
    interpolation = float(fit.projection[0] @ changes)
    return _WeightedAverage(values @ fit.projection[0], interpolation, fit.chi2, fit.chi2_expected)
