"""The links that transport spinors, and the boundary conditions of these."""

from __future__ import annotations

import cmath
import ctypes
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.devices.source import source_file, structure
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_of
from gauge_mc.domain.slab import Layout, Slab
from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.vectors import Storage, elsewhere, empty_slabs, storage_of
from gauge_mc.fields.field import Field
from gauge_mc.groups import Group, special_unitary
from gauge_mc.registry import in_words


def in_precision(field: Field, precision: str) -> Field:
    """Return a field with the same links, without the detour through the memory of the host."""
    if field.precision == precision:
        return field
    copy = Field.empty(field.lattice, field.group.name, precision, field.devices)
    convert_links(field, copy.slabs, storage_of(precision), FEW_REALS)
    copy.exchange_halo(None)
    return copy


CONVERT_LINKS = Kernel("convert_links")

TRANSPORT = source_file("dirac/transport.h")
"""The header that declares the structure ``Transport``."""

UNIT_PHASES = (1.0,) * 4, (0.0,) * 4, 0
"""Members of ``Transport`` for links without boundary phases: Re, Im and `Boundary.bits`."""


@dataclass(frozen=True)
class Reals:
    """A form in which kernels read links, such as all entries; a C++ header declares it."""

    cpp: str
    """Name of the class in C++."""
    header: str
    """The header that declares it."""
    count: Callable[[Group], int]
    """Number of reals of a link, given the group; 0 if the group does not have the form."""
    is_stored: bool = False
    """Whether the reals are those that the group stores."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection."""
        return Choice.of("transport", self.cpp, self.header, self.cpp)

    def numbers(self, group: Group) -> int:
        """Return the number of reals of a link."""
        return self.count(group)


FEW_REALS = Reals("FewReals", "dirac/reals.h", lambda group: group.components, True)
"""Links as the reals that the group stores: 12 for SU(3), 4 for SU(2)."""
ALL_REALS = Reals("AllReals", "dirac/reals.h", lambda group: 2 * group.colours**2)
"""Links as all entries of their matrices: 18 for SU(3), 8 for SU(2)."""
EIGHT_REALS = Reals(
    "EightReals", "dirac/eight_reals.h", lambda group: 8 if group.name == special_unitary(3) else 0
)
"""Links of SU(3) as 8 reals."""


def forms_of(group: Group) -> dict[int, Reals]:
    """Return the forms of the links of a group by their number of reals, the usual one first."""
    forms = (FEW_REALS, ALL_REALS, EIGHT_REALS)
    return {form.numbers(group): form for form in forms if form.numbers(group)}


def reals_of(number: int | None, group: Group) -> Reals:
    """Return the form of links with this number of reals, by default that of the group."""
    forms = forms_of(group)
    if number is None:
        return FEW_REALS
    if number not in forms:
        words = in_words(map(str, sorted(forms)), "or")
        raise UsageError(
            f"A link of {group.label} cannot be stored as {number} reals; choose {words}."
        )
    return forms[number]


