"""What is measured on fields, as records of tables: averages, and Wilson loops, a record each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from gauge_mc.field import Field
from gauge_mc.formats.table import Value
from gauge_mc.lattice import Lattice
from gauge_mc.observables.plaquette import plaquette
from gauge_mc.observables.polyakov import polyakov_loop
from gauge_mc.observables.wilson import PATHS, WilsonLoops, check_extents, steps_along
from gauge_mc.parameters import ITERATIONS, LOOP_EXTENT
from gauge_mc.smearing import Ape

Record = tuple[Value, ...]

Measurer = Callable[[Field], list[Record]]
"""Gives the records of a field. It may hold memory of the device that the field is on."""


class Observable(Protocol):
    """Something to measure on fields of a lattice.

    Attributes
    ----------
    columns : tuple of str
        Names of the values in a record, without the number of the configuration.
    header : dict of str to str
        What the table is to say of it: name, normalisation, parameters.
    records : int
        Records of one field.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...  # noqa: D102

    @property
    def header(self) -> Mapping[str, str]: ...  # noqa: D102

    @property
    def records(self) -> int: ...  # noqa: D102

    def measurer(self, like: Field) -> Measurer:
        """Return what measures on fields like this one, on the same device."""


@dataclass(frozen=True)
class Average:
    """An average over the lattice, one record.

    Attributes
    ----------
    name : str
    columns : tuple of str
        The names of the numbers in a record.
    normalisation : str
        In words, for the header of the table.
    measure : callable
        From a field to the numbers.
    """

    name: str
    columns: tuple[str, ...]
    normalisation: str
    measure: Callable[[Field], tuple[float, ...]]
    records: ClassVar[int] = 1

    @property
    def header(self) -> dict[str, str]:
        """What the table is to say of it."""
        return {
            "observable": self.name,
            "normalisation": self.normalisation,
            "units": "dimensionless",
        }

    def measurer(self, like: Field) -> Measurer:
        """Return what measures on fields."""
        return lambda field: [self.measure(field)]


def _plaquette(field: Field) -> tuple[float, ...]:
    found = plaquette(field)
    return (found.mean, found.spatial, found.temporal)


def _polyakov(field: Field) -> tuple[float, ...]:
    found = polyakov_loop(field)
    return (found.real, found.imag, abs(found))


AVERAGES = {
    average.name: average
    for average in (
        Average(
            "plaquette",
            ("plaquette", "spatial", "temporal"),
            "Re Tr / N averaged over the lattice: all, space-space and space-time planes",
            _plaquette,
        ),
        Average(
            "polyakov",
            ("re", "im", "abs"),
            "Tr / N averaged over space: real part, imaginary part, modulus of the average",
            _polyakov,
        ),
    )
}


@dataclass(frozen=True)
class Loops:
    """Wilson loops, a record each.

    Attributes
    ----------
    lattice : Lattice
    r_max, t_max, paths, smearing, levels
        As for `gauge_mc.observables.wilson.WilsonLoops`.

    Raises
    ------
    UsageError
        If an extent or a path is out of bounds.
    """

    lattice: Lattice
    r_max: int
    t_max: int
    paths: tuple[str, ...]
    smearing: Ape
    levels: tuple[int, ...]
    columns: ClassVar[tuple[str, ...]] = ("smearing", "path", "r", "t", "loop")

    def __post_init__(self) -> None:
        check_extents(self.lattice, self.r_max, self.t_max, self.paths)

    @classmethod
    def usual(cls, lattice: Lattice) -> Loops:
        """On axis, up to `LOOP_EXTENT` or half the lattice, after `ITERATIONS` of smearing."""
        x, y, z, t = (min(LOOP_EXTENT, extent // 2) for extent in lattice.extents)
        return cls(lattice, min(x, y, z), t, PATHS[:1], Ape(), (ITERATIONS,))

    @property
    def records(self) -> int:
        """Records of one field."""
        steps = sum(steps_along(path, self.r_max) for path in self.paths)
        return len(self.levels) * self.t_max * steps

    @property
    def header(self) -> dict[str, str]:
        """What the table is to say of it."""
        return {
            "observable": "wilson_loops",
            "normalisation": "Re Tr / N averaged over sites and equivalent directions",
            "units": "r in steps along path, such as (1,1,0); t in lattice units",
            "smearing": str(self.smearing) if max(self.levels) else "none",
            "iterations": ",".join(map(str, self.levels)),
            "paths": ",".join(self.paths),
            "r_max": str(self.r_max),
            "t_max": str(self.t_max),
        }

    def measurer(self, like: Field) -> Measurer:
        """Return what measures on fields like this one, with the memory of two more."""
        measure = WilsonLoops(like, self.r_max, self.t_max, self.paths, self.smearing, self.levels)
        return lambda field: [
            (level, path, r + 1, t + 1, float(loop))
            for level, path, loops in measure(field)
            for (r, t), loop in np.ndenumerate(loops)
        ]


def observable_of(name: str, lattice: Lattice) -> Observable:
    """What ``plaquette``, ``polyakov`` or ``wilson-loops`` means if nothing else is said."""
    return Loops.usual(lattice) if name == "wilson-loops" else AVERAGES[name]
