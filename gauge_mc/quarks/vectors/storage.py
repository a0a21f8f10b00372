"""How the numbers of spinor fields and of Dirac operators are stored."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import REAL_BYTES, Choice
from gauge_mc.devices.source import source_folder, structure
from gauge_mc.domain.layout import Layout, split_lanes
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.registry import nearest

ELSEWHERE = source_folder() / "dirac" / "elsewhere.h"
"""The header that declares the structure ``Elsewhere``."""


@dataclass(frozen=True)
class Storage:
    """A type of stored numbers; ``cuda_src/dirac/storage.h`` declares it."""

    name: str
    """Name on the command line: ``double``, ``single`` or ``half``."""
    arithmetic: str
    """Precision in which kernels compute, ``single`` or ``double``."""
    cpp: str
    """Name of the class in C++."""
    number_bytes: int
    """Bytes of a number."""
    norm_bytes: int
    """Bytes of the norm that all numbers of a site share."""
    rounding: float
    """Largest relative rounding error of a number, or error in units of the site's largest one."""

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
        return _layouts(field.layouts, self.arithmetic, lanes)


@cache
def _layouts(layouts: tuple[Layout, ...], precision: str, lanes: int) -> tuple[Layout, ...]:
    """Return layouts for another precision; their tables are computed once."""
    split = split_lanes(layouts[0].lattice, lanes)
    return tuple(replace(one, precision=precision, split=split) for one in layouts)


STORAGES = {
    one.name: one
    for one in (
        Storage("double", "double", "Reals", REAL_BYTES["double"], 0, 2.0**-53),
        Storage("single", "single", "Reals", REAL_BYTES["single"], 0, 2.0**-24),
        Storage("half", "single", "FixedPoint", 2, 4, 0.5 / 32767),
    )
}
"""All types of stored numbers, by name."""


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


@dataclass(frozen=True)
class StoredSlab(Slab):
    """The part of a field with its own type of storage that one device holds, with its halo."""

    bytes_per_slice: int = 0
    """Bytes of a time slice."""

    @cached_property
    def slice_bytes(self) -> int:
        """The bytes of a time slice."""
        return self.bytes_per_slice


def empty_slabs(
    field: Field, layouts: Sequence[Layout], bytes_per_site: float
) -> tuple[StoredSlab, ...]:
    """Return slabs of a field with so many bytes per site, which are zero.

    Raises
    ------
    GaugeError
        If a device has too little memory.
    """
    slabs = []
    for old, layout in zip(field.slabs, layouts[field.devices.first_slab :], strict=False):
        nbytes = round(bytes_per_site * 2 * layout.slots * layout.lanes)
        buffer = old.device.allocate(layout.slices_in_memory * nbytes)
        slabs.append(StoredSlab(field.group, old.device, layout, buffer, None, nbytes))
    return tuple(slabs)


@dataclass(frozen=True)
class StorageMap:
    """Where kernels find the numbers of a field that has another type of storage."""

    number_bytes: int
    """Bytes of a number."""
    layout: Layout
    """The layout on which a kernel works."""
    other: Layout
    """The layout of the field."""

    @cached_property
    def structure(self) -> ctypes.Structure:
        """The structure ``Elsewhere`` for kernels; it is valid as long as this object exists."""
        made: ctypes.Structure = structure("Elsewhere", (ELSEWHERE,))(
            number_bytes=self.number_bytes,
            slots=self.other.slots,
            lanes=self.other.lanes,
            places=None if self._places is None else self._places.ctypes.data,
        )
        return made

    @cached_property
    def _places(self) -> NDArray[np.int32] | None:
        return self.layout.places_in(self.other)


@cache
def elsewhere(number_bytes: int, layout: Layout, other: Layout) -> StorageMap:
    """Return a `StorageMap`, whose table is computed once."""
    return StorageMap(number_bytes, layout, other)
