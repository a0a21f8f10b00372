"""Kernels at the ends of fields as large as the memory of GPUs, of which few pages exist.

A kernel computes the same at the end of a large field as on a small one with the same content. An
index that has too few bits would read or write elsewhere. The memory is that of emulated GPUs, in
which pages that nobody has written need none of the host.
"""

import gc

import numpy as np
import pytest

from gauge_mc.devices.cuda.device import CudaDevice
from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Slab, work
from gauge_mc.fields.algebra_field import AlgebraField
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums
from gauge_mc.quarks.matrices.hopping import ADDED
from gauge_mc.quarks.operators.domain_wall import DomainWall
from gauge_mc.quarks.vectors import algebra
from gauge_mc.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.updates.molecular_dynamics import DRIFT

pytestmark = pytest.mark.gpu

PLAQUETTE = Kernel("plaquette")

GROUP, FIFTH, SHORT = "su2", 16, 6
"""The group, the extent of the fifth direction, and the number of slices of small lattices."""

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


@pytest.fixture(scope="module")
def sparse():
    """An emulated GPU whose memory need not exist."""
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


@pytest.fixture(autouse=True)
def only_the_end(monkeypatch):
    """Let launches on all slices be launches on the second of the last ones, on every replica."""

    def one(slab, parity=2, mu=0, some=None):
        return work(slab.layout.slices - LAST + 1, 1, 1, parity, mu)

    def replicas(begin, step, slices, parity):
        count = slices // replicas.slices
        return work(replicas.slices - LAST + 1, replicas.slices, count, parity)

    monkeypatch.setattr(Slab, "whole", one)
    monkeypatch.setattr(algebra, "work", replicas)
    return replicas


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


def vectors_on(links, seed):
    """Vectors with a content at the end."""
    psi = SpinorField.empty(links, links.precision, fifth=FIFTH)
    fill(psi.slabs[0], seed, psi.storage.number_bytes)
    return psi


def same_at_end(compute, nbytes, components, precision, device):
    """Check that the results are the same, and not 0."""
    found = [compute(one) for one in long_and_short(nbytes, components, precision, device)]
    assert found[0].any()
    assert np.array_equal(*found)


SPINORS = 8 * 2 * FIFTH
"""Reals of all vectors at a site."""


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("nbytes", BYTES)
@pytest.mark.parametrize("form", ["hop", "product"])
def test_domain_walls(form, nbytes, precision, sparse):
    def compute(links):
        operator = DomainWall(links, 0.1, FIFTH, 1.8).prepared(precision)
        psi, u = (vectors_on(links, seed) for seed in (2, 3))
        target = psi.like()
        if form == "hop":
            operator.hop(target, psi, 0, ADDED, u, 0.5)
        else:
            operator.diagonals[True, False].prepare(target, psi, (0,), u)(0.5)
        return at_end(target.slabs[0])

    same_at_end(compute, nbytes, SPINORS, precision, sparse)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("nbytes", BYTES)
def test_sums_and_combinations_of_vectors(nbytes, precision, sparse, only_the_end):
    def compute(links):
        only_the_end.slices = links.lattice.t
        p, r, v = (vectors_on(links, seed) for seed in (2, 3, 4))
        Combine(p, r, v)(0.5, 2.0, -1j)
        step = Advance(r, p, v, p, w=v)
        step(0.5, 0.25, 1j)
        copied = r.like("half")
        copied.copy(r)
        products = step.products()
        sums = np.concatenate([products.mixed.view(float), products.norm2, Multiply(r, v)().norm2])
        ends = [at_end(one.slabs[0]) for one in (p, r, v, copied)]
        return np.concatenate([sums.view(np.uint8), *ends])

    same_at_end(compute, nbytes, SPINORS, precision, sparse)


@pytest.mark.parametrize("precision", ["single", "double"])
@pytest.mark.parametrize("nbytes", BYTES[:-1])
def test_links(nbytes, precision, sparse):
    def compute(links):
        slab, momenta = links.slabs[0], AlgebraField.like(links)
        fill(momenta.slabs[0], 7, slab.layout.real.itemsize)
        sums = SlabSums(slab, 2, 1)
        address = slab.buffer.address
        sums.launch(PLAQUETTE, {"links": address})
        values = sums.by_slice()
        moved = {"links": address, "momenta": momenta.slabs[0].buffer.address, "drift": 0.1}
        slab.launch(DRIFT, slab.whole(), **moved)
        return np.concatenate([values.view(np.uint8).ravel(), at_end(slab)])

    same_at_end(compute, nbytes, 16, precision, sparse)
