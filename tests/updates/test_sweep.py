"""Sweeps: the same bits for any threads, lanes, stages and wavefronts, on a CPU and a GPU."""

import itertools

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS, UpdateSet
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.cuda.device import CudaDevice
from gauge_mc.devices.cuda.kernel import SweepFunction
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import HEATBATH, ONE_REPLICA, OVERRELAXATION, heatbath, overrelax
from gauge_mc.updates.schedule import (
    Exchange,
    Wavefront,
    best_wavefront,
    exchange_of,
    order_between_exchanges,
    order_of_sweep,
)
from gauge_mc.updates.sweep import norms_of
from tests.calls import make_run
from tests.reference.fields import random_field

WILSON = (*ACTIONS["wilson"].choices, norms_of("single"))
PHILOX = GENERATORS["philox"].choice()


@pytest.mark.slow
@pytest.mark.parametrize(("group", "precision"), [("su2", "single"), ("su3", "double")])
@pytest.mark.parametrize("generator", GENERATORS)
def test_same_bits_for_any_threads_and_lanes(generator, group, precision):
    lattice = Lattice(8, 8, 8, 6)

    def chain(threads, lanes):
        device = CpuDevice(threads, lanes)
        field = Field.hot(lattice, group, precision, device, seed=4)
        heatbath(field, 5.0, Random.for_field(field, generator, seed=5), sweeps=3)
        overrelax(field, sweeps=2)
        return np.stack(list(field.packed_slices())), plaquette(field)

    links, mean = chain(1, 16)
    for threads in (2, 3, 5):
        same, same_mean = chain(threads, 16)
        assert np.array_equal(links, same)
        assert mean == same_mean
    for lanes in (2, 4, 8):
        assert np.array_equal(links, chain(2, lanes)[0])
    # A compiler may round single numbers in another order than registers of them.
    assert np.abs(links - chain(2, 1)[0]).max() < (1e-3 if precision == "single" else 1e-11)


@pytest.mark.gpu
def test_cpu_and_gpu_agree(group, gpu, rng):
    lattice = Lattice(8, 8, 4, 6)
    links = random_field(lattice.extents, group, rng)
    results = []
    for device in (CpuDevice(), gpu):
        field = Field.from_slices(lattice, group, links, "double", device)
        heatbath(field, 6.0, Random.for_field(field, seed=8))
        overrelax(field)
        results.append(field.to_numpy())
    assert np.abs(results[0] - results[1]).max() < 1e-12


def updates(slab):
    """Load the kernels of heatbath and overrelaxation for a slab."""
    return slab.kernel(HEATBATH, *WILSON, PHILOX, ONE_REPLICA), slab.kernel(OVERRELAXATION, *WILSON)


@pytest.fixture
def whole_sweeps(gpu):
    """Let the GPU be one that runs whole sweeps in one launch."""
    if not gpu.runs_whole_sweeps:
        pytest.skip(f"{gpu.interface} does not run whole sweeps in one launch")


@pytest.mark.gpu
@pytest.mark.usefixtures("whole_sweeps")
def test_one_launch_a_sweep_equals_one_a_step(group, precision, gpu):
    def chain(one_launch):
        field = Field.hot(Lattice(8, 8, 8, 6), group, precision, gpu, seed=2)
        for kernel in updates(field.slabs[0]):
            assert kernel.sweep
            if not one_launch:
                kernel.sweep = None
        heatbath(field, 4.0, Random.for_field(field, seed=3), sweeps=20)
        overrelax(field, sweeps=20)
        return field.to_numpy()

    assert np.array_equal(chain(True), chain(False))


@pytest.mark.gpu
@pytest.mark.usefixtures("whole_sweeps")
def test_blocks_do_not_wait_for_each_other_beside_other_processes(gpu, monkeypatch, tmp_path):
    variant = Field.cold(Lattice(4, 4, 4, 4), "su2", "single", gpu).slabs[0].variant(*WILSON)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    assert CudaDevice(gpu.ordinal).kernel(OVERRELAXATION, variant).sweep
    (tmp_path / "control").touch()
    assert not CudaDevice(gpu.ordinal).kernel(OVERRELAXATION, variant).sweep


def test_updates_of_a_run_use_what_was_compiled_before_it(tmp_path, monkeypatch):
    """Choices in another order would be compiled again."""
    compiled, used = set(), set()
    for name, variants in (("compile", compiled), ("kernel", used)):
        method = getattr(CpuDevice, name)

        def noting(device, kernel, variant, method=method, variants=variants):
            variants.add((kernel.name, kernel.narrowed(variant)))
            return method(device, kernel, variant)

        monkeypatch.setattr(CpuDevice, name, noting)
    make_run(tmp_path / "run", group="su2", lattice="4x4x4x4")
    updates = {one for one in used if one[0] in (HEATBATH.name, OVERRELAXATION.name)}
    assert len(updates) == 2
    assert updates <= compiled


@pytest.mark.kernels
@pytest.mark.parametrize("extents", [(4, 4, 4, 4), (16, 16, 16, 4)])
def test_sweeps_one_by_one_are_sweeps_at_once(best_device, extents, monkeypatch):
    """A prepared sweep draws other random numbers whenever it is carried out."""
    monkeypatch.setattr(
        SweepFunction, "fits", lambda self, blocks, threads: blocks * threads < 4096
    )

    def swept(*calls):
        field = Field.hot(Lattice(*extents), "su2", "single", best_device, seed=2)
        random = Random.for_field(field, seed=3)
        for sweeps in calls:
            heatbath(field, 2.3, random, sweeps)
        return field.to_numpy()

    assert np.array_equal(swept(1, 1, 1), swept(3))


def exchange(*devices):
    field = Field.cold(Lattice(2, 2, 2, 10), "su2", "single", DeviceGroup(devices))
    return exchange_of(field, ACTIONS["wilson"])


@pytest.mark.parametrize(
    ("count", "side_stream", "reaches", "expected"),
    [
        (1, True, True, Exchange.NONE),
        (2, True, True, Exchange.STORE),
        (2, True, False, Exchange.BESIDE),
        (2, False, False, Exchange.AFTER),
    ],
)
def test_it_depends_on_the_devices(count, side_stream, reaches, expected):
    devices = [CpuDevice(1, 1) for _ in range(count)]
    for device in devices:
        device.has_side_stream, device.reaches = side_stream, lambda other: reaches
    assert exchange(*devices) is expected


@pytest.mark.gpu
def test_gpus_store_their_boundaries_where_they_reach_the_neighbours(gpu, monkeypatch):
    assert exchange(gpu, gpu) is Exchange.STORE
    monkeypatch.setattr(gpu, "reaches", lambda other: False)
    assert exchange(gpu, gpu) is Exchange.BESIDE


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
