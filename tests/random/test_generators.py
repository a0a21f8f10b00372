"""Generators: states, uniform numbers, seeds and levels, and the numbers of LCG and Philox."""

import ctypes
import math
import subprocess

import numpy as np
import pytest
from scipy import stats

from gauge_mc import actions
from gauge_mc.devices.cpu.compiler import FLAGS
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.kernels import Variant
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.random import GENERATORS, JAMES_SEEDS
from gauge_mc.updates.heatbath import heatbath
from tests.calls import call
from tests.reference import randoms
from tests.reference.fields import parity
from tests.reference.randoms import lcg_next, lcg_start, philox4x32

LATTICE = Lattice(4, 6, 8, 10)
SMALL = Lattice(4, 4, 4, 4)
RANLUX = GENERATORS["ranlux"]


def states(random):
    return np.stack(list(random.packed_slices()))


EDGES = """
#include "random/stream.h"
// The least and the largest uniform of so many random bits, of all words.
extern "C" void edges(int bits, scalar* least, scalar* most) {
    real low = broadcast(1), high = broadcast(0);
    word n;
    for (int lane = 0; lane < LANES; lane++) n[lane] = lane;
    for (long long done = 0; done < 1LL << bits; done += LANES, n += LANES) {
        const real u = bits == 31 ? uniform_from_31_bits(n) : uniform_from_24_bits(n);
        low = smaller(low, u), high = larger(high, u);
    }
    *least = *most = low[0];
    for (int lane = 0; lane < LANES; lane++) {
        *least = std::min(*least, low[lane]), *most = std::max(*most, high[lane]);
    }
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("bits", [24, 31])
def test_no_word_at_all_gives_0_or_1_in_single_precision(bits, root, tmp_path):
    device, library = CpuDevice(1), tmp_path / "edges.so"
    variant = Variant("single", lanes=device.lanes("single"))
    command = [*device.compiler.command.split(), *FLAGS, *variant.definitions]
    (tmp_path / "edges.cpp").write_text(EDGES)
    files = [f"-I{root / 'cuda_src'}", str(tmp_path / "edges.cpp"), "-o", str(library)]
    subprocess.run([*command, "-include", "algorithm", *files], check=True)
    least, most = ctypes.c_float(), ctypes.c_float()
    ctypes.CDLL(str(library)).edges(bits, ctypes.byref(least), ctypes.byref(most))
    assert least.value == 2.0 ** -(bits + 1)
    assert most.value == 1 - 2.0**-24


@pytest.mark.longer
@pytest.mark.parametrize("generator", GENERATORS)
def test_a0_is_fine_enough_where_it_is_next_to_1(generator, best_device, monkeypatch):
    """At alpha = 1e6, single precision holds a0 no better than to a tenth of 1 - a0.

    The other components, of length sqrt((1 - a0) (1 + a0)), must not be so coarse.
    """
    alpha = 1e6
    monkeypatch.setattr(actions, "LARGEST_SHARE", math.inf)  # a run would be refused
    field = Field.cold(Lattice(28, 28, 28, 12), "su2", "single", best_device)
    heatbath(field, alpha / 6, Random.for_field(field, generator, seed=13))
    links = np.stack(list(field.packed_slices()))[..., 0, :].astype(float)
    even = parity((28, 28, 28, 12)) == 0
    a0, *vector = np.moveaxis(links[even], -1, 0)
    length2 = np.sum(np.square(vector), axis=0)
    delta = length2 / (1 + np.sqrt(1 - length2))

    def pvalue(delta):  # sqrt(1 - a0^2) exp(alpha a0) but for a factor of sqrt(1 - delta / 2)
        return stats.kstest(alpha * delta, "gamma", args=(1.5,)).pvalue

    assert pvalue(delta) > 1e-3
    assert pvalue(1 - a0) < 1e-9


@pytest.mark.slow
def test_a_run_with_lcg_says_that_it_fails_tests(tmp_path):
    for rng, said in (("lcg", True), ("ranlux", False)):
        run = ("--output", tmp_path / rng, "--configs", 1, "--thermalize", 1, "--separation", 1)
        words = ("--lattice", "4x4x4x4", "--backend", "cpu", "--threads", 1, "--rng", rng)
        printed, code = call("generate", *run, *words)
        assert code == 0
        assert ("lcg fails tests of randomness" in printed) == said


@pytest.mark.parametrize("generator", GENERATORS)
def test_first_numbers_of_neighbours_and_of_seeds_are_unrelated(generator, best_device):
    field = Field.cold(Lattice(20, 20, 20, 8), "su2", "single", best_device)
    first, other = (
        Random.for_field(field, generator, seed).numbers(0).reshape(field.lattice.sites, -1)
        for seed in (1, 2)
    )
    for one, another in ((first[1:], first[:-1]), (first, other)):
        for difference in np.mod(one.astype(float) - another, 1).T:
            counts = np.histogram(difference, bins=64, range=(0, 1))[0]
            assert stats.chisquare(counts).pvalue > 1e-5


@pytest.mark.kernels
@pytest.mark.parametrize("generator", GENERATORS)
def test_numbers_of_a_link_do_not_repeat(generator, group):
    field = Field.cold(SMALL, group, "double", CpuDevice(1))
    drawn = Random.for_field(field, generator).numbers(0).reshape(SMALL.sites, -1)
    assert all(len(np.unique(numbers)) == len(numbers) for numbers in drawn)


@pytest.mark.longer
@pytest.mark.parametrize("generator", ["lcg", "ranlux"])
def test_states_survive_a_round_trip(generator, best_device):
    field = Field.cold(LATTICE, "su2", device=best_device)
    random = Random.for_field(field, generator, seed=77)
    heatbath(field, 2.0, random)
    before = states(random)
    other = Random.for_field(field, generator, seed=1)
    other.restore(iter(before))
    assert np.array_equal(states(other), before)
    assert np.array_equal(other.numbers(0), random.numbers(0))
    assert not list(Random.for_field(field, "philox").packed_slices())


@pytest.mark.parametrize(
    ("generator", "seed", "luxury"),
    [
        ("philox", -1, 3),
        ("philox", 2**64, 3),
        ("lcg", 0, 3),
        ("lcg", 2**31 - 1, 3),
        ("ranlux", -1, 3),
        ("ranlux", JAMES_SEEDS, 3),
        ("ranlux", 1, 5),
        ("ranlux", 1, -1),
        ("mt", 1, 3),
    ],
)
def test_wrong_seeds_levels_and_generators_are_refused(generator, seed, luxury):
    field = Field.cold(SMALL, "su2", device=CpuDevice(1))
    with pytest.raises(UsageError):
        Random.for_field(field, generator, seed, luxury)


def test_more_sites_than_streams_are_refused(monkeypatch):
    monkeypatch.setattr(RANLUX, "streams", 255)
    with pytest.raises(UsageError, match="more sites than ranlux has streams, 255"):
        Random.for_field(Field.cold(SMALL, "su2", device=CpuDevice(1)), "ranlux")


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


SEED, STEP = 2**63 + 2**31 + 5, 2**32 + 3
BLOCKS = {"su2": [(0, 0), (1, 0), (1, 1)], "su3": [*((k, 0) for k in range(4)), (3, 1), (3, 2)]}
"""Sub-streams, and numbers of four in each, in the order in which the test draws them."""


def uniforms(words, precision):
    """Return (n + 1/2) / 2^31 of the upper 31 bits, or (n + 1/2) / 2^52 of the upper 52 bits."""
    if precision == "single":
        return np.float32(((words >> 1) + 0.5) * 2.0**-31)
    pairs = words[..., 0::2].astype(np.uint64) << np.uint64(32) | words[..., 1::2]
    return (pairs >> np.uint64(12)) * 2.0**-52 + 2.0**-53


@pytest.mark.parametrize("mu", [0, 3])
def test_philox_streams(mu, group, precision, best_device):
    field = Field.cold(LATTICE, group, precision, best_device)
    random = Random.for_field(field, "philox", SEED)
    random.step = STEP
    drawn = random.numbers(mu).reshape(LATTICE.sites, -1)
    blocks_of_four = 1 if precision == "single" else 2
    words = []
    for stream, fours in BLOCKS[group]:
        for block in range(fours * blocks_of_four, (fours + 1) * blocks_of_four):
            counter = np.empty((LATTICE.sites, 4), np.uint32)
            counter[:, 0] = np.arange(LATTICE.sites)
            counter[:, 1:] = mu | stream << 2 | block << 4, STEP & 0xFFFFFFFF, STEP >> 32
            key = np.array([SEED & 0xFFFFFFFF, SEED >> 32], np.uint32)
            words.append(philox4x32(counter, np.broadcast_to(key, (LATTICE.sites, 2))))
    expected = uniforms(np.concatenate(words, axis=-1), precision)
    assert drawn.dtype == expected.dtype
    assert drawn.shape == expected.shape
    if precision == "double":
        assert np.array_equal(drawn, expected)
    else:  # of 31 bits a real number keeps 24, and its product with 2^-31 is rounded again
        np.testing.assert_allclose(drawn, expected, rtol=2.0**-22, atol=0)
