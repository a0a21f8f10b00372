"""Trajectories of several chains at once: each is what it is alone, in few launches."""

import numpy as np
import pytest

from gauge_mc.actions import ANISOTROPY, Coupling
from gauge_mc.devices import BACKENDS
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates import molecular_dynamics as moving_chains
from gauge_mc.updates.integrators import INTEGRATORS, Drift, Integrator, Kick
from gauge_mc.updates.molecular_dynamics import MolecularDynamics, bytes_of_trajectory
from gauge_mc.updates.monomials import Failures
from tests.reference.fields import random_field
from tests.reference.observables import loop_action
from tests.updates.every_action import loops_of
from tests.updates.moving import Moving
from tests.updates.test_integrators import DriftFirst

LATTICE = Lattice(4, 2, 8, 4)


class ShiftLast(Integrator):
    """An integrator whose last kick is one with the force of shifted links."""

    name = "shift-last"
    summary = "of the first order"
    order = 1
    step = (Drift(0.25), Kick(0.5), Drift(0.5), Kick(0.5, shift=0.1), Drift(0.25))


BETAS = (0.5, 5.3, 5.9, 1e300)
"""With the last one energies overflow, which is nothing to the others."""

STEPS = (2, 3, 2, 4)


def replicas_of(singles):
    """A field with the links of others."""
    field = singles[0].repeated(len(singles))
    for replica, one in zip(field.replicas, singles, strict=True):
        replica.copy(one)
    return field


def generators_for(field, singles, rng_name):
    """Random numbers for the replicas of a field, and the same ones for single fields."""
    alone = [Random.for_field(one, rng_name, seed=4 + n) for n, one in enumerate(singles)]
    memory = alone[0].repeated_states(len(singles))
    pairs = enumerate(zip(alone, field.replicas, strict=True))
    moved = [random.moved(replica, memory, n) for n, (random, replica) in pairs]
    for random in (*alone, *moved):
        random.step = 7
    return alone, moved


def bits(drawn, before, forces, after, links):
    """The results of a trajectory, bit for bit."""
    energies = (drawn.kinetic, before, forces.kinetic, after)
    sizes = np.array([drawn.uniform, forces.mean("gauge"), forces.largest("gauge")])
    stored = np.concatenate([one.reshape(-1) for one in links.packed_slices()])
    return [one.parts.tobytes() for one in energies], sizes.tobytes(), stored.tobytes()


CASES = [
    ("su3", "wilson", {}, "omf2", "philox", "double"),
    ("su2", "wilson", {}, "leapfrog", "ranlux", "single"),
    ("su2", "luscher-weisz", {"u0": 1.0}, DriftFirst(), "philox", "double"),
    ("su2", "rectangle", {"c1": -0.1, ANISOTROPY.name: 1.7}, "omf4", "lcg", "double"),
    ("su3", "wilson", {}, "force-gradient", "philox", "double"),
    ("su2", "rectangle", {"c1": -0.1}, ShiftLast(), "philox", "single"),
]


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("group", "action", "options", "integrator", "rng_name", "precision"),
    CASES,
    ids=[f"{case[0]}-{case[1]}-{getattr(case[3], 'name', case[3])}" for case in CASES],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_replicas_move_as_each_does_alone(
    group, action, options, integrator, rng_name, precision, rng, best_device
):
    """Each with its coupling, its options and its number of steps, whether odd or even."""
    links = [random_field(LATTICE.extents, group, rng) for _ in BETAS]
    singles = [Field.from_slices(LATTICE, group, one, precision, best_device) for one in links]
    couplings = [Coupling.of(beta, action, **options) for beta in BETAS]
    field = replicas_of(singles)
    alone, moved = generators_for(field, singles, rng_name)
    one = INTEGRATORS[integrator] if isinstance(integrator, str) else integrator
    trajectories = [one.trajectory(0.3, steps) for steps in STEPS]

    dynamics = MolecularDynamics(field, couplings, moved)
    for _ in range(2):  # the second time from the same links, with other momenta
        plan = dynamics.plan([["gauge"]], trajectories)
        dynamics.update_halos()
        draw, before = dynamics.begin_momenta(), dynamics.begin_actions(dynamics.start)()
        moving, after = dynamics.begin(plan, Failures()), dynamics.begin_actions(plan.ends)
        found = [draw(), before, moving(), after()]
        ended = [dynamics.links[end].replicas[n] for n, end in enumerate(plan.ends)]
        for n, random in enumerate(alone):
            single = Moving(singles[n], couplings[n], random)
            drawn, before = single.draw(), single.action()
            forces = single.move(trajectories[n])
            expected = bits(drawn, before, forces, single.action(), single.links)
            assert bits(*(part[n] for part in found), ended[n]) == expected
        assert not np.isfinite(float(found[3][-1]))
        for random in (*alone, *moved):
            random.step += 1

    accepted = [True, False, True, False]
    dynamics.accept(accepted, plan.ends)
    for n, (taken, replica) in enumerate(zip(accepted, field.replicas, strict=True)):
        expected = ended[n] if taken else singles[n]
        pairs = zip(replica.packed_slices(), expected.packed_slices(), strict=True)
        assert all(mine.tobytes() == other.tobytes() for mine, other in pairs)


def test_actions_of_replicas_are_those_of_their_couplings(rng, best_device):
    links = [random_field(LATTICE.extents, "su3", rng) for _ in range(3)]
    singles = [Field.from_slices(LATTICE, "su3", one, "double", best_device) for one in links]
    options = [{"beta": 5.3}, {"beta": 2.0}, {"beta": 5.3, "xi": 1.4}]
    couplings = [
        Coupling.of(one["beta"], "wilson", **{ANISOTROPY.name: one.get("xi", 1.2)})
        for one in options
    ]
    field = replicas_of(singles)
    _, moved = generators_for(field, singles, "philox")
    dynamics = MolecularDynamics(field, couplings, moved)
    actions = dynamics.begin_actions(dynamics.start)()
    for found, one, coupling in zip(actions, links, couplings, strict=True):
        expected = coupling.beta * loop_action(one, loops_of(coupling.action))
        assert float(found) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(
    ("busy", "free", "most", "expected"),
    [
        (2, 1e9, 9, [2, 2, 1]),
        (3, 1e9, 9, [3, 2]),
        (100, 4.2, 9, [2, 2, 1]),
        (0, 0, 9, [1] * 5),
        (9, 1e9, 9, [5]),
        (9, 1e9, 3, [3, 2]),
    ],
)
def test_replicas_are_divided_by_what_a_device_can_take(monkeypatch, busy, free, most, expected):
    from gauge_mc.devices.cpu.device import CpuDevice

    device = CpuDevice(threads=1)
    field = Field.empty(LATTICE, "su2", "double", device, replicas=5)
    each = bytes_of_trajectory(field)
    monkeypatch.setattr(device, "free_bytes", lambda: int(free * each))
    sites = busy * LATTICE.sites
    monkeypatch.setattr(type(BACKENDS["cpu"]), "busy_sites", sites)
    groups = moving_chains.divided(field, each, most=most)
    assert [len(range(5)[one]) for one in groups] == expected
    assert [n for one in groups for n in range(5)[one]] == [*range(5)]
