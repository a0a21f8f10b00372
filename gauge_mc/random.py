"""Random number generators: a linear congruential one, Philox and RANLUX.

Each generator is an instance of `Generator` that is registered in `GENERATORS`, and a C++ header in
``cuda_src/random``. A generator and its states on a lattice are a
`gauge_mc.fields.random_field.Random`.
"""

from __future__ import annotations

import ctypes
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Choice
from gauge_mc.devices.source import constants, source_folder, structure
from gauge_mc.errors import UsageError
from gauge_mc.registry import Registry

STREAM = source_folder() / "random" / "stream.h"
"""The C++ header that declares the structure ``Stream``, the random numbers of one sweep."""


class Generator(ABC):
    """A random number generator with a separate stream for every site.

    The numbers depend only on the seed, the site, the direction and the sweep. They do not depend
    on how the lattice is divided among threads, devices or processes.
    """

    name: str
    """Name on the command line, for ``--rng``."""
    header: str | Path
    """C++ header of the generator, relative to ``cuda_src`` or absolute."""
    cpp: str
    """Name of the class template in the header."""
    seeds: range
    """Valid seeds."""
    streams: int
    """Maximum number of sites."""
    levels: tuple[int, ...] = ()
    """Value of the macro ``LUXURY`` for each quality level; empty if there are no levels."""
    default_level: int = 0
    """Default quality level."""
    caution: str = ""
    """Caution for users who want to publish results, in one sentence; or empty."""

    @cached_property
    def state_words(self) -> int:
        """Number of 32-bit words of state per site, from the C++ header."""
        return constants(source_folder() / self.header)["STATE_WORDS"]

    def at(self, level: int) -> str:
        """Return the name of the generator with its quality level, as text."""
        return f"{self.name} at luxury {level}" if self.levels else self.name

    def choice(self, level: int | None = None) -> Choice:
        """Return the compile-time selection of this generator at a quality level."""
        if not self.levels:
            return Choice.of("random", self.name, self.header, self.cpp)
        default_level = self.default_level if level is None else level
        name, period = f"{self.name}:{default_level}", self.levels[default_level]
        return Choice.of("random", name, self.header, self.cpp, LUXURY=period)

    def key(self, seed: int) -> Sequence[int]:
        """Return the member ``key`` of the C++ structure ``Stream``, 32-bit words from the seed."""
        return ()

    @abstractmethod
    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the initial states of sites.

        Parameters
        ----------
        seed : int
            Seed of the run, one of `seeds`.
        sites : ndarray, shape (n,), uint64
            Numbers of the sites in the lattice, below `streams`.

        Returns
        -------
        ndarray, shape (n, state_words), uint32
            One state per site.
        """

    def check(self, seed: int, level: int) -> None:
        """Refuse a seed or a quality level that the generator does not have.

        Raises
        ------
        UsageError
            If the seed or the level is out of range.
        """
        if seed not in self.seeds:
            raise UsageError(
                f"The seed {seed} is invalid for {self.name}; choose one in "
                f"{self.seeds[0]}…{self.seeds[-1]}."
            )
        if self.levels and level not in range(len(self.levels)):
            raise UsageError(f"luxury is {level}; choose a level in 0…{len(self.levels) - 1}.")


GENERATORS: Registry[Generator] = Registry("generator", __name__, Generator)


def stream(key: Sequence[int], step: int, state: int | None = None) -> ctypes.Structure:
    """Return the C++ structure ``Stream``, which selects the random numbers of one sweep."""
    kind = structure("Stream", (STREAM,))
    unused = kind.declared["key"].elements - len(key)
    return kind(key=(*key, *(0,) * unused), step=(step & 0xFFFFFFFF, step >> 32), state=state)


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
