"""Smearing with forward staples, compared with NumPy."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.smearing import SMEARINGS
from tests.reference import fields as reference
from tests.reference.smearing import project_maximal


@pytest.mark.slow
def test_links_are_smeared(rng):
    """In two slabs, on unequal extents."""
    lattice, devices = Lattice(4, 6, 8, 4), open_device_group("cpu:2")
    links = reference.random_field(lattice.extents, "su3", rng)
    field = Field.from_slices(lattice, "su3", links, "double", devices)
    smeared = Field.empty(lattice, "su3", "double", devices)
    SMEARINGS["forward"](0.3)(field, smeared)
    expected = links.copy()
    for mu in range(3):
        for nu in {0, 1, 2} - {mu}:
            over = links[..., nu, :, :] @ reference.shift(links[..., mu, :, :], nu)
            back = reference.dagger(reference.shift(links[..., nu, :, :], mu))
            expected[..., mu, :, :] += 0.3 * over @ back
        expected[..., mu, :, :] = project_maximal(expected[..., mu, :, :])
    np.testing.assert_allclose(smeared.to_numpy(), expected, atol=1e-12)
