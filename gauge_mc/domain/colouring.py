"""Colourings: which links of one direction are updated simultaneously.

A colouring is a class in a C++ header, which declares its numbers (``cuda_src/update/colours.h``).
The loops of an action choose one; everything else that an update needs to know about them follows
from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gauge_mc.devices.kernels import Choice
from gauge_mc.devices.source import constants
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.loops import PARALLELOGRAMS, PLAQUETTES, RECTANGLES, Loops


@dataclass(frozen=True)
class Colouring:
    """A colouring of the sites, for actions whose loops reach at most `depth` links."""

    cpp: str
    """Name of the class in C++."""
    header: str | Path
    """C++ header of the class, relative to ``cuda_src`` or absolute."""
    loops: tuple[Loops, ...] = ()
    """Loops of which none contains two links that are updated simultaneously."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of the colouring."""
        return Choice.of("colouring", "", self.header, self.cpp)

    @property
    def depth(self) -> int:
        """Largest distance between two links of a loop that the colouring allows, in links."""
        return self._number("DEPTH")

    @property
    def rows(self) -> tuple[int, int] | None:
        """Distances along y and z between the rows of sites that a launch visits.

        None if a launch visits every site and tests its colour.
        """
        y, z = self._number("ROWS_Y"), self._number("ROWS_Z")
        return (y, z) if y and z else None

    def colours(self, lattice: Lattice) -> int:
        """Return the number of colours on a lattice; 0 if parities are enough."""
        others = any(n % 4 for n in lattice.extents)
        return self._number("OTHER_COLOURS" if others else "COLOURS")

    def _number(self, name: str) -> int:
        return constants(self.choice.header)[name]


PARITIES = Colouring("Parities", "update/parities.h", (PLAQUETTES,))
"""The colouring for which even and odd sites are enough."""

ROWS = Colouring("Rows", "update/rows.h", (PLAQUETTES, RECTANGLES))
CUBES = Colouring("Cubes", "update/cubes.h", (PLAQUETTES, RECTANGLES, PARALLELOGRAMS))

COLOURINGS = (PARITIES, ROWS, CUBES)
"""The colourings, those with the fewest colours first."""
