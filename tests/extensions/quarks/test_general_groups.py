"""The Dirac operator for SU(N) against NumPy."""

import numpy as np
import pytest

import gauge_mc
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from tests.extensions.quarks.reference import dirac
from tests.reference.fields import COLOURS, random_field

LATTICE = Lattice(4, 4, 4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["su4", pytest.param("su5", marks=pytest.mark.every)])
def test_wilson_clover(name, best_device, rng):
    links = random_field(LATTICE.extents, name, rng)
    psi = dirac.random_spinor(LATTICE.extents, COLOURS[name], rng)
    field = Field.from_slices(LATTICE, name, links, "double", best_device)
    operator = gauge_mc.Wilson(field, 0.12, 1.2)
    found = operator.apply(psi)
    expected = dirac.wilson(links, psi, 0.12, [1, 1, 1, -1], 0.0, 1.2)
    assert np.abs(found - expected).max() < 1e-14
