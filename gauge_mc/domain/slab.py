"""Slabs: consecutive time slices of a field in the memory of one device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

from gauge_mc.devices import Buffer, Device, LoadedKernel
from gauge_mc.devices.base import BufferPart, repeated
from gauge_mc.devices.kernels import Choice, Kernel, Variant
from gauge_mc.devices.structures import geometry_structure
from gauge_mc.domain.layout import BOTH_PARITIES, WORD_BYTES, Layout
from gauge_mc.groups import Group

MOST_PACKETS = 2**32
"""Number of packets of a field from which on kernels count them by integers of 64 bits."""

MOST_STATE_WORDS = 20
"""Upper limit for the words per site of a random number generator's state."""


@lru_cache(maxsize=1024)
def work(
    t_begin: int,
    t_step: int,
    slices: int,
    parity: int,
    mu: int = 0,
    first_slot: int = 0,
    slots: int = 0,
    colour: int = 0,
    colours: int = 0,
    rows: tuple[int, int] = (1, 1),
) -> ctypes.Structure:
    """Return the structure ``Work``, which selects the sites and the direction of a launch.

    It is shared by all who ask for the same: copy it before it is changed.

    Parameters
    ----------
    t_begin, t_step, slices : int
        The first time slice in memory, the distance between slices, and their number.
    parity : int
        0, 1 or `BOTH_PARITIES`.
    mu : int
        The direction of the links.
    first_slot, slots : int
        The first slot and the number of slots in every slice (CPU); by default all slots.
    colour, colours : int
        The colour of the sites that are updated and the number of colours, for kernels that
        distinguish them; see ``cuda_src/update/colours.h``.
    rows : tuple of two int
        Distances between rows along y and z, for these kernels, whose slots stand for sites of the
        colour; they divide the extents.
    """
    kind = geometry_structure("Work")
    places = (t_begin, t_step, slices, parity, mu, first_slot, slots)
    made: ctypes.Structure = kind(*places, colour, colours, *rows)
    return made


def nowhere() -> ctypes.Structure:
    """Return the structure ``Work`` of a launch without sites."""
    return work(0, 1, 0, BOTH_PARITIES)


@dataclass(frozen=True)
class Slab:
    """Consecutive time slices of a field on one device, and their halo."""

    group: Group
    """The gauge group."""
    device: Device
    """The device that holds the links."""
    layout: Layout
    """Layout of the slices and of the halo in the buffer."""
    buffer: Buffer
    """The memory that holds the links."""
    components: int | None = None
    """Number of stored reals per link, if they are not those of the group's links."""

    @cached_property
    def slice_bytes(self) -> int:
        """The bytes of a time slice."""
        return self.layout.slice_bytes(self.components or self.group.components)

    @property
    def own_slices(self) -> BufferPart:
        """The memory of the slices of all replicas, without the halo."""
        slices = self.layout.replicas * self.layout.slices
        return BufferPart(self.buffer, 0, slices * self.slice_bytes)

    def whole(
        self, parity: int = BOTH_PARITIES, mu: int = 0, some: range | None = None
    ) -> ctypes.Structure:
        """Return the work on all time slices, without the halo, of all replicas or of `some`."""
        layout = self.layout
        chosen = range(layout.replicas) if some is None else some
        return work(chosen.start * layout.period, 1, len(chosen) * layout.slices, parity, mu)

    def first_slices(self) -> ctypes.Structure:
        """Return the work on the first time slice of every replica."""
        return work(0, self.layout.period, self.layout.replicas, BOTH_PARITIES)

    def replica(self, number: int) -> Slab:
        """Return one of the replicas, as a slab in the same memory."""
        nbytes = self.layout.period * self.slice_bytes
        part = BufferPart(self.buffer, number * nbytes, nbytes)
        return Slab(self.group, self.device, self.layout.of_replica, part)

    def part(self, first: int, count: int) -> Slab:
        """Return consecutive replicas, as a slab in the same memory."""
        nbytes = self.layout.period * self.slice_bytes
        part = BufferPart(self.buffer, first * nbytes, count * nbytes)
        return Slab(self.group, self.device, replace(self.layout, replicas=count), part)

    def boundary(self, parity: int, mu: int) -> ctypes.Structure:
        """Return the work on the first and last slice, which are in the neighbours' halos."""
        return work(0, self.layout.slices - 1, 2, parity, mu)

    def interior(self, parity: int, mu: int) -> ctypes.Structure:
        """Return the work on the slices between the first and the last one."""
        return work(1, 1, self.layout.slices - 2, parity, mu)

    def variant(self, *choices: Choice) -> Variant:
        """Return the variant of kernels for this slab, given all choices except for the group."""
        if choices not in self._variants:
            self._variants[choices] = self._variant(choices)
        return self._variants[choices]

    @cached_property
    def _variants(self) -> dict[tuple[Choice, ...], Variant]:
        return {}

    def _variant(self, choices: tuple[Choice, ...]) -> Variant:
        layout = self.layout
        sites = layout.lattice.slice_sites * layout.slices_in_memory
        largest = max(self.buffer.nbytes, WORD_BYTES * MOST_STATE_WORDS * sites)
        large = bool(layout.packet_bytes) and largest // layout.packet_bytes >= MOST_PACKETS
        chosen = (*self.group.choices, *choices)
        return Variant(layout.precision, chosen, layout.lanes, large, self.device.strict)

    def kernel(self, kernel: Kernel, *choices: Choice) -> LoadedKernel:
        """Load a kernel for this slab, given the choices other than the group."""
        return self.device.kernel(kernel, self.variant(*choices))

    def arguments(
        self, kernel: Kernel, work: ctypes.Structure, *choices: Choice, **values: Any
    ) -> ctypes.Structure:
        """Return the arguments of a kernel that works on this slab; see `Kernel.arguments`."""
        variant = self.variant(*choices)
        return kernel.arguments(variant, geometry=self.layout.geometry, work=work, **values)

    def launch(
        self, kernel: Kernel, work: ctypes.Structure, *choices: Choice, **values: Any
    ) -> None:
        """Run a kernel once on this slab.

        Parameters
        ----------
        kernel : Kernel
            The sum kernel, which its source file declares.
        work : ctypes structure
            The part of the slab to work on.
        *choices : Choice
            The compile-time choices other than the group.
        **values : object
            The kernel's other arguments, by name.
        """
        arguments = self.arguments(kernel, work, *choices, **values)
        self.kernel(kernel, *choices)(repeated([arguments], 1))
