"""RANLUX draws what its definitions say, at every luxury level."""

import re
from functools import cache
from itertools import count, islice
from math import gcd

import numpy as np
import pytest

from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.random import GENERATORS, JAMES_POWER, JAMES_SEEDS, SEED_STRIDE, pack_state
from gauge_mc.updates.heatbath import heatbath
from tests.reference import randoms

LATTICE = Lattice(4, 6, 8, 10)
SMALL = Lattice(4, 4, 4, 4)
RANLUX = GENERATORS["ranlux"]


def states(random):
    return np.stack(list(random.packed_slices()))


@cache
def reference(james, p, length):
    return np.array(list(islice(randoms.ranlux(james, p), length)))


def james_seed(seed, site):
    return pow((SEED_STRIDE * seed + site) % JAMES_SEEDS + 1, JAMES_POWER, JAMES_SEEDS + 1)


def uniforms(numbers, precision):
    """Return (n + 1/2) / 2^24, rounded but never to 1; n of 48 bits in double precision."""
    if precision == "single":
        return np.minimum(np.float32((numbers + 0.5) * 2.0**-24), np.float32(1 - 2**-24))
    return (numbers[..., 0::2] * 2**24 + numbers[..., 1::2] + 0.5) * 2.0**-48


def drawn(random, rounds):
    """Return what all sites draw for all links, so many times: [t, z, y, x, number]."""
    return np.concatenate([random.numbers(mu) for _ in range(rounds) for mu in range(4)], axis=-1)


def check_streams(device, group, precision, level):
    field = Field.cold(LATTICE, group, precision, device)
    seed = 12345
    found = drawn(Random.for_field(field, "ranlux", seed, level), rounds=3)
    found = found.reshape(LATTICE.sites, -1)
    for site in (0, 1, 5, 777, LATTICE.sites - 1):
        james = james_seed(seed, site)
        length = found.shape[1] * (1 if precision == "single" else 2)
        expected = uniforms(reference(james, RANLUX.levels[level], length), precision)
        assert found.dtype == expected.dtype
        assert np.array_equal(found[site], expected)


@pytest.mark.longer
def test_ranlux_streams(group, precision, device):
    """A link of SU(2) takes half a batch in single precision, one of SU(3) two in double."""
    check_streams(device, group, precision, RANLUX.default_level)


@pytest.mark.slow
@pytest.mark.parametrize(("group", "precision"), [("su2", "single"), ("su3", "double")])
@pytest.mark.parametrize("level", range(len(RANLUX.levels)))
def test_ranlux_luxury_levels(level, group, precision, best_device):
    check_streams(best_device, group, precision, level)


def seeded(random, words, borrow):
    """Give every site the same state: numbers of 24 bits, the oldest first."""
    sites = random.field.lattice.sites // random.field.lattice.t
    state = pack_state(np.tile(np.array(words, np.uint64), (sites, 1)), np.full(sites, borrow))
    random.restore(state.reshape(stored.shape) for stored in list(random.packed_slices()))


def integers(random):
    """Yield the 24-bit numbers that site 0 draws for the links along x in double precision."""
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


@pytest.mark.longer
def test_states_of_ranlux_stay_on_its_stream(best_device):
    """At strong coupling many lanes have proposals rejected and take batches of their own."""
    field = Field.hot(LATTICE, "su3", "double", best_device)
    random = Random.for_field(field, "ranlux", seed=9)
    heatbath(field, 0.5, random, sweeps=2)
    ends = states(random).reshape(LATTICE.sites, -1)
    batches = []
    for site in range(0, LATTICE.sites, 101):
        numbers = reference(james_seed(9, site), 223, 24 * 60)
        expected = pack_state(numbers.reshape(-1, 24).astype(np.uint64), np.zeros(60, bool))
        equal = (expected[:, :18] == ends[site, :18]).all(axis=1)
        assert equal.sum() == 1
        batches.append(equal.argmax() + 1)
    assert min(batches) >= 8
    assert len(set(batches)) > 2


def test_numbers_skipped_without_borrows_fit_their_words(root):
    """Bound |x| for any start, also in the 24 steps with borrows that follow."""
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


@pytest.mark.parametrize("group", ["su3"])
def test_ranlux_never_draws_0_or_1(group, precision, best_device):
    """From x_{n-10} = b - 1 and x_{n-24} = 0 come the largest numbers, from equal ones zeros."""
    field = Field.cold(SMALL, group, precision, best_device)
    random = Random.for_field(field, "ranlux", luxury=0)
    top = 2**24 - 1
    for oldest, edge in ((0, 1), (top, 0)):
        seeded(random, [oldest] * 14 + [top] * 10, False)
        first = random.numbers(0)[..., :4]
        assert np.all((first > 0) & (first < 1))
        assert np.all(np.abs(first - edge) <= 2.0**-24)


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
