"""Wavefront blocking: no bit changes, and every update finds its neighbours as it needs them."""

import itertools

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS, UpdateSet
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.updates.heatbath import heatbath, overrelax
from gauge_mc.updates.schedule import (
    Wavefront,
    best_wavefront,
    order_between_exchanges,
    order_of_sweep,
)

SETS = ACTIONS["wilson"].update_sets(Lattice(4, 4, 4, 4))


def number_of(work):
    """Return which of the updates of a sweep some work belongs to."""
    return SETS.index(UpdateSet(work.mu, work.parity))


@pytest.mark.first_quick
@pytest.mark.parametrize("group", [pytest.param("su3", marks=pytest.mark.slow), "su2"])
@pytest.mark.parametrize("extent", [2, 4, pytest.param(6, marks=pytest.mark.slow), 16])
@pytest.mark.parametrize(
    ("slices", "expected"),
    [(0, None), (1.2, Wavefront(2, 2)), (3, Wavefront(4, 5)), (7, Wavefront(4, 16))],
)
def test_wavefronts_do_not_change_a_bit(group, extent, slices, expected):
    """The wavefront is the best one for a cache of so many time slices."""
    lattice = Lattice(4, 4, 16, extent)

    def chain(cache_slices):
        device = CpuDevice(2, lanes=1)
        device.cache_bytes = 0
        field = Field.hot(lattice, group, "single", device, seed=2)
        device.cache_bytes = int(cache_slices * field.slabs[0].slice_bytes)
        if 2 * extent > cache_slices:
            assert best_wavefront(field.slabs[0]) == (expected if cache_slices else None)
        else:
            assert best_wavefront(field.slabs[0]) is None
        heatbath(field, 4.0, Random.for_field(field, "lcg", seed=3), sweeps=2)
        overrelax(field, sweeps=2)
        return field.to_numpy()

    assert np.array_equal(chain(slices), chain(0))


@pytest.mark.parametrize(("planes", "slices"), [(2, 2), (4, 6), (10, 4), (16, 16)])
@pytest.mark.parametrize("depth", [1, pytest.param(2, marks=pytest.mark.slow), 4, 8])
def test_updates_find_their_neighbours_as_they_need_them(planes, slices, depth):
    """Neighbours have had the updates before, and at most the same one."""
    slab = Field.cold(Lattice(2, 2, planes, slices), "su2", "single", CpuDevice(1, 1)).slabs[0]
    near = list(itertools.product((-1, 0, 1), repeat=2))
    for thick in range(1, planes + 1):
        done = np.zeros((slices, planes), int)
        for work in order_of_sweep(slab, SETS, Wavefront(depth, thick)):
            update = number_of(work)
            t, (first, count) = work.t_begin, (work.first_slot // 2, work.slots // 2)
            for z in range(first, first + count):
                assert done[t, z] == update
                around = [done[(t + dt) % slices, (z + dz) % planes] for dt, dz in near]
                assert {update, update + 1} >= set(around)
            done[t, first : first + count] += 1
        assert np.all(done == len(SETS))


@pytest.mark.parametrize("slices", [2, 4, 9, 12])
@pytest.mark.parametrize("depth", [1, 2, 4])
@pytest.mark.parametrize("thick", [1, 3, 6])
def test_updates_of_slabs_find_slices_and_halos_as_they_need_them(slices, depth, thick):
    planes, total = 6, slices + slices % 2 + 2
    devices = tuple(CpuDevice(1, 1) for _ in range(2))
    group = DeviceGroup(devices, slices=(slices, total - slices))
    field = Field.cold(Lattice(2, 2, planes, total), "su2", "single", group)
    wavefront = Wavefront(depth, thick)
    orders = [order_between_exchanges(slab, SETS, wavefront) for slab in field.slabs]
    done = [np.zeros((slab.layout.slices, planes), int) for slab in field.slabs]
    for update in range(len(SETS)):
        for own, order in zip(done, orders, strict=True):
            # Halos have had the updates before, since every one is exchanged.
            known = np.pad(own, ((1, 1), (0, 0)), constant_values=update)
            for work in order[update]:
                one = number_of(work)
                t, count = work.t_begin, work.slots // 2 or planes
                for z in range(work.first_slot // 2, work.first_slot // 2 + count):
                    assert known[t + 1, z] == one
                    near = known[t : t + 3, [z - 1, z, (z + 1) % planes]]
                    assert {one, one + 1} >= set(near.flat)
                known[t + 1, work.first_slot // 2 : work.first_slot // 2 + count] += 1
            own[:] = known[1:-1]
            assert set(own[0]) == set(own[-1]) == {update + 1}
    assert all(np.all(own == len(SETS)) for own in done)
