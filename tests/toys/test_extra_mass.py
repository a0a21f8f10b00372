"""The extra mass, composed with the clover term and the twisted mass."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from tests.reference import fields as reference

diagonal = pytest.importorskip("gauge_mc.extensions.quarks.diagonal")
operators = pytest.importorskip("gauge_mc.extensions.quarks.operators")
options = pytest.importorskip("gauge_mc.extensions.quarks.spectroscopy.quarks")
dirac = pytest.importorskip("tests.extensions.quarks.reference.dirac")


@pytest.mark.slow
def test_it_is_composed_with_other_terms(rng):
    """In two slabs, on unequal extents."""
    lattice = Lattice(4, 2, 4, 4)
    links = reference.random_field(lattice.extents, "su2", rng)
    field = Field.from_slices(lattice, "su2", links, "double", open_device_group("cpu:2"))
    source = dirac.random_spinor(lattice.extents, 2, rng)
    (parameter,) = diagonal.TERMS["extra-mass"].parameters
    assert parameter in options.quark_options()
    for others in ({}, {"mu": 0.3}, {"csw": 1.2}, {"csw": 1.2, "mu": 0.3}):
        operator = operators.operator_with(field, 0.1, **{parameter.name: 1.25}, **others)
        expected = 0.25 * source + dirac.wilson(links, source, 0.1, [1, 1, 1, -1], **others)
        np.testing.assert_allclose(operator.apply(source), expected, atol=1e-12)
        found = operator.solve(source, 1e-11)
        again = 0.25 * found + dirac.wilson(links, found, 0.1, [1, 1, 1, -1], **others)
        assert np.linalg.norm(again - source) < 1.1e-11 * np.linalg.norm(source)
