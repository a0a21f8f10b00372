"""RANLUX: subtract with borrow, of which most numbers are skipped."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.random import GENERATORS, Generator

JAMES_MODULUS = 2147483563
JAMES_FACTOR = 40014
"""The generator of first states (F. James, Comput. Phys. Commun. 79 (1994) 111)."""

JAMES_SEEDS = JAMES_MODULUS - 1
"""The number of its seeds, 1 to 2147483562."""

JAMES_POWER = 2**16 + 1
"""Relatively prime to `JAMES_SEEDS`: different numbers have different powers mod `JAMES_MODULUS`."""

SEED_STRIDE = 1327217831
"""About `JAMES_SEEDS` divided by the golden ratio, and relatively prime to it, so that the seeds
1, 2, … are spread evenly over the circle of James's seeds."""


class Ranlux(Generator):
    """A state of 24 numbers of 24 bits a site; see ``cuda_src/random/ranlux.h``."""

    name = "ranlux"
    header = "random/ranlux.h"
    cpp = "Ranlux"
    seeds = range(JAMES_SEEDS)
    streams = JAMES_SEEDS
    # The p of the luxury levels 0 to 4 (Luescher, hep-lat/9309020, section 4).
    levels = (24, 48, 97, 223, 389)
    default_level = 3

    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Initialise as James does, with one of his seeds for every site.

        The sites of one of our seeds are numbered from `SEED_STRIDE` times the seed on, so that n
        consecutive seeds give different numbers if n lattices have fewer than 8e8 sites. James's
        seeds are powers of these numbers: if they were equally spaced, neighbours would draw
        numbers with equal differences in some batches (Matsumoto et al., ACM Trans. Model.
        Comput. Simul. 17 (2007) 15).
        """
        first = np.uint64(SEED_STRIDE * seed % JAMES_SEEDS)
        number = (first + sites) % np.uint64(JAMES_SEEDS) + np.uint64(1)
        state = number
        for _ in range(JAMES_POWER.bit_length() - 1):
            state = state * state % np.uint64(JAMES_MODULUS)
        state = state * number % np.uint64(JAMES_MODULUS)
        numbers = np.empty((sites.size, 24), np.uint64)
        for age in range(24):  # the youngest first
            state = state * np.uint64(JAMES_FACTOR) % np.uint64(JAMES_MODULUS)
            numbers[:, 23 - age] = state % np.uint64(2**24)
        return pack_state(numbers, borrow=numbers[:, 0] == 0)


def pack_state(numbers: NDArray[np.uint64], borrow: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return states as the kernels have them.

    Parameters
    ----------
    numbers : ndarray, shape (n, 24), uint64
        Numbers of 24 bits, the oldest first, from which all others follow.
    borrow : ndarray, shape (n,), bool
        The first borrow.

    Returns
    -------
    ndarray, shape (n, 20), uint32
        The numbers in 18 words, minus the borrow, and 0, since no number has been used.
    """
    words = np.zeros((len(numbers), 20), np.uint32)
    by_bytes = np.ascontiguousarray(numbers, dtype="<u4").view(np.uint8).reshape(-1, 24, 4)
    words[:, :18] = np.ascontiguousarray(by_bytes[..., :3]).reshape(-1, 72).view("<u4")
    words[:, 18] = np.where(borrow, 2**32 - 1, 0)
    return words


GENERATORS.register(Ranlux())
