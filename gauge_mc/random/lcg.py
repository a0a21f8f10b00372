"""The linear congruential generator of arXiv:1010.4834."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.random import GENERATORS, Generator

MODULUS = 2**31 - 1
SITE_FACTOR = 16807
"""The factor c between the first states of neighbouring sites (arXiv:1010.4834, eq. 20)."""


class Lcg(Generator):
    """One state of 31 bits a site; see ``cuda_src/random/lcg.h``."""

    name = "lcg"
    header = "random/lcg.h"
    cpp = "Lcg"
    seeds = range(1, MODULUS)
    streams = MODULUS - 1
    caution = "lcg fails tests of randomness: use it for trials, not for results to publish"

    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return x(0, j) = c^j x(0, 0) mod m for the sites j (arXiv:1010.4834, eq. 20)."""
        states = np.full(sites.shape, seed, np.uint64)
        factor = SITE_FACTOR
        for bit in range(int(sites.max()).bit_length()):
            odd = (sites >> np.uint64(bit) & np.uint64(1)).astype(bool)
            states[odd] = states[odd] * np.uint64(factor) % np.uint64(MODULUS)
            factor = factor * factor % MODULUS
        return states.astype(np.uint32)[:, np.newaxis]


GENERATORS.register(Lcg())
