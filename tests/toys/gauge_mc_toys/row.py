"""A source on a row of sites along x."""

from dataclasses import dataclass

import numpy as np

from gauge_mc.quarks.sources import Source, checked_place, label_of_place, unit_vectors


@dataclass(frozen=True)
class RowSource(Source):
    """1 at all x with the given y, z and t, and 0 elsewhere."""

    place: tuple[int, int, int, int] = (0, 0, 0, 0)

    name = "row"
    summary = "a row of sites along x"
    parameters = "Y,Z,T"

    @classmethod
    def parse(cls, words, lattice):
        y, z, t = words
        return cls(checked_place(["0", y, z, t], lattice))

    @property
    def label(self):
        return f"{self.name}@{label_of_place(self.place[1:])}"

    def fill(self, vectors, links):
        _, y, z, t = self.place
        units = unit_vectors(vectors)
        shape = (len(units), *vectors.field.lattice.extents[2::-1], *units.shape[1:])
        values = np.zeros(shape, np.complex128)
        values[:, z, y] = units[:, None]
        vectors.put_slice(t, values)
