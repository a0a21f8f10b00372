"""The links that terms of the action see in trajectories."""

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.flavours import operator_on
from gauge_mc.extensions.quarks.forces.normal import QuarkSolver
from gauge_mc.extensions.quarks.forces.replica_solver import QuarkSystem
from gauge_mc.fields.field import Field
from gauge_mc.updates.terms import TermLinks
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.reference.fields import random_field

LATTICE = Lattice(4, 2, 4, 6)


def solution(links, phi, system=None):
    system = system or QuarkSystem(operator_on(links, "twisted-mass", 0.13, mu=0.2), QuarkSolver())
    system.phi.restore(phi)
    count = system.solve(1e-9, np.ones(1, bool)).iterations[0]
    return system, system.x.to_numpy(), count


def test_operators_see_new_links(rng, best_device):
    phi = random_spinor(LATTICE.extents, 3, rng)
    first, other = (
        Field.from_slices(
            LATTICE, "su3", random_field(LATTICE.extents, "su3", rng), "double", best_device
        )
        for _ in range(2)
    )
    links = TermLinks(first)
    system, before, _ = solution(links, phi)
    links.take(other)
    _, after, count = solution(links, phi, system)
    assert not np.array_equal(before, after)
    # The bytes and the iterations are those of new operators, in every precision.
    _, expected, expected_count = solution(TermLinks(other), phi)
    assert np.array_equal(after, expected)
    assert count == expected_count
