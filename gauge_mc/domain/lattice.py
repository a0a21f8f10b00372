"""The extents of a lattice, and its boundary conditions."""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from itertools import combinations, groupby, permutations, product
from typing import Any, ClassVar

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.errors import UnsupportedError, UsageError

MAX_SITES = 2**32
"""Number of sites that is too large by one: they are counted by 32-bit integers."""


class BoundaryCondition(Enum):
    """Boundary condition of a lattice in one direction; the values are the names in files."""

    PERIODIC = "periodic"
    """The last sites are followed by the first ones."""


@dataclass(frozen=True)
class Lattice:
    """A periodic hypercubic lattice of ``x * y * z * t`` sites.

    Parameters
    ----------
    x, y, z, t : int
        Extents in lattice units. They must be even and at least 2, so that the checkerboard of
        even and odd sites is periodic.

    Raises
    ------
    UsageError
        If an extent is odd or below 2, or the lattice has 2**32 or more sites.
    """

    x: int
    y: int
    z: int
    t: int

    boundaries: ClassVar[tuple[BoundaryCondition, ...]] = (BoundaryCondition.PERIODIC,) * 4
    """The boundary conditions in x, y, z and t, the same for all lattices today."""

    def __post_init__(self) -> None:
        for name, extent in zip("xyzt", self.extents, strict=True):
            self._check_extent(name, extent)
        if self.sites >= MAX_SITES:
            raise UsageError(
                f"The lattice {self} has {self.sites} sites; choose one of fewer than {MAX_SITES} "
                "(2^32) sites."
            )

    def _check_extent(self, name: str, extent: int) -> None:
        """Refuse an extent that is odd or below 2, given the name of its direction."""
        if extent < 2 or extent % 2:
            raise UsageError(
                f"The extent in {name} is {extent}: the checkerboard update needs even "
                f"extents of at least 2, for example {max(2, extent + extent % 2)}."
            )

    @classmethod
    def parse(cls, text: str | Sequence[int]) -> Lattice:
        """Return the lattice given as ``XxYxZxT``, such as ``24x24x24x32``.

        A single number sets all four extents. In Python the extents are also given as numbers.

        Raises
        ------
        UsageError
            If `text` does not have this form or an extent is not allowed.
        """
        if isinstance(text, str):
            words = text.lower().split("x")
            integers = all(re.fullmatch(r" *-?[0-9]{1,10} *", word) for word in words)
            extents = [int(word) for word in words] if integers else []
        else:
            extents = list(text)
        if not all(type(extent) is int for extent in extents):
            extents = []
        if len(extents) == 1:
            extents *= 4
        if len(extents) != 4:
            raise UsageError(
                f"The lattice '{text}' does not have the form XxYxZxT, for example 24x24x24x32."
            )
        return cls(*extents)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """The extents (x, y, z, t)."""
        return (self.x, self.y, self.z, self.t)

    @property
    def slice_sites(self) -> int:
        """The number of sites per time slice."""
        return self.x * self.y * self.z

    @property
    def sites(self) -> int:
        """The number of sites."""
        return self.x * self.y * self.z * self.t

    @property
    def links(self) -> int:
        """The number of links, four per site."""
        return 4 * self.sites

    def __str__(self) -> str:
        return "x".join(str(extent) for extent in self.extents)


@dataclass(frozen=True)
class OddLattice(Lattice):
    """A periodic lattice with odd extents, whose links can be read and written, but not updated.

    Its sites have no checkerboard, so that devices cannot store its links.

    Raises
    ------
    UsageError
        If an extent is below 1, or the lattice has 2**32 or more sites.
    """

    def _check_extent(self, name: str, extent: int) -> None:
        """Refuse an extent below 1, given the name of its direction."""
        if extent < 1:
            raise UsageError(f"The extent in {name} is {extent}: choose at least 1.")

    @property
    def copies(self) -> Lattice:
        """The lattice of periodic copies: two along every odd direction, one along the others."""
        return Lattice(
            *(extent * count for extent, count in zip(self.extents, self.counts, strict=True))
        )

    @property
    def counts(self) -> tuple[int, int, int, int]:
        """The numbers of copies along x, y, z and t."""
        x, y, z, t = (1 + extent % 2 for extent in self.extents)
        return x, y, z, t


def odd_extents(lattice: Lattice) -> UnsupportedError:
    """Return the error for odd extents where a device would store the links."""
    return UnsupportedError(
        f"The lattice {lattice} has odd extents, on which updates and most measurements are not "
        "supported: files of such links can be checked, converted and read as arrays, and averages "
        "over closed loops can be measured on the files."
    )


def any_lattice(text: str | Sequence[int]) -> Lattice:
    """Return the lattice given as for `Lattice.parse`, an `OddLattice` if an extent is odd."""
    try:
        return Lattice.parse(text)
    except UsageError:
        return OddLattice.parse(text)


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
        return int(max(np.ptp(site, axis=0).max() for site in sites))


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
