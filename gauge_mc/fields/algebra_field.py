"""Elements of the Lie algebra on the links of a lattice."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from gauge_mc.devices.base import BufferPart
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field_blocks import SlabField

PART = 2**16
"""Number of zeros in bytes that the host sends to set a field to 0."""


class AlgebraField(SlabField):
    """One element of the Lie algebra for every link, such as momenta or forces.

    ``cuda_src/group/algebra.h`` declares how kernels see it, as ``GROUP::AlgebraField``.
    """

    @classmethod
    def like(cls, field: SlabField) -> Self:
        """Return a field with arbitrary content on the slabs of another one, with its halos.

        Raises
        ------
        GaugeError
            If a device has too little memory.
        """
        components = field.group.algebra_components

        def empty(slab: Slab) -> Slab:
            buffer = slab.device.allocate(slab.layout.field_bytes(components))
            return replace(slab, buffer=buffer, components=components)

        slabs = tuple(map(empty, field.slabs))
        kind = field.lattice, field.group, field.precision, field.devices
        return cls(*kind, slabs, field.layouts)

    def clear(self) -> None:
        """Set all elements to 0, in copies of parts that are twice as long every time."""
        for slab in self.slabs:
            buffer, done = slab.buffer, min(slab.buffer.nbytes, PART)
            slab.device.write(buffer, 0, np.zeros(done, np.uint8))
            while done < buffer.nbytes:
                size = min(done, buffer.nbytes - done)
                slab.device.copy(BufferPart(buffer, done, size), BufferPart(buffer, 0, size))
                done += size
