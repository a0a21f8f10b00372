"""The shifted Wilson operator, compared with the Wilson operator at another kappa."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from tests.reference import fields as reference

operators = pytest.importorskip("gauge_mc.extensions.quarks.operators")
dirac = pytest.importorskip("tests.extensions.quarks.reference.dirac")


@pytest.mark.slow
def test_it_is_applied_and_inverted(rng):
    """In two slabs, on unequal extents."""
    lattice = Lattice(4, 2, 4, 4)
    links = reference.random_field(lattice.extents, "su2", rng)
    field = Field.from_slices(lattice, "su2", links, "double", open_device_group("cpu:2"))
    source = dirac.random_spinor(lattice.extents, 2, rng)
    operator = operators.OPERATORS["shifted"](field, 0.1, shift=0.25)

    def expected(psi):
        return 1.25 * dirac.wilson(links, psi, 0.08, [1, 1, 1, -1])

    np.testing.assert_allclose(operator.apply(source), expected(source), atol=1e-12)
    found = operator.solve(source, 1e-11, "cg")
    assert np.linalg.norm(expected(found) - source) < 1e-11 * np.linalg.norm(source)
