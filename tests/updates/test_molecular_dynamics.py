"""Momenta, forces and trajectories on devices, against exact values and NumPy."""

import dataclasses

import numpy as np
import pytest

from gauge_mc import open_device_group
from gauge_mc.actions import ACTIONS, Coupling
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.integrators import INTEGRATORS, Drift, Kick, TimeScales, TrajectoryLevel
from gauge_mc.updates.momenta import draw_momenta
from gauge_mc.updates.monomials.gauge import gauge_actions
from tests.reference.fields import random_field, trace
from tests.reference.flow import algebra
from tests.reference.molecular_dynamics import exponential
from tests.reference.observables import loop_action, loop_staple
from tests.updates.every_action import BETA, TOY, coupling_of, every_action, loops_of
from tests.updates.links import start, unitarity_violation
from tests.updates.monomials.trajectories import matrices
from tests.updates.moving import GaugeTerm, Moving
from tests.updates.test_integrators import DriftFirst

LATTICE = Lattice(4, 6, 8, 4)
SMALL = Lattice(4, 4, 4, 4)

DRAWS = 16
"""Number of drawn fields of momenta, which determine variances to 0.7 %."""

SIGMAS = 5
"""Bound of deviations in units of their standard deviation."""


def generators(n):
    """Matrices T_a with Tr T_a T_b = delta_ab / 2."""
    found = []
    for i in range(n):
        for j in range(i):
            for value in (0.5, -0.5j):
                one = np.zeros((n, n), complex)
                one[i, j], one[j, i] = value, np.conj(value)
                found.append(one)
    for k in range(1, n):
        found.append(np.diag([1.0] * k + [-k] + [0.0] * (n - 1 - k)) / np.sqrt(2 * k * (k + 1)))
    return np.array(found)


@pytest.mark.longer
@pytest.mark.parametrize(
    ("group", "rng_name"),
    [
        ("su2", "philox"),
        ("su3", "philox"),
        ("su3", "ranlux"),
        ("su3", "lcg"),
        pytest.param("su4", "philox", marks=pytest.mark.slow),
        pytest.param("su5", "philox", marks=pytest.mark.slow),
    ],
)
def test_momenta_are_normal_and_independent(group, rng_name, best_device):
    field = Field.cold(LATTICE, group, "double", best_device)
    momenta = AlgebraField.like(field)
    random = Random.for_field(field, rng_name, seed=11)
    found = []
    for random.step in range(1, DRAWS + 1):
        drawn = draw_momenta(momenta, random)
        p = matrices(field, momenta)
        n = p.shape[-1]
        values = -2j * np.einsum("...ij,aji->...a", p, generators(n))
        assert np.abs(values.imag).max() < 1e-12
        assert float(drawn.kinetic) == pytest.approx((values.real**2).sum() / 2, rel=1e-12)
        assert 0 < drawn.uniform < 1
        found.append(values.real)
    values = np.reshape(found, (-1, n * n - 1))
    links, dimension = values.shape
    assert links == DRAWS * LATTICE.links
    # The k-th moment of n numbers varies by sqrt((m_2k - m_k^2) / n).
    for power, mean, square in ((1, 0, 1), (2, 1, 3), (3, 0, 15), (4, 3, 105), (6, 15, 10395)):
        error = np.sqrt((square - mean**2) / links)
        assert np.abs((values**power).mean(axis=0) - mean).max() < SIGMAS * error
    correlations = values.T @ values / links - np.eye(dimension)
    np.fill_diagonal(correlations, 0)
    assert np.abs(correlations).max() < SIGMAS / np.sqrt(links)
    by_link = values.reshape(DRAWS, *LATTICE.extents[::-1], 4, dimension)
    for axis in range(6):
        neighbours = (by_link * np.roll(by_link, 1, axis)).mean()
        assert abs(neighbours) < SIGMAS / np.sqrt(values.size)


def test_numbers_for_the_acceptance_are_uniform_and_new_in_every_trajectory(best_device):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", "double", best_device)
    momenta, random = AlgebraField.like(field), Random.for_field(field, seed=5)
    found = []
    for _ in range(200):
        random.step += 1
        found.append(draw_momenta(momenta, random).uniform)
    ordered, count = np.sort(found), len(found)
    assert len({*found}) == count
    # Kolmogorov and Smirnov: exceeded once in 10^5.
    assert np.abs(ordered - (np.arange(count) + 0.5) / count).max() < 2.5 / np.sqrt(count)


