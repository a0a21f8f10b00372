"""Squares of plaquettes in the action, compared with NumPy."""

import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.updates.monomials import MONOMIALS
from gauge_mc.updates.terms import TermLinks
from tests.reference.fields import random_field, trace
from tests.reference.observables import plaquette_matrix
from tests.updates.monomials.trajectories import OneChain, check_force


def value(links):
    """The sum over all plaquettes of 1 - (Re Tr / N)^2."""
    planes = [plaquette_matrix(links, mu, nu) for mu in range(4) for nu in range(mu)]
    return sum((1 - (trace(one).real / links.shape[-1]) ** 2).sum() for one in planes)


@pytest.mark.parametrize("group", ["su2", "su3"])
def test_the_force_is_the_derivative_of_the_action(rng, group):
    """In two slabs, on unequal extents."""
    lattice, strength = Lattice(4, 2, 4, 6), 0.7
    links = random_field(lattice.extents, group, rng)
    field = Field.from_slices(lattice, group, links, "double", open_device_group("cpu:2"))
    monomial = MONOMIALS["squared-plaquettes"](TermLinks(field).field, "own", strength=strength)
    found = float(OneChain(monomial).action())
    assert found == pytest.approx(strength * value(links), rel=1e-12)
    assert monomial.measured(0) == pytest.approx([found / strength / (6 * lattice.sites)])
    check_force(monomial, lambda u: strength * value(u), links, rng)
