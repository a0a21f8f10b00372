"""The extents of a lattice, and its boundary conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

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
            whole = all(re.fullmatch(r" *-?[0-9]{1,10} *", word) for word in words)
            extents = [int(word) for word in words] if whole else []
        else:
            extents = list(text)
        if not all(type(one) is int for one in extents):
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
