"""The linear congruential generator of arXiv:1010.4834."""

from __future__ import annotations

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
