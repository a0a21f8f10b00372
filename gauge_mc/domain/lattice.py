"""The lattice: four even extents and nothing else."""

from __future__ import annotations

from dataclasses import dataclass

from gauge_mc.errors import UsageError

MAX_SITES = 2**32
"""Sites are numbered by 32-bit integers, in memory and in the counters of random numbers."""


@dataclass(frozen=True)
class Lattice:
    """A periodic hypercubic lattice of ``x * y * z * t`` sites.

    Parameters
    ----------
    x, y, z, t : int
        Extents in lattice units. They must be even and at least 2, so that a checkerboard
        closes periodically.

    Raises
    ------
    UsageError
        If an extent is odd or below 2, or there are 2**32 sites or more.
    """

    x: int
    y: int
    z: int
    t: int

    def __post_init__(self) -> None:
        for name, extent in zip("xyzt", self.extents, strict=True):
            if extent < 2 or extent % 2:
                raise UsageError(
                    f"The extent in {name} is {extent}: the checkerboard update needs even "
                    f"extents of at least 2, for example {max(2, extent + extent % 2)}."
                )
        if self.sites >= MAX_SITES:
            raise UsageError(f"The lattice {self} has {self.sites} sites; the limit is 2^32.")

    @classmethod
    def parse(cls, text: str) -> Lattice:
        """Read ``XxYxZxT``, such as ``24x24x24x32``. A single number stands for all four extents.

        Raises
        ------
        UsageError
            If `text` is not of that form, or the extents are not allowed.
        """
        words = text.lower().split("x")
        try:
            extents = [int(word) for word in words]
        except ValueError:
            extents = []
        if len(extents) == 1:
            extents *= 4
        if len(extents) != 4:
            raise UsageError(
                f"The lattice '{text}' is not of the form XxYxZxT, for example 24x24x24x32."
            )
        return cls(*extents)

    @property
    def extents(self) -> tuple[int, int, int, int]:
        """The extents (x, y, z, t)."""
        return (self.x, self.y, self.z, self.t)

    @property
    def slice_sites(self) -> int:
        """The number of sites of a time slice."""
        return self.x * self.y * self.z

    @property
    def sites(self) -> int:
        """The number of sites."""
        return self.x * self.y * self.z * self.t

    @property
    def links(self) -> int:
        """The number of links, which is four a site."""
        return 4 * self.sites

    def __str__(self) -> str:
        return "x".join(str(extent) for extent in self.extents)
