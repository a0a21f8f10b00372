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

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries import bin_length, estimate
from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError

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
        return np.unique([one.beta for one in self.chains])

    @cached_property
    def measured(self) -> Array:
        """S of all measurements minus `offset`, of shape (samples,)."""
        return np.concatenate([one.action for one in self.chains]) - self.offset

    @cached_property
    def offset(self) -> float:
        """Mean of S over all measurements."""
        return float(np.concatenate([one.action for one in self.chains]).mean())

    @cached_property
    def values(self) -> Array:
        """The other quantities of all measurements, of shape (quantities, samples)."""
        return np.concatenate([one.values for one in self.chains], axis=1)

    @cached_property
    def state(self) -> NDArray[np.intp]:
        """Index of the coupling of every measurement, of shape (samples,)."""
        sizes = [one.action.size for one in self.chains]
        return np.repeat(np.searchsorted(self.beta, [one.beta for one in self.chains]), sizes)

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
        for one, count in zip(self.chains, self._block_counts, strict=True):
            size = one.action.size
            of_samples.append(np.arange(size) * count // size + len(states))
            states += [int(np.searchsorted(self.beta, one.beta))] * count
        return np.concatenate(of_samples), np.array(states)

    @cached_property
    def _block_counts(self) -> list[int]:
        """Number of blocks of every chain, the same for all chains of a ladder."""
        sizes = [one.action.size for one in self.chains]
        times = [max(one.tau_int, self._ladder_times.get(one.ladder, 0)) for one in self.chains]
        lengths = [bin_length(*one) for one in zip(sizes, times, strict=True)]
        counts = [max(1, size // length) for size, length in zip(sizes, lengths, strict=True)]
        least: dict[int | None, int] = {}
        for one, count in zip(self.chains, counts, strict=True):
            least[one.ladder] = min(count, least.get(one.ladder, count))
        return [
            count if one.ladder is None else least[one.ladder]
            for one, count in zip(self.chains, counts, strict=True)
        ]

    @cached_property
    def _ladder_times(self) -> dict[int | None, float]:
        """The longest tau_int of averages over the chains of each ladder, in samples."""
        ladders: dict[int, list[MarkovChain]] = {}
        for one in self.chains:
            if one.ladder is not None:
                ladders.setdefault(one.ladder, []).append(one)
        times: dict[int | None, float] = {}
        for number, chains in ladders.items():
            size = min(one.action.size for one in chains)
            mean = np.mean([[one.action[:size], *one.values[:, :size]] for one in chains], axis=0)
            times[number] = float(np.nanmax([0.5, *(estimate(one).tau_int for one in mean)]))
        return times

    @cached_property
    def units(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """The unit of every block, and the group of every unit.

        Units are drawn as a whole, among those of their group. A block of an independent chain is a
        unit, whose group is its state; so are simultaneous blocks of all chains of a ladder, and
        all ladders with the same couplings are a group.
        """
        couplings: dict[int, list[float]] = {}
        for one in self.chains:
            if one.ladder is not None:
                couplings.setdefault(one.ladder, []).append(one.beta)
        known = sorted({tuple(sorted(each)) for each in couplings.values()})
        of_blocks: list[int] = []
        groups: list[int] = []
        first: dict[int, int] = {}
        states = iter(self.blocks[1])
        for one, count in zip(self.chains, self._block_counts, strict=True):
            own = [int(next(states)) for _ in range(count)]
            if one.ladder is None or one.ladder not in first:
                begin = len(groups)
                if one.ladder is not None:
                    first[one.ladder] = begin
                    number = known.index(tuple(sorted(couplings[one.ladder])))
                    own = [self.beta.size + number] * count
                groups += own
            else:
                begin = first[one.ladder]
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
            own = np.flatnonzero(groups == group)
            equal = np.full(own.size, 1 / own.size)
            drawn[1:, own] = generator.multinomial(own.size, equal, self.replicas)
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
        return np.array(
            [np.bincount(index, weighted * one[block], size) for one in self.multiplicity]
        )

    @cached_property
    def _counts(self) -> Array:
        """N_k / g of all samples, of shape (1 + replicas, states)."""
        of_blocks = self.weight * np.bincount(self.blocks[0])
        states = np.eye(self.beta.size)[self.blocks[1]]
        return np.asarray((self.multiplicity * of_blocks) @ states)

    @cached_property
    def free_energies(self) -> Array:
        """f_k for `measured`, of all samples, of shape (1 + replicas, states); the first is 0.

        Raises
        ------
        GaugeError
            If they cannot be found, because the histograms do not overlap.
        """
        means = np.bincount(self.state, self.measured) / np.bincount(self.state)
        steps = np.diff(self.beta) * (means[1:] + means[:-1]) / 2
        found = [np.concatenate([[0.0], np.cumsum(steps)])]  # first <S> integrated over beta
        weights = self._binned(np.ones(self.measured.size))
        for weight, counts in zip(weights, self._counts, strict=True):
            found.append(self._solve(found[min(len(found) - 1, 1)], weight, counts))
        return np.array(found[1:])

    def _logarithms(self, free: Array, action: Array) -> Array:
        """Return f_k - beta_k S, of shape (samples, states)."""
        return free - np.outer(action, self.beta)

    def _solve(self, start: Array, weight: Array, counts: Array) -> Array:
        """Return the free energies of one sample by Newton steps for a convex function.

        It is the sum over measurements of ln D, minus that over states of N_k f_k / g.

        Parameters
        ----------
        start : ndarray, shape (states,)
            First guess.
        weight : ndarray, shape (bins,)
            Sum of the weights of the measurements in every bin.
        counts : ndarray, shape (states,)
            The same at every coupling.
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
        """Return averages at any couplings, for all samples.

        Parameters
        ----------
        beta : ndarray, shape (couplings,)
            The couplings.
        values : ndarray, shape (quantities, samples), optional
            Quantities of all measurements; by default `values`.

        Returns
        -------
        ndarray, shape (1 + replicas, quantities, couplings)
            The averages over the measurements, and over the bootstrap samples.
        """
        x = self.values if values is None else values
        free, action = self.free_energies, self.bins[0]
        logarithms = self._logarithms(free[0], action) - self._denominators[:, None]
        ratio = (self._counts * np.exp(free - free[0])) @ np.exp(logarithms).T
        exponents = -np.outer(action, beta) - self._denominators[:, None]
        weights = np.exp(exponents - exponents.max(axis=0))
        norm = (self._binned(np.ones(self.measured.size)) / ratio) @ weights
        sums = [(self._binned(one) / ratio) @ weights for one in x]
        return np.asarray(np.stack(sums, axis=1) / norm[:, np.newaxis])

    @cached_property
    def _denominators(self) -> Array:
        """Return ln D of the measurements for every bin."""
        terms = self._logarithms(self.free_energies[0], self.bins[0]) + np.log(self._counts[0])
        largest = terms.max(axis=1)
        return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)))
