"""Lattices: what is read, and what is refused."""

import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError


def test_a_lattice_is_read():
    lattice = Lattice.parse("24x16X8x32")
    assert lattice.extents == (24, 16, 8, 32)
    assert str(lattice) == "24x16x8x32"
    assert Lattice.parse("16") == Lattice(16, 16, 16, 16)
    assert (lattice.slice_sites, lattice.sites, lattice.links) == (3072, 98304, 393216)


@pytest.mark.parametrize(
    "text",
    [
        *["3x4x4x4", "4x4x4x0", "4x4", "4x4x4x4x4", "ax4x4x4", "4x4x4x-2", "1_6", "+4", "４x4x4x4"],
        5000 * "8",
    ],
)
def test_wrong_lattices_are_refused(text):
    with pytest.raises(UsageError):
        Lattice.parse(text)


def test_a_lattice_with_too_many_sites_is_refused():
    assert Lattice(256, 256, 256, 254).sites < 2**32
    with pytest.raises(UsageError, match=r"fewer than 4294967296 \(2\^32\) sites"):
        Lattice(256, 256, 256, 256)
