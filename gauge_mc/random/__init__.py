"""Random number generators.

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
