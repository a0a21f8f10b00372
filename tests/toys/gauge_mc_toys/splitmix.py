"""A generator with a state of 32 bits per site."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.random import Generator


class Splitmix(Generator):
    """Hashed members of a Weyl sequence; see ``splitmix.h``."""

    name = "splitmix"
    header = Path(__file__).parent / "splitmix.h"
    cpp = "Splitmix"
    seeds = range(2**32)
    streams = 2**32

    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return states that are spread over all 32-bit words by a multiplicative hash."""
        states = (sites * np.uint64(0x632BE59BD9B4E019) + np.uint64(seed)) >> np.uint64(32)
        return (states ^ np.uint64(seed)).astype(np.uint32)[:, np.newaxis]


SPLITMIX = Splitmix()