all_actions = every_action(("wilson", False), ("wilson", True), ("symanzik", False), TOY)
"""Quick actions have kernels of their own, except for the toy."""


@pytest.mark.longer
@all_actions
@pytest.mark.parametrize("group", ["su3", pytest.param("su4", marks=pytest.mark.slow)])
def test_action_and_force_are_those_of_numpy(group, action, anisotropic, rng, best_device):
    coupling = coupling_of(action, anisotropic, group)
    lattice = Lattice(4, 6, 8, 10)
    links = random_field(lattice.extents, group, rng)
    field = Field.from_slices(lattice, group, links, "double", best_device)
    moving = Moving(field, coupling)
    moving.momenta.clear()
    loops = loops_of(coupling.action)
    value = coupling.beta * loop_action(links.astype(np.clongdouble), loops)
    assert float(moving.action()) == pytest.approx(float(value), rel=1e-13)
    found = moving.kick(0.25)
    scale = 0.25
    force = matrices(field, moving.momenta) / scale
    # Sizes of the force, and the energy of the momenta.
    squares = -2 * trace(force @ force).real
    assert found.mean == pytest.approx(np.sqrt(squares.mean()), rel=1e-12)
    assert found.largest == pytest.approx(np.sqrt(squares.max()), rel=2e-7)
    assert float(found.kinetic) == pytest.approx(scale**2 * squares.sum() / 2, rel=1e-12)

    factor = coupling.beta / (2 * links.shape[-1])
    for mu in range(4):
        expected = -factor * algebra(links[..., mu, :, :] @ loop_staple(links, mu, loops))
        np.testing.assert_allclose(force[..., mu, :, :], expected, rtol=0, atol=1e-12)


@pytest.mark.first_quick
@all_actions
def test_a_kick_and_a_drift_at_once_are_one_after_the_other(action, anisotropic, rng, best_device):
    """They are another kernel than the kick whose force is compared with NumPy."""
    coupling = coupling_of(action, anisotropic)
    lattice = Lattice(4, 6, 4, 8)
    field = Field.from_slices(
        lattice, "su3", random_field(lattice.extents, "su3", rng), "double", best_device
    )
    moving, found = Moving(field, coupling, Random.for_field(field, seed=5)), []
    for at_once in (True, False):
        moving.random.step, moving.links = 1, field
        moving.draw()
        moves = [Kick(0.02), Drift(0.03), Kick(0.0)]
        if not at_once:
            moving.kick(0.02)
            moves = [Kick(0.0), *moves[1:]]
        kinetic = moving.move(moves).kinetic
        found.append((moving.links.to_numpy(), float(kinetic)))
    (links, kinetic), (other, same) = found
    np.testing.assert_allclose(links, other, atol=1e-13)
    assert kinetic == pytest.approx(same, rel=1e-13)


ALL = [*INTEGRATORS, DriftFirst()]


def thermalised(group, device, lattice=SMALL):
    """Links that move with the Wilson action, from the same beginning."""
    beta = {"su2": 2.3, "su3": 5.7}[group]
    field = Field.from_slices(lattice, group, start(lattice, group), "double", device)
    return Moving(field, Coupling.of(beta), Random.for_field(field, seed=3))


def change_of_energy(moving, moves):
    """Carry out a trajectory from the beginning, with the momenta of the random numbers."""
    moving.links = moving.field
    kinetic, before = moving.draw().kinetic, moving.action()
    force = moving.move(moves)
    return (force.kinetic + moving.action()).minus(kinetic + before)


@pytest.mark.parametrize("integrator", ALL, ids=lambda one: getattr(one, "name", one))
@pytest.mark.parametrize("group", ["su2", "su3"])
def test_the_energy_changes_with_a_power_of_the_step(group, integrator, fast_device):
    moving = thermalised(group, fast_device)
    one = INTEGRATORS[integrator] if isinstance(integrator, str) else integrator
    length, coarse = 0.4, 8
    changes = [change_of_energy(moving, one.trajectory(length, n)) for n in (coarse, 2 * coarse)]
    # Corrections are of the relative order (frequency * step)^2 / 10, with frequencies of up to 4.
    # Energies of some thousands are rounded to 1e-12.
    assert abs(changes[1]) > 1e-10
    assert changes[0] / changes[1] == pytest.approx(2.0**one.order, rel=0.15)


