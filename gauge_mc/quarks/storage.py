"""How the numbers of spinor fields and of Dirac operators are stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from gauge_mc.devices.kernels import REAL_BYTES, Choice
from gauge_mc.domain.layout import Layout, split_lanes
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.registry import nearest


@dataclass(frozen=True)
class Storage:
    """A type of stored numbers; ``cuda_src/dirac/storage.h`` declares it.

    Attributes
    ----------
    name : str
        Name on the command line: ``double``, ``single`` or ``half``.
    arithmetic : str
        Precision in which kernels compute, ``single`` or ``double``.
    cpp : str
        Name of the class in C++.
    number_bytes : int
        Bytes of a number.
    norm_bytes : int
        Bytes of the norm that all numbers of a site share.
    rounding : float
        Largest relative rounding error of a number, or error in units of the site's largest one.
    """

    name: str
    arithmetic: str
    cpp: str
    number_bytes: int
    norm_bytes: int
    rounding: float

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this type."""
        return Choice.of("storage", self.cpp, "dirac/storage.h", self.cpp)

    def bytes(self, numbers: int) -> int:
        """Return the bytes of the numbers of a site."""
        return self.number_bytes * numbers + self.norm_bytes

    def unit_bytes(self, numbers: int) -> int:
        """Return the bytes of the numbers of a link, which need no norm."""
        return self.number_bytes * numbers

    def layouts(self, field: Field) -> tuple[Layout, ...]:
        """Return the layouts of a field's sites for the precision of the arithmetic.

        They are those of all slabs of the field; the number of lanes depends on the precision.
        """
        if field.precision == self.arithmetic:
            return field.layouts
        lanes = field.devices.devices[0].lanes(self.arithmetic)
        split = split_lanes(field.lattice, lanes)
        return tuple(replace(one, precision=self.arithmetic, split=split) for one in field.layouts)


STORAGES = {
    one.name: one
    for one in (
        Storage("double", "double", "Reals", REAL_BYTES["double"], 0, 2.0**-53),
        Storage("single", "single", "Reals", REAL_BYTES["single"], 0, 2.0**-24),
        Storage("half", "single", "FixedPoint", 2, 4, 0.5 / 32767),
    )
}
"""All types, by name."""


def storage_of(name: str) -> Storage:
    """Return a type of stored numbers.

    Raises
    ------
    UsageError
        If there is none of this name.
    """
    if name not in STORAGES:
        raise UsageError(f"There is no precision '{name}' of spinors{nearest(name, STORAGES)}")
    return STORAGES[name]
