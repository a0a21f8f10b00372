"""One chain that moves, and a gauge action that acts as other terms do, for tests."""

from gauge_mc.fields.gradient_flow import LargestValues
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.chain_steps import ChainSteps, KickAndDrift
from gauge_mc.updates.molecular_dynamics import MolecularDynamics
from gauge_mc.updates.momenta import draw_momenta
from gauge_mc.updates.monomials import Failures, Monomial
from gauge_mc.updates.monomials.gauge import GaugeMonomial, gauge_actions


def gauge_kick(monomial, links, momenta, size):
    """Do a kick of a chain alone, and return its force."""
    steps = ChainSteps(0, 0, True, ((0, KickAndDrift(size, 0.0)),))
    largest = LargestValues(links)
    return monomial.begin_kick(links, momenta, steps, None, largest)()[0]


class GaugeTerm(Monomial):
    """A gauge action that acts as other terms do."""

    def __init__(self, field, name, coupling):
        super().__init__(field, name)
        self.gauge = GaugeMonomial([coupling], field)

    def actions(self, failures):
        return gauge_actions(self.field, self.gauge.couplings)

    def add_force(self, force, wanted, failures):
        gauge_kick(self.gauge, self.field, force, 1.0)


class Moving:
    """The molecular dynamics of one chain, whose trajectories begin where the last one ended.

    Parameters
    ----------
    field : Field
        The links with which trajectories begin.
    coupling : Coupling
        The gauge action.
    random : Random, optional
        The numbers that momenta are drawn with.
    make : sequence of callable
        See `MolecularDynamics`.
    """

    def __init__(self, field, coupling, random=None, make=()):
        self.random = random or Random.for_field(field, seed=1)
        self.dynamics = MolecularDynamics(field, [coupling], [self.random], make)
        self.links = self.field = field
        self.gauge, self.momenta = self.dynamics.gauge, self.dynamics.momenta

    def draw(self):
        """Draw momenta, and return what else was drawn."""
        return draw_momenta(self.momenta, self.random)

    def action(self):
        """The gauge action of the links now."""
        return gauge_actions(self.links, self.gauge.couplings)[0]

    def kick(self, size):
        """A kick of the gauge action."""
        return gauge_kick(self.gauge, self.links, self.momenta, size)

    def move(self, moves, levels=(("gauge",),)):
        """Move the links, and return the forces; the field does not change."""
        self.dynamics.update_halos()
        plan = self.dynamics.plan(levels, [moves])
        (forces,) = self.dynamics.begin(plan, Failures())()
        self.end, self.links = plan.ends, self.dynamics.links[plan.ends[0]]
        return forces

    def go_on(self):
        """Let the next trajectory begin with the links now."""
        self.dynamics.accept([True], self.end)
        self.links = self.field
