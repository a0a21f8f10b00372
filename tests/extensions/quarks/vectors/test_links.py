"""Links in another precision."""

from __future__ import annotations

import numpy as np

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.vectors.transport import in_precision
from gauge_mc.fields.field import Field
from tests.reference.fields import random_field

LATTICE = Lattice(4, 6, 8, 10)


def test_slabs_and_their_halos(best_device, rng):
    links = random_field(LATTICE.extents, "su3", rng)
    field = Field.from_slices(LATTICE, "su3", links, "single", DeviceGroup((best_device,) * 2))
    copy = in_precision(field, "double")
    through = Field.from_slices(LATTICE, "su3", field.slices(), "double", field.devices)
    through.exchange_halo(None)
    for one, other in zip(copy.slabs, through.slabs, strict=True):
        content = [slab.device.read(slab.buffer, 0, slab.buffer.nbytes) for slab in (one, other)]
        np.testing.assert_array_equal(*content)
