"""Critical couplings in an infinite volume, and critical exponents."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gauge_mc.analysis.fitting.linear_fit import exceedance
from gauge_mc.arrays import Array
from gauge_mc.quantities.transition.analysis.volume import ThermalCurve, ThermalVolume, root_of
from gauge_mc.quantities.transition.analysis.zeros import CurveZero, curve_zero

ISING_NU, ISING_OMEGA, ISING_ETA = 0.629971, 0.82968, 0.0362978
"""Exponents of the Ising model in three dimensions (F. Kos, D. Poland, D. Simmons-Duffin and A.
Vichi, arXiv:1603.04436; omega: D. Simmons-Duffin, arXiv:1612.08471)."""

ISING_COLOURS = 2
"""Number of colours of SU(2), whose deconfinement is in the universality class of that model (B.
Svetitsky and L. G. Yaffe, Nucl. Phys. B 210 (1982) 423). For more colours it is of first order."""


@dataclass(frozen=True)
class StraightLine:
    """A straight line through values with errors, with its bootstrap samples."""

    x: Array
    """Abscissae, of shape (points,)."""
    values: Array
    """Values and their bootstrap samples, of shape (1 + replicas, points)."""

    @property
    def errors(self) -> Array:
        """Errors of the points, which weight them."""
        return np.asarray(np.nanstd(self.values[1:], axis=0, ddof=1))

    @property
    def parameters(self) -> Array:
        """Value at x = 0 and slope of all samples, of shape (1 + replicas, 2)."""
        weights = 1 / self.errors
        design = np.stack([np.ones(self.x.size), self.x], axis=1) * weights[:, None]
        return np.asarray((self.values * weights) @ np.linalg.pinv(design).T)

    @property
    def chi2(self) -> float:
        """Sum of the squares of the deviations in units of the errors; 0 for two points."""
        if not self.dof:
            return 0.0
        first, slope = self.parameters[0]
        return float(np.sum(((self.values[0] - first - slope * self.x) / self.errors) ** 2))

    @property
    def dof(self) -> int:
        """Number of points minus 2."""
        return self.x.size - 2

    @property
    def p_value(self) -> float:
        """Probability of a larger chi2 if the points lie on a line; NaN without freedom.

        Points that are correlated, as crossings that share a volume, have correlated residuals.
        """
        if not self.dof:
            return math.nan
        known = self.values[1:][np.isfinite(self.values[1:]).all(axis=1)]
        design = np.stack([np.ones(self.x.size), self.x], axis=1) / self.errors[:, None]
        rest = np.eye(self.x.size) - design @ np.linalg.pinv(design)
        residuals = rest @ np.corrcoef(known, rowvar=False) @ rest.T
        return exceedance(self.chi2, np.asarray(np.linalg.eigvalsh(residuals)))


def shift(volume: ThermalVolume) -> float:
    """Return the distance of a pseudo-critical coupling from beta_c, up to a constant factor.

    It is (N_t/N_s)^3 at a transition of first order, and (N_t/N_s)^(1/nu) for SU(2).
    """
    ratio = volume.lattice.t / volume.size
    return float(ratio ** (1 / ISING_NU if volume.colours == ISING_COLOURS else 3))


def crossing_shift(small: ThermalVolume, large: ThermalVolume) -> float:
    """Return the distance of the crossing of two Binder cumulants from beta_c, up to a factor.

    With U = U_c + a (beta - beta_c) N_s^(1/nu) + c N_s^-omega for SU(2) it is proportional to
    (s^-omega - l^-omega) / (l^(1/nu) - s^(1/nu)) of the two sizes in units of N_t, s and l. At a
    transition of first order corrections decrease as the volume.
    """
    s, l = (one.size / one.lattice.t for one in (small, large))
    if small.colours != ISING_COLOURS:
        return float(s**-3)
    scaling = s**-ISING_OMEGA - l**-ISING_OMEGA
    return float(scaling / (l ** (1 / ISING_NU) - s ** (1 / ISING_NU)))


def crossing(small: ThermalVolume, large: ThermalVolume) -> CurveZero:
    """Return the coupling at which the Binder cumulants of two volumes are equal.

    If there are several, the one nearest to the middle of the peaks of the susceptibilities is
    taken.
    """
    one, other = small.binder, large.binder
    begin, end = max(one.beta[0], other.beta[0]), min(one.beta[-1], other.beta[-1])
    if begin >= end:
        return curve_zero(one.beta, one.samples, math.nan)
    beta = np.linspace(begin, end, 4 * max(one.beta.size, other.beta.size))
    difference = _on(one, beta) - _on(other, beta)
    peaks = [volume.peak[0][0] for volume in (small, large)]
    middle = float(np.mean(peaks)) if np.isfinite(peaks).all() else (begin + end) / 2
    return curve_zero(beta, difference, root_of(beta, difference[0], middle))


def _on(curve: ThermalCurve, beta: Array) -> Array:
    """Return the samples of a curve at other couplings."""
    return np.array([np.interp(beta, curve.beta, row) for row in curve.samples])


def line_of(x: Sequence[float], samples: Sequence[Array]) -> StraightLine | None:
    """Return the line through the points that are known; None if there are fewer than two."""
    known = [(a, b) for a, b in zip(x, samples, strict=True) if np.isfinite(b[0])]
    if len({a for a, _ in known}) < 2:
        return None
    return StraightLine(np.array([a for a, _ in known]), np.array([b for _, b in known]).T)


def extrapolations(volumes: Sequence[ThermalVolume]) -> dict[str, StraightLine]:
    """Return the extrapolations to infinite volume that are possible, the best one first.

    For SU(2) this is that of the crossings of the Binder cumulants, which are closest to beta_c,
    and else that of the peaks of the susceptibility.
    """
    shifts = [shift(one) for one in volumes]
    peak = ("peak of χ", line_of(shifts, [one.peak[0] for one in volumes]))
    if volumes[0].colours == ISING_COLOURS:
        pairs = [*itertools.pairwise(volumes)]
        crossed = [crossing(*pair).samples for pair in pairs]
        found = [
            ("crossings of U", line_of([crossing_shift(*one) for one in pairs], crossed)),
            peak,
        ]
    else:
        weights = line_of(shifts, [one.equal_weights for one in volumes])
        found = [peak, ("equal weights", weights)]
    return {name: line for name, line in found if line is not None}


def jump_of_variances(volumes: Sequence[ThermalVolume]) -> StraightLine | None:
    """Return the line through the variances of the action per site against the inverse volume.

    At the peak the confined and the deconfined phases have equal weights, so that the variance
    tends to a quarter of the square of the jump of the action, and that of a single phase decreases
    as 1/V (M. S. S. Challa, D. P. Landau and K. Binder, Phys. Rev. B 34 (1986) 1841). No
    measurement has to be assigned to a phase, which is ambiguous where the peaks of histograms
    overlap. None for SU(2), or with fewer than two volumes.
    """
    if volumes[0].colours == ISING_COLOURS:
        return None
    return line_of([shift(one) for one in volumes], [one.variance for one in volumes])


def exponent(volumes: Sequence[ThermalVolume]) -> Array | None:
    """Return the exponent of N_s with which the peak of the susceptibility grows, of all samples.

    It is gamma/nu at a transition of second order, and 3 at one of first order. None if fewer than
    two volumes have a peak.
    """
    found = [(math.log(one.size), np.log(one.peak[1])) for one in volumes]
    line = line_of([a for a, _ in found], [b for _, b in found])
    return None if line is None else np.asarray(line.parameters[:, 1])
