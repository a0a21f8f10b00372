"""Plaquettes in the adjoint representation, compared with NumPy."""

import numpy as np
import pytest

from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.updates.monomials.adjoint_plaquette import AdjointPlaquette
from gauge_mc.updates.term_links import TermLinks
from tests.reference.fields import COLOURS, random_field, trace
from tests.reference.observables import plaquette_matrix
from tests.updates.monomials.trajectories import OneChain, check_force, empty_momenta

LATTICE = Lattice(4, 2, 4, 6)
BETA = -0.7
TOLERANCE = {"double": 1e-11, "single": 1e-4}


def value(links):
    """The sum over all plaquettes of 1 - Tr_A U_p / (N^2 - 1), in the adjoint representation."""
    n = links.shape[-1]
    planes = [plaquette_matrix(links, mu, nu) for mu in range(4) for nu in range(mu)]
    return sum((1 - (abs(trace(one)) ** 2 - 1) / (n * n - 1)).sum() for one in planes)


def monomial_of(links, group, precision, device):
    field = Field.from_slices(LATTICE, group, links, precision, device)
    return AdjointPlaquette(TermLinks(field).field, "own", beta=BETA)


@pytest.mark.parametrize("precision", ["double", "single"])
@pytest.mark.parametrize("group", COLOURS)
def test_value_and_force(rng, group, precision, device):
    links = random_field(LATTICE.extents, group, rng)
    monomial = monomial_of(links, group, precision, device)
    tolerance = TOLERANCE[precision]
    found = float(OneChain(monomial).action())
    assert found == pytest.approx(BETA * value(links), rel=tolerance)
    check_force(monomial, lambda u: BETA * value(u), links, rng, tolerance)
