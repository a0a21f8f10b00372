"""The Coulomb potential on the lattice, for tree-level improved distances.

At tree level, the potential of static charges with the Wilson action is proportional to the
massless propagator of the three-dimensional lattice,

    G(r) = integral over the Brillouin zone, d^3k / (2 pi)^3, of
        cos(k r) / (4 sum_i sin^2(k_i / 2)),

which is 1 / (4 pi r) for large r. Distances at which a quantity has its tree-level value in the
continuum reduce the artefacts of the lattice (R. Sommer, hep-lat/9310022; S. Necco and R. Sommer,
hep-lat/0108008).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gauge_mc.libraries import load

NODES = 400
"""Points of the Gauss quadrature, with which G is exact to 1e-10."""

BEGIN, END = -25.0, 13.0
"""Logarithm of the smallest and the largest parameter s of the integral; beyond, the integrand has
its asymptotic form (4 pi s)^(-3/2)."""


@cache
def propagator(x: int, y: int, z: int) -> float:
    """Return G at a distance in lattice units, in infinite volume.

    G is the integral over s > 0 of the product of exp(-2 s) I_n(2 s) with n = x, y, z, where I_n is
    a modified Bessel function.
    """
    scaled_bessel = load("scipy.special").ive
    nodes, weights = _quadrature()
    half = (END - BEGIN) / 2
    s = np.exp(BEGIN + half * (nodes + 1))
    product = np.prod([scaled_bessel(abs(n), 2 * s) for n in (x, y, z)], axis=0)
    tail = 2 * (4 * math.pi) ** -1.5 * math.exp(-END / 2)
    return float(half * weights @ (s * product) + tail)


@cache
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the points and weights of the Gauss quadrature."""
    return np.polynomial.legendre.leggauss(NODES)


def _at(path: str, steps: int) -> float:
    """Return G after a number of steps along a path, such as ``"110"``."""
    x, y, z = sorted(steps * int(digit) for digit in path)
    return propagator(x, y, z)


def improved_distance(path: str, steps: int) -> float:
    """Return d_I of the potential: 1 / d_I = 4 pi G(d).

    Parameters
    ----------
    path : str
        Direction of the distance, such as ``"110"``.
    steps : int
        Number of steps along it.
    """
    return 1 / (4 * math.pi * _at(path, steps))


def force_distance(path: str, steps: int) -> float:
    """Return r_I of the force between a number of steps along a path and one less.

    With the length a of a step, 1 / r_I^2 = 4 pi [G(r - a) - G(r)] / a.
    """
    length = math.sqrt(sum(int(digit) ** 2 for digit in path))
    slope = (_at(path, steps - 1) - _at(path, steps)) / length
    return 1 / math.sqrt(4 * math.pi * slope)
