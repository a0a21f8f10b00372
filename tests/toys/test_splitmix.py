"""A generator of random numbers, compared with NumPy."""

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.random import GENERATORS


def test_every_site_draws_from_a_stream_of_its_own():
    lattice = Lattice(4, 2, 2, 4)
    field = Field.cold(lattice, "su2", "double")
    random = Random.for_field(field, "splitmix", seed=7)
    first = GENERATORS["splitmix"].start(7, np.arange(lattice.sites, dtype=np.uint64))[:, 0]
    drawn = random.numbers(0)
    state, expected = first.copy(), []
    for _ in range(drawn.shape[-1]):
        state = state + np.uint32(0x9E3779B9)
        z = (state ^ (state >> 16)) * np.uint32(0x21F0AAAD)
        z = (z ^ (z >> 15)) * np.uint32(0x735A2D97)
        expected.append((((z ^ (z >> 15)) >> 1) + 0.5) * 2.0**-31)
    np.testing.assert_allclose(drawn.reshape(lattice.sites, -1), np.transpose(expected))
