"""Paths of lines in space, on and off axis."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import groupby, permutations, product
from typing import Any

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
