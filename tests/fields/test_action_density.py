"""The action of a field, against its staples by differences, and against loops in NumPy."""

import numpy as np
import pytest

from gauge_mc import action_density, open_device_group
from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.domain.lattice import PLAQUETTES, Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.gradient_flow import GradientFlow
from gauge_mc.flows import Flow
from tests.reference.fields import dagger, random_field, trace
from tests.reference.flow import algebra, exponential
from tests.reference.observables import loop_action
from tests.updates.every_action import BETA, TOY, XI0, coupling_of, every_action, loops_of

LATTICE = Lattice(4, 6, 8, 4)
STEP = 2e-4
"""Step of differences. The rates of change are below 50 in units of the sum of the coefficients, so
that errors are about (50 * 2e-4)^4, and those of rounding 1e-16 / 2e-4."""
TOLERANCE = 1e-8


class ActionFlow(Flow):
    """The steepest descent of an action, whose staples move links."""

    name = "action"
    fastest = 100.0

    def __init__(self, coupling, group):
        self.action, self.coefficients = coupling.action.choice, coupling.coefficients(group)
        self.halo_depth = coupling.action.halo_depth


def derivative(values):
    """The derivative at 0, given a function, with an error of fourth order."""
    near = (values(STEP) - values(-STEP)) / (2 * STEP)
    far = (values(2 * STEP) - values(-2 * STEP)) / (4 * STEP)
    return (4 * near - far) / 3


@pytest.mark.slow
@every_action(("wilson", False), ("symanzik", True), (TOY[0], True))
def test_the_action_changes_as_its_staples_say(action, anisotropic, rng, monkeypatch):
    """dS = weight Re Tr(X Z) for dU = X U, where Z is the force that the staples give."""
    coupling = coupling_of(action, anisotropic)
    if not coupling.action.loops:
        pytest.skip("the action declares no loops")
    links = random_field(LATTICE.extents, "su3", rng)
    field = Field.from_slices(LATTICE, "su3", links, "double")
    monkeypatch.setattr("gauge_mc.fields.gradient_flow.check_depth", lambda *_: None)
    flow = GradientFlow(ActionFlow(coupling, field.group), field)

    unit = 1 / (XI0 * sum(map(abs, coupling.action.loops.values())))

    def flowed(t):
        flow.start(field)
        flow.step(t * unit)
        return flow.field.to_numpy()

    force = algebra(derivative(flowed) @ dagger(links)) / unit

    def compared(towards):
        """Return the change of the action in a direction, and Re Tr(X Z) of every link."""

        def value(t):
            moved = Field.from_slices(LATTICE, "su3", exponential(t * towards) @ links, "double")
            return LATTICE.sites * action_density(moved, BETA, coupling.action)

        return derivative(value), trace(towards @ force).real

    weight = coupling.coefficients(field.group).get("beta_over_n")
    if weight is None:  # only the header says what it is: the steepest descent shows it
        change, products = compared(-force / np.abs(force).max())
        weight = change / products.sum()
    towards = algebra(rng.normal(size=links.shape) + 1j * rng.normal(size=links.shape))
    change, products = compared(towards)
    assert abs(change - weight * products.sum()) < TOLERANCE * abs(weight) * np.abs(products).sum()


def test_it_is_that_of_loops_in_numpy(rng):
    """In two slabs, without a difference from one."""
    links = random_field(LATTICE.extents, "su3", rng)
    field = Field.from_slices(LATTICE, "su3", links, "double", open_device_group("cpu:2"))
    field.exchange_halo(None)
    for name, options in (("luscher-weisz", {"u0": 0.9}), ("symanzik", {"anisotropy": XI0})):
        chosen = Coupling.of(1.0, name, **options).action
        expected = loop_action(links, loops_of(chosen)) / LATTICE.sites
        assert action_density(field, BETA, chosen) == pytest.approx(BETA * expected, rel=1e-12)


def test_averages_are_enough():
    """Those of a table, for example."""
    coupling = Coupling.of(6.0, anisotropy=2.0)
    assert coupling.density({PLAQUETTES: (0.6, 0.5)}) == pytest.approx(6 * 3 * (0.4 / 2 + 0.5 * 2))


def test_an_action_without_loops_has_no_value(monkeypatch):
    monkeypatch.setattr(type(ACTIONS["wilson"]), "loops", {})
    with pytest.raises(UsageError, match="The action wilson declares no loops"):
        action_density(Field.cold(Lattice(4, 4, 4, 4), "su2"), 2.0)
