"""The extents of a lattice, and its boundary conditions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from gauge_mc.errors import UsageError

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
            if extent < 2 or extent % 2:
                raise UsageError(
                    f"The extent in {name} is {extent}: the checkerboard update needs even "
                    f"extents of at least 2, for example {max(2, extent + extent % 2)}."
                )
        if self.sites >= MAX_SITES:
            raise UsageError(
                f"The lattice {self} has {self.sites} sites; choose one of fewer than {MAX_SITES} "
                "(2^32) sites."
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
