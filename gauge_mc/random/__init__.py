"""Random number generators, one module each, named after the generator.

A generator is a C++ header in ``cuda_src/random`` and an instance of `Generator`, registered in
`GENERATORS`. `gauge_mc.fields.random_field.Random` is a generator with its states at work on a field.
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
"""The header that declares what kernels are told of a stream of random numbers."""


class Generator(ABC):
    """A random number generator with a stream for every site.

    What it yields depends on the seed, the site, the direction and the number of sweeps done, and
    never on how the work is shared.

    Attributes
    ----------
    name : str
    header : str or Path
        Its C++ header, relative to ``cuda_src`` or absolute.
    cpp : str
        Its class template there.
    seeds : range
        The seeds that it takes.
    streams : int
        The number of sites that it can tell apart.
    levels : tuple of int
        What ``LUXURY`` is to the header at each quality level; empty if it has no levels.
    default_level : int
        The level if none is chosen.
    caution : str
        What a user should know before publishing results, in one sentence; or empty.
    """

    name: str
    header: str | Path
    cpp: str
    seeds: range
    streams: int
    levels: tuple[int, ...] = ()
    default_level: int = 0
    caution: str = ""

    @cached_property
    def state_words(self) -> int:
        """The number of 32-bit words of state a site, from the C++ header."""
        return constants(source_folder() / self.header)["STATE_WORDS"]

    def choice(self, level: int | None = None) -> Choice:
        """Return what kernels are compiled for to draw from this generator at a quality level."""
        if not self.levels:
            return Choice.of("random", self.name, self.header, self.cpp)
        chosen = self.default_level if level is None else level
        name, period = f"{self.name}:{chosen}", self.levels[chosen]
        return Choice.of("random", name, self.header, self.cpp, LUXURY=period)

    def key(self, seed: int) -> Sequence[int]:
        """Return what kernels are told of the seed: words of the member ``key`` of a stream."""
        return ()

    @abstractmethod
    def start(self, seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
        """Return the first states of sites.

        Parameters
        ----------
        seed : int
        sites : ndarray, shape (n,), uint64
            Numbers of the sites in the lattice.

        Returns
        -------
        ndarray, shape (n, state_words), uint32
        """

    def check(self, seed: int, level: int) -> None:
        """Refuse a seed or a quality level that the generator does not have.

        Raises
        ------
        UsageError
            If it does not.
        """
        if seed not in self.seeds:
            raise UsageError(
                f"The seed {seed} is outside {self.seeds[0]}…{self.seeds[-1]}, the seeds of "
                f"{self.name}."
            )
        if self.levels and level not in range(len(self.levels)):
            raise UsageError(f"luxury is {level}; the levels are 0…{len(self.levels) - 1}.")


GENERATORS: Registry[Generator] = Registry("generator", __name__)


def stream(key: Sequence[int], step: int, state: int | None = None) -> ctypes.Structure:
    """Return a structure ``Stream``: the random numbers of one sweep.

    Parameters
    ----------
    key : sequence of int
        What the generator makes of the seed.
    step : int
        The number of the sweep.
    state : int, optional
        The address of the states.
    """
    made: ctypes.Structure = structure("Stream", (STREAM,))(state=state)
    made.key[: len(key)] = key
    made.step[:] = (step & 0xFFFFFFFF, step >> 32)
    return made
