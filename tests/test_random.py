"""Per-site generators on the device equal their definitions."""

import ctypes
import re
import subprocess
from dataclasses import replace
from functools import cache
from itertools import count, islice
from math import gcd

import numpy as np
import pytest
from scipy import stats

from gauge_mc import parameters
from gauge_mc.devices.cpu import FLAGS, CpuDevice
from gauge_mc.devices.source import DEFAULT_LUXURY, GENERATORS, LUXURY_PERIODS, Variant
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.random import JAMES_POWER, JAMES_SEEDS, KINDS, SEED_STRIDE, Random, ranlux_state
from gauge_mc.updates import heatbath
from tests.calls import call
from tests.reference import randoms
from tests.reference.fields import parity
from tests.reference.randoms import lcg_next, lcg_start

LATTICE = Lattice(4, 6, 8, 10)
SMALL = Lattice(4, 4, 4, 4)


def states(random):
    return np.stack(list(random.stored()))


def test_lists_of_generators_agree():
    assert tuple(KINDS) == tuple(GENERATORS) == parameters.GENERATORS
    assert len(LUXURY_PERIODS) == parameters.MAX_LUXURY + 1
    assert parameters.Parameters().luxury == DEFAULT_LUXURY


def test_lcg_starts_as_published():
    field = Field.cold(LATTICE, "su2", device=CpuDevice(1))
    assert states(Random.for_field(field, "lcg", seed=1)).ravel().tolist() == lcg_start(
        LATTICE.sites
    )


def test_lcg_follows_its_recurrence(best_device):
    """At this alpha nearly all first proposals are accepted: 4 numbers and 2 for the direction."""
    field = Field.cold(LATTICE, "su2", "double", best_device)
    random = Random.for_field(field, "lcg", seed=1)
    before = states(random).ravel()
    heatbath(field, 1e6, random)
    after = states(random).ravel()
    for start, end in zip(before.tolist(), after.tolist(), strict=True):
        state, steps = start, 0
        while state != end and steps < 200:
            state, steps = lcg_next(state), steps + 1
        assert steps % 2 == 0
        assert steps >= 24


@cache
def reference(james, p, length):
    return np.array(list(islice(randoms.ranlux(james, p), length)))


def james_seed(seed, site):
    return pow((SEED_STRIDE * seed + site) % JAMES_SEEDS + 1, JAMES_POWER, JAMES_SEEDS + 1)


def uniforms(numbers, precision):
    """(n + 1/2) / 2^24, rounded but never to 1; two numbers, the upper first, in double."""
    if precision == "single":
        return np.minimum(np.float32((numbers + 0.5) * 2.0**-24), np.float32(1 - 2**-24))
    return (numbers[..., 0::2] * 2**24 + numbers[..., 1::2] + 0.5) * 2.0**-48


def drawn(random, rounds):
    """What all sites draw for the links in all directions, so many times: [t, z, y, x, number]."""
    return np.concatenate([random.numbers(mu) for _ in range(rounds) for mu in range(4)], axis=-1)


def check_streams(device, group, precision, level):
    field = Field.cold(LATTICE, group, precision, device)
    seed = 12345
    found = drawn(Random.for_field(field, "ranlux", seed, level), rounds=3)
    found = found.reshape(LATTICE.sites, -1)
    for site in (0, 1, 5, 777, LATTICE.sites - 1):
        james = james_seed(seed, site)
        length = found.shape[1] * (1 if precision == "single" else 2)
        expected = uniforms(reference(james, LUXURY_PERIODS[level], length), precision)
        assert found.dtype == expected.dtype
        assert np.array_equal(found[site], expected)


def test_ranlux_streams(group, precision, device):
    """A link of SU(2) has half a batch in single precision; one of SU(3) two in double."""
    check_streams(device, group, precision, DEFAULT_LUXURY)


@pytest.mark.parametrize("level", range(len(LUXURY_PERIODS)))
def test_ranlux_luxury_levels(level, group, precision, best_device):
    check_streams(best_device, group, precision, level)


def seeded(random, words, borrow):
    """Give every site the same state, seeded in some other way: words of 24 bits, oldest first."""
    sites = random.field.lattice.sites // random.field.lattice.t
    state = ranlux_state(np.tile(np.array(words, np.uint64), (sites, 1)), np.full(sites, borrow))
    random.restore(state.reshape(stored.shape) for stored in list(random.stored()))


def integers(random):
    """The 24-bit numbers that site 0 draws for the links in x, again and again, in double."""
    while True:
        pair = (random.numbers(0)[0, 0, 0, 0] * 2.0**48 - 0.5).astype(np.uint64)
        yield from np.stack([pair >> np.uint64(24), pair & np.uint64(2**24 - 1)], axis=-1).ravel()


