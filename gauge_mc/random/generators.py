"""RANLUX, a subtract-with-borrow generator that skips most of its numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gauge_mc.random import GENERATORS, Generator

MODULUS = 2**31 - 1
"""Modulus m (arXiv:1010.4834, eq. 19)."""

SITE_FACTOR = 16807
"""Factor c between the initial states of consecutive sites (arXiv:1010.4834, eq. 20)."""


class Lcg(Generator):
    """A linear congruential generator with a state of 31 bits per site.

    The recurrence is in ``cuda_src/random/lcg.h``.
    """

    name = "lcg"
    header = "random/lcg.h"
    cpp = "Lcg"
    seeds = range(1, MODULUS)
    streams = MODULUS - 1
    caution = "lcg fails tests of randomness: use it for trials, not for results to publish"

    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return x(0, j) = c^j seed mod m for the sites j (arXiv:1010.4834, eq. 20)."""
        states = np.full(sites.shape, seed, np.uint64)
        factor = SITE_FACTOR
        for bit in range(int(sites.max()).bit_length()):
            odd = (sites >> np.uint64(bit) & np.uint64(1)).astype(bool)
            states[odd] = states[odd] * np.uint64(factor) % np.uint64(MODULUS)
            factor = factor * factor % MODULUS
        return states.astype(np.uint32)[:, np.newaxis]


GENERATORS.register(Lcg())


WEYL = (0x9E3779B9, 0xBB67AE85)
"""Increments of the two words of the key from round to round: the fractional parts of the golden
ratio and of sqrt(3), times 2^32 (Salmon, Moraes, Dror and Shaw, SC11, doi:10.1145/2063384.2063405,
section 3.3)."""

ROUNDS = 10
"""Number of rounds that the paper recommends (table 2); its authors found 7 to pass all tests."""


class Philox(Generator):
    """A keyed bijection of 128-bit counters.

    The key is the seed. The counter contains the site, the direction and the sweep; its layout is
    in ``cuda_src/random/philox.h``.
    """

    name = "philox"
    header = "random/philox.h"
    cpp = "Philox"
    seeds = range(2**64)
    streams = 2**32

    def key(self, seed: int) -> Sequence[int]:
        """Return the keys of all rounds, two 32-bit words each, for a seed of 64 bits."""
        halves = zip((seed, seed >> 32), WEYL, strict=True)
        pairs = list(halves)
        return [half + n * weyl & 0xFFFFFFFF for n in range(ROUNDS) for half, weyl in pairs]

    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return arrays without words, because the numbers are a function of the counter."""
        return np.empty((sites.size, 0), np.uint32)


GENERATORS.register(Philox())


JAMES_MODULUS = 2147483563
JAMES_FACTOR = 40014
"""Modulus and factor of the generator of initial states (F. James, Comput. Phys. Commun. 79 (1994)
111)."""

JAMES_SEEDS = JAMES_MODULUS - 1
"""Number of seeds of that generator, 1 to 2147483562."""

JAMES_POWER = 2**16 + 1
"""Exponent that maps numbers to seeds. It is relatively prime to `JAMES_SEEDS`, so that different
numbers have different powers modulo the prime `JAMES_MODULUS`."""

SEED_STRIDE = 1327217831
"""Distance between the first sites of consecutive seeds of a run. It is about `JAMES_SEEDS` divided
by the golden ratio, so that the seeds 1, 2, … are spread evenly, and relatively prime to
`JAMES_SEEDS`."""


class Ranlux(Generator):
    """RANLUX with a state of 24 numbers of 24 bits per site.

    The recurrence and its use are in ``cuda_src/random/ranlux.h``.
    """

    name = "ranlux"
    header = "random/ranlux.h"
    cpp = "Ranlux"
    seeds = range(JAMES_SEEDS)
    streams = JAMES_SEEDS
    # The values of p at the luxury levels 0 to 4 (James, Comput. Phys. Commun. 79 (1994) 111, after
    # Luescher, hep-lat/9309020, section 4).
    levels = (24, 48, 97, 223, 389)
    default_level = 3

    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return initial states by the method of James, with one of his seeds for every site.

        The sites of a run are numbered from `SEED_STRIDE` times its seed on. So runs with n
        consecutive seeds have different numbers if their n lattices together have fewer than 8e8
        sites. James's seed of a site is a fixed power of its number, modulo a prime. If the seeds
        were equally spaced, neighbouring sites would draw numbers with equal differences in some
        batches (Matsumoto et al., ACM Trans. Model. Comput. Simul. 17 (2007) 15).
        """
        first = np.uint64(SEED_STRIDE * seed % JAMES_SEEDS)
        number = (first + sites) % np.uint64(JAMES_SEEDS) + np.uint64(1)
        state = number
        for _ in range(JAMES_POWER.bit_length() - 1):
            state = state * state % np.uint64(JAMES_MODULUS)
        state = state * number % np.uint64(JAMES_MODULUS)
        numbers = np.empty((sites.size, 24), np.uint64)
        for age in range(24):  # from the youngest number to the oldest
            state = state * np.uint64(JAMES_FACTOR) % np.uint64(JAMES_MODULUS)
            numbers[:, 23 - age] = state % np.uint64(2**24)
        return pack_state(numbers, borrow=numbers[:, 0] == 0)


def pack_state(numbers: NDArray[np.uint64], borrow: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return states in the layout of the kernels."""
    words = np.zeros((len(numbers), 20), np.uint32)
    by_bytes = np.ascontiguousarray(numbers, dtype="<u4").view(np.uint8).reshape(-1, 24, 4)
    words[:, :18] = np.ascontiguousarray(by_bytes[..., :3]).reshape(-1, 72).view("<u4")
    words[:, 18] = np.where(borrow, 2**32 - 1, 0)
    return words


GENERATORS.register(Ranlux())
