"""The halo exchange: halos are copies of the neighbours' slices."""

from __future__ import annotations

import numpy as np

from gauge_mc.fields.field import Field
from tests.domain.conftest import LATTICE


def numbered_slices(components):
    """Return slices whose links are all the number of the slice."""
    x, y, z, t = LATTICE.extents
    numbers = np.arange(t, dtype=np.float32).reshape(t, 1, 1, 1, 1, 1)
    return iter(np.broadcast_to(numbers, (t, z, y, x, 4, components)))


def test_halos_are_copies_of_the_neighbours_slices(device_groups, group):
    field = Field.empty(LATTICE, group, "single", device_groups[3], above=5, below=2)
    field.restore(numbered_slices(field.group.components))
    for depth, above, below in ((1, 1, 1), (2, 2, 2), (3, 3, 2), (None, 5, 2)):
        field.exchange_halo(depth)
        for slab in field.slabs:
            nbytes, layout = slab.slice_bytes, slab.layout
            places = range(layout.slices_in_memory)
            slices = [slab.device.read(slab.buffer, n * nbytes, nbytes) for n in places]
            found = np.stack(slices).view(np.float32)
            assert np.all(found == found[:, :1])
            times = found[:, 0]
            known = np.arange(layout.first, layout.first + layout.slices + above) % LATTICE.t
            assert np.array_equal(times[: known.size], known)
            before = np.arange(layout.first - below, layout.first) % LATTICE.t
            assert np.array_equal(times[-below:], before)
