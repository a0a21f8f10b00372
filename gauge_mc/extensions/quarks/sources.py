"""Sources of quark propagators.

Each source is a subclass of `Source` that is registered in `SOURCES`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import BOTH_PARITIES, work
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.vectors import SPINS, Complex, SpinorField
from gauge_mc.fields.field import Field
from gauge_mc.quoting import number, shortened, square, whole_number
from gauge_mc.registry import Registry

Position = tuple[int, int, int, int]
"""x, y, z and t."""


class SourceVectors(ABC):
    """Right-hand sides b of the Dirac equation S^-1 psi = b."""

    smears: ClassVar[bool] = False
    """Whether the source depends on the links of the field."""

    @property
    @abstractmethod
    def place(self) -> Position:
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


def checked_place(words: Sequence[str], lattice: Lattice) -> Position:
    """Return x, y, z and t from text; by default the origin."""
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


def unit_vectors(vectors: SpinorField) -> Complex:
    """Return the values [vector, spin, colour] of a source of each spin and colour."""
    colours = vectors.field.group.colours
    return np.eye(SPINS * colours, dtype=np.complex128).reshape(-1, SPINS, colours)


def fill_point(vectors: SpinorField, place: Position) -> None:
    """Set 4 N vectors, which are zero, to 1 at one site."""
    x, y, z, t = place
    units = unit_vectors(vectors)
    shape = (len(units), *vectors.field.lattice.extents[2::-1], *units.shape[1:])
    values = np.zeros(shape, np.complex128)
    values[:, z, y, x] = units
    vectors.put_slice(t, values)


@dataclass(frozen=True)
class PointSource(Source):
    """1 at one site and 0 elsewhere."""

    place: Position = (0, 0, 0, 0)
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
    def place(self) -> Position:
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


GAUSS_STEP = Kernel("gauss_step")

MOST_STEPS = 10_000
"""Largest number of steps, to catch typing errors."""


@dataclass(frozen=True)
class GaussianSource(Source):
    """(1 + width^2 Laplacian / (4 steps))^steps on a point, which tends to exp(-r^2 / width^2).

    The Laplacian is the covariant one in space (S. Guesken et al., Phys. Lett. B 227 (1989) 266).
    The links are those of the field or smeared ones.

    Raises
    ------
    UsageError
        If the width is not positive, or there are too few or too many steps.
    """

    width: float
    """Width of the Gaussian in lattice units."""
    steps: int
    """Number of steps, larger than 1.5 width^2."""
    place: Position = (0, 0, 0, 0)
    """x, y, z and t of the point."""

    name: ClassVar[str] = "gauss"
    summary: ClassVar[str] = "one site with Gaussian smearing"
    parameters: ClassVar[str] = "WIDTH,STEPS[,X,Y,Z,T]"
    smears: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not 0 < self.width <= MOST_STEPS:
            raise UsageError(
                f"The width of the source is {self.width:g}; give a positive number of at most "
                f"{MOST_STEPS}."
            )
        least = math.floor(1.5 * self.width**2) + 1  # or else the shortest waves grow
        if not least <= self.steps <= MOST_STEPS:
            raise UsageError(
                f"A source of width {self.width:g} is smeared in {self.steps} steps; choose from "
                f"{least} to {MOST_STEPS}."
            )

    @classmethod
    def parse(cls, words: Sequence[str], lattice: Lattice) -> GaussianSource:
        """Return the source with a width, a number of steps and a place; see `Source.parse`."""
        width, steps, *rest = words
        return cls(number(width), whole_number(steps), checked_place(rest, lattice))

    @property
    def label(self) -> str:
        """Text that identifies the source in tables."""
        return f"{self.name}:{self.width:g};{self.steps}@{label_of_place(self.place)}"

    def fill(self, vectors: SpinorField, links: Field) -> None:
        """Set the vectors; see `Source.fill`."""
        fill_point(vectors, self.place)
        self._smear(vectors, links, self.place[3])

    def smear_sink(self, vectors: SpinorField, links: Field) -> None:
        """Smear vectors on all time slices; see `Source.smear_sink`."""
        self._smear(vectors, links, None)

    def _smear(self, vectors: SpinorField, links: Field, time: int | None) -> None:
        """Smear vectors on one time slice, or on all of them."""
        strength = square(self.width, links.devices.strict) / (4 * self.steps)
        source, target = vectors, vectors.like()
        copy = [0.0] * (self.steps % 2)  # back to where the vectors were
        for weight in [strength] * self.steps + copy:
            smear_step(source, target, links, weight, time)
            source, target = target, source


def smear_step(
    source: SpinorField, target: SpinorField, links: Field, weight: float, time: int | None = None
) -> None:
    """Apply 1 + weight Laplacian to all vectors on one time slice, or on all of them."""
    for n, (slab, link_slab) in enumerate(zip(source.slabs, links.slabs, strict=True)):
        over = slab.whole()
        if time is not None:
            if time not in slab.layout.times:
                continue
            over = work(time - slab.layout.first, 1, 1, BOTH_PARITIES)
        slab.launch(
            GAUSS_STEP,
            over,
            source.storage.choice,
            links=link_slab.buffer.address,
            source=source.structure(slab),
            target=target.structure(target.slabs[n]),
            here=1 - 6 * weight,
            there=weight,
            vectors=source.count,
        )


SOURCES.register(GaussianSource)
