"""A source at one site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.quarks.sources import (
    SOURCES,
    Place,
    Source,
    checked_place,
    fill_point,
    label_of_place,
)
from gauge_mc.quarks.vectors.spinors import SpinorField


@dataclass(frozen=True)
class PointSource(Source):
    """1 at one site and 0 elsewhere."""

    place: Place = (0, 0, 0, 0)
    """x, y, z and t of the site."""

    name: ClassVar[str] = "point"
    summary: ClassVar[str] = "one site"
    parameters: ClassVar[str] = "X,Y,Z,T"

    @classmethod
    def parse(cls, words: Sequence[str], lattice: Lattice) -> PointSource:
        """Return the source at x, y, z, t; see `Source.parse`."""
        return cls(checked_place(words, lattice))

    @property
    def label(self) -> str:
        """Text that identifies the source in tables."""
        return f"{self.name}@{label_of_place(self.place)}"

    def fill(self, vectors: SpinorField, links: Field) -> None:
        """Set the vectors; see `Source.fill`."""
        fill_point(vectors, self.place)


SOURCES.register(PointSource)