@pytest.mark.parametrize("integrator", ALL, ids=lambda one: getattr(one, "name", one))
@pytest.mark.parametrize("group", ["su2", "su3"])
def test_trajectories_are_reversible(group, integrator, best_device):
    moving = thermalised(group, best_device)
    one = INTEGRATORS[integrator] if isinstance(integrator, str) else integrator
    begin = moving.field.to_numpy()
    moves = one.trajectory(1.0, 10)
    kinetic = moving.draw().kinetic
    moving.move(moves)
    away = moving.links.to_numpy()
    assert np.abs(away - begin).max() > 0.1
    # Backwards in time is with negative kicks and drifts.
    moving.go_on()
    back = moving.move([backwards(move) for move in moves])
    assert np.abs(moving.links.to_numpy() - begin).max() < 1e-11
    assert float(back.kinetic) == pytest.approx(float(kinetic), rel=1e-11)


def test_trajectories_leave_their_start_alone_and_one_another(best_device, rng):
    """Also with an odd number of drifts, and with a drift first, which moves links in place."""
    lattice, level = Lattice(4, 4, 2, 4), [Kick(0.1), Drift(0.1), Kick(0.1)]
    starts = [random_field(lattice.extents, "su2", rng) for _ in range(2)]
    fields = [Field.from_slices(lattice, "su2", one, "double", best_device) for one in starts]
    shared = [Moving(one, Coupling.of(BETA)) for one in fields]
    for moves in (level, [Drift(0.2), *level], [*level, Drift(0.1), Kick(0.1)], level):
        for used, field, links in zip(shared, fields, starts, strict=True):
            found = []
            for moving in (used, Moving(field, Coupling.of(BETA))):
                moving.momenta.clear()
                moving.move(moves)
                found.append(moving.links.to_numpy())
            assert np.array_equal(*found)
            np.testing.assert_allclose(field.to_numpy(), links, atol=1e-14)
            assert np.abs(found[0] - links).max() > 1e-3


def backwards(move):
    """The part of a trajectory that takes another one back; shifts have the square of the step."""
    return dataclasses.replace(move, size=-move.size)


def test_a_kick_with_a_shift_has_the_force_of_shifted_links(best_device, rng):
    lattice, (size, shift) = Lattice(4, 6, 4, 8), (0.03, 0.02)
    links = random_field(lattice.extents, "su3", rng)

    def force(links, moves):
        one = Field.from_slices(lattice, "su3", links, "double", best_device)
        moving = Moving(one, Coupling.of(BETA))
        moving.momenta.clear()
        moving.move(moves)
        assert np.array_equal(moving.links.to_numpy(), one.to_numpy())
        return matrices(one, moving.momenta)

    plain = force(links, [Kick(1e-2)]) / 1e-2
    shifted = exponential((shift * plain).astype(np.clongdouble)) @ links
    expected = force(shifted.astype(complex), [Kick(size)])
    found = force(links, [Kick(size, shift=shift), Kick(0.0)])
    assert np.abs(found - expected).max() < 1e-12
    assert np.abs(expected - size * plain).max() > 1e-3


SPLIT = (1.6, 0.7)
"""Parts of beta = 2.3 on two levels."""


def split(scales, steps, device, return_=False):
    """A trajectory of SU(2) in the forces of two parts of the action; dH, and the links after it.

    With `return_` the way back is added, and the links are compared with those before.
    """
    field = thermalised("su2", device).field
    outer, inner = (Coupling.of(beta) for beta in SPLIT)
    given = Random.for_field(field, seed=3), [lambda own: GaugeTerm(own.field, "outer", outer)]
    moving = Moving(field, inner, *given)

    def action():
        return gauge_actions(moving.links, [outer])[0] + moving.action()

    levels = [["outer"], ["gauge"]]
    kinetic, before = moving.draw().kinetic, action()
    moves = scales.trajectory(1.0, steps)
    found = moving.move(moves, levels)
    if return_:
        moving.go_on()
        moving.move([backwards(one) for one in moves], levels)
    return (found.kinetic + action()).minus(kinetic + before), moving.links.to_numpy(), found


def two_levels(outer, inner, steps):
    """Time scales of two levels, both with a force."""
    return TimeScales.of(
        (TrajectoryLevel(outer, 0), TrajectoryLevel(inner, steps)), INTEGRATORS[outer], {0, 1}
    )


