"""The force of the hopping term for any number of pairs of vectors."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.normal_systems import MOST_PAIRS
from gauge_mc.extensions.quarks.operators import TwistedMass
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.field import Field
from tests.extensions.quarks.dynamical.weights import check_rate, direction
from tests.extensions.quarks.reference.dirac import random_spinor
from tests.extensions.quarks.reference.pseudofermions import Quark
from tests.reference.fields import random_field
from tests.reference.molecular_dynamics import derivative
from tests.updates.monomials.trajectories import empty_momenta, matrices

QUARK = Quark(0.13, (np.exp(0.3j), 1, np.exp(-0.7j), -1), 0.2)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("pairs", "lattice"), [(3, Lattice(4, 4, 4, 2)), (MOST_PAIRS + 2, Lattice(2, 2, 2, 2))]
)
def test_pairs_have_weights(pairs, lattice, rng, device):
    """The force is the derivative of -sum_i w_i 2 Re X_i^dagger M Y_i."""
    links = random_field(lattice.extents, "su3", rng)
    field = Field.from_slices(lattice, "su3", links, "double", device)
    operator = TwistedMass(field, QUARK.kappa, QUARK.mu, QUARK.phases)
    vectors = rng.normal(size=(2, pairs, *random_spinor(lattice.extents, 3, rng).shape)) + 0j
    vectors += 1j * rng.normal(size=vectors.shape)
    x, y = (SpinorField.from_numpy(field, one) for one in vectors)
    weights, force = rng.normal(size=pairs), empty_momenta(field)
    operator.add_force(force, x, y, list(weights))
    found = matrices(field, force)

    def action(u):
        terms = zip(weights, *vectors, strict=True)
        products = (w * np.vdot(a, QUARK.apply(u, b)).real for w, a, b in terms)
        return -2 * sum(products)

    towards = direction(links, rng)
    check_rate(found, towards, derivative(action, links, towards), least=0)

    # Forces add up.
    operator.add_force(force, x, y, list(-weights))
    assert np.abs(matrices(field, force)).max() < 1e-12 * np.abs(found).max()
