"""Temporal links that are the sum of their staples, compared with NumPy."""

import numpy as np

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.temporal_links import TEMPORAL_LINKS
from tests.reference import fields as reference
from tests.reference.smearing import project_maximal


def test_only_temporal_links_are_replaced(rng):
    """In two slabs, on unequal extents."""
    lattice, devices = Lattice(4, 6, 8, 4), open_device_group("cpu:2")
    links = reference.random_field(lattice.extents, "su3", rng)
    field = Field.from_slices(lattice, "su3", links, "double", devices)
    found = Field.empty(lattice, "su3", "double", devices)
    TEMPORAL_LINKS["six-staples"]()(field, found)
    expected, staples = links.copy(), 0
    along = links[..., 3, :, :]
    for nu in range(3):
        side = links[..., nu, :, :]
        staples = staples + side @ reference.shift(along, nu) @ reference.dagger(
            reference.shift(side, 3)
        )
        below = reference.dagger(side) @ along @ reference.shift(side, 3)
        staples = staples + reference.shift(below, nu, -1)
    expected[..., 3, :, :] = project_maximal(staples)
    np.testing.assert_allclose(found.to_numpy(), expected, atol=1e-11)
