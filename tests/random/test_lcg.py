"""The linear congruential generator draws what its definition says."""

import math

import numpy as np
import pytest

from gauge_mc import actions
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.heatbath import heatbath
from tests.reference import randoms
from tests.reference.randoms import lcg_next, lcg_start

LATTICE = Lattice(4, 6, 8, 10)
SMALL = Lattice(4, 4, 4, 4)


def states(random):
    return np.stack(list(random.packed_slices()))


def test_lcg_starts_as_published():
    field = Field.cold(LATTICE, "su2", device=CpuDevice(1))
    assert states(Random.for_field(field, "lcg", seed=1)).ravel().tolist() == lcg_start(
        LATTICE.sites
    )


def test_lcg_follows_its_recurrence(best_device, monkeypatch):
    """At this alpha nearly all first proposals are accepted: 4 numbers and 2 for the direction."""
    monkeypatch.setattr(actions, "LARGEST_SHARE", math.inf)  # a run would be refused
    field = Field.cold(LATTICE, "su2", "single", best_device)
    random = Random.for_field(field, "lcg", seed=1)
    before = states(random).ravel()
    heatbath(field, 1e6, random)
    after = states(random).ravel()
    for start, end in zip(before.tolist(), after.tolist(), strict=True):
        state, steps = start, 0
        while state != end and steps < 200:
            state, steps = lcg_next(state), steps + 1
        assert state == end
        assert steps % 2 == 0
        assert steps >= 24


@pytest.mark.parametrize("group", ["su3"])
def test_lcg_never_draws_0_or_1(group, precision, best_device):
    field = Field.cold(SMALL, group, precision, best_device)
    random = Random.for_field(field, "lcg")
    for n, edge in ((0, 0), (randoms.LCG_MODULUS - 1, 1)):
        before = (n - lcg_next(0)) * pow(1664525, -1, randoms.LCG_MODULUS) % randoms.LCG_MODULUS
        assert lcg_next(before) == n
        random.restore(iter(np.full((SMALL.t, 4, 4, 4, 1), before, np.uint32)))
        first = random.numbers(0)[..., 0]
        assert np.all((first > 0) & (first < 1))
        assert np.all(np.abs(first - edge) < 2.0**-23)
