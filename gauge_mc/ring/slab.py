"""A slab: consecutive time slices of a field, in the memory of one device."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from gauge_mc.devices import Buffer, Device, Kernel
from gauge_mc.devices.source import DEFAULT_LUXURY, Variant
from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.layout import BOTH_PARITIES, COMPONENTS, Layout

MOST_STATE_BYTES = 80
"""Of a random number generator, a site."""


@dataclass(frozen=True)
class Slab:
    """Consecutive time slices of a field on one device, with copies of its neighbours' slices.

    Attributes
    ----------
    group : str
        ``su2`` or ``su3``.
    device : Device
        Where the links are.
    layout : Layout
        How they lie there.
    buffer : Buffer
        The memory.
    """

    group: str
    device: Device
    layout: Layout
    buffer: Buffer

    @property
    def components(self) -> int:
        """Stored reals of a link."""
        return COMPONENTS[self.group]

    @property
    def geometry(self) -> GeometryStruct:
        """The kernels' geometry."""
        return self.layout.geometry

    @cached_property
    def slice_bytes(self) -> int:
        """Bytes of a time slice."""
        return self.layout.slice_bytes(self.components)

    def work(self, parity: int = BOTH_PARITIES, mu: int = 0) -> WorkStruct:
        """A launch on all its time slices."""
        return WorkStruct(0, 1, self.layout.slices, parity, mu)

    def edges(self, parity: int, mu: int) -> WorkStruct:
        """A launch on the first and the last slice, which its neighbours wait for."""
        return WorkStruct(0, self.layout.slices - 1, 2, parity, mu)

    def interior(self, parity: int, mu: int) -> WorkStruct:
        """A launch on the slices between."""
        return WorkStruct(1, 1, self.layout.slices - 2, parity, mu)

    def variant(self, random: str = "philox", luxury: int = DEFAULT_LUXURY) -> Variant:
        """What kernels for this slab are compiled for."""
        layout = self.layout
        states = MOST_STATE_BYTES * 2 * layout.slots * layout.lanes * layout.stored
        largest = max(self.buffer.nbytes, states)
        large = bool(layout.group_bytes) and largest // layout.group_bytes >= 2**32
        return Variant(self.group, layout.precision, random, luxury, layout.lanes, large)

    def kernel(self, name: str, random: str = "philox", luxury: int = DEFAULT_LUXURY) -> Kernel:
        """A kernel for this slab's group, precision and lanes."""
        return self.device.kernel(name, self.variant(random, luxury))

    def stored(self, t: int) -> NDArray[Any]:
        """The links of the lattice's time slice `t`, which must be here, as they are stored.

        Returns
        -------
        ndarray, shape (Z, Y, X, 4, components), float32 or float64
            The components: (a0, a1, a2, a3) for SU(2); real and imaginary parts of the first
            two rows for SU(3).
        """
        offset = (t - self.layout.first) * self.slice_bytes
        data = self.device.read(self.buffer, offset, self.slice_bytes).view(self.layout.real)
        return self.layout.links_of(data, t, self.components)

    def restore(self, t: int, links: NDArray[Any]) -> None:
        """Put back what `stored` gave."""
        data = self.layout.stored_slice(links, t)
        self.device.write(self.buffer, (t - self.layout.first) * self.slice_bytes, data)