@dataclass(frozen=True)
class VectorsPerThread:
    """Number of vectors that one thread treats together."""

    vectors: int
    """Their number."""
    launch_bounds: tuple[int, int] | None = None
    """Threads per block and minimum number of resident blocks per multiprocessor of a GPU."""
    threads: int = 1
    """Largest number of threads of a block that share a site, each with vectors of its own."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection."""
        shared = self.threads > 1
        name = f"{self.vectors} vector{'s' * (self.vectors > 1)}{' of several' * shared}"
        cpp, more = str(self.vectors), {"SHARED": int(shared)}
        selected = Choice.of("vectors", name, "dirac/vectors.h", cpp, **more)
        return replace(selected, launch_bounds=self.launch_bounds)

    def shares(self, vectors: int, sites: int) -> tuple[int, int]:
        """Return how many threads of a block, and how many blocks, share the vectors of a site."""
        if self.threads == 1:
            return 1, 1
        return shares_of(vectors // self.vectors, sites, self.threads)


LEAST_THREADS = 2**18
"""Number of threads of a launch below which further blocks share the vectors of a site."""


def shares_of(parts: int, sites: int, most: int) -> tuple[int, int]:
    """Return how many threads of a block, and how many blocks, share the work on a site.

    Both divide the number of parts, so that all threads have equally much to do.
    """
    threads = max(n for n in range(1, min(parts, most) + 1) if parts % n == 0)
    quotient = parts // threads
    lacking = min(quotient, -(-LEAST_THREADS // (sites * threads)))
    return threads, next(n for n in range(lacking, quotient + 1) if quotient % n == 0)


LINKS_ALONE = VectorsPerThread(1).choice
"""The choice for kernels that treat links, but no vectors."""

ANTIPERIODIC = -1
"""Boundary condition in t by default, as a system of fermions at a finite temperature has it."""

Phases = complex | Sequence[complex]
"""The phase in psi(x + L_t) = phase psi(x), or four phases in x, y, z and t."""

MODULUS_ERROR = 1e-12
"""Largest deviation of the modulus of a boundary phase from 1."""


@dataclass(frozen=True)
class Boundary:
    """Boundary conditions psi(x + L_mu) = phase_mu psi(x) of spinors."""

    phases: tuple[complex, complex, complex, complex]
    """The phases exp(i theta_mu) in the directions x, y, z and t."""

    @classmethod
    def of(cls, boundary: Phases) -> Boundary:
        """Return the boundary conditions given by the phase in t alone, or by all four phases."""
        values = [*boundary] if isinstance(boundary, Iterable) else [1, 1, 1, boundary]
        phases = [complex(x) for x in values]
        if len(phases) != 4 or not all(abs(abs(phase) - 1) < MODULUS_ERROR for phase in phases):
            raise UsageError(
                f"The boundary condition is {boundary}; give the phase in t, such as -1 for "
                "antiperiodic spinors, or four phases in x, y, z and t, all of modulus 1."
            )
        x, y, z, t = phases
        return cls((x, y, z, t))

    @property
    def bits(self) -> int:
        """Bit mu is set if the phase in direction mu is not 1."""
        return sum(1 << mu for mu, phase in enumerate(self.phases) if phase != 1)

    def __str__(self) -> str:
        angles = (cmath.phase(phase) / cmath.pi for phase in self.phases)
        return ", ".join(f"exp({angle:.6g} pi i)" if angle else "1" for angle in angles)


def convert_links(field: Field, slabs: Sequence[Slab], storage: Storage, reals: Reals) -> None:
    """Copy the links of a field to slabs with another storage or form; halos are not updated."""
    for slab, old in zip(slabs, field.slabs, strict=True):
        address = slab.buffer.address
        slab.launch(
            CONVERT_LINKS,
            slab.whole(),
            storage.choice,
            reals.choice,
            LINKS_ALONE,
            target=structure("Transport", (TRANSPORT,))(address, *UNIT_PHASES, None),
            links=old.buffer.address,
            elsewhere=elsewhere(old.layout.real.itemsize, slab.layout, old.layout).structure,
        )


class Transport:
    """The links of a field for kernels that transport spinors.

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. They may be copied: call `refresh` after they
        have changed.
    storage : Storage
        Type of the stored numbers.
    reals : Reals
        Form of the links, which decides how many numbers are read.
    boundary : Boundary
        Boundary conditions of the spinors.
    """

    def __init__(self, field: Field, storage: Storage, reals: Reals, boundary: Boundary) -> None:
        self.storage, self.reals, self.boundary = storage, reals, boundary
        identical = storage.norm_bytes == 0 and storage.arithmetic == field.precision
        self._field, self._slabs = field, field.slabs
        self._copies = not (identical and reals.is_stored)
        if self._copies:
            nbytes = 4 * storage.unit_bytes(reals.numbers(field.group))
            self._slabs = empty_slabs(field, storage.layouts(field), nbytes)
        self.refresh()
        self._lanes = [self._lane_phases(slab.layout) for slab in self._slabs]

    def structure(self, slab: int) -> ctypes.Structure:
        """Return the structure ``Transport`` for a slab; it is valid as long as this object is."""
        phases = self.boundary.phases
        transport: ctypes.Structure = structure("Transport", (TRANSPORT,))(
            links=self._slabs[slab].buffer.address,
            re=tuple(phase.real for phase in phases),
            im=tuple(phase.imag for phase in phases),
            phases=self.boundary.bits,
            lanes=self._lanes[slab].ctypes.data,
        )
        return transport

    def refresh(self) -> None:
        """Take over the links of the field, which have changed."""
        if not self._copies:
            return
        field, slabs = self._field, self._slabs
        convert_links(field, slabs, self.storage, self.reals)
        if len(field.layouts) > 1:
            halo = HaloExchange(field.devices, slabs, transfers_of(self.storage.layouts(field), 1))
            halo.post(SliceRange(0, slabs[0].slice_bytes))
            halo.wait()

    def _lane_phases(self, layout: Layout) -> NDArray[Any]:
        """Return the phases of a step across an edge: [mu][forward, backward][re, im][lanes]."""
        table = np.zeros((4, 2, 2, layout.lanes), layout.real)
        for mu, phase in enumerate(self.boundary.phases):
            for side in range(2):
                outside = layout.lanes_at_boundary(mu, forward=side == 0)
                table[mu, side, 0] = np.where(outside, phase.real, 1)
                table[mu, side, 1] = np.where(outside, phase.imag, 0)
        return table
