"""Trajectories of links in the force of a quark monomial, kick by kick and drift by drift."""

import numpy as np

from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.updates.molecular_dynamics import DRIFT
from gauge_mc.updates.momenta import draw_momenta
from gauge_mc.updates.monomials import Failures
from tests.reference.fields import trace
from tests.reference.flow import algebra
from tests.reference.molecular_dynamics import derivative, logarithm, rates

SIZE = 0.05
"""Size of the drift from which momenta are read."""


def empty_momenta(field):
    """Momenta that are 0."""
    momenta = AlgebraField.like(field)
    for slab in momenta.slabs:
        slab.device.write(slab.buffer, 0, np.zeros(slab.buffer.nbytes, np.uint8))
    return momenta


def drift(field, momenta, size):
    """U <- exp(size P) U."""
    for slab, own in zip(field.slabs, momenta.slabs, strict=True):
        values = {"links": slab.buffer.address, "momenta": own.buffer.address, "drift": size}
        slab.launch(DRIFT, slab.whole(), **values)
    field.exchange_halo()


def matrices(field, momenta):
    """The momenta as matrices: those that move links of 1."""
    cold = Field.cold(field.lattice, field.group.name, field.precision, field.devices)
    drift(cold, momenta, SIZE)
    return logarithm(cold.to_numpy()) / SIZE


class OneChain:
    """A monomial of one chain, which refuses to go on without a solution.

    Parameters
    ----------
    term : Monomial
        The monomial, on links that are updated before a method is called.

    Attributes
    ----------
    drawn : Energy
        The action when pseudofermions were drawn.
    """

    def __init__(self, term):
        self.term = term
        self.memory = empty_momenta(term.field)

    @property
    def iterations(self):
        """Iterations of solvers since pseudofermions were drawn."""
        return int(self.term.iterations[0])

    def draw(self, random):
        """Draw pseudofermions."""
        failures = Failures()
        (self.drawn,) = self.term.draw([random], failures)
        failures.check()

    def action(self):
        """The value of the action."""
        failures = Failures()
        (found,) = self.term.actions(failures)
        failures.check()
        return found

    def kick(self, momenta, size):
        """A kick, and its force."""
        failures = Failures()
        found = self.term.kick(self.memory, momenta, {0: size}, failures)
        failures.check()
        return found[0]


def check_force(monomial, value, links, rng, tolerance=1e-11):
    """The force of a monomial is the derivative of a value in a random direction."""
    size, field = 0.25, monomial.field
    momenta = empty_momenta(field)
    OneChain(monomial).kick(momenta, size)
    noise = rng.normal(size=(2, *links.shape))
    towards = algebra(noise[0] + 1j * noise[1])
    towards /= np.sqrt(-2 * trace(towards @ towards).real)[..., None, None]
    expected = derivative(value, links, towards)
    changes = rates(matrices(field, momenta) / size, towards)
    assert abs(changes.sum() - expected) < tolerance * np.abs(changes).sum()


class Trajectory:
    """The molecular dynamics of a monomial of quarks alone.

    Parameters
    ----------
    links : TermLinks
        The links of the monomial.
    field : Field
        The links that move.
    monomial : OneChain
        The monomial.
    random : Random
        The numbers that the momenta are drawn with.
    """

    def __init__(self, links, field, monomial, random):
        self.links, self.field, self.monomial = links, field, monomial
        self.momenta = AlgebraField.like(field)
        self.kinetic = draw_momenta(self.momenta, random).kinetic

    def action(self):
        """The action of the links now."""
        self.links.take(self.field)
        return self.monomial.action()

    def kick(self, size):
        """A kick, which sets the kinetic energy."""
        self.links.take(self.field)
        force = self.monomial.kick(self.momenta, size)
        self.kinetic = force.kinetic
        return force

    def leapfrog(self, length, steps):
        """Steps that begin and end with half a drift."""
        size = length / steps
        for _ in range(steps):
            drift(self.field, self.momenta, size / 2)
            self.kick(size)
            drift(self.field, self.momenta, size / 2)
