"""A source on a row of sites along x."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.sources import (
    Position,
    Source,
    checked_place,
    label_of_place,
    unit_vectors,
)
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.field import Field


@dataclass(frozen=True)
class RowSource(Source):
    """1 at all x with the given y, z and t, and 0 elsewhere."""

    place: Position = (0, 0, 0, 0)

    name: ClassVar[str] = "row"
    summary: ClassVar[str] = "a row of sites along x"
    parameters: ClassVar[str] = "Y,Z,T"

    @classmethod
    def parse(cls, words: Sequence[str], lattice: Lattice) -> "RowSource":
        """Return the source on the row at y, z and t."""
        y, z, t = words
        return cls(checked_place(["0", y, z, t], lattice))

    @property
    def label(self) -> str:
        """Text that identifies the source in tables."""
        return f"{self.name}@{label_of_place(self.place[1:])}"

    def fill(self, vectors: SpinorField, links: Field) -> None:
        """Set the vectors of all spins and colours."""
        _, y, z, t = self.place
        units = unit_vectors(vectors)
        shape = (len(units), *vectors.field.lattice.extents[2::-1], *units.shape[1:])
        values = np.zeros(shape, np.complex128)
        values[:, z, y] = units[:, None]
        vectors.put_slice(t, values)
