"""The potential V(R) at each distance, from plateaus of the effective potential V(R, t) in t."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.linear_fit import LinearFit, can_invert, fit_linear
from gauge_mc.analysis.loops import Loops, effective_potential, log_loops
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.errors import GaugeError, UsageError

Array = NDArray[np.float64]

MIN_CONFIGURATIONS = 10
"""Minimum number of configurations. With ten independent ones the error of an error is 24 %."""

LOOP_PRECISION = 0.1
"""Relative error of W above which ln W is not used. The bias of ln W is half the square of the
relative error: 5 % of the error at this bound, and more above it."""

AUTOMATIC = (
    "from one step after the first t at which V(R, t) exceeds the plateau of all later t "
    "by at most one standard deviation, never earlier than at a smaller R on the same path"
)
"""Default rule for the first t of a plateau, in words."""

PRECISE = f"to the last t with W(R, t + 1) known to better than {LOOP_PRECISION:.0%}"
"""Default rule for the last t of a plateau, in words."""


@dataclass(frozen=True)
class PlateauPoint:
    """V(R) at one distance: the plateau of V(R, t) = ln W(R, t) / W(R, t + 1).

    Attributes
    ----------
    path : str
        Direction of the spatial lines.
    steps : int
        Number of steps along the path.
    distance : float
        R in lattice units.
    potential : Estimate
        V(R) in lattice units.
    t_min, t_max : int
        First and last t of the plateau.
    chi2, chi2_expected : float
        chi2 of the fit of a constant to the plateau, and its expectation.
    """

    path: str
    steps: int
    distance: float
    potential: Estimate
    t_min: int
    t_max: int
    chi2: float
    chi2_expected: float


@dataclass(frozen=True)
class Plateaus:
    """V(R) at all distances that have a plateau, in order of R.

    Attributes
    ----------
    rule : str
        Rule by which the plateaus were chosen, in words.
    points : tuple of PlateauPoint
        V(R), one for each distance and path.
    sweeps : ndarray of int64, shape (configurations,)
        Numbers (updates) of the configurations, ascending.
    series : ndarray of float64, shape (configurations, points)
        Linearised time series of V(R). Their means are the potentials.
    """

    rule: str
    points: tuple[PlateauPoint, ...]
    sweeps: NDArray[np.int64]
    series: Array

    @property
    def tau_int(self) -> float:
        """Integrated autocorrelation time of V(R) in configurations, averaged over R."""
        return float(np.mean([one.potential.tau_int for one in self.points]))

    @property
    def independent(self) -> float:
        """Effective number of independent configurations."""
        return len(self.series) / (2 * self.tau_int)


def find_plateaus(
    loops: Sequence[Loops], t_min: int | None = None, t_max: int | None = None
) -> Plateaus:
    """Fit a constant to the plateau of V(R, t) for every distance.

    Parameters
    ----------
    loops : sequence of Loops
        Loops along each path, measured on the same configurations.
    t_min : int, optional
        First t of all plateaus. By default chosen for each R by the rule `AUTOMATIC`.
    t_max : int, optional
        Last t of all plateaus, as far as the loops are positive. By default chosen for each R by
        the rule `PRECISE`.

    Returns
    -------
    Plateaus
        Plateaus of all distances that have a usable t.

    Raises
    ------
    UsageError
        If `t_min` or `t_max` is beyond the measured loops.
    GaugeError
        If there are fewer than `MIN_CONFIGURATIONS` configurations, if paths have different
        configurations, if the loops do not fluctuate, or if no distance has a plateau.
    """
    _check(loops, t_min, t_max)
    found = [pair for one in loops for pair in _along(one, t_min, t_max)]
    if not found:
        raise GaugeError(
            "The Wilson loops are too noisy for a plateau at any distance; measure more "
            "configurations, or choose smaller t_min and t_max."
        )
    found.sort(key=lambda pair: pair[0].distance)
    first = AUTOMATIC if t_min is None else f"from t = {t_min}"
    last = PRECISE if t_max is None else f"to t = {t_max}"
    points = tuple(point for point, _ in found)
    series = np.stack([values for _, values in found], axis=1)
    return Plateaus(f"{first}, {last}", points, loops[0].sweeps, series)


def _check(loops: Sequence[Loops], t_min: int | None, t_max: int | None) -> None:
    configurations = loops[0].sweeps
    if any(not np.array_equal(one.sweeps, configurations) for one in loops):
        raise GaugeError(
            "The paths have Wilson loops on different configurations; measure the missing ones."
        )
    if configurations.size < MIN_CONFIGURATIONS:
        raise GaugeError(
            f"The potential needs Wilson loops on at least {MIN_CONFIGURATIONS} configurations; "
            f"measure more than these {configurations.size}."
        )
    longest = max(int(one.t[-1]) for one in loops)
    if longest < 2:
        raise GaugeError(
            "The potential needs Wilson loops with at least two values of t; measure them with a "
            "larger t_max."
        )
    first = 1 if t_min is None else t_min
    last = longest - 1 if t_max is None else t_max
    if not 1 <= first <= last <= longest - 1:
        raise UsageError(
            f"No plateau can go from t = {first} to {last}: with loops up to t = {longest}, choose "
            f"t_min <= t_max between 1 and {longest - 1}."
        )


def _along(loops: Loops, t_min: int | None, t_max: int | None) -> list[tuple[PlateauPoint, Array]]:
    """Return the points of one path, each with its time series."""
    potential, log = effective_potential(loops), log_loops(loops)
    found = []
    start = 1
    for i, distance in enumerate(loops.distances):
        last = _last(log[:, i], t_max)
        if last < (t_min or 1):
            continue
        known = potential[:, i, :last]
        tau_int = float(np.mean([estimate(one).tau_int for one in known.T]))
        if t_min is None:
            start = max(start, _onset(known, tau_int))
        first = t_min or min(start + 1, last)
        fit = _constant(known, tau_int, first)
        series = known[:, first - 1 :] @ fit.projection[0]
        point = PlateauPoint(
            path=loops.path,
            steps=int(loops.r[i]),
            distance=float(distance),
            potential=estimate(series),
            t_min=first,
            t_max=last,
            chi2=fit.chi2,
            chi2_expected=fit.chi2_expected,
        )
        found.append((point, series))
    return found


def _last(log: Array, t_max: int | None) -> int:
    """Return the last t at which W(t) and W(t + 1) are both known well enough, or 0."""
    errors = np.array([estimate(series).error for series in log.T])
    if (errors == 0).any():
        raise GaugeError(
            "The Wilson loops do not fluctuate, so the configurations are all the same; generate "
            "different ones."
        )
    good = errors < LOOP_PRECISION if t_max is None else np.isfinite(errors)
    last = int(np.argmin(good)) if not good.all() else good.size
    return max(0, min(last - 1, t_max or last))


def _constant(known: Array, tau_int: float, first: int) -> LinearFit:
    """Fit a constant to V(t) from t = first on; `known` has shape (configurations, t)."""
    correlated = can_invert(known.shape[1], len(known) / (2 * tau_int))
    later = known[:, first - 1 :]
    return fit_linear(np.ones((later.shape[1], 1)), later, tau_int, correlated)


def _onset(known: Array, tau_int: float) -> int:
    """Return the first t at which V(t) agrees with the plateau of all later t; see `AUTOMATIC`."""
    last = len(known.T)
    for t in range(1, last):
        plateau = known[:, t:] @ _constant(known, tau_int, t + 1).projection[0]
        excess = estimate(known[:, t - 1] - plateau)
        if excess.value <= excess.error:
            return t
    return last
