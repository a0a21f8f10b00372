"""Philox draws what its definition says, to the last bit of double precision."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from tests.reference.randoms import philox4x32

LATTICE = Lattice(4, 6, 8, 10)
SEED, STEP = 2**63 + 2**31 + 5, 2**32 + 3
BLOCKS = {"su2": [(0, 0), (1, 0), (1, 1)], "su3": [*((k, 0) for k in range(4)), (3, 1), (3, 2)]}
"""Sub-streams, and numbers of four in each, in the order in which the test draws them."""


def uniforms(words, precision):
    """Return (n + 1/2) / 2^31 of the upper 31 bits, or (n + 1/2) / 2^52 of the upper 52 bits."""
    if precision == "single":
        return np.float32(((words >> 1) + 0.5) * 2.0**-31)
    pairs = words[..., 0::2].astype(np.uint64) << np.uint64(32) | words[..., 1::2]
    return (pairs >> np.uint64(12)) * 2.0**-52 + 2.0**-53


@pytest.mark.parametrize("mu", [0, 3])
def test_philox_streams(mu, group, precision, best_device):
    field = Field.cold(LATTICE, group, precision, best_device)
    random = Random.for_field(field, "philox", SEED)
    random.step = STEP
    drawn = random.numbers(mu).reshape(LATTICE.sites, -1)
    blocks_of_four = 1 if precision == "single" else 2
    words = []
    for stream, fours in BLOCKS[group]:
        for block in range(fours * blocks_of_four, (fours + 1) * blocks_of_four):
            counter = np.empty((LATTICE.sites, 4), np.uint32)
            counter[:, 0] = np.arange(LATTICE.sites)
            counter[:, 1:] = mu | stream << 2 | block << 4, STEP & 0xFFFFFFFF, STEP >> 32
            key = np.array([SEED & 0xFFFFFFFF, SEED >> 32], np.uint32)
            words.append(philox4x32(counter, np.broadcast_to(key, (LATTICE.sites, 2))))
    expected = uniforms(np.concatenate(words, axis=-1), precision)
    assert drawn.dtype == expected.dtype
    assert drawn.shape == expected.shape
    if precision == "double":
        assert np.array_equal(drawn, expected)
    else:  # of 31 bits a real number keeps 24, and its product with 2^-31 is rounded again
        np.testing.assert_allclose(drawn, expected, rtol=2.0**-22, atol=0)
