"""Sums over the sites of a field."""

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums
from tests.conftest import open_by_name


def test_many_partial_sums_are_added_in_their_order():
    """A slice of this lattice has more parts than are loaded at a time, and not a multiple."""
    field = Field.hot(Lattice(12, 12, 18, 2), "su2", "single", open_by_name("cpu-1"), seed=3)
    (slab,) = field.slabs
    sums = SlabSums(slab, 2, 1)
    sums.launch(Kernel("plaquette"), {"links": slab.buffer.address})
    found = sums.by_slice()[0]
    parts = slab.device.partial_sums(slab.layout.extents, slab.variant())
    assert parts > 16
    assert parts % 16
    memory = slab.device.scratch("sums from 0", 0)
    partial = slab.device.read(memory, 0, 8 * 2 * parts * 2).view(np.float64).reshape(2, parts, 2)
    expected = np.zeros((2, 2))
    for part in range(parts):
        expected += partial[:, part]
    assert np.array_equal(found, expected)
