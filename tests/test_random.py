"""Per-site generators on the device equal their definitions."""

import numpy as np
import pytest

from gauge_mc.devices.cpu import CpuDevice
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.random import Random
from gauge_mc.updates import heatbath
from tests.reference.randoms import lcg_next, lcg_start

LATTICE = Lattice(4, 6, 8, 10)


def test_lcg_starts_as_published():
    field = Field.cold(LATTICE, "su2", device=CpuDevice(1))
    random = Random.for_field(field, "lcg", seed=1)
    states = np.concatenate([random.stored(t).ravel() for t in range(LATTICE.t)])
    assert states.tolist() == lcg_start(LATTICE.sites)


def test_lcg_follows_its_recurrence(best_device):
    """At this alpha nearly all first proposals are accepted: 4 numbers and 6 for the direction."""
    field = Field.cold(LATTICE, "su2", "double", best_device)
    random = Random.for_field(field, "lcg", seed=1)
    before = np.stack([random.stored(t) for t in range(LATTICE.t)]).ravel()
    heatbath(field, 1e6, random)
    after = np.stack([random.stored(t) for t in range(LATTICE.t)]).ravel()
    for start, end in zip(before.tolist(), after.tolist(), strict=True):
        state, steps = start, 0
        while state != end and steps < 200:
            state, steps = lcg_next(state), steps + 1
        assert steps % 2 == 0
        assert steps >= 40


def test_states_survive_a_round_trip(best_device):
    field = Field.cold(LATTICE, "su2", device=best_device)
    random = Random.for_field(field, "lcg", seed=77)
    heatbath(field, 2.0, random)
    states = [random.stored(t) for t in range(LATTICE.t)]
    other = Random.for_field(field, "lcg", seed=1)
    for t, state in enumerate(states):
        other.restore(t, state)
    assert all(np.array_equal(other.stored(t), state) for t, state in enumerate(states))
    assert Random.for_field(field, "philox").stored(0) is None


@pytest.mark.parametrize(
    ("kind", "seed"), [("philox", -1), ("philox", 2**64), ("lcg", 0), ("lcg", 2**31 - 1), ("mt", 1)]
)
def test_wrong_seeds_and_generators_are_refused(kind, seed):
    field = Field.cold(Lattice(4, 4, 4, 4), "su2", device=CpuDevice(1))
    with pytest.raises(UsageError):
        Random.for_field(field, kind, seed)
