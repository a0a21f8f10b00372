"""Kernels at the ends of vectors as large as the memory of GPUs, of which few pages exist.

See ``tests/devices/test_large_memory.py``.
"""

import numpy as np
import pytest

from gauge_mc.domain.slab import Slab, work
from gauge_mc.extensions.quarks.domain_walls import PreparedProduct
from gauge_mc.extensions.quarks.hopping import ADDED
from gauge_mc.extensions.quarks.operators.domain_wall import DomainWall
from gauge_mc.extensions.quarks.vectors import SpinorField, algebra
from gauge_mc.extensions.quarks.vectors.algebra import Advance, Combine, Multiply
from tests.devices.large_memory import (
    BYTES,
    LAST,
    at_end,
    fill,
    same_at_end,
    second_of_last,
    sparse_gpu,
)

pytestmark = pytest.mark.gpu

FIFTH = 16
"""The extent of the fifth direction."""


@pytest.fixture(scope="module")
def sparse():
    with sparse_gpu() as gpu:
        yield gpu


@pytest.fixture(autouse=True)
def only_the_end(monkeypatch):
    """Let launches on all slices be launches on the second of the last ones, on every replica."""

    def replicas(begin, step, slices, parity):
        count = slices // replicas.slices
        return work(replicas.slices - LAST + 1, replicas.slices, count, parity)

    monkeypatch.setattr(Slab, "whole", second_of_last)
    monkeypatch.setattr(algebra, "work", replicas)
    return replicas


def vectors_on(links, seed):
    psi = SpinorField.empty(links, links.precision, fifth=FIFTH)
    fill(psi.slabs[0], seed, psi.storage.number_bytes)
    return psi


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
            operator.prepare(target, psi, 0, ADDED, u)(0.5)
        else:
            PreparedProduct(operator.diagonals[True, False], target, psi, (0,), u)(0.5)
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
