"""Sources of quark propagators.

Each source has a module of its name, with a subclass of `Source` that is registered in `SOURCES`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.numbers import whole_number
from gauge_mc.quarks.vectors.spinors import SPINS, SpinorField
from gauge_mc.quoting import shortened
from gauge_mc.registry import Registry

Place = tuple[int, int, int, int]
"""x, y, z and t."""


class SourceVectors(ABC):
    """Right-hand sides b of the Dirac equation S^-1 psi = b."""

    smears: ClassVar[bool] = False
    """Whether the source depends on the links of the field."""

    @property
    @abstractmethod
    def place(self) -> Place:
        """Coordinates x, y, z and t from which momenta and times are counted."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Text that identifies the source in tables: its kind, ``@`` and its place."""

    def count(self, colours: int) -> int:
        """Return the number of vectors, given that of colours; by default that of all spins."""
        return SPINS * colours

    @abstractmethod
    def fill(self, vectors: SpinorField, links: Field) -> None:
        """Set `count` vectors, which are zero, to the source.

        Parameters
        ----------
        vectors : SpinorField
            On all sites; the source colour is faster than the source spin.
        links : Field
            Links for sources that depend on them.
        """

    def smear_sink(self, vectors: SpinorField, links: Field) -> None:  # noqa: B027
        """Smear the solutions as the source smears a point, if it does."""


class Source(SourceVectors):
    """A source that the user can name, with one vector for each spin and colour."""

    name: ClassVar[str]
    """Name on the command line, before a colon and the parameters."""
    summary: ClassVar[str]
    """Short description, for help texts."""
    parameters: ClassVar[str]
    """Form of the parameters, for help texts."""

    @classmethod
    @abstractmethod
    def parse(cls, words: Sequence[str], lattice: Lattice) -> Source:
        """Return the source with the given parameters.

        Raises
        ------
        ValueError
            If there are too many or too few parameters, or one is not a number.
        UsageError
            If a value is invalid.
        """


SOURCES: Registry[type[Source]] = Registry("source", __name__, Source)


def parse_source(text: str, lattice: Lattice) -> Source:
    """Return the source that a text such as ``point:0,0,0,0`` describes.

    Semicolons may stand for the commas, for options that are separated by these.

    Raises
    ------
    UsageError
        If the source is unknown, or its parameters are invalid.
    """
    name, _, after = text.strip().partition(":")
    SOURCES.check(name, "--source")
    kind = SOURCES[name]
    words = after.replace(";", ",").split(",") if after else []
    try:
        return kind.parse(words, lattice)
    except ValueError:
        raise UsageError(
            f"--source is '{shortened(text)}'; write {name}:{kind.parameters} with numbers."
        ) from None


def checked_place(words: Sequence[str], lattice: Lattice) -> Place:
    """Return x, y, z and t from text; by default the origin.

    Raises
    ------
    ValueError
        If there are not four numbers.
    UsageError
        If the place is outside the lattice.
    """
    if not words:
        return (0, 0, 0, 0)
    x, y, z, t = map(whole_number, words)
    if not all(0 <= n < extent for n, extent in zip((x, y, z, t), lattice.extents, strict=True)):
        raise UsageError(
            f"The place {x},{y},{z},{t} of the source is outside the lattice {lattice}; count from "
            "0."
        )
    return (x, y, z, t)


def label_of_place(place: Sequence[int]) -> str:
    """Return a place as text for tables, without commas, which would begin the next column."""
    return ";".join(map(str, place))


def unit_vectors(vectors: SpinorField) -> NDArray[np.complex128]:
    """Return the values [vector, spin, colour] of a source of each spin and colour."""
    colours = vectors.field.group.colours
    return np.eye(SPINS * colours, dtype=np.complex128).reshape(-1, SPINS, colours)


def fill_point(vectors: SpinorField, place: Place) -> None:
    """Set 4 N vectors, which are zero, to 1 at one site."""
    x, y, z, t = place
    units = unit_vectors(vectors)
    shape = (len(units), *vectors.field.lattice.extents[2::-1], *units.shape[1:])
    values = np.zeros(shape, np.complex128)
    values[:, z, y, x] = units
    vectors.put_slice(t, values)
