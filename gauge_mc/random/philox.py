"""Philox4x32-10, a counter-based generator. It is the default."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gauge_mc.random import GENERATORS, Generator

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
