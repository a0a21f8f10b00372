"""A slab: consecutive time slices of a field, in the memory of one device."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from gauge_mc.devices import Buffer, Device, LoadedKernel
from gauge_mc.devices.base import repeated
from gauge_mc.devices.kernels import Choice, Kernel, Variant
from gauge_mc.devices.structures import geometry_structure
from gauge_mc.domain.layout import BOTH_PARITIES, WORD_BYTES, Layout
from gauge_mc.groups import Group

MOST_STATE_WORDS = 20
"""Upper limit for the words of a random number generator's state at a site."""


def work(
    t_begin: int,
    t_step: int,
    slices: int,
    parity: int,
    mu: int = 0,
    first_slot: int = 0,
    slots: int = 0,
) -> ctypes.Structure:
    """Return a structure ``Work``: what a launch works on.

    Parameters
    ----------
    t_begin, t_step, slices : int
        So many time slices in memory from `t_begin` on, `t_step` apart.
    parity : int
        0, 1 or `BOTH_PARITIES`.
    mu : int
        A direction.
    first_slot, slots : int
        A range of slots of every slice (CPU); all by default.
    """
    kind = geometry_structure("Work")
    made: ctypes.Structure = kind(t_begin, t_step, slices, parity, mu, first_slot, slots)
    return made


@dataclass(frozen=True)
class Slab:
    """Consecutive time slices of a field on one device, with a halo.

    Attributes
    ----------
    group : Group
    device : Device
        The device that holds the links.
    layout : Layout
    buffer : Buffer
        The memory of the links.
    """

    group: Group
    device: Device
    layout: Layout
    buffer: Buffer

    @cached_property
    def slice_bytes(self) -> int:
        """The bytes of a time slice."""
        return self.layout.slice_bytes(self.group.components)

    def whole(self, parity: int = BOTH_PARITIES, mu: int = 0) -> ctypes.Structure:
        """Return the work on all of the slab's own time slices."""
        return work(0, 1, self.layout.slices, parity, mu)

    def boundary(self, parity: int, mu: int) -> ctypes.Structure:
        """Return the work on the first and the last slice, which the neighbours' halos copy."""
        return work(0, self.layout.slices - 1, 2, parity, mu)

    def interior(self, parity: int, mu: int) -> ctypes.Structure:
        """Return the work on the slices between the first and the last."""
        return work(1, 1, self.layout.slices - 2, parity, mu)

    def variant(self, *choices: Choice) -> Variant:
        """Return what kernels for this slab are compiled for, with these choices beside the group."""
        layout = self.layout
        sites = layout.lattice.slice_sites * layout.slices_in_memory
        largest = max(self.buffer.nbytes, WORD_BYTES * MOST_STATE_WORDS * sites)
        large = bool(layout.packet_bytes) and largest // layout.packet_bytes >= 2**32
        return Variant(layout.precision, (self.group.choice, *choices), layout.lanes, large)

    def kernel(self, kernel: Kernel, *choices: Choice) -> LoadedKernel:
        """Load a kernel for this slab."""
        return self.device.kernel(kernel, self.variant(*choices))

    def arguments(
        self, kernel: Kernel, work: ctypes.Structure, *choices: Choice, **values: Any
    ) -> ctypes.Structure:
        """Fill the arguments of a kernel that works on this slab; see `Kernel.arguments`."""
        variant = self.variant(*choices)
        return kernel.arguments(variant, geometry=self.layout.geometry, work=work, **values)

    def launch(
        self, kernel: Kernel, work: ctypes.Structure, *choices: Choice, **values: Any
    ) -> None:
        """Run a kernel once on this slab.

        Parameters
        ----------
        kernel : Kernel
        work : ctypes structure
            The part of the slab to work on.
        *choices : Choice
            What the kernel is compiled for besides the group.
        **values : object
            The kernel's other arguments, by name.
        """
        arguments = self.arguments(kernel, work, *choices, **values)
        self.kernel(kernel, *choices)(repeated([arguments], 1))

    def read(self, t: int) -> NDArray[Any]:
        """Return the links of the lattice's time slice `t`, which must be here, as they are stored.

        Returns
        -------
        ndarray, shape (Z, Y, X, 4, components), float32 or float64
            The stored components, as `Group.stored` orders them.
        """
        offset = (t - self.layout.first) * self.slice_bytes
        data = self.device.read(self.buffer, offset, self.slice_bytes).view(self.layout.real)
        return self.layout.unpack_links(data, t, self.group.components)

    def write(self, t: int, links: NDArray[Any]) -> None:
        """Put back what `read` returned."""
        data = self.layout.pack_links(links, t)
        self.device.write(self.buffer, (t - self.layout.first) * self.slice_bytes, data)
