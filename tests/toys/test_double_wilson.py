"""A multiple of the Wilson action, compared with the Wilson action."""

import pytest

from gauge_mc import action_density
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.heatbath import heatbath, overrelax


def updated(beta, action, **couplings):
    """Return the links after an update of a random field."""
    field = Field.hot(Lattice(4, 4, 4, 4), "su2")
    heatbath(field, beta, Random.for_field(field), action=action, **couplings)
    overrelax(field, action=action, **couplings)
    return field.to_numpy()


@pytest.mark.slow
def test_updates_are_those_of_the_wilson_action_at_another_beta():
    assert (updated(1.5, "double-wilson") == updated(3.0, "wilson")).all()
    assert (updated(1.0, "double-wilson", strength=3) == updated(3.0, "wilson")).all()


def test_the_value_of_an_action_follows_from_its_loops():
    field = Field.hot(Lattice(4, 4, 4, 4), "su2")
    expected = action_density(field, 3.0 * 2.1)
    assert action_density(field, 2.1, "double-wilson", strength=3.0) == pytest.approx(expected)
