"""The potential V(R) at each distance, from plateaus of the effective potential V(R, t) in t."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from gauge_mc.analysis.fitting.series_errors import covariance_of
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.arrays import Array, Integers
from gauge_mc.results import documented, result_field

CONTAMINATION = 0.5
"""Shift by excited states up to which a plateau is accepted without a caution, in units of its
error."""


@documented
@dataclass(frozen=True)
class PlateauPoint:
    """V(R) at one distance: the plateau of V(R, t) = ln [W(R, t) / W(R, t + d)] / d."""

    path: str = result_field("Direction of the spatial lines.")
    steps: int = result_field("Number of steps along the path.")
    distance: float = result_field("R in lattice units.")
    potential: Estimate = result_field("V(R) in lattice units.")
    t_min: int = result_field(
        "First t of the plateau; of the most probable one if several were averaged."
    )
    t_max: int = result_field(
        "Last t of the plateau; of the most probable one if several were averaged."
    )
    chi2: float = result_field("chi2 of the fit of a constant to the plateau.")
    chi2_expected: float = result_field("Expectation of chi2.")
    improved: float = result_field(
        "Tree-level improved distance d_I, at which 1/d_I is the Coulomb potential on the lattice.",
        math.nan,
    )
    systematic: float = result_field(
        "Systematic error from the range of t: from those that were averaged, or else the "
        "change with plateaus that begin one step later, beyond its statistical error; NaN if"
        " it is not known.",
        math.nan,
    )
    shift: float = result_field(
        "Shift of V(R) by excited states, as a fit of a constant and an exponential estimates"
        " it; NaN if they are not seen with three standard deviations, or if ranges were "
        "averaged.",
        math.nan,
    )

    @property
    def contaminated(self) -> bool:
        """Whether excited states shift V(R) by more than is accepted."""
        return abs(self.shift) > CONTAMINATION * self.potential.error * (1 + 1e-9)


@dataclass(frozen=True)
class Plateaus:
    """V(R) at all distances that have a plateau, in order of R."""

    rule: str
    """Rule by which the plateaus were chosen, in words."""
    points: tuple[PlateauPoint, ...]
    """V(R), one for each distance and path."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    series: Array
    """Linearised time series of V(R), of shape (configurations, points), whose means are the
    potentials.
    """
    correlated: bool = False
    """True if the t of all plateaus are weighted by their inverse covariance matrix, False if by
    their errors alone.
    """
    left_out: tuple[str, ...] = ()
    """Paths and distances that have loops, but no plateau."""
    systematic: Array = field(default_factory=lambda: np.zeros((0, 0)))
    """Systematic covariance matrix of V(R), of shape (points, points), from the ranges of t that
    were averaged; 0 if only one was used. Eigenvalues may be negative, because it is a difference.
    """
    later: Plateaus | None = None
    """The same distances with plateaus that begin one step later, as far as there are further t;
    None if ranges were averaged, or if there is no plateau in t.
    """
    single: Plateaus | None = None
    """If ranges were averaged, the plateaus of the default rule, for forces: averages at
    neighbouring distances may be of different ranges, and the contribution of excited states does
    not cancel in their differences.
    """

    @property
    def tau_int(self) -> float:
        """Integrated autocorrelation time of V(R) in configurations, averaged over R."""
        return float(np.mean([one.potential.tau_int for one in self.points]))

    @property
    def averaged(self) -> bool:
        """Whether V(R) was averaged over ranges of t."""
        return self.later is None and any(math.isfinite(one.systematic) for one in self.points)

    @property
    def independent(self) -> float:
        """Effective number of independent configurations."""
        return len(self.series) / (2 * self.tau_int)

    @property
    def covariance(self) -> Array:
        """Covariance matrix of V(R): the errors, and the correlations of the series."""
        errors = np.array([one.potential.error for one in self.points])
        return covariance_of(self.series, errors)

    def systematic_error(self, gradient: Array) -> float:
        """Return the systematic error of a quantity, given its derivatives by all V(R).

        It is the part of the scatter among averaged ranges that their statistical errors do not
        explain.
        """
        return math.sqrt(max(0.0, float(gradient @ self.systematic @ gradient)))
