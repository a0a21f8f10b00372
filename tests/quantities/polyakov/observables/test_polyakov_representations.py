"""Polyakov loops in higher representations against tensor products with NumPy."""

import itertools

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.quantities.polyakov.observables import PolyakovRepresentations, dimensions
from tests.reference.fields import random_field
from tests.reference.observables import transport

TOLERANCE = {"single": 2e-6, "double": 1e-14}


def symmetriser(n, rank, sign):
    """Return the projector onto symmetric (+1) or antisymmetric (-1) tensors of a rank."""
    found, orders = np.zeros([n] * (2 * rank)), [*itertools.permutations(range(rank))]
    for index in itertools.product(range(n), repeat=rank):
        for order in orders:
            odd = sum(a > b for a, b in itertools.combinations(order, 2)) % 2
            place = (*index, *(index[one] for one in order))
            found[place] += (sign if odd else 1) / len(orders)
    return found.reshape(n**rank, n**rank)


def traces(line):
    """Return the traces of matrices in all representations, from matrices on tensors."""
    n = line.shape[-1]
    pair = np.einsum("xab,xcd->xacbd", line, line).reshape(-1, n**2, n**2)
    triple = np.einsum("xab,xcd->xacbd", pair, line).reshape(-1, n**3, n**3)
    mixed = np.einsum("xab,xcd->xacbd", line, line.conj()).reshape(-1, n**2, n**2)
    adjoint = np.trace(mixed, axis1=1, axis2=2) - 1  # n x n* is 1 and the adjoint representation
    projections = [(pair, symmetriser(n, 2, -1)), (pair, symmetriser(n, 2, 1))]
    projections.append((triple, symmetriser(n, 3, 1)))
    return [adjoint, *(np.einsum("xab,ba->x", one, p) for one, p in projections)]


@pytest.mark.parametrize("lattice", [Lattice(4, 6, 8, 10), Lattice(8, 4, 2, 6)], ids=str)
def test_characters(lattice, group, precision, device, rng):
    links = random_field(lattice.extents, group, rng)
    line = transport(links, [(3, 1)] * lattice.t)[0]
    n = line.shape[-1]
    adjoint, *others = (one.mean() for one in traces(line.reshape(-1, n, n)))
    expected = [adjoint.real, *(part for one in others for part in (one.real, one.imag))]
    sizes = dimensions(n)
    expected /= np.array([sizes[0], *np.repeat(sizes[1:], 2)])
    field = Field.from_slices(lattice, group, links, precision, device)
    difference = np.subtract(PolyakovRepresentations().measure(field), expected)
    assert np.abs(difference).max() < TOLERANCE[precision]


def test_dimensions_are_those_of_projectors():
    assert dimensions(3) == (8, 3, 6, 10)
    for n in (2, 3, 4):
        projected = [(2, -1), (2, 1), (3, 1)]
        ranks = tuple(round(np.trace(symmetriser(n, *one))) for one in projected)
        assert dimensions(n)[1:] == ranks


@pytest.mark.parametrize("group", ["su2", "su3", "su4"])
def test_cold_field_gives_one(group, best_device):
    field = Field.cold(Lattice(4, 6, 8, 10), group, "double", best_device)
    found = PolyakovRepresentations().measure(field)
    assert found == pytest.approx([1, 1, 0, 1, 0, 1, 0], abs=1e-14)
