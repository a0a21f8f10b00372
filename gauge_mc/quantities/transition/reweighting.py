"""Multi-histogram reweighting in the coupling.

Runs at several couplings are one sample of all couplings between them (A. M. Ferrenberg and R. H.
Swendsen, Phys. Rev. Lett. 63 (1989) 1195; M. R. Shirts and J. D. Chodera, arXiv:0801.1426). With
the action beta S of a configuration and the number N_k of measurements at beta_k, a measurement has
the weight

    w(beta) = exp(-beta S) / D(S),    D(S) = sum_k (N_k / g) exp(f_k - beta_k S),

where g = 2 tau_int, and the free energies f_k are such that the weights w(beta_k) exp(f_k) / g of
all measurements add up to 1 for every k. g is the same for all chains: one that does not leave a
phase has a small tau_int, and with a g_k of its own that phase would have too large a weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.fitting import zero_interval
from gauge_mc.analysis.timeseries import Estimate, bin_length, centre_sector, estimate
from gauge_mc.arrays import Array
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.quoting import CommandLine

LEAST_OVERLAP = 0.03
"""Overlap of neighbouring couplings below which a run is missing between them (P. V. Klimovich, M.
R. Shirts and D. L. Mobley, J. Comput. Aided Mol. Des. 29 (2015) 397)."""

MOST_STEPS = 100
"""Maximum number of Newton steps, of which five or so are needed."""

CONVERGED = 1e-9
"""Deviation of the number of measurements at a coupling, relative to that of all, at which the free
energies are found."""

RESOLUTION = 0.02
"""Largest change of a ratio of weights across a bin in the action. Within a bin the action is
replaced by its mean, which changes no average by more than about RESOLUTION^2 / 24."""


@dataclass(frozen=True)
class MarkovChain:
    """The action and other quantities along one Markov chain."""

    beta: float
    """Coupling of the chain."""
    action: Array
    """S, the action divided by beta, of shape (samples,)."""
    values: Array
    """Other quantities, of shape (quantities, samples)."""
    tau_int: float
    """Integrated autocorrelation time in samples, the longest one of interest."""
    ladder: int | None = None
    """Number of the ladder of chains that exchange couplings, which are not independent of each
    other; None for an independent chain."""


@dataclass(frozen=True)
class MultiHistogram:
    """Measurements of several chains as one sample of all couplings.

    Everything is computed for the measurements themselves and for bootstrap samples of their
    blocks, whose number is `replicas`. Simultaneous blocks of the chains of a ladder are drawn
    together.
    """

    chains: Sequence[MarkovChain]
    """The chains, of which several may have the same coupling."""
    replicas: int = 100
    """Number of bootstrap samples. With 100 the error of an error is 7 %."""
    seed: int = 1
    """Seed of the bootstrap."""

    @cached_property
    def beta(self) -> Array:
        """Couplings of the chains, ascending, of shape (states,)."""
        return np.unique([chain.beta for chain in self.chains])

    @cached_property
    def measured(self) -> Array:
        """S of all measurements minus `offset`, of shape (samples,)."""
        return np.concatenate([chain.action for chain in self.chains]) - self.offset

    @cached_property
    def offset(self) -> float:
        """Mean of S over all measurements."""
        return float(np.concatenate([chain.action for chain in self.chains]).mean())

    @cached_property
    def values(self) -> Array:
        """The other quantities of all measurements, of shape (quantities, samples)."""
        return np.concatenate([chain.values for chain in self.chains], axis=1)

    @cached_property
    def state(self) -> NDArray[np.intp]:
        """Index of the coupling of every measurement, of shape (samples,)."""
        sizes = [chain.action.size for chain in self.chains]
        return np.repeat(np.searchsorted(self.beta, [chain.beta for chain in self.chains]), sizes)

    @cached_property
    def weight(self) -> float:
        """1 / g of every measurement, with the longest tau_int of all chains."""
        return float(1 / (2 * np.nanmax([0.5, *(chain.tau_int for chain in self.chains)])))

    @cached_property
    def blocks(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The block of every measurement, and the state of every block.

        A block is as long as a jackknife bin of its chain (see `bin_length`). Blocks of a ladder
        are also as long as such bins of its averages over all chains, which exchanges leave
        unchanged: what is slow moves to another coupling, but lasts as long.
        """
        of_samples: list[NDArray[np.intp]] = []
        states: list[int] = []
        for chain, count in zip(self.chains, self._block_counts, strict=True):
            size = chain.action.size
            of_samples.append(np.arange(size) * count // size + len(states))
            states += [int(np.searchsorted(self.beta, chain.beta))] * count
        return np.concatenate(of_samples), np.array(states)

    @cached_property
    def _block_counts(self) -> list[int]:
        """Number of blocks of every chain, the same for all chains of a ladder."""
        sizes = [chain.action.size for chain in self.chains]
        times = [max(x.tau_int, self._ladder_times.get(x.ladder, 0)) for x in self.chains]
        lengths = [bin_length(*x) for x in zip(sizes, times, strict=True)]
        counts = [max(1, size // length) for size, length in zip(sizes, lengths, strict=True)]
        least: dict[int | None, int] = {}
        for member, count in zip(self.chains, counts, strict=True):
            least[member.ladder] = min(count, least.get(member.ladder, count))
        return [
            count if chain.ladder is None else least[chain.ladder]
            for chain, count in zip(self.chains, counts, strict=True)
        ]

    @cached_property
    def _ladder_times(self) -> dict[int | None, float]:
        """The longest tau_int of averages over the chains of each ladder, in samples."""
        ladders: dict[int, list[MarkovChain]] = {}
        for member in self.chains:
            if member.ladder is not None:
                ladders.setdefault(member.ladder, []).append(member)
        times: dict[int | None, float] = {}
        for number, chains in ladders.items():
            size = min(chain.action.size for chain in chains)
            mean = np.mean([[x.action[:size], *x.values[:, :size]] for x in chains], axis=0)
            times[number] = float(np.nanmax([0.5, *(estimate(x).tau_int for x in mean)]))
        return times

    @cached_property
    def units(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The unit of every block, and the group of every unit.

        Units are drawn as a whole, among those of their group. A block of an independent chain is a
        unit, whose group is its state; so are simultaneous blocks of all chains of a ladder, and
        all ladders with the same couplings are a group.
        """
        couplings: dict[int, list[float]] = {}
        for chain in self.chains:
            if chain.ladder is not None:
                couplings.setdefault(chain.ladder, []).append(chain.beta)
        ladders = sorted({tuple(sorted(each)) for each in couplings.values()})
        of_blocks: list[int] = []
        groups: list[int] = []
        first: dict[int, int] = {}
        states = iter(self.blocks[1])
        for chain, count in zip(self.chains, self._block_counts, strict=True):
            unit_groups = [int(next(states)) for _ in range(count)]
            if chain.ladder is None or chain.ladder not in first:
                begin = len(groups)
                if chain.ladder is not None:
                    first[chain.ladder] = begin
                    number = ladders.index(tuple(sorted(couplings[chain.ladder])))
                    unit_groups = [self.beta.size + number] * count
                groups += unit_groups
            else:
                begin = first[chain.ladder]
            of_blocks += range(begin, begin + count)
        return np.array(of_blocks), np.array(groups)

    @cached_property
    def multiplicity(self) -> Array:
        """How often every block is in a sample, of shape (1 + replicas, blocks).

        The first sample is that of the measurements. Blocks are drawn as `units` says.
        """
        of_blocks, groups = self.units
        generator = np.random.default_rng(self.seed)
        drawn = np.ones((1 + self.replicas, groups.size))
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            equal = np.full(members.size, 1 / members.size)
            drawn[1:, members] = generator.multinomial(members.size, equal, self.replicas)
        return np.asarray(drawn[:, of_blocks])

    @cached_property
    def bins(self) -> tuple[Array, NDArray[np.intp]]:
        """Mean S of the measurements in every bin, and the bin of every measurement.

        Bins are so narrow that the ratio of the weights at the outermost couplings changes by at
        most `RESOLUTION` across one. Empty bins are left out.
        """
        span = max(float(np.ptp(self.beta)), 1 / max(float(self.measured.std()), 1e-300))
        places = np.floor(self.measured * (span / RESOLUTION))
        index = np.unique(places, return_inverse=True)[1].reshape(-1)
        return np.bincount(index, self.measured) / np.bincount(index), index

    def _binned(self, values: Array) -> Array:
        """Return sums of a quantity times `weight`, of shape (1 + replicas, bins)."""
        weighted, index = self.weight * values, self.bins[1]
        block, size = self.blocks[0], self.bins[0].size
        return np.array([np.bincount(index, weighted * x[block], size) for x in self.multiplicity])

    @cached_property
    def _counts(self) -> Array:
        """N_k / g of all samples, of shape (1 + replicas, states)."""
        of_blocks = self.weight * np.bincount(self.blocks[0])
        states = np.eye(self.beta.size)[self.blocks[1]]
        return np.asarray((self.multiplicity * of_blocks) @ states)

    @cached_property
    def free_energies(self) -> Array:
        """f_k for `measured`, of all samples, of shape (1 + replicas, states); the first is 0."""
        means = np.bincount(self.state, self.measured) / np.bincount(self.state)
        steps = np.diff(self.beta) * (means[1:] + means[:-1]) / 2
        energies = [np.concatenate([[0.0], np.cumsum(steps)])]  # first <S> integrated over beta
        weights = self._binned(np.ones(self.measured.size))
        for weight, counts in zip(weights, self._counts, strict=True):
            energies.append(self._solve(energies[min(len(energies) - 1, 1)], weight, counts))
        return np.array(energies[1:])

    def _logarithms(self, free: Array, action: Array) -> Array:
        """Return f_k - beta_k S, of shape (samples, states)."""
        return free - np.outer(action, self.beta)

    def _solve(self, start: Array, weight: Array, counts: Array) -> Array:
        """Return the free energies of one sample by Newton steps for a convex function.

        It is the sum over measurements of ln D, minus that over states of N_k f_k / g.
        """
        base = self._logarithms(start, self.bins[0])
        base -= base.max(axis=1, keepdims=True)
        np.exp(base, out=base)
        moved, last = np.zeros(start.size), np.inf
        step = np.zeros(start.size)
        for _ in range(MOST_STEPS):
            shares = base * (counts * np.exp(moved + step))
            total = shares.sum(axis=1)
            value = float(weight @ np.log(total) - counts @ (moved + step))
            if not value <= last + CONVERGED * counts.sum():
                step = step / 2  # too long
                continue
            moved, last = moved + step, value
            shares /= total[:, None]
            expected = weight @ shares
            if np.abs(expected - counts).max() <= CONVERGED * counts.sum():
                return np.asarray(start + moved - (start + moved)[0])
            hessian = np.diag(expected) - (shares * weight[:, None]).T @ shares
            step = np.zeros(start.size)
            try:
                step[1:] = np.linalg.solve(hessian[1:, 1:], (counts - expected)[1:])
            except np.linalg.LinAlgError:
                break
        raise GaugeError(
            f"The histograms of the action at beta = {self.beta[0]:.12g} to {self.beta[-1]:.12g} "
            "do not overlap, so that they cannot be reweighted together; add runs between them."
        )

    @cached_property
    def overlap(self) -> Array:
        """Overlap of each coupling with the next one, of shape (states - 1,).

        With the probability P_k(S) that a measurement of the action S was made at beta_k, it is the
        average of P_(k+1) over measurements at beta_k. For n equal histograms it is 1/n, for
        those of two states far from all others at most 1/2.
        """
        terms = self._logarithms(self.free_energies[0], self.bins[0]) + np.log(self._counts[0])
        shares = np.exp(terms - self._denominators[:, None])
        weight = self.weight * np.bincount(self.bins[1])
        return np.asarray(weight @ (shares[:, :-1] * shares[:, 1:]) / self._counts[0, :-1])

    @property
    def gaps(self) -> list[tuple[float, float, float]]:
        """Neighbouring couplings that hardly overlap, with their overlap; see `LEAST_OVERLAP`."""
        pairs = zip(self.beta[:-1], self.beta[1:], self.overlap, strict=True)
        return [(float(a), float(b), float(o)) for a, b, o in pairs if o < LEAST_OVERLAP]

    def averages(self, beta: Array, values: Array | None = None) -> Array:
        """Return averages at any couplings, for all samples."""
        x = self.values if values is None else values
        free, action = self.free_energies, self.bins[0]
        logarithms = self._logarithms(free[0], action) - self._denominators[:, None]
        ratio = (self._counts * np.exp(free - free[0])) @ np.exp(logarithms).T
        exponents = -np.outer(action, beta) - self._denominators[:, None]
        weights = np.exp(exponents - exponents.max(axis=0))
        norm = (self._binned(np.ones(self.measured.size)) / ratio) @ weights
        sums = [(self._binned(y) / ratio) @ weights for y in x]
        return np.asarray(np.stack(sums, axis=1) / norm[:, np.newaxis])

    @cached_property
    def _denominators(self) -> Array:
        """Return ln D of the measurements for every bin."""
        terms = self._logarithms(self.free_energies[0], self.bins[0]) + np.log(self._counts[0])
        largest = terms.max(axis=1)
        return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))


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
        return max(estimate(ab).tau_int for ab in (self.action, np.abs(self.loop)))


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
            MarkovChain(x.beta, x.action, self._values(x.loop), x.tau_int, x.ladder)
            for x in self.chains
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
        return np.array([1 / max(state.std(), 1e-12) for state in states])

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
        heights = [peak_of(curve.beta, sample)[1] for sample in curve.samples]
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
        bin_index = np.clip(np.searchsorted(edges, modulus, "right") - 1, 0, bins - 1)
        estimator = MultiHistogram(self.reweighting.chains, 0)
        inside = (bin_index == np.arange(bins)[:, None]).astype(np.float64)
        return edges, estimator.averages(beta, inside)[0, :, 0] / np.diff(edges)

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
        bin_index = np.clip(np.searchsorted(edges, modulus, "right") - 1, 0, centres.size - 1)
        smoothed = np.zeros((3, modulus.size))
        for weights, phase in zip(smoothed, self.phases, strict=False):
            middle = int(np.argmin(np.abs(centres - phase)))
            for step, weight in zip((-1, 0, 1), SMOOTHING, strict=True):
                weights += weight * (bin_index == np.clip(middle + step, 0, centres.size - 1))
        densities = self.reweighting.averages(self.peak_zero.samples[:1], smoothed)[:, :, 0]
        low, least, high = densities.T
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
    finite = np.isfinite(y[1:]) & np.isfinite(y[:-1])
    at = np.flatnonzero(finite & (np.sign(y[:-1]) * np.sign(y[1:]) <= 0) & (y[1:] != y[:-1]))
    if not at.size:
        return math.nan
    roots = x[at] - y[at] * (x[at + 1] - x[at]) / (y[at + 1] - y[at])
    return float(roots[np.argmin(np.abs(roots - near))] if np.isfinite(near) else roots[0])


def two_peaks(x: Array, density: Array) -> tuple[float, float, float, float] | None:
    """Return the positions of two peaks and of the minimum between them, and the depth of it."""
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
    """Return a value with the standard deviation of its bootstrap samples as error."""
    rest = samples[1:][np.isfinite(samples[1:])]
    error = float(rest.std(ddof=1)) if rest.size > 1 else math.nan
    return Estimate(float(samples[0]), error, math.nan, math.nan, size)
