"""Shapes of closed loops of links: their paths, and the kernels that sum their traces.

What follows from the paths is computed: the numbers of loops, and how far they reach.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, groupby, permutations, product
from typing import Any

import numpy as np

from gauge_mc.devices.kernels import Kernel

Step = tuple[int, int, int]
"""One step of a spatial line, (dx, dy, dz)."""

PATHS = ("100", "110", "210", "111")
"""Directions of spatial lines. Each represents all directions equivalent by cubic symmetry."""

ORDERINGS = {
    "all": "all orders of the links of a step",
    "blocks": "orders in which the links of a direction follow each other",
}
"""Orders of the links of one step, by the value of ``--orderings``. They differ for (2,1,0) only,
where they are xxy, xyx and yxx, or xxy and yxx."""


def bracketed(path: str) -> str:
    """Return a path as vectors are written, such as ``(1,1,0)``."""
    return f"({','.join(path)})"


def steps_along(path: str, r_max: int) -> int:
    """Return the number of steps along a path until a component would exceed `r_max`."""
    return r_max // max(map(int, path))


def equivalent_steps(path: str) -> list[Step]:
    """Return the steps equivalent to a path by cubic symmetry, one of each opposite pair."""
    digits = [int(digit) for digit in path]
    signed = product((1, -1), repeat=3)
    steps = {(s[0] * p[0], s[1] * p[1], s[2] * p[2]) for s in signed for p in permutations(digits)}
    return sorted((step for step in steps if step > (0, 0, 0)), reverse=True)


def shortest_paths(step: Step, orderings: str = next(iter(ORDERINGS))) -> list[tuple[int, ...]]:
    """Return the shortest paths of links along a step, in the given `ORDERINGS` of unit steps.

    The directions 0, 1, 2 are forward along x, y, z, and -1, -2, -3 are backward.
    """
    units = [mu if n > 0 else -1 - mu for mu, n in enumerate(step) for _ in range(abs(n))]
    paths = sorted(set(permutations(units)))
    if orderings == "all":
        return paths
    return [path for path in paths if len([*groupby(path)]) == len(set(path))]


def padded(paths: Sequence[tuple[int, ...]]) -> ctypes.Array[Any]:
    """Return paths in the layout of the argument ``path`` of kernels."""
    longest = ctypes.c_int * 3  # the steps 210 and 111 have paths of three links and 3! orders
    rows = [longest(*path) for path in paths]
    return (longest * 6)(*rows)


Path = tuple[tuple[int, int], ...]
"""Steps of a path: directions 0 to 3, and 1 or -1 for forward or backward."""


@dataclass(frozen=True)
class Loops:
    """All loops of one shape."""

    kernel: Kernel
    """Sum kernel of Re Tr of the loops of each kind, whose only other argument is ``links``."""
    paths: tuple[Path, ...] = field(compare=False)
    """Closed paths from a site; those from all sites are all loops, each of them once."""

    @cached_property
    def kinds(self) -> tuple[int, ...]:
        """Number of loops of each kind per site.

        Loops of one kind have equally many links along t: none in the first kind, which is in
        space, and more in every further one.
        """
        counts = Counter(sum(mu == 3 for mu, _ in path) for path in self.paths)
        return tuple(counts[links] for links in sorted(counts))

    @cached_property
    def depth(self) -> int:
        """Largest distance along an axis between two links of a loop, in links."""
        sites = [np.array([site for _, site in links_along(path)]) for path in self.paths]
        return int(max(np.ptp(one, axis=0).max() for one in sites))


def links_along(path: Path) -> list[tuple[int, tuple[int, ...]]]:
    """Return the directions and the sites of the links along a path from the origin."""
    site, links = [0, 0, 0, 0], []
    for mu, sign in path:
        site[mu] += min(sign, 0)
        links.append((mu, tuple(site)))
        site[mu] += max(sign, 0)
    return links


def _closed(*steps: tuple[int, int]) -> Path:
    """Return the path along steps, and then along their opposites in the same order."""
    return (*steps, *((mu, -sign) for mu, sign in steps))


PLAQUETTES = Loops(
    Kernel("plaquette"), tuple(_closed((mu, 1), (nu, 1)) for mu, nu in combinations(range(4), 2))
)
RECTANGLES = Loops(
    Kernel("rectangles"),
    tuple(_closed((mu, 1), (mu, 1), (nu, 1)) for mu, nu in permutations(range(4), 2)),
)
"""Rectangles of 2x1 links: in space, with the short side along t, and with the long side."""
PARALLELOGRAMS = Loops(
    Kernel("parallelograms"),
    tuple(
        _closed((mu, 1), (nu, a), (rho, b))
        for mu, nu, rho in combinations(range(4), 3)
        for a, b in product((1, -1), repeat=2)
    ),
)
"""Parallelograms mu, nu, rho, -mu, -nu, -rho through corners of a cube."""
