"""Fields as large as the memory of GPUs, of which few pages exist."""

import gc
from contextlib import contextmanager

import numpy as np
import pytest

from gauge_mc.devices.cuda.device import CudaDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import work
from gauge_mc.fields.field import Field

GROUP, SHORT = "su2", 6
"""The group, and the number of slices of small lattices."""


LAST = 3
"""Number of slices at the end that have a content. The second of them is computed."""


NO_RESERVE, LARGE, HUGE = 0x4000, 2**28, 2**44


GIB = 2**30
QUICK = [6 * GIB, 141 * 10**9]
BYTES = [
    *QUICK,
    *(
        pytest.param(nbytes, marks=pytest.mark.slow)
        for nbytes in (GIB // 2, 3 * GIB, 12 * GIB, 60 * GIB, 68 * GIB, 1200 * GIB)
    ),
]
"""Sizes of vectors on the large lattice, between which numbers of 4 and of 16 bytes, and bytes, are
too many for an integer of 32 bits with or without a sign.
"""


SPACE = (8, 4, 4)


@contextmanager
def sparse_gpu():
    """Open an emulated GPU whose memory need not exist."""
    driver = pytest.importorskip("pycuda.driver")
    if not hasattr(driver, "_Region"):
        pytest.skip("a real GPU has all its memory")
    patch = pytest.MonkeyPatch()
    small, fill = driver._Region.allocate, driver.memset_d8

    def allocate(size):
        if size < LARGE:
            return small(size)
        pages = -(-size // driver.PAGE)
        mapping = driver._libc.mmap(None, (pages + 2) * driver.PAGE, 0, 0x22 | NO_RESERVE, -1, 0)
        start = mapping + (pages + 1) * driver.PAGE - -(-size // 16) * 16
        region = driver._Region(start, size, mapping, pages)
        region.protect(driver.READ_WRITE)
        return region

    def memset(to, value, size):
        if size < LARGE:
            fill(to, value, size)

    patch.setattr(driver._Region, "allocate", allocate)
    patch.setattr(driver, "memset_d8", memset)
    patch.setattr(driver, "_TOTAL", HUGE)
    yield CudaDevice()
    gc.collect()  # a failed test may still hold more memory than other tests are given
    patch.undo()


def second_of_last(slab, parity=2, mu=0, some=None):
    """Return the work of a launch on the second of the last slices, in the place of all of them."""
    return work(slab.layout.slices - LAST + 1, 1, 1, parity, mu)


def fill(slab, seed, number_bytes, slices=range(-LAST, 0)):
    """Let the last slices have a content that does not depend on their number."""
    rng, nbytes = np.random.default_rng(seed), slab.slice_bytes
    for t in slices:
        numbers = rng.uniform(-1, 1, nbytes // number_bytes).astype(f"f{number_bytes}")
        slab.device.write(slab.buffer, (slab.layout.slices + t) * nbytes, numbers.view(np.uint8))


def at_end(slab):
    """The bytes of the slice that is computed."""
    begin = (slab.layout.slices - LAST + 1) * slab.slice_bytes
    return slab.device.read(slab.buffer, begin, slab.slice_bytes)


def long_and_short(nbytes, components, precision, device):
    """Links on a lattice where a field of a size has so many slices, and on a short one."""
    sites = SPACE[0] * SPACE[1] * SPACE[2]
    slices = nbytes // (sites * components * (4 if precision == "single" else 8)) // 2 * 2
    for t in (slices, SHORT):
        links = Field.empty(Lattice(*SPACE, t), GROUP, precision, device)
        fill(links.slabs[0], 1, links.slabs[0].layout.real.itemsize)
        yield links


def same_at_end(compute, nbytes, components, precision, device):
    """Check that the results are the same, and not 0."""
    found = [compute(one) for one in long_and_short(nbytes, components, precision, device)]
    assert found[0].any()
    assert np.array_equal(*found)
