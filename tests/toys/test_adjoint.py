"""Terms of adjoint plaquettes, compared with NumPy."""

import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.updates.terms import ACTION_TERMS, TermLinks
from tests.reference.fields import random_field, trace
from tests.reference.observables import plaquette_matrix
from tests.updates.monomials.trajectories import OneChain


@pytest.mark.kernels
def test_every_coupling_is_a_term(rng):
    lattice = Lattice(4, 2, 4, 6)
    links = random_field(lattice.extents, "su2", rng)
    field = Field.from_slices(lattice, "su2", links, "double", open_device_group("cpu:2"))
    kind = ACTION_TERMS["adjoint"]
    couplings = kind.items.several("strength=0.5,strength=-0.25")
    terms = kind.terms(couplings, 1)
    assert [one.title for one in terms] == [f"{kind.name}1", f"{kind.name}2"]
    planes = [plaquette_matrix(links, mu, nu) for mu in range(4) for nu in range(mu)]
    total = sum((1 - (abs(trace(one)) ** 2 - 1) / 3).sum() for one in planes)
    for term, coupling in zip(terms, (0.5, -0.25), strict=True):
        found = float(OneChain(term.make(TermLinks(field))).action())
        assert found == pytest.approx(coupling * total, rel=1e-12)
