"""A point with Gaussian smearing, for sources and sinks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import BOTH_PARITIES
from gauge_mc.domain.slab import work
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.numbers import number, whole_number
from gauge_mc.quarks.sources import (
    SOURCES,
    Place,
    Source,
    checked_place,
    fill_point,
    label_of_place,
)
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.rounded import square

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
    place: Place = (0, 0, 0, 0)
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
        there = square(self.width, links.devices.strict) / (4 * self.steps)
        other = vectors.like()
        source, target = vectors, other
        copy = [0.0] * (self.steps % 2)  # back to where the vectors were
        for weight in [there] * self.steps + copy:
            smear_step(source, target, links, weight, time)
            source, target = target, source


def smear_step(
    source: SpinorField, target: SpinorField, links: Field, weight: float, time: int | None = None
) -> None:
    """Apply 1 + weight Laplacian to all vectors on one time slice, or on all of them.

    Parameters
    ----------
    source, target : SpinorField
        Vectors on all sites.
    links : Field
        In the precision in which the vectors are stored.
    weight : float
        Factor of the Laplacian.
    time : int, optional
        t of the slice; the target is unchanged on others.
    """
    for n, (slab, there) in enumerate(zip(source.slabs, links.slabs, strict=True)):
        over = slab.whole()
        if time is not None:
            if time not in slab.layout.times:
                continue
            over = work(time - slab.layout.first, 1, 1, BOTH_PARITIES)
        slab.launch(
            GAUSS_STEP,
            over,
            source.storage.choice,
            links=there.buffer.address,
            source=source.structure(slab),
            target=target.structure(target.slabs[n]),
            here=1 - 6 * weight,
            there=weight,
            vectors=source.count,
        )


SOURCES.register(GaussianSource)
