"""How sites lie in a device's memory."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Layout, split_lanes

LATTICE = Lattice(8, 8, 4, 6)
LAYOUTS = {
    "lanes": Layout(LATTICE, "single", (2, 4, 2), 0, 0, 6),
    "packets": Layout(LATTICE, "single", (1, 1, 1), 16, 0, 6),
}


@pytest.mark.parametrize(
    ("text", "most", "split"),
    [
        ("16x16x16x4", 16, (1, 4, 4)),
        ("24x24x24x4", 16, (1, 4, 4)),
        ("4x6x8x10", 16, (2, 1, 4)),
        ("6x6x6x6", 16, (1, 1, 1)),
        ("12x12x12x12", 16, (2, 2, 2)),
        ("32x32x32x32", 8, (1, 2, 4)),
    ],
)
def test_lanes_have_even_sublattices(text, most, split):
    assert split_lanes(Lattice.parse(text), most) == split


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_site_has_one_place(name):
    layout = LAYOUTS[name]
    numbers = np.arange(8 * 8 * 4, dtype=np.uint32).reshape(4, 8, 8, 1)
    for t in range(2):
        packed = layout.pack_words(numbers, t)
        assert np.array_equal(np.sort(packed), numbers.ravel())
        assert np.array_equal(layout.unpack_words(packed, t), numbers)
        z, y, x = np.unravel_index(packed.reshape(2, -1), numbers.shape[:3])
        assert np.array_equal((x + y + z + t) % 2, np.repeat([[0], [1]], 128, axis=1))


def test_the_halo_is_behind_the_slabs_own_slices():
    layout = Layout(LATTICE, "single", (1, 1, 1), 0, first=2, slices=3, above=3, below=1)
    assert list(layout.times) == [2, 3, 4]
    assert layout.slices_in_memory == 7
    assert layout.halo == {3: 5, 4: 0, 5: 1, 6: 1}
