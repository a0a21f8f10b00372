"""Operators whose links change."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.hopping import EVEN, ODD, PreconditionedOperator, norms_of
from gauge_mc.extensions.quarks.operators import Wilson
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Combine, Multiply
from gauge_mc.fields.field import Field
from tests.domain.conftest import open_group
from tests.extensions.quarks.links import field_of
from tests.extensions.quarks.reference import dirac as reference
from tests.reference.fields import random_field

LATTICE = Lattice(4, 6, 8, 4)
KAPPA, CSW, MU = 0.12, 1.1, 0.2
PHASES = [1, np.exp(-0.7j), 1, -1]


def operator_on(field):
    return Wilson(field, KAPPA, CSW, MU, PHASES)


@pytest.mark.slow
@pytest.mark.parametrize("slices", [(4,), (2, 2)], ids=str)
@pytest.mark.parametrize("storage", STORAGES)
def test_a_refreshed_operator_is_that_of_the_new_links(storage, slices, rng):
    """In what is prepared already as well, with bits as of an operator that is made anew."""
    devices = open_group("cpu-16", slices)
    field, other = (field_of(random_field(LATTICE.extents, "su3", rng), devices) for _ in range(2))
    operator = operator_on(field)
    prepared = operator.prepared(storage, 18)
    psi = np.stack([reference.random_spinor(LATTICE.extents, 3, rng) for _ in range(2)])
    v = SpinorField.from_numpy(field, psi, storage)
    image = v.like()
    call = prepared.apply(image, v)
    call()
    before = image.to_numpy()
    expected = image.like()
    operator_on(other).prepared(storage, 18).apply(expected, v)()
    field.copy(other)
    field.exchange_halo(None)
    operator.refresh()
    call()
    assert np.array_equal(image.to_numpy(), expected.to_numpy())
    assert not np.array_equal(image.to_numpy(), before)
    devices.close()


def links_on(devices, rng):
    return Field.from_slices(
        LATTICE, "su3", random_field(LATTICE.extents, "su3", rng), "double", devices
    )


def vectors(field, parities, rng, storage="double"):
    """Two random vectors on the sites of one or both parities."""
    psi = np.stack([reference.random_spinor(LATTICE.extents, 3, rng) for _ in range(2)])
    whole = SpinorField.from_numpy(field, psi, storage)
    if parities == (EVEN, ODD):
        return whole
    part = whole.like(parity=EVEN)
    Combine(part, whole, parity=EVEN)(0, 1)
    return part


@pytest.fixture
def linear(best_device, rng):
    """Both linear operators of a Dirac operator."""
    prepared = operator_on(links_on(best_device, rng)).prepared()
    return prepared, PreconditionedOperator(prepared, with_adjoint=True)


def test_adjoints(linear, rng):
    """<w, A v> = <A^dagger w, v> on the sites on which an operator acts."""
    field = linear[0].operator.field
    for one in linear:
        v, w = (vectors(field, one.parities, rng) for _ in range(2))
        image, back = v.like(), w.like()
        one.apply(image, v)()
        one.apply(back, w, dagger=True)()

        def product(a, b, parities=one.parities):
            return sum(Multiply(b, a, parity=parity)().mixed for parity in parities)

        scale = norms_of(v) * norms_of(w)
        assert (np.abs(product(w, image) - product(back, v)) < 1e-13 * scale).all()
