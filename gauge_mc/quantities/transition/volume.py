"""Curves of one volume against the coupling by reweighting, and where they vanish."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.fitting import zero_interval
from gauge_mc.analysis.timeseries import Estimate, centre_sector, estimate
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.quantities.transition.reweighting import LEAST_OVERLAP, MarkovChain, MultiHistogram
from gauge_mc.quoting import CommandLine


@dataclass(frozen=True)
class CurveZero:
    """A coupling at which a curve vanishes."""

    samples: Array
    """The coupling and samples of it, of shape (1 + replicas,); NaN if the curve does not vanish.
    """
    begin: float
    """First coupling from which on the curve is zero within its error, up to the one at which it
    vanishes."""
    end: float
    """Last coupling up to which it is."""
    open: bool
    """Whether one of these is where the curve begins or ends, so that the error may be larger."""


def curve_zero(beta: Array, curves: Array, at: float) -> CurveZero:
    """Return a zero of a curve with its error.

    The couplings that the data do not exclude by one standard deviation are those at which the
    curve is zero within its error; see `zero_interval`. Zeros of bootstrap samples would be too
    close to each other: samples without a zero between the runs are missing, and of several zeros
    one has to be taken. The error is the distance to the end of that interval that is farther away.
    Samples are those of the value of the curve at the coupling, scaled to this error.

    Parameters
    ----------
    beta : ndarray, shape (couplings,)
        Couplings, ascending.
    curves : ndarray, shape (1 + replicas, couplings)
        The curve and its bootstrap samples, of which an error needs two.
    at : float
        The zero of the curve; NaN if there is none.
    """
    if not math.isfinite(at):
        return CurveZero(np.full(len(curves), math.nan), math.nan, math.nan, False)
    if len(curves) < 3:  # no error is known
        return CurveZero(np.full(len(curves), at), at, at, False)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.abs(curves[0]) / np.nanstd(curves[1:], axis=0, ddof=1)
    ratio = np.nan_to_num(ratio, nan=math.inf, posinf=math.inf)
    begin, end = zero_interval(at, beta, ratio)
    changes = np.array([np.interp(at, beta, row - curves[0]) for row in curves])
    spread = float(np.nanstd(changes[1:], ddof=1))
    slope = np.interp(at, beta, np.gradient(curves[0], beta))
    scale = -math.copysign(max(at - begin, end - at), slope) / spread if spread else 0.0
    return CurveZero(at + scale * changes, begin, end, begin == beta[0] or end == beta[-1])


POINTS_PER_WIDTH = 10
"""Number of couplings of a curve in the distance 1/sigma of the action, over which the histogram
at one coupling becomes that at another."""

MOST_POINTS = 400
"""Maximum number of couplings of a curve."""

BEYOND = 0.5
"""Distance in units of 1/sigma of the action to which a curve goes beyond the outermost runs."""

NEAR_AXIS = 1 / 3
"""Largest angle between L and an axis of the centre, in units of the half width of a sector, in
the definition of the deconfined fraction. It is 20 degrees for SU(3)."""

SMALLEST_BINS, MOST_BINS = 12, 60
"""Numbers of bins of the histogram of |L|."""

SMOOTHING = (0.25, 0.5, 0.25)
"""Weights of neighbouring bins with which histograms are smoothed."""

TWO_PEAKS = 0.8
"""Ratio of the minimum of a histogram to the lower one of two peaks up to which there are two."""


ISING_COLOURS = 2
"""Number of colours of SU(2), whose Polyakov loop is real, and whose deconfinement is in the
universality class of the Ising model (B. Svetitsky and L. G. Yaffe, Nucl. Phys. B 210 (1982) 423).
For more colours it is of first order."""

MIDDLE = {True: 1 / 3, False: 1 / 2}
"""Binder cumulant half way between that of a normally distributed L, 0 for a real one and 1/3 for a
complex one, and 2/3 for L of a fixed modulus; by
whether L is real."""


@dataclass(frozen=True)
class ThermalChain:
    """The action and the Polyakov loop along one Markov chain."""

    beta: float
    """Coupling."""
    sweeps: NDArray[np.int64]
    """Numbers of the updates, of shape (samples,)."""
    action: Array
    """The action divided by beta, of shape (samples,)."""
    loop: NDArray[np.complex128]
    """Average of the Polyakov loop over space, of shape (samples,)."""
    ladder: int | None = None
    """Number of the ladder of chains that exchange couplings; None for an independent chain."""

    @cached_property
    def tau_int(self) -> float:
        """The longer tau_int of the action and of |L|, in samples."""
        return max(estimate(one).tau_int for one in (self.action, np.abs(self.loop)))


@dataclass(frozen=True)
class ThermalCurve:
    """A quantity against the coupling, by reweighting."""

    beta: Array
    """Couplings, of shape (couplings,)."""
    samples: Array
    """The quantity and its bootstrap samples, of shape (1 + replicas, couplings)."""

    @property
    def value(self) -> Array:
        """The quantity, of shape (couplings,)."""
        return np.asarray(self.samples[0])

    @property
    def error(self) -> Array:
        """Its error, of shape (couplings,)."""
        return np.asarray(self.samples[1:].std(axis=0, ddof=1))


@dataclass(frozen=True)
class ThermalVolume:
    """All chains on one lattice.

    The quantities follow from |L| and the action: the susceptibility V (<|L|^2> - <|L|>^2), the
    Binder cumulant 1 - <|L|^4> / (3 <|L|^2>^2), and the deconfined fraction (3 p - 1) / 2, where p
    is the probability that L is near an axis of the centre (`NEAR_AXIS`), 1/3 for random phases (N.
    H. Christ and A. E. Terrano, Phys. Rev. Lett. 56 (1986) 111, for SU(3)). V is the number of
    spatial sites.
    """

    lattice: Lattice
    """Extents."""
    colours: int
    """Number of colours N."""
    chains: Sequence[ThermalChain]
    """The chains, with couplings in any order."""
    replicas: int = 100
    """Number of bootstrap samples."""
    seed: int = 1
    """Seed of the bootstrap."""
    scan: Path | None = None
    """Scan to which all chains belong."""

    @property
    def refined(self) -> str:
        """How runs are added to the scan, for the end of a sentence; empty without one."""
        return f" with `{CommandLine('scan', output=self.scan, refine=True)}`" * bool(self.scan)

    @cached_property
    def reweighting(self) -> MultiHistogram:
        """The measurements as one sample, with the values |L|, |L|^2, |L|^4 and nearness."""
        chains = [
            MarkovChain(one.beta, one.action, self._values(one.loop), one.tau_int, one.ladder)
            for one in self.chains
        ]
        return MultiHistogram(chains, self.replicas, self.seed)

    def _values(self, loop: NDArray[np.complex128]) -> Array:
        modulus: Array = np.abs(loop)
        near = near_axis(loop, self.colours).astype(np.float64)
        return np.array([modulus, modulus**2, modulus**4, near])

    @cached_property
    def beta(self) -> Array:
        """Couplings of the curves."""
        runs, widths = self.reweighting.beta, self.widths[[0, -1]]
        begin, end = runs[[0, -1]] + BEYOND * widths * [-1, 1]
        points = math.ceil((end - begin) / min(widths) * POINTS_PER_WIDTH) + 1
        return np.linspace(begin, end, min(max(points, 2 * POINTS_PER_WIDTH + 1), MOST_POINTS))

    @cached_property
    def widths(self) -> Array:
        """1/sigma of the action at every coupling of the runs, ascending."""
        every = self.reweighting
        states = (every.measured[every.state == k] for k in range(every.beta.size))
        return np.array([1 / max(one.std(), 1e-12) for one in states])

    @property
    def covered(self) -> NDArray[np.bool_]:
        """Whether histograms of the runs overlap at each coupling of the curves."""
        ends = self.reweighting.beta + BEYOND * np.outer([1, -1], self.widths)
        gaps = self.reweighting.overlap < LEAST_OVERLAP
        inside = (self.beta > ends[0, :-1, None]) & (self.beta < ends[1, 1:, None])
        return np.logical_not(inside[gaps].any(axis=0))

    @cached_property
    def _averages(self) -> Array:
        return self.reweighting.averages(self.beta)

    @property
    def space(self) -> int:
        """Number V of spatial sites."""
        return self.lattice.slice_sites

    @property
    def size(self) -> float:
        """Spatial extent N_s, the third root of V."""
        return float(self.space ** (1 / 3))

    @property
    def modulus(self) -> ThermalCurve:
        """<|L|> against the coupling."""
        return ThermalCurve(self.beta, self._averages[:, 0])

    @property
    def susceptibility(self) -> ThermalCurve:
        """V (<|L|^2> - <|L|>^2) against the coupling."""
        first, second = self._averages[:, 0], self._averages[:, 1]
        return ThermalCurve(self.beta, self.space * (second - first**2))

    @property
    def binder(self) -> ThermalCurve:
        """1 - <|L|^4> / (3 <|L|^2>^2) against the coupling."""
        second, fourth = self._averages[:, 1], self._averages[:, 2]
        return ThermalCurve(self.beta, 1 - fourth / (3 * second**2))

    @property
    def fraction(self) -> ThermalCurve:
        """Deconfined fraction against the coupling; see above."""
        return ThermalCurve(self.beta, (self._averages[:, 3] - NEAR_AXIS) / (1 - NEAR_AXIS))

    @cached_property
    def peak(self) -> tuple[Array, Array]:
        """Position and height of the peak of the susceptibility, of all samples.

        Heights are NaN in samples whose peak is at the end of the curve, and both are if it is so
        for all measurements.
        """
        curve = self.susceptibility
        heights = [peak_of(curve.beta, one)[1] for one in curve.samples]
        return self._at_least(self.peak_zero.samples), np.array(heights)

    @cached_property
    def peak_zero(self) -> CurveZero:
        """Position of the peak, where the derivative of the susceptibility vanishes."""
        curve = self.susceptibility
        at = peak_of(curve.beta, curve.value)[0]
        return curve_zero(curve.beta, np.gradient(curve.samples, curve.beta, axis=1), at)

    @property
    def confined(self) -> bool:
        """Whether the runs are in the confined phase on average, by the Binder cumulant."""
        return float(self.binder.value.mean()) < MIDDLE[self.colours == ISING_COLOURS]

    @cached_property
    def equal_weights(self) -> Array:
        """Coupling at which the deconfined fraction is N / (N + 1), of all samples.

        There the N deconfined phases and the confined one have equal weights, up to corrections
        that are exponentially small in V at a transition of first order (C. Borgs and R. Kotecky,
        J. Stat. Phys. 61 (1990) 79).
        """
        goal, centre = self.colours / (self.colours + 1), float(self.peak_zero.samples[0])
        curve = self.fraction
        first = root_of(curve.beta, curve.value - goal, centre)
        return self._at_least(curve_zero(curve.beta, curve.samples - goal, first).samples)

    def _at_least(self, samples: Array) -> Array:
        """Return samples of a coupling with an error of at least `least_error`."""
        error = bootstrapped(samples).error
        factor = max(1.0, self.least_error / error) if error > 0 else 1.0
        return np.asarray(samples[0] + factor * (samples - samples[0]))

    @cached_property
    def least_error(self) -> float:
        """Error of a coupling that is left if the phases are known, but not their weights.

        Chains go from one of two phases to the other as a telegraph signal does: after n changes at
        equal weights, the logarithm of their ratio is known within 2/sqrt(n). It changes with beta
        as the action of the phases differs. No change counts as one, and SU(2), whose transition is
        continuous, has none.
        """
        if self.jump is None or self.colours == ISING_COLOURS or not np.isfinite(self.jump[0]):
            return 0.0
        changes = sum(self.tunnelling(chain) or 0 for chain in self.chains)
        return float(2 / math.sqrt(max(1, changes)) / abs(self.jump[0] * self.lattice.sites))

    @cached_property
    def histogram(self) -> tuple[Array, Array]:
        """Edges of bins in |L|, and the density of |L| at the peak of the susceptibility."""
        beta = self.peak_zero.samples[:1]
        modulus = self.reweighting.values[0]
        independent = self.reweighting.weight * modulus.size
        bins = int(np.clip(math.sqrt(independent) / 2, SMALLEST_BINS, MOST_BINS))
        edges = np.linspace(0, float(modulus.max()) * (1 + 1e-12), bins + 1)
        here = np.clip(np.searchsorted(edges, modulus, "right") - 1, 0, bins - 1)
        one = MultiHistogram(self.reweighting.chains, 0)
        inside = (here == np.arange(bins)[:, None]).astype(np.float64)
        return edges, one.averages(beta, inside)[0, :, 0] / np.diff(edges)

    @cached_property
    def phases(self) -> tuple[float, float, float, float] | None:
        """The two peaks of the histogram of |L| at the transition; see `two_peaks`."""
        edges, density = self.histogram
        middle = (edges[1:] + edges[:-1]) / 2
        smooth = np.convolve(np.pad(density, 1, mode="edge"), SMOOTHING, mode="valid")
        return two_peaks(middle, smooth)

    @cached_property
    def jump(self) -> Array | None:
        """Difference of the action per site, divided by beta, between the two phases at the peak.

        It is that of measurements with |L| below and above the minimum of the histogram, of shape
        (1 + replicas,), or None if there are not two peaks. It is NaN in samples that have
        measurements on one side alone.
        """
        if self.phases is None:
            return None
        every = self.reweighting
        below = (every.values[0] < self.phases[1]).astype(np.float64)
        values = np.array([below, below * every.measured, every.measured])
        p, low, all_ = every.averages(self.peak_zero.samples[:1], values)[:, :, 0].T
        with np.errstate(invalid="ignore"):
            return np.asarray((low / p - (all_ - low) / (1 - p)) / self.lattice.sites)

    @cached_property
    def variance(self) -> Array:
        """Variance of the action per site divided by beta at the peak, of shape (1 + replicas,).

        NaN if there is no peak.
        """
        every = self.reweighting
        density = every.measured / self.lattice.sites
        centred = density - density.mean()
        at = self.peak_zero.samples[:1]
        if not np.isfinite(at[0]):
            return np.full(self.replicas + 1, math.nan)
        mean, square = every.averages(at, np.array([centred, centred**2]))[:, :, 0].T
        return np.asarray(square - mean**2)

    @cached_property
    def interface(self) -> Array | None:
        """Tension of the interface between the phases, divided by T_c^3, at the peak.

        In a box of volume V two interfaces of the area N_s^2 separate the phases where the
        histogram of |L| has its minimum, so that this is lower than the peaks by the factor
        exp(-2 sigma N_s^2 a^2 / T), up to powers of V (K. Binder, Phys. Rev. A 25 (1982) 1699). The
        geometric mean of the two peaks is taken. The shape is (1 + replicas,), or it is None if
        there are not two peaks.
        """
        if self.phases is None:
            return None
        edges = self.histogram[0]
        centres = (edges[1:] + edges[:-1]) / 2
        modulus = self.reweighting.values[0]
        here = np.clip(np.searchsorted(edges, modulus, "right") - 1, 0, centres.size - 1)
        smoothed = [_smoothed(here, centres, one) for one in self.phases[:3]]
        found = self.reweighting.averages(self.peak_zero.samples[:1], np.array(smoothed))[:, :, 0]
        low, least, high = found.T
        with np.errstate(divide="ignore", invalid="ignore"):
            depth = np.log(np.sqrt(low * high) / least)
        return np.asarray(depth / 2 * (self.lattice.t / self.size) ** 2)

    def sectors(self, chain: ThermalChain) -> tuple[list[float], int]:
        """Return the fractions of a chain in the sectors of the centre, and how many changes."""
        sector = centre_sector(chain.loop, self.colours)
        counts = np.bincount(sector, minlength=self.colours)
        return (counts / sector.size).tolist(), int(np.count_nonzero(np.diff(sector)))

    def tunnelling(self, chain: ThermalChain) -> int | None:
        """Return how often a chain goes from one phase to the other; None without two peaks.

        It has gone there when |L| has passed the other peak of the histogram.
        """
        if self.phases is None:
            return None
        low, _, high, _ = self.phases
        modulus = np.abs(chain.loop)
        ends = np.where(modulus <= low, -1, np.where(modulus >= high, 1, 0))
        ends = ends[ends != 0]
        return int(np.count_nonzero(np.diff(ends)))


def _smoothed(bins: NDArray[np.intp], centres: Array, at: float) -> Array:
    """Return the weights of measurements in the smoothed histogram at the centre of a bin."""
    middle, last = int(np.argmin(np.abs(centres - at))), centres.size - 1
    near = [min(max(middle + step, 0), last) for step in (-1, 0, 1)]
    parts = zip(SMOOTHING, near, strict=True)
    return np.asarray(sum(weight * (bins == one) for weight, one in parts), np.float64)


def near_axis(loop: NDArray[np.complex128], colours: int) -> NDArray[np.bool_]:
    """Return whether L is within `NEAR_AXIS` of the direction of an element of the centre."""
    turned = np.angle(loop) * colours / math.pi  # axes at even numbers, borders at odd ones
    return np.asarray(np.abs(turned - 2 * np.rint(turned / 2)) < NEAR_AXIS)


def peak_of(x: Array, y: Array) -> tuple[float, float]:
    """Return position and height of the maximum of a curve on equidistant points.

    A polynomial of fourth order goes through the five points around the largest value. Both are NaN
    if that is one of the two points at either end.
    """
    at = int(np.argmax(y))
    if not 2 <= at < x.size - 2:
        return math.nan, math.nan
    step = float(x[1] - x[0])
    near = np.polynomial.Polynomial(
        np.polynomial.polynomial.polyfit(np.arange(-2.0, 3.0), y[at - 2 : at + 3], 4)
    )
    roots = [r.real for r in near.deriv().roots() if abs(r.imag) < 1e-9 and abs(r.real) <= 1]
    best = max(roots, key=near, default=0.0)
    return float(x[at]) + step * float(best), float(near(best))


def root_of(x: Array, y: Array, near: float) -> float:
    """Return the zero of a curve that is closest to a number; NaN if there is none."""
    known = np.isfinite(y[1:]) & np.isfinite(y[:-1])
    at = np.flatnonzero(known & (np.sign(y[:-1]) * np.sign(y[1:]) <= 0) & (y[1:] != y[:-1]))
    if not at.size:
        return math.nan
    roots = x[at] - y[at] * (x[at + 1] - x[at]) / (y[at + 1] - y[at])
    return float(roots[np.argmin(np.abs(roots - near))] if np.isfinite(near) else roots[0])


def two_peaks(x: Array, density: Array) -> tuple[float, float, float, float] | None:
    """Return the positions of two peaks and of the minimum between them, and the depth of it.

    Returns
    -------
    tuple of float, or None
        Lower peak, minimum, upper peak, ratio of the minimum to the smaller peak. Of all pairs of
        maxima the one with the smallest ratio is taken; None if it is above `TWO_PEAKS`.
    """
    inside = np.concatenate([[-1.0], density, [-1.0]])
    peaks = np.flatnonzero((inside[1:-1] >= inside[:-2]) & (inside[1:-1] > inside[2:]))
    peaks = peaks[density[peaks] > density.max() / 10]
    best: tuple[float, float, float, float] | None = None
    for n, low in enumerate(peaks):
        for high in peaks[n + 1 :]:
            least = low + int(np.argmin(density[low : high + 1]))
            ratio = float(density[least] / min(density[low], density[high]))
            if ratio <= (best[3] if best else TWO_PEAKS):
                best = (float(x[low]), float(x[least]), float(x[high]), ratio)
    return best


def bootstrapped(samples: Array, size: int = 0) -> Estimate:
    """Return a value with the standard deviation of its bootstrap samples as error.

    Parameters
    ----------
    samples : ndarray, shape (1 + replicas,)
        The value, and its bootstrap samples; those that are NaN are left out.
    size : int
        Number of measurements.
    """
    rest = samples[1:][np.isfinite(samples[1:])]
    error = float(rest.std(ddof=1)) if rest.size > 1 else math.nan
    return Estimate(float(samples[0]), error, math.nan, math.nan, size)
