"""Kernels at the ends of fields as large as the memory of GPUs, of which few pages exist.

A kernel computes the same at the end of a large field as on a small one with the same content. An
index that has too few bits would read or write elsewhere. The memory is that of emulated GPUs, in
which pages that nobody has written need none of the host.
"""

import numpy as np
import pytest

from gauge_mc.devices.kernels import Kernel
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field import AlgebraField
from gauge_mc.fields.sums import SlabSums
from gauge_mc.updates.molecular_dynamics import DRIFT
from tests.devices.large_memory import BYTES, at_end, fill, same_at_end, second_of_last, sparse_gpu

pytestmark = pytest.mark.gpu

PLAQUETTE = Kernel("plaquette")


@pytest.fixture(scope="module")
def sparse():
    with sparse_gpu() as gpu:
        yield gpu


@pytest.fixture(autouse=True)
def only_the_end(monkeypatch):
    monkeypatch.setattr(Slab, "whole", second_of_last)


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
