"""SU(9): plaquettes of links in the group, compared with NumPy."""

import pytest

import gauge_mc
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from tests.reference import fields as reference
from tests.reference import observables


@pytest.mark.slow
def test_the_plaquette_of_a_random_field(rng):
    lattice = Lattice(4, 4, 4, 4)
    links = reference.random_su(GROUPS["su9"].colours, (4, 4, 4, 4, 4), rng)
    field = Field.from_slices(lattice, "su9", links, "double")
    found = gauge_mc.measure(field, "plaquette")
    expected = observables.plaquette(links)
    assert found["spatial"] == pytest.approx(expected.spatial, rel=1e-10)
    assert found["temporal"] == pytest.approx(expected.temporal, rel=1e-10)


def test_its_default_coupling_is_at_the_improved_t_hooft_coupling_of_su8():
    """2 N^2 / (beta P) is the same, and the average plaquette P differs by little."""
    group, other = GROUPS["su9"], GROUPS["su8"]
    ratio = (group.colours / other.colours) ** 2
    assert group.beta == pytest.approx(other.beta * ratio, rel=0.01)
