"""Pseudofermions on given links: forces, trajectories, and weights between two sets of links."""

import numpy as np
import pytest

from gauge_mc.fields.random_field import Random
from gauge_mc.updates.terms import TermLinks
from tests.extensions.quarks.links import field_of
from tests.reference.fields import trace
from tests.reference.flow import algebra, exponential
from tests.reference.molecular_dynamics import rates
from tests.updates.monomials.trajectories import OneChain, Trajectory, empty_momenta, matrices


class QuarksOnLinks:
    """A monomial on given links, which is made on `TermLinks`, and its random numbers."""

    def __init__(self, links, device, make):
        self.field = field_of(links, device)
        self.links = TermLinks(self.field)
        self.monomial = OneChain(make(self.links))
        self.random = Random.for_field(self.field, seed=3)
        self.random.step = 1

    def action(self):
        self.links.take(self.field)
        return float(self.monomial.action())

    def kick(self, size=0.25):
        """What a kick says about the force, and the force that it exerts."""
        momenta = empty_momenta(self.field)
        said = self.monomial.kick(momenta, size)
        return said, matrices(self.field, momenta) / size

    def trajectory(self, links=None):
        """The molecular dynamics, from other links if they are given."""
        if links is not None:
            self.field.copy(field_of(links, self.field.devices))
            self.field.exchange_halo()
        return Trajectory(self.links, self.field, self.monomial, self.random)

    def short_trajectory(self):
        """Pseudofermions, energies and links of a short trajectory."""
        phi, begin = self.draw(), self.monomial.drawn.parts
        trajectory = self.trajectory()
        trajectory.leapfrog(0.2, 2)
        end = trajectory.action().parts
        return [phi, begin, end, trajectory.kinetic.parts, self.field.to_numpy()]


def direction(links, rng):
    """A random element of the algebra of size 1 for every link."""
    noise = rng.normal(size=(2, *links.shape))
    towards = algebra(noise[0] + 1j * noise[1])
    return towards / np.sqrt(-2 * trace(towards @ towards).real)[..., None, None]


def near_one(lattice, colours, rng, size=0.3):
    """Links around 1, as those of a configuration are."""
    noise = rng.normal(size=(2, *lattice.extents[::-1], 4, colours, colours))
    return exponential(size * algebra(noise[0] + 1j * noise[1]))


def difference(action, links, towards):
    """The derivative of an action by differences of eighth order.

    Rounding leaves 1e-15 of the action / step.
    """
    step, numbers = 0.02, {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    at = {k: action(exponential(k * step * towards) @ links) for k in range(-4, 5)}
    return sum(w * (at[k] - at[-k]) for k, w in numbers.items()) / step


def check_rate(force, towards, expected, tolerance=1e-11, least=1e-3):
    """Check the rate at which a force changes the action in a direction, which is not small."""
    changes = rates(force, towards)
    assert abs(changes.sum() - expected) < tolerance * np.abs(changes).sum()
    assert abs(expected) >= least * np.abs(changes).sum()


def check_trajectories(quarks, links, fine, tolerance):
    """Check that trajectories are of second order, and reversible; return what energy is left."""
    quarks.draw()
    changes = []
    for steps in (fine // 2, fine):
        trajectory = quarks.trajectory(links)
        kinetic, before = trajectory.kinetic, trajectory.action()
        trajectory.leapfrog(0.8, steps)
        changes.append(trajectory.kinetic.minus(kinetic) + trajectory.action().minus(before))
    assert abs(changes[1]) > 1e-4
    assert changes[0] / changes[1] == pytest.approx(4, rel=0.15)
    assert np.abs(quarks.field.to_numpy() - links).max() > 0.1
    trajectory.leapfrog(-0.8, fine)
    assert np.abs(quarks.field.to_numpy() - links).max() < tolerance
    return abs(trajectory.kinetic.minus(kinetic)) / float(kinetic)


def check_weights(quarks, moved, logs, components, draws):
    """Check <exp(S(U) - S(U'))> over fields phi drawn for U, and the mean of S(U).

    `logs` are those of the weight on U and on U', and phi has so many complex components.
    """
    fields, actions = [quarks.field, field_of(moved, quarks.field.devices)], []
    for quarks.random.step in range(1, draws + 1):
        quarks.links.take(fields[0])
        quarks.draw()
        before = float(quarks.monomial.drawn)
        quarks.links.take(fields[1])
        actions.append((before, float(quarks.monomial.action())))
    drawn, after = np.transpose(actions)
    assert abs(drawn.mean() - components) < 4 * np.sqrt(components / draws)
    weights = np.exp(drawn - after)
    error = weights.std() / np.sqrt(draws)
    expected = np.exp(logs[1] - logs[0])
    assert abs(weights.mean() - expected) < 4 * error
    assert abs(expected - 1) > 5 * error
