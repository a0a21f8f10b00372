"""Averages over a stream of time slices, which the headers of files state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.files.links import Links, components

Parts = NDArray[np.complex128]
"""Links with the sites innermost; see `gauge_mc.files.links.components`."""


@dataclass(frozen=True)
class Averages:
    """Lattice averages of Re Tr / N, each in [-1, 1].

    Attributes
    ----------
    mean, spatial, temporal : float
        Averages over all plaquettes, over those in spatial planes, and over those in planes that
        contain the time direction.
    link_trace : float
        Average over all links.
    """

    mean: float
    spatial: float
    temporal: float
    link_trace: float


class AveragesStream:
    """Running sums over plaquettes and links, which keep only the first and the latest slice."""

    def __init__(self) -> None:
        self._spatial: list[float] = []
        self._temporal: list[float] = []
        self._trace: list[float] = []
        self._links = 0
        self._first: Parts | None = None
        self._latest: Parts | None = None

    def add(self, links: Links) -> None:
        """Add the next time slice, a complex128 array ``[z, y, x, mu, a, b]``."""
        parts = components(links)
        n = parts.shape[1]
        with np.errstate(all="ignore"):
            self._trace += [float(np.sum(parts[:, a, a].real)) for a in range(n)]
            self._spatial += [
                _plaquettes(parts[i], _ahead(parts[j], i), parts[j], _ahead(parts[i], j))
                for i, j in ((0, 1), (0, 2), (1, 2))
            ]
        if self._latest is None:
            self._first = parts[:3].copy()
        else:
            self._advance(self._latest, parts)
        self._latest = parts
        self._links += parts[:, 0, 0].size * n

    def averages(self) -> Averages:
        """Return the averages. Call this once, after the last slice.

        The plaquettes between the last slice and the first one are added here.

        Returns
        -------
        Averages

        Raises
        ------
        ValueError
            If no slice was added.
        """
        if self._latest is None or self._first is None:
            raise ValueError("there is no time slice to average over")
        self._advance(self._latest, self._first)
        with np.errstate(all="ignore"):
            # There are 3/4 as many spatial plaquettes as links, and as many temporal ones.
            spatial = float(np.sum(self._spatial)) / (0.75 * self._links)
            temporal = float(np.sum(self._temporal)) / (0.75 * self._links)
            trace = float(np.sum(self._trace)) / self._links
        return Averages((spatial + temporal) / 2, spatial, temporal, trace)

    def _advance(self, now: Parts, later: Parts) -> None:
        """Add the plaquettes between a time slice and the next one."""
        with np.errstate(all="ignore"):
            self._temporal += [
                _plaquettes(now[i], _ahead(now[3], i), now[3], later[i]) for i in range(3)
            ]


def averages_of(slices: Iterable[Links]) -> Averages:
    """Return the averages over a configuration.

    Parameters
    ----------
    slices : iterable of complex128 arrays [z, y, x, mu, a, b]
        All time slices, in order.

    Returns
    -------
    Averages
    """
    stream = AveragesStream()
    for links in slices:
        stream.add(links)
        del links  # so that only one slice is in memory
    return stream.averages()


def _plaquettes(first: Parts, second: Parts, third: Parts, fourth: Parts) -> float:
    """Sum Re Tr of ``first second (third fourth)^dagger`` over all sites.

    The loop over z keeps each plane in the cache. NumPy adds the numbers up, because the last bits
    of a BLAS product depend on the number of threads.
    """
    sums = []
    for z in range(first.shape[2]):
        traces = _product(first[:, :, z], second[:, :, z]).view(np.float64)
        traces *= _product(third[:, :, z], fourth[:, :, z]).view(np.float64)
        sums.append(np.sum(traces))
    return float(np.sum(sums))


def _product(left: Parts, right: Parts) -> Parts:
    """Multiply matrices ``[a, b, y, x]`` site by site."""
    result: Parts = left[:, 0, None] * right[0]
    for k in range(1, left.shape[1]):
        result += left[:, k, None] * right[k]
    return result


def _ahead(parts: Parts, direction: int) -> Parts:
    """Shift the matrices so that each site has that of its neighbour ahead in x, y or z."""
    return np.roll(parts, -1, axis=-1 - direction)
