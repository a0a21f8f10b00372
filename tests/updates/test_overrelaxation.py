"""Overrelaxation against NumPy, and what it does to the action."""

from functools import cache

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.updates.heatbath import heatbath, overrelax
from tests.reference import updates as reference
from tests.reference.fields import dagger
from tests.updates.links import LATTICES, assert_overrelaxed, start

TOLERANCE = {"single": 1e-5, "double": 1e-13}


@cache
def overrelaxed(lattice, group):
    return reference.overrelax(start(lattice, group))


@pytest.mark.parametrize("lattice", LATTICES, ids=str)
def test_overrelaxation(lattice, group, precision, device):
    field = Field.from_slices(lattice, group, start(lattice, group), precision, device)
    overrelax(field)
    assert_overrelaxed(field, overrelaxed(lattice, group), TOLERANCE[precision])


@pytest.mark.longer
def test_overrelaxation_keeps_the_action_and_moves(group, precision, best_device):
    field = Field.hot(Lattice(8, 8, 8, 8), group, precision, best_device)
    heatbath(field, 2.5 if group == "su2" else 6.0, Random.for_field(field), sweeps=5)
    before, links = plaquette(field), field.to_numpy()
    overrelax(field, sweeps=20)
    tolerance = 1e-6 if precision == "single" else 1e-13
    assert plaquette(field) == pytest.approx(before, rel=tolerance)
    # As far from where it was as another configuration would be.
    overlap = np.trace(field.to_numpy() @ dagger(links), axis1=-2, axis2=-1).real.mean()
    assert overlap < 0.75 * links.shape[-1]


def test_an_unknown_action_is_refused(best_device):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", device=best_device)
    with pytest.raises(UsageError, match="There is no action 'wilso'; did you mean 'wilson'"):
        overrelax(field, action="wilso")
