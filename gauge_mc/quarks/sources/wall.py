"""A source on a whole time slice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.quarks.sources import SOURCES, Place, Source, checked_place, unit_vectors
from gauge_mc.quarks.vectors.spinors import SpinorField


@dataclass(frozen=True)
class WallSource(Source):
    """1 at every site of a time slice, without fixing the gauge.

    Products of links that are not closed have the average zero, so that the correlators are those
    of a point times the number of sites, with more noise.
    """

    time: int = 0
    """t of the slice."""

    name: ClassVar[str] = "wall"
    summary: ClassVar[str] = "all sites of a time slice"
    parameters: ClassVar[str] = "T"

    @classmethod
    def parse(cls, words: Sequence[str], lattice: Lattice) -> WallSource:
        """Return the source on time slice t; see `Source.parse`."""
        (t,) = words or ["0"]
        return cls(checked_place(["0", "0", "0", t], lattice)[3])

    @property
    def place(self) -> Place:
        """x, y, z and t from which momenta and times are counted."""
        return (0, 0, 0, self.time)

    @property
    def label(self) -> str:
        """Text that identifies the source in tables."""
        return f"{self.name}@{self.time}"

    def fill(self, vectors: SpinorField, links: Field) -> None:
        """Set the vectors; see `Source.fill`."""
        units = unit_vectors(vectors)[:, None, None, None]
        shape = (len(units), *vectors.field.lattice.extents[2::-1], *units.shape[4:])
        vectors.put_slice(self.time, np.broadcast_to(units, shape))


SOURCES.register(WallSource)
