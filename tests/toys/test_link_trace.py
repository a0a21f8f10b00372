"""The link trace, compared with NumPy."""

import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.observables import OBSERVABLES
from tests.reference import fields as reference


def test_it_is_the_average_over_all_links(rng):
    """In two slabs, on unequal extents."""
    lattice = Lattice(4, 6, 8, 4)
    links = reference.random_field(lattice.extents, "su3", rng)
    field = Field.from_slices(lattice, "su3", links, "double", open_device_group("cpu:2"))
    ((found,),) = OBSERVABLES["link-trace"]().measurer(field)(field)
    assert found == pytest.approx(reference.trace(links).real.mean() / 3, rel=1e-12)
