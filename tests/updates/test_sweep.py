"""Sweeps: the same bits for any threads and lanes, on a CPU and a GPU, launched in any way."""

import numpy as np
import pytest

from gauge_mc.actions import ACTIONS
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.cuda.device import CudaDevice
from gauge_mc.devices.cuda.kernel import SweepFunction
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.random import GENERATORS
from gauge_mc.updates.heatbath import HEATBATH, ONE_REPLICA, OVERRELAXATION, heatbath, overrelax
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
