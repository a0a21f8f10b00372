"""Wilson loops of an ensemble."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from gauge_mc.arrays import Array, Integers

AXIS = "100"
"""Path on axis."""


@dataclass(frozen=True)
class PathLoops:
    """Wilson loops along one path at one smearing level."""

    path: str
    """Direction of the spatial lines: ``"100"`` on axis, ``"110"``, ``"210"``, ``"111"``."""
    smearing: int
    """Number of smearing iterations of the spatial links."""
    sweeps: Integers
    """Numbers (updates) of the configurations, ascending, of shape (configurations,)."""
    r: Integers
    """Numbers of steps along the path, of shape (R,): 1, 2, 3, …. With multihit r = 1 on axis is
    missing.
    """
    t: Integers
    """Extents in time in lattice units, of shape (T,): 1, 2, 3, …. With multilevel averages they
    are the multiples of the thickness of the slabs.
    """
    values: Array
    """W(r, t) = Re Tr / N, averaged over each configuration, of shape (configurations, R, T)."""
    levels: tuple[int, ...] = ()
    """All smearing levels of the table from which the loops are, if it is known."""

    @property
    def distances(self) -> Array:
        """Distances of the static charges in lattice units, shape (R,)."""
        return np.asarray(self.r * step_length(self.path))

    @property
    def t_step(self) -> int:
        """Distance of the values of t, which is also the first of them."""
        return int(self.t[0])


@dataclass(frozen=True)
class LoopMatrices:
    """Wilson loops along one path, with every pair of smearing levels on the two spatial sides.

    Attributes
    ----------
    path, sweeps, r, t
        See `PathLoops`.
    levels : tuple of int
        Smearing levels, ascending.
    values : ndarray of float64, shape (configurations, R, T, levels, levels)
        Symmetric matrices of W(r, t).
    """

    path: str
    levels: tuple[int, ...]
    sweeps: Integers
    r: Integers
    t: Integers
    values: Array

    @property
    def distances(self) -> Array:
        """Distances of the static charges in lattice units, shape (R,)."""
        return np.asarray(self.r * step_length(self.path))


def step_length(path: str) -> float:
    """Return the length of a step along a path, such as sqrt(2) for ``"110"``."""
    return math.sqrt(sum(int(digit) ** 2 for digit in path))
