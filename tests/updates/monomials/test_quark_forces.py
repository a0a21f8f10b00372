"""Actions and forces of quarks against NumPy in extended precision, and what they must fulfil."""

import numpy as np
import pytest

from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quarks.normal import QuarkSolver
from gauge_mc.updates.molecular_dynamics import MolecularDynamics
from gauge_mc.updates.monomials.ratio import Ratio
from gauge_mc.updates.monomials.two_flavours import TwoFlavours
from gauge_mc.updates.quark_links import QuarkLinks
from tests.reference import pseudofermions as reference
from tests.reference.fields import random_field, trace
from tests.reference.flow import algebra
from tests.reference.molecular_dynamics import derivative, rates
from tests.reference.pseudofermions import Quark
from tests.updates.test_molecular_dynamics import momenta_of

LATTICE = Lattice(2, 4, 2, 2)
ANTIPERIODIC = (1, 1, 1, -1)
TWISTED = (np.exp(0.3j), 1, np.exp(-0.7j), -1)
KAPPA = 0.12
HEAVY = 0.1
EXACT = QuarkSolver(force_tolerance=1e-13, action_tolerance=1e-14)
TWO_SOLVES = QuarkSolver("bicgstab", force_tolerance=1e-13, action_tolerance=1e-14)


class Quarks:
    """A monomial on random links, and its action in NumPy."""

    def __init__(self, links, group, device, light, heavy=None, solver=EXACT, lattice=LATTICE):
        self.field = Field.from_slices(lattice, group, links, "double", device)
        self.links = QuarkLinks(self.field)
        self.light, self.heavy = light, heavy
        operators = [self.operator(one) for one in (light, heavy) if one]
        kind = Ratio if heavy else TwoFlavours
        self.monomial = kind(*operators, solver, 0)
        self.random = Random.for_field(self.field, seed=3)
        self.random.step = 1

    def operator(self, quark):
        name, mu = ("twisted-mass", {"mu": quark.mu}) if quark.mu else ("wilson", {})
        return self.links.operator(name, quark.kappa, quark.phases, **mu)

    def draw(self):
        """Draw pseudofermions, and return them."""
        self.monomial.draw(self.field, self.random)
        own = self.monomial._phi if self.heavy else self.monomial._system.phi
        return reference.even(own.to_numpy()[0])

    def action(self):
        """The value of the action on the links now."""
        self.links.take(self.field)
        return float(self.monomial.action(self.field))

    def kick(self, size=0.25):
        """What a kick says about the force, and the force that it exerts."""
        dynamics = MolecularDynamics(self.field)
        for slab in dynamics.momenta.slabs:
            slab.device.write(slab.buffer, 0, np.zeros(slab.buffer.nbytes, np.uint8))
        found = self.monomial.kick(self.field, dynamics.momenta, size)
        return found, momenta_of(dynamics) / size

    def reference(self, links, phi):
        """The action in NumPy."""
        if self.heavy:
            return reference.ratio(links, phi, self.light, self.heavy)
        return reference.two_flavours(links, phi, self.light)


CASES = {
    "wilson": (Quark(KAPPA, ANTIPERIODIC), None, EXACT),
    "periodic": (Quark(KAPPA, (1, 1, 1, 1)), None, TWO_SOLVES),
    "twisted mass": (Quark(KAPPA, TWISTED, 0.3), None, EXACT),
    "two solves": (Quark(KAPPA, TWISTED, 0.3), None, TWO_SOLVES),
    "ratio": (Quark(KAPPA, ANTIPERIODIC), Quark(HEAVY, ANTIPERIODIC), EXACT),
    "twisted ratio": (Quark(KAPPA, TWISTED, 0.1), Quark(KAPPA, TWISTED, 0.4), TWO_SOLVES),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("group", ["su3", *(f"su{n}" for n in (2, 4))])
def test_the_force_is_the_derivative_of_the_action(group, case, rng, best_device):
    light, heavy, solver = CASES[case]
    links = random_field(LATTICE.extents, group, rng)
    quarks = Quarks(links, group, best_device, light, heavy, solver)
    phi = quarks.draw()
    drawn = float(quarks.monomial.action(quarks.field))
    assert drawn == pytest.approx(quarks.action(), rel=1e-12)
    assert drawn == pytest.approx(float(quarks.reference(links, phi)), rel=1e-12)
    found, force = quarks.kick()
    squares = -2 * trace(force @ force).real
    assert found.mean == pytest.approx(np.sqrt(squares.mean()), rel=1e-11)
    assert found.largest == pytest.approx(np.sqrt(squares.max()), rel=2e-7)
    assert float(found.kinetic) == pytest.approx(0.25**2 * squares.sum() / 2, rel=1e-11)

    noise = rng.normal(size=(2, *links.shape))
    towards = algebra(noise[0] + 1j * noise[1])
    towards /= np.sqrt(-2 * trace(towards @ towards).real)[..., None, None]
    wide = phi.astype(np.clongdouble)
    expected = derivative(lambda u: quarks.reference(u, wide), links, towards)
    changes = rates(force, towards)
    assert abs(changes.sum() - expected) < 1e-11 * np.abs(changes).sum()
