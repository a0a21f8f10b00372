"""How kernels are divided into thread blocks on a GPU."""

from gauge_mc.devices.base import Registers
from gauge_mc.devices.cuda.kernel import SweepFunction, Tile, best_tile


def test_tiles_divide_the_lattice():
    for extents, slices, threads in [((48, 48, 48), 48, 128), ((4, 6, 8), 10, 256)]:
        tile = best_tile(extents, slices, threads)
        assert tile.threads <= threads
        assert (extents[0] // 2) % tile.half_x == extents[1] % tile.y == 0
        assert extents[2] % tile.z == 0
    for slices in 48, 46:
        assert best_tile((48, 48, 48), slices, 128) == Tile(8, 2, 2, 4)


def test_blocks_of_a_sweep_are_all_there_at_once():
    sweep = SweepFunction(None, Registers(121, 0), multiprocessors=10, arrived=None)
    assert [sweep.threads(sites) for sites in (64, 320, 321, 10**6)] == [32, 32, 64, 256]
    assert sweep.fits(20, 256)  # 2 * 256 * 128 registers
    assert not sweep.fits(21, 256)
    assert sweep.fits(50, 96)
    assert not sweep.fits(51, 96)


def test_partly_filled_multiprocessors_do_not_count_as_room():
    """Five warps with 184 registers leave room for three more, two in each fourth of the SM."""
    sweep = SweepFunction(None, Registers(178, 0), multiprocessors=132, arrived=None)
    assert sweep.fits(132, 144)
    assert not sweep.fits(133, 144)
    assert sweep.fits(264, 128)