def test_ranlux_is_that_of_the_standard_library(best_device):
    """[rand.predef]: the first word from the seed is the oldest, and 23 numbers of 223 are used."""
    field = Field.cold(SMALL, "su3", "double", best_device)
    words = randoms.lehmer(19780503, 24)
    base, decimated = (Random.for_field(field, "ranlux", luxury=level) for level in (0, 3))
    for random in (base, decimated):
        seeded(random, words, words[-1] == 0)
    assert next(islice(integers(base), 9999, None)) == 7937952
    used = (number for n, number in zip(count(), integers(decimated)) if n % 24 < 23)
    assert next(islice(used, 9999, None)) == 9901578


def test_ranlux_is_that_of_james(best_device):
    """The first numbers of level 3 (James, Comput. Phys. Commun. 79 (1994) 111, table 1)."""
    random = Random.for_field(Field.cold(SMALL, "su3", "double", best_device), "ranlux")
    seeded(random, randoms.lehmer(314159265, 24)[::-1], False)
    first = np.array(list(islice(integers(random), 5))) / 2**24
    assert first == pytest.approx([0.53981817, 0.76155043, 0.06029940, 0.79600263, 0.30631220])


def test_states_of_ranlux_stay_on_its_stream(best_device):
    """At strong coupling many lanes have proposals refused and take batches of their own."""
    field = Field.hot(LATTICE, "su3", "single", best_device)
    random = Random.for_field(field, "ranlux", seed=9)
    heatbath(field, 0.5, random, sweeps=2)
    ends = states(random).reshape(LATTICE.sites, -1)
    batches = []
    for site in range(0, LATTICE.sites, 101):
        numbers = reference(james_seed(9, site), 223, 24 * 60)
        expected = ranlux_state(numbers.reshape(-1, 24).astype(np.uint64), np.zeros(60, bool))
        equal = (expected[:, :18] == ends[site, :18]).all(axis=1)
        assert equal.sum() == 1
        batches.append(equal.argmax() + 1)
    assert min(batches) >= 8
    assert len(set(batches)) > 2


