"""Minimal residuals: the residual of the solution, computed with NumPy."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from tests.reference import fields as reference

operators = pytest.importorskip("gauge_mc.extensions.quarks.operators")
dirac = pytest.importorskip("tests.extensions.quarks.reference.dirac")


@pytest.mark.slow
def test_the_solution_solves(rng):
    """In two slabs, with iterations in 16 bits."""
    lattice = Lattice(4, 2, 4, 4)
    links = reference.random_field(lattice.extents, "su2", rng)
    field = Field.from_slices(lattice, "su2", links, "double", open_device_group("cpu:2"))
    source = dirac.random_spinor(lattice.extents, 2, rng)
    operator = operators.OPERATORS["wilson"](field, 0.08)
    found = operator.solve(source, 1e-11, "minimal-residual", inner="half")
    residual = dirac.wilson(links, found, 0.08, [1, 1, 1, -1]) - source
    assert np.linalg.norm(residual) < 1e-11 * np.linalg.norm(source)
