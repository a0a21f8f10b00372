"""Teams and workers of the CPU: every item and every task is done once, in its order."""

import ctypes
import subprocess

import numpy as np
import pytest

from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.device import CpuDevice, Team, Worker
from gauge_mc.devices.source import source_folder
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.updates.heatbath import heatbath, overrelax

HARNESS = """
#include "arch/cpu_team.cu"

// Let a team do steps of these numbers of items. `times` counts how often an item was done. Return
// how often items began before all items of earlier steps had ended.
extern "C" int carry_out(Team* team, int steps, const int* items, int* times) {
    std::atomic<int> ended{0}, early{0};
    team->share(
        steps, [=](int step) { return (long long)items[step]; },
        [&](int step, long long begin, long long end) {
            int before = 0;
            for (int n = 0; n < step; n++) before += items[n];
            if (ended.load() < before) early++;
            for (long long i = begin; i < end; i++) {
                __atomic_fetch_add(&times[before + i], 1, __ATOMIC_RELAXED);
                ended++;
            }
        });
    return early;
}
"""


PORTABLE = pytest.param("-DPORTABLE_THREADS", marks=pytest.mark.slow, id="portable")


@pytest.fixture(scope="module", params=[pytest.param("-DLINUX_THREADS", id="linux"), PORTABLE])
def library(request, tmp_path_factory):
    """The code of a team that numbers its steps from 0 again after 100; also for other systems."""
    folder = tmp_path_factory.mktemp("team")
    (folder / "team.cu").write_text(HARNESS)
    command = [*compiler.find_compiler().command.split(), *compiler.FLAGS, f"-I{source_folder()}"]
    command += ["-DREAL_BYTES=4", "-DLANES=1", "-DMOST_STEPS=100", request.param]
    built = folder / "team.so"
    subprocess.run([*command, str(folder / "team.cu"), "-o", str(built)], check=True)
    return ctypes.CDLL(str(built))


def carry_out(library, team, items):
    """Return how often each item was done."""
    times = np.zeros(sum(items), np.int32)
    given = (ctypes.c_int * len(items))(*items)
    place = ctypes.c_void_p(times.ctypes.data)
    assert library.carry_out(team.address, len(items), given, place) == 0
    return times


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 17])
def test_every_item_is_done_once_and_in_its_step(library, size):
    team = Team(library, size)
    for items in ([1], [0, 3, 0], [1, 2, 5, 16, 17, 18, 100, 1000], [7] * 60, [0], [200, 1] * 30):
        assert np.all(carry_out(library, team, items) == 1)


def test_numbers_of_steps_begin_again(library):
    """The tags of shares that were empty for long are not taken for later ones."""
    team = Team(library, 3)
    for _ in range(50):
        assert np.all(carry_out(library, team, [1] * 33) == 1)
    assert np.all(carry_out(library, team, [100] * 20) == 1)


@pytest.mark.parametrize("extents", [(4, 4, 4, 4), (8, 8, 8, 6)])
def test_same_bits_for_any_number_of_threads(extents):
    lattice = Lattice(*extents)

    def chain(threads, later):
        device = CpuDevice(threads)
        field = Field.hot(lattice, "su2", "single", device, seed=4)
        heatbath(field, 2.3, Random.for_field(field, seed=5), sweeps=2)
        device.use_threads(later)
        overrelax(field, sweeps=2)
        return field.to_numpy(), plaquette(field)

    links, mean = chain(1, 1)
    for threads, later in ((2, 1), (3, 3), (7, 2), (16, 5)):
        same, same_mean = chain(threads, later)
        assert np.array_equal(links, same)
        assert mean == same_mean


def test_two_workers_wait_for_each_other():
    one, two, done = Worker(), Worker(), []
    for number in range(50):
        first, second = (one, two) if number % 2 else (two, one)
        first.do(lambda number=number: done.append(number))
        second.do(first.event().synchronize)
    one.synchronize()
    two.synchronize()
    assert done == list(range(50))


def test_a_failure_is_raised_and_stops_nobody():
    worker, other, done = Worker(), Worker(), []
    worker.do(lambda: 1 / 0)
    event = worker.event()
    other.do(event.synchronize)
    other.do(lambda: done.append("other"))
    other.synchronize()
    assert event.query()
    assert done == ["other"]
    with pytest.raises(ZeroDivisionError):
        worker.synchronize()
    worker.close()
    worker.event().synchronize()  # nobody is left to wait for


def test_a_failure_reaches_whoever_reads():
    device = CpuDevice(1, worker=True)
    buffer = device.allocate(64)
    device._worker.do(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        device.read(buffer, 0, 64)