def test_numbers_skipped_without_borrows_fit_their_words(root):
    """The largest |x| for any start, also when the numbers of 24 steps with borrows follow."""
    source = (root / "cuda_src" / "random" / "ranlux.h").read_text()
    steps = int(re.search(r"MOST_PLAIN = (\d+)", source)[1])
    least, most = [0.0] * 24, [2.0**24 - 1] * 24
    for _ in range(5):
        least[0], most[0] = least[0] - 256, most[0] + 256
        for n in range(steps):
            least.append(least[n + 14] - most[n])
            most.append(most[n + 14] - least[n])
        least, most = least[-24:], most[-24:]
        # The first steps with borrows are the largest: later ones subtract from numbers below b.
        largest = (
            max(max(most[(n + 14) % 24], 2**24) - least[n] + 256 for n in range(24)),
            max(most[n] - min(least[(n + 14) % 24], 0) + 256 for n in range(24)),
        )
        assert max(largest) < 2**31
        high = [(low // 2**24, up // 2**24) for low, up in zip(least, most, strict=True)]
        least = [high[n - 1][0] for n in range(24)]
        most = [2**24 - 1 + high[n - 1][1] for n in range(24)]
        least[0], most[0] = high[13][0] - high[23][1], 2**24 - 1 + high[13][1] - high[23][0]


def test_ranlux_never_draws_0_or_1(precision, best_device):
    """From x_{n-10} = b - 1 and x_{n-24} = 0 come the largest numbers, from equal ones zeros."""
    field = Field.cold(SMALL, "su3", precision, best_device)
    random = Random.for_field(field, "ranlux", luxury=0)
    top = 2**24 - 1
    for oldest, edge in ((0, 1), (top, 0)):
        seeded(random, [oldest] * 14 + [top] * 10, False)
        first = random.numbers(0)[..., :4]
        assert np.all((first > 0) & (first < 1))
        assert np.all(np.abs(first - edge) <= 2.0**-24)


def test_lcg_never_draws_0_or_1(precision, best_device):
    field = Field.cold(SMALL, "su3", precision, best_device)
    random = Random.for_field(field, "lcg")
    for n, edge in ((0, 0), (randoms.LCG_MODULUS - 1, 1)):
        before = (n - lcg_next(0)) * pow(1664525, -1, randoms.LCG_MODULUS) % randoms.LCG_MODULUS
        assert lcg_next(before) == n
        random.restore(iter(np.full((SMALL.t, 4, 4, 4, 1), before, np.uint32)))
        first = random.numbers(0)[..., 0]
        assert np.all((first > 0) & (first < 1))
        assert np.all(np.abs(first - edge) < 2.0**-23)


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


@pytest.mark.parametrize("bits", [24, 31])
def test_no_word_at_all_gives_0_or_1_in_single_precision(bits, root, tmp_path):
    device, library = CpuDevice(1), tmp_path / "edges.so"
    variant = Variant("su2", "single", lanes=device.lanes("single"))
    command = [*device.compiler.command.split(), *FLAGS, *variant.definitions]
    (tmp_path / "edges.cpp").write_text(EDGES)
    files = [f"-I{root / 'cuda_src'}", str(tmp_path / "edges.cpp"), "-o", str(library)]
    subprocess.run([*command, "-include", "algorithm", *files], check=True)
    least, most = ctypes.c_float(), ctypes.c_float()
    ctypes.CDLL(str(library)).edges(bits, ctypes.byref(least), ctypes.byref(most))
    assert least.value == 2.0 ** -(bits + 1)
    assert most.value == 1 - 2.0**-24


@pytest.mark.parametrize("kind", KINDS)
def test_a0_is_fine_enough_where_it_is_next_to_1(kind, best_device):
    """At alpha = 1e6, single precision holds a0 no better than to a tenth of 1 - a0.

    The other components, of length sqrt((1 - a0) (1 + a0)), must not be so coarse.
    """
    alpha = 1e6
    field = Field.cold(Lattice(32, 32, 32, 8), "su2", "single", best_device)
    heatbath(field, alpha / 6, Random.for_field(field, kind, seed=13))
    links = np.stack(list(field.stored()))[..., 0, :].astype(float)
    even = parity((32, 32, 32, 8)) == 0
    a0, *vector = np.moveaxis(links[even], -1, 0)
    length2 = np.sum(np.square(vector), axis=0)
    delta = length2 / (1 + np.sqrt(1 - length2))

    def pvalue(delta):  # sqrt(1 - a0^2) exp(alpha a0) but for a factor of sqrt(1 - delta / 2)
        return stats.kstest(alpha * delta, "gamma", args=(1.5,)).pvalue

    assert pvalue(delta) > 1e-3
    assert pvalue(1 - a0) < 1e-9


def test_a_run_with_lcg_says_that_it_fails_tests(tmp_path):
    for rng, said in (("lcg", True), ("ranlux", False)):
        run = ("--output", tmp_path / rng, "--configs", 1, "--thermalize", 1, "--separation", 1)
        words = ("--lattice", "4x4x4x4", "--backend", "cpu", "--threads", 1, "--rng", rng)
        printed, code = call("generate", *run, *words)
        assert code == 0
        assert ("lcg fails tests of randomness" in printed) == said


def test_seeds_of_ranlux_are_all_different():
    field = Field.cold(LATTICE, "su2", device=CpuDevice(1))
    first = np.concatenate(
        [states(Random.for_field(field, "ranlux", seed)).reshape(-1, 20) for seed in range(5)]
    )
    assert len(np.unique(first, axis=0)) == 5 * LATTICE.sites
    assert gcd(JAMES_POWER, JAMES_SEEDS) == 1
    # Those of n consecutive seeds are all different if n lattices have fewer than 8e8 sites.
    starts = np.arange(2000, dtype=np.int64) * SEED_STRIDE % JAMES_SEEDS
    for n in (2, 10, 100, 1000, 2000):
        sorted_starts = np.sort(starts[:n])
        gaps = np.diff(np.append(sorted_starts, sorted_starts[0] + JAMES_SEEDS))
        assert n * gaps.min() > 8e8


@pytest.mark.parametrize("kind", KINDS)
def test_first_numbers_of_neighbours_and_of_seeds_are_unrelated(kind, best_device):
    field = Field.cold(Lattice(16, 16, 16, 8), "su2", "single", best_device)
    first, other = (
        Random.for_field(field, kind, seed).numbers(0).reshape(field.lattice.sites, -1)
        for seed in (1, 2)
    )
    for one, another in ((first[1:], first[:-1]), (first, other)):
        for difference in np.mod(one.astype(float) - another, 1).T:
            counts = np.histogram(difference, bins=64, range=(0, 1))[0]
            assert stats.chisquare(counts).pvalue > 1e-5


@pytest.mark.parametrize("kind", ["lcg", "ranlux"])
def test_states_survive_a_round_trip(kind, best_device):
    field = Field.cold(LATTICE, "su2", device=best_device)
    random = Random.for_field(field, kind, seed=77)
    heatbath(field, 2.0, random)
    before = states(random)
    other = Random.for_field(field, kind, seed=1)
    other.restore(iter(before))
    assert np.array_equal(states(other), before)
    assert np.array_equal(other.numbers(0), random.numbers(0))
    assert not list(Random.for_field(field, "philox").stored())


@pytest.mark.parametrize(
    ("kind", "seed", "luxury"),
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
def test_wrong_seeds_levels_and_generators_are_refused(kind, seed, luxury):
    field = Field.cold(SMALL, "su2", device=CpuDevice(1))
    with pytest.raises(UsageError):
        Random.for_field(field, kind, seed, luxury)


def test_more_sites_than_streams_are_refused(monkeypatch):
    monkeypatch.setitem(KINDS, "ranlux", replace(KINDS["ranlux"], streams=255))
    with pytest.raises(UsageError, match="more sites than ranlux has streams, 255"):
        Random.for_field(Field.cold(SMALL, "su2", device=CpuDevice(1)), "ranlux")
