"""Teams of threads: every item is done once, in its step, and delayed threads are helped."""

import ctypes
import os
import subprocess

import numpy as np
import pytest

from gauge_mc.devices.cpu import compiler
from gauge_mc.devices.cpu.device import CpuDevice, Team
from gauge_mc.devices.source import source_folder
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.quantities.plaquette import plaquette
from gauge_mc.updates.heatbath import heatbath, overrelax

HARNESS = """
#include <sys/syscall.h>
#include <unistd.h>

#include "arch/cpu_team.cu"

// Let a team do steps of these numbers of items. `times` counts how often an item was done, and
// `thread` tells by whom. The first item of the second share takes `delay` ns. Return how often
// items began before all items of earlier steps had ended.
extern "C" int carry_out(Team* team, int steps, const int* items, int* times, int* thread,
                         long long delay) {
    std::atomic<int> ended{0}, early{0};
    team->share(
        steps, [=](int step) { return (long long)items[step]; },
        [&](int step, long long begin, long long end) {
            int before = 0;
            for (int n = 0; n < step; n++) before += items[n];
            if (ended.load() < before) early++;
            for (long long i = begin; i < end; i++) {
                __atomic_fetch_add(&times[before + i], 1, __ATOMIC_RELAXED);
                thread[before + i] = (int)syscall(SYS_gettid);
                if (delay && i == items[step] / team->size)
                    for (const long long till = now() + delay; now() < till;) sched_yield();
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


def carry_out(library, team, items, delay=0):
    """Return how often each item was done, and by which threads."""
    total = sum(items)
    times, threads = np.zeros(total, np.int32), np.zeros(total, np.int32)
    given = (ctypes.c_int * len(items))(*items)
    pointers = (ctypes.c_void_p(array.ctypes.data) for array in (times, threads))
    delayed = ctypes.c_longlong(delay)
    early = library.carry_out(team.address, len(items), given, *pointers, delayed)
    assert early == 0
    return times, threads


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 9, 17])
def test_every_item_is_done_once_and_in_its_step(library, size):
    team = Team(library, size)
    for items in ([1], [0, 3, 0], [1, 2, 5, 16, 17, 18, 100, 1000], [7] * 60, [0], [200, 1] * 30):
        times, _ = carry_out(library, team, items)
        assert np.all(times == 1)


def test_numbers_of_steps_begin_again(library):
    """The tags of shares that were empty for long are not taken for later ones."""
    team = Team(library, 3)
    for _ in range(50):
        assert np.all(carry_out(library, team, [1] * 33)[0] == 1)
    assert np.all(carry_out(library, team, [100] * 20)[0] == 1)


def test_a_delayed_thread_is_helped(library):
    """The second thread's first items take long, so that the first thread does the rest."""
    team = Team(library, 2)
    carry_out(library, team, [64])
    times, threads = carry_out(library, team, [64], delay=100_000_000)
    assert np.all(times == 1)
    first, delayed = threads[0], threads[32]
    if first != delayed:  # else it was the first thread, which was through before the other began
        assert set(threads[36:]) == {first}


def test_threads_that_are_not_delayed_keep_their_shares(library):
    """Otherwise their links would move from cache to cache; other processes may disturb it."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("There is only one core.")
    team = Team(library, 2)
    for _ in range(200):
        threads = carry_out(library, team, [20000])[1]
        if len(set(threads[:10000])) == len(set(threads[10000:])) == 1:
            break
    else:
        pytest.fail("In no step did both threads keep their shares.")


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