def test_levels_with_the_same_steps_are_one_level(best_device):
    """Kicks commute with each other, so that those of both levels are those of the sum."""
    scales = two_levels("leapfrog", "leapfrog", 1)
    change, links, found = split(scales, 12, best_device)
    moving = thermalised("su2", best_device)
    moves = INTEGRATORS["leapfrog"].trajectory(1.0, 12)
    assert change == pytest.approx(change_of_energy(moving, moves), rel=1e-9)
    np.testing.assert_allclose(links, moving.links.to_numpy(), atol=1e-12)
    assert [len(found.of[name]) for name in ("outer", "gauge")] == [13, 1]


@pytest.mark.longer
@pytest.mark.parametrize(
    ("outer", "inner"),
    [
        ("leapfrog", "omf4"),
        ("omf2", "leapfrog"),
        ("force-gradient", "omf4"),
        ("omf4", "force-gradient"),
    ],
)
def test_the_energy_changes_with_the_step_of_the_outer_level(outer, inner, fast_device):
    """With all steps halved at once, and without the errors of the inner level with many steps."""
    few = [split(two_levels(outer, inner, 2), n, fast_device)[0] for n in (16, 32)]
    order = min(INTEGRATORS[one].order for one in (outer, inner))
    assert few[0] / few[1] == pytest.approx(2.0**order, rel=0.15)
    finer = [split(two_levels(outer, inner, n), 16, fast_device)[0] for n in (8, 16)]
    assert finer[0] == pytest.approx(finer[1], rel=0.05)
    assert finer[0] != few[0]


@pytest.mark.parametrize("integrators", [("omf2", "omf4"), ("force-gradient", "force-gradient")])
def test_nested_trajectories_are_reversible(integrators, best_device):
    scales = two_levels(*integrators, 3)
    begin = thermalised("su2", best_device).field.to_numpy()
    assert np.abs(split(scales, 4, best_device)[1] - begin).max() > 0.1
    _, links, _ = split(scales, 4, best_device, return_=True)
    assert np.abs(links - begin).max() < 1e-11


@pytest.mark.parametrize("level", [0, 1])
def test_the_gauge_action_may_be_on_any_level(level, best_device):
    """Without a force on the other level, its steps only divide those of the gauge action."""
    scales = TimeScales.of(
        (TrajectoryLevel("leapfrog", 0), TrajectoryLevel("omf2", 3)), INTEGRATORS["omf2"], {level}
    )
    moving = thermalised("su2", best_device)
    levels = [[], []]
    levels[level] = ["gauge"]
    moving.draw()
    found = moving.move(scales.trajectory(0.5, 4), levels)
    other = thermalised("su2", best_device)
    name, steps = (("leapfrog", 4), ("omf2", 12))[level]
    change_of_energy(other, INTEGRATORS[name].trajectory(0.5, steps))
    np.testing.assert_allclose(moving.links.to_numpy(), other.links.to_numpy(), atol=1e-12)
    assert found.of.keys() == {"gauge"}


@pytest.mark.longer
def test_links_stay_in_the_group_however_many_steps_there_are(best_device):
    """Rounding errors would add up to some 1e-14 if rows were not normalised after every drift."""
    moving = thermalised("su3", best_device)
    change_of_energy(moving, INTEGRATORS["leapfrog"].trajectory(4.0, 400))
    assert unitarity_violation(moving.links.to_numpy()) < 16 * np.finfo(float).eps


@pytest.mark.slow
@pytest.mark.parametrize("devices", ["cpu:2", "cpu:3"])
@pytest.mark.parametrize("integrator", ["omf2", "force-gradient"])
@pytest.mark.parametrize(
    "name", ["wilson", "symanzik", pytest.param("luscher-weisz", marks=pytest.mark.slow)]
)
def test_slabs_have_the_bits_of_the_whole(name, devices, integrator, rng):
    lattice = Lattice(4, 4, 4, 12)
    links, found = random_field(lattice.extents, "su3", rng), []
    coupling = coupling_of(ACTIONS[name])
    for group in map(open_device_group, ("cpu", devices)):
        field = Field.from_slices(lattice, "su3", links, "double", group)
        moving = Moving(field, coupling, Random.for_field(field, seed=9))
        drawn, before = moving.draw(), moving.action()
        force = moving.move(INTEGRATORS[integrator].trajectory(0.2, 3))
        after = moving.action()
        energies = (drawn.kinetic, before, force.kinetic, after)
        sizes = force.mean("gauge"), force.largest("gauge")
        rest = (drawn.uniform, *sizes, moving.links.to_numpy().tobytes())
        found.append((*(one.parts.tobytes() for one in energies), *rest))
    assert found[0] == found[1]
