"""Updates of the interior of slabs: what stays, what changes, and what it depends on."""

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.devices.cuda.kernel import SweepFunction
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.updates.multilevel import SubLatticeUpdates
from tests.reference.fields import random_field
from tests.reference.observables import action

LATTICE = Lattice(4, 4, 4, 12)


def updated(links, group, device, thickness, updates=2, overrelax=4, seed=1, beta=2.5):
    """Return the links after updates of the slabs."""
    field = Field.from_slices(LATTICE, group, links, "double", device)
    update = SubLatticeUpdates(field, thickness, Coupling.of(beta), seed, overrelax)
    for step in range(updates):
        update(step)
    return field.to_numpy()


@pytest.mark.parametrize("thickness", [1, 3, 4, 12])
def test_only_the_boundaries_of_slabs_stay(thickness, group, best_device, rng):
    links = random_field(LATTICE.extents, group, rng)
    after = updated(links, group, best_device, thickness)
    change = np.abs(after - links).max(axis=(-1, -2))
    stays = np.zeros(change.shape, bool)
    stays[::thickness, ..., :3] = True
    assert change[stays].max() < 1e-12
    assert change[~stays].min() > 1e-4
    assert action(after, 1.0) < action(links, 1.0)


def test_slabs_do_not_depend_on_each_other(group, best_device, rng):
    links = random_field(LATTICE.extents, group, rng)
    others = random_field(LATTICE.extents, group, rng)
    others[4:8] = links[4:8]
    others[8, ..., :3, :, :] = links[8, ..., :3, :, :]
    one, two = (updated(u, group, best_device, 4) for u in (links, others))
    np.testing.assert_array_equal(one[4:8], two[4:8])


def test_other_seeds_give_other_links(group, best_device, rng):
    links = random_field(LATTICE.extents, group, rng)
    one, two, three = (updated(links, group, best_device, 4, seed=n) for n in (1, 1, 2))
    np.testing.assert_array_equal(one, two)
    assert np.abs(one[:, ..., 3, :, :] - three[:, ..., 3, :, :]).max(axis=(-1, -2)).min() > 1e-5


def test_slabs_that_do_not_make_up_the_lattice(best_device, rng):
    links = random_field(LATTICE.extents, "su2", rng)
    with pytest.raises(UsageError, match="Slabs of 5 time slices do not make up the lattice"):
        updated(links, "su2", best_device, 5)


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.parametrize("t", [12, 16, 20])
def test_sweeps_in_one_launch(t, gpu, monkeypatch):
    """Blocks of four and a half warps or more wait for each other, or are not launched so."""
    lattice, found = Lattice(24, 24, 24, t), []
    for fits in (SweepFunction.fits, lambda *_: False):
        monkeypatch.setattr(SweepFunction, "fits", fits)
        field = Field.hot(lattice, "su3", "single", gpu)
        update = SubLatticeUpdates(field, 4, Coupling.of(6.0), 1, 4)
        update(0)
        found.append(field.to_numpy())
    np.testing.assert_array_equal(*found)
