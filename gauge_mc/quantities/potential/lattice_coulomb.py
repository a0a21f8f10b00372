"""The Coulomb potential on the lattice, for tree-level improved distances.

At tree level, the potential of static charges is proportional to the propagator of static gluons
between their lines,

    G(r) = integral over the Brillouin zone, d^3k / (2 pi)^3, of
        cos(k r) B(k)^2 / sum_i (q_i^2 - c1 q_i^4),  q_i = 2 sin(k_i / 2),

which is 1 / (4 pi r) for large r. Here c1 is the coefficient of rectangles in the action (P. Weisz,
Nucl. Phys. B 212 (1983) 1), and B is 1 for plain links along t, whose noise multihit may reduce.
For HYP links with the parameters alpha_1, alpha_2 and alpha_3 (A. Hasenfratz, R. Hoffmann and F.
Knechtli, hep-lat/0110168)

    B = 1 - alpha_1 / 6 sum_i q_i^2 W_i,  W_i = 1 + alpha_2 (1 + alpha_3)
        - alpha_2 / 4 (1 + 2 alpha_3) (q^2 - q_i^2) + alpha_2 alpha_3 / 4 q_j^2 q_k^2,

where i, j and k differ. Distances at which a quantity has its tree-level value in the continuum
reduce the artefacts of the lattice (R. Sommer, hep-lat/9310022; S. Necco and R. Sommer,
hep-lat/0108008).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import action_of
from gauge_mc.arrays import Array
from gauge_mc.libraries import load
from gauge_mc.quantities.potential.loop_tables import lines_of
from gauge_mc.temporal_links import TEMPORAL_LINKS

NODES = 400
"""Points of the Gauss quadrature, with which G is exact to 1e-10."""

BEGIN, END = -25.0, 13.0
"""Logarithm of the smallest and the largest parameter s of the integral; beyond, the integrand has
its asymptotic form (4 pi s)^(-3/2)."""


@cache
def propagator(x: int, y: int, z: int) -> float:
    """Return G of plain links and the Wilson action at a distance, in infinite volume.

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


PERIOD = 64
"""Extent of the lattice on which the difference to the Wilson action with plain links is summed. It
falls with r^-3 or faster, so that its images change G by 1e-6 of 1 / (4 pi r) at most."""


@cache
def _difference(rectangle: float, alphas: tuple[float, ...]) -> Array:
    """G minus that of plain links and the Wilson action, at all distances of a lattice."""
    k = 2 * np.pi * np.fft.fftfreq(PERIOD)
    squares = np.stack(np.meshgrid(*3 * [4 * np.sin(k / 2) ** 2], indexing="ij"))
    plain = squares.sum(axis=0)
    plain[0, 0, 0] = 1.0  # where the difference vanishes
    form = np.ones_like(plain)
    if alphas:
        a1, a2, a3 = alphas
        for i, square in enumerate(squares):
            others = squares[[n for n in range(3) if n != i]]
            w = 1 + a2 * (1 + a3) - a2 / 4 * (1 + 2 * a3) * others.sum(axis=0)
            form -= a1 / 6 * square * (w + a2 * a3 / 4 * others.prod(axis=0))
    improved = plain - rectangle * (squares**2).sum(axis=0)
    spectrum = form**2 / improved - 1 / plain
    a1, a2, a3 = alphas or (0.0, 0.0, 0.0)  # the limit, averaged over directions
    spectrum[0, 0, 0] = 0.6 * rectangle - a1 / 3 * (1 + a2 * (1 + a3))
    return np.asarray(np.fft.ifftn(spectrum).real)


@dataclass(frozen=True)
class StaticGluons:
    """Static gluons at tree level, for an action and the links of static lines."""

    rectangle: float = 0.0
    """Coefficient c1 of rectangles."""
    alphas: tuple[float, ...] = ()
    """Parameters of HYP links along t; empty for plain ones."""

    @classmethod
    def of(cls, header: Mapping[str, str]) -> StaticGluons:
        """Return those of the loops in a table, as its header states the action and the lines."""
        kind = lines_of(header).lower()
        alphas = getattr(TEMPORAL_LINKS[kind], "alphas", ()) if kind else ()
        return cls(action_of(header).rectangle or 0.0, tuple(alphas))

    def propagator(self, path: str, steps: int) -> float:
        """Return G after a number of steps along a path, such as ``"110"``."""
        x, y, z = sorted(steps * int(digit) for digit in path)
        plain = propagator(x, y, z)
        if not self.alphas and not self.rectangle:
            return plain
        return plain + float(
            _difference(self.rectangle, self.alphas)[x % PERIOD, y % PERIOD, z % PERIOD]
        )

    def potential_distance(self, path: str, steps: int) -> float:
        """Return d_I of the potential: 1 / d_I = 4 pi G(d).

        Parameters
        ----------
        path : str
            Direction of the distance, such as ``"110"``.
        steps : int
            Number of steps along it.
        """
        return 1 / (4 * math.pi * self.propagator(path, steps))

    def force_distance(self, path: str, steps: int) -> float:
        """Return r_I of the force between a number of steps along a path and one less.

        With the length a of a step, 1 / r_I^2 = 4 pi [G(r - a) - G(r)] / a.
        """
        length = math.sqrt(sum(int(digit) ** 2 for digit in path))
        slope = (self.propagator(path, steps - 1) - self.propagator(path, steps)) / length
        return 1 / math.sqrt(4 * math.pi * slope)
