"""The flow of the Iwasaki action, compared with NumPy."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.flows import FLOWS
from tests.reference import fields as reference
from tests.reference import flow as flow_reference


@pytest.mark.slow
def test_a_step_is_that_of_runge_and_kutta(rng, monkeypatch):
    """In two slabs, on unequal extents."""
    lattice = Lattice(4, 6, 8, 4)
    links = reference.random_field(lattice.extents, "su3", rng)
    field = Field.from_slices(lattice, "su3", links, "double", open_device_group("cpu:2"))
    monkeypatch.setitem(flow_reference.C1, "iwasaki", -0.331)
    flow = GradientFlow(FLOWS["iwasaki"], field)
    flow.start(field)
    flow.advance(0.02, 0.02)
    expected = flow_reference.rk3_step(links, 0.02, "iwasaki")
    np.testing.assert_allclose(flow.field.to_numpy(), expected, atol=1e-12)
