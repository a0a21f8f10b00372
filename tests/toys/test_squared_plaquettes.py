"""Squares of plaquettes in the action, compared with NumPy."""

import pytest

from gauge_mc.testing import check_force, plaquettes, random_field
from gauge_mc.updates.monomials import MONOMIALS, Failures
from gauge_mc.updates.terms import TermLinks


@pytest.mark.parametrize("group", ["su2", pytest.param("su3", marks=pytest.mark.slow)])
def test_it_is_the_sum_over_plaquettes_and_has_its_force(group):
    field, strength = random_field(group), 0.7
    monomial = MONOMIALS["squared-plaquettes"](TermLinks(field).field, "own", strength=strength)
    found = float(monomial.actions(Failures())[0])
    links = field.to_numpy()
    planes = [plaquettes(links, mu, nu) for mu in range(4) for nu in range(mu)]
    traces = [one.trace(axis1=-2, axis2=-1).real / links.shape[-1] for one in planes]
    squares = sum((1 - one**2).sum() for one in traces)
    assert found == pytest.approx(strength * squares, rel=1e-12)
    assert monomial.measured(0) == pytest.approx([squares / (6 * field.lattice.sites)])
    check_force(f"squared-plaquettes:strength={strength}", group)
