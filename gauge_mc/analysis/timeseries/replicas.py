"""Independent Markov chains of one ensemble, whose series follow each other in one array."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gauge_mc.analysis.timeseries.bins import caution_series
from gauge_mc.analysis.timeseries.estimates import Estimate, estimate

Scalar = TypeVar("Scalar", bound=np.generic)

CHAIN_BITS = 40
"""Number of bits of the number of an update in a key, above which that of the chain begins."""


@dataclass(frozen=True)
class Replicas:
    """Division of the rows of a series into independent chains of one ensemble.

    Attributes
    ----------
    lengths : tuple of int
        Number of configurations of every chain.
    spacings : tuple of int
        Updates from one configuration to the next of every chain.
    names : tuple of str
        Names of several chains, for cautions about one of them; none for a single chain.
    """

    lengths: tuple[int, ...]
    spacings: tuple[int, ...]
    names: tuple[str, ...] = ()

    @classmethod
    def of(cls, *sweeps: ArrayLike) -> Replicas:
        """Return the division of chains, given the numbers of their updates.

        The spacing of a chain is the most frequent one. A chain with a single configuration, which
        has none, takes the largest one of the others.

        Parameters
        ----------
        *sweeps : array_like of int, shape (configurations,)
            Numbers of the updates of every chain, ascending.
        """
        steps = [np.unique(np.diff(chain), return_counts=True) for chain in sweeps]
        spacings = [int(step[np.argmax(counts)]) if step.size else 0 for step, counts in steps]
        most = max([1, *spacings])
        return cls(tuple(map(np.size, sweeps)), tuple(step or most for step in spacings))

    @classmethod
    def alone(cls, length: int) -> Replicas:
        """Return the division of a single chain of the given length."""
        return cls((length,), (1,))

    def split(self, series: NDArray[Scalar]) -> list[NDArray[Scalar]]:
        """Return the part of a series that belongs to every chain.

        Parameters
        ----------
        series : ndarray, shape (configurations, ...)
            The chains one after the other.

        Raises
        ------
        ValueError
            If it has another number of configurations than the chains.
        """
        if len(series) != sum(self.lengths):
            raise ValueError(f"{len(series)} rows are not {sum(self.lengths)} configurations.")
        return np.split(series, np.cumsum(self.lengths)[:-1])

    def estimate(self, series: ArrayLike) -> Estimate:
        """Return mean and error of a series by the Gamma method over all chains.

        Parameters
        ----------
        series : array_like of float, shape (configurations,)
            The chains one after the other.

        Returns
        -------
        Estimate
            As `gauge_mc.analysis.timeseries.estimates.estimate` returns it.
        """
        return estimate(*self.split(np.asarray(series)), spacings=self.spacings)

    def keys(self, sweeps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return numbers of the configurations that differ between chains."""
        chains = np.repeat(np.arange(len(self.lengths)), self.lengths)
        return np.asarray((chains << CHAIN_BITS) + sweeps)

    def where(self, mask: NDArray[np.bool_]) -> Replicas:
        """Return the division of the configurations that a mask chooses."""
        return replace(self, lengths=tuple(int(np.sum(part)) for part in self.split(mask)))

    def updates(self, sweeps: NDArray[np.int64]) -> int | None:
        """Return the updates from one configuration to the next, or None if they differ."""
        steps = np.unique(np.concatenate([np.diff(part) for part in self.split(sweeps)]))
        return int(steps[0]) if steps.size == 1 else None

    def cautions(self, sweeps: NDArray[np.int64], *series: NDArray[np.generic]) -> list[str]:
        """Return the cautions of `caution_series` about every chain, which several name.

        Parameters
        ----------
        sweeps : ndarray of int64, shape (configurations,)
            Numbers of the updates, the chains one after the other.
        *series : ndarray, shape (configurations,)
            Series at these updates.
        """
        parts = zip(*map(self.split, (sweeps, *series)), strict=True)
        places = [f"{name}: " for name in self.names] or [""] * len(self.lengths)
        found = zip(places, map(caution_series, *zip(*parts, strict=True)), strict=True)
        return [place + words for place, said in found for words in said]
