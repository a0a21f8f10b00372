"""Random number generators for the sites of a field."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.devices import Buffer
from gauge_mc.devices.base import BufferPart
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.domain.slab import MOST_STATE_WORDS, WORD_BYTES, Slab
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.random import GENERATORS, Generator, stream
from gauge_mc.signatures import checks_types

RANDOM_NUMBERS = Kernel("random_numbers")


@dataclass
class Random:
    """A random number generator for every site of a field; create it with `for_field`.

    Attributes
    ----------
    generator : Generator
        The kind of generator.
    seed : int
        Seed of the streams of all sites.
    field : Field
        The field for whose sites numbers are drawn.
    states : tuple of Buffer
        The states at the sites of each slab; empty if the generator has no state.
    step : int
        The number of sweeps done so far, which a checkpoint saves and restores.
    level : int
        The quality level, for generators that have levels.
    """

    generator: Generator
    seed: int
    field: Field
    states: tuple[Buffer, ...]
    step: int = 0
    level: int = 0

    @classmethod
    @checks_types
    def for_field(
        cls,
        field: Field,
        name: str = defaults.RNG,
        seed: int = defaults.SEED,
        luxury: int | None = None,
    ) -> Random:
        """Seed a generator for the sites of a field, on its devices.

        Parameters
        ----------
        field : Field
            The field whose sites get a stream each.
        name : str
            Name of the generator.
        seed : int
            Seed of the streams of all sites.
        luxury : int, optional
            The quality level, for generators that have levels; by default the generator's own.

        Raises
        ------
        UsageError
            If the generator is unknown, the seed or the level is out of range, or the generator
            has fewer streams than the lattice has sites.
        GaugeError
            If a device has too little memory for the states.
        """
        generator, lattice = GENERATORS[name], field.lattice
        level = generator.default_level if luxury is None else luxury
        generator.check(seed, level)
        if lattice.sites > generator.streams:
            raise UsageError(
                f"The lattice {lattice} has more sites than {name} has streams, "
                f"{generator.streams}: choose another generator."
            )
        words = generator.state_words
        assert words <= MOST_STATE_WORDS
        if not words:
            return cls(generator, seed, field, (), level=level)
        nbytes = WORD_BYTES * words * lattice.slice_sites
        states = tuple(slab.device.allocate(nbytes * slab.layout.slices) for slab in field.slabs)
        random = cls(generator, seed, field, states, level=level)
        x, y, z, _ = lattice.extents
        sites = np.arange(lattice.slice_sites, dtype=np.uint64)
        for slab in field.slabs:
            for t in slab.layout.times:
                fresh = generator.start(seed, sites + np.uint64(t * sites.size))
                random._put(t, fresh.reshape(z, y, x, words))
        return random

    def repeated_states(self, count: int) -> Buffer | None:
        """Return memory for the states of several generators like this; None without states.

        Raises
        ------
        GaugeError
            If the device has too little memory.
        """
        device = self.field.devices.devices[0]
        return device.allocate(count * self.states[0].nbytes) if self.states else None

    def moved(self, field: Field, memory: Buffer | None, number: int) -> Random:
        """Return this generator for the sites of a replica.

        Parameters
        ----------
        field : Field
            The replica.
        memory : Buffer or None
            Memory from `repeated_states`, into which the states are copied.
        number : int
            Number of the replica.
        """
        states: tuple[Buffer, ...] = ()
        if memory:
            nbytes = self.states[0].nbytes
            states = (BufferPart(memory, number * nbytes, nbytes),)
            field.slabs[0].device.copy(states[0], self.states[0])
        return replace(self, field=field, states=states)

    def __repr__(self) -> str:
        generator = self.generator.at(self.level)
        return f"<Random {generator}, seed {self.seed}, step {self.step}>"

    @cached_property
    def choice(self) -> Choice:
        """The compile-time choice of kernels that draw from this generator."""
        return self.generator.choice(self.level)

    def stream(self, number: int) -> ctypes.Structure:
        """Return the structure ``Stream`` for the next sweep on ``field.slabs[number]``."""
        address = self.states[number].address if self.states else None
        return stream(self.generator.key(self.seed), self.step, address)

    def packed_slices(self) -> Iterator[NDArray[np.uint32]]:
        """Return the states of the generator.

        Yields
        ------
        ndarray, shape (Z, Y, X, words), uint32
            The states for t = 0, 1, … in the root process; nothing in other processes, or if the
            generator has no state.
        """
        if not self.generator.state_words:
            return iter(())
        return self.field.devices.gather_slices(self.field.lattice, self._get)

    def restore(self, slices: Iterator[NDArray[np.uint32]]) -> None:
        """Set the states to those that `packed_slices` returned."""
        if self.generator.state_words:
            self.field.devices.scatter_slices(self.field.lattice, slices, self._put)

    def _get(self, t: int) -> NDArray[np.uint32]:
        slab, state, nbytes = self._slice(t)
        data = slab.device.read(state, (t - slab.layout.first) * nbytes, nbytes)
        return slab.layout.unpack_words(data.view(np.uint32), t)

    def _put(self, t: int, states: NDArray[np.uint32]) -> None:
        slab, state, nbytes = self._slice(t)
        data = slab.layout.pack_words(states, t)
        slab.device.write(state, (t - slab.layout.first) * nbytes, data)

    def _slice(self, t: int) -> tuple[Slab, Buffer, int]:
        """Return the slab of a time slice, the buffer of its states, and the bytes per slice."""
        pairs = zip(self.field.slabs, self.states, strict=True)
        slab, state = next(pair for pair in pairs if t in pair[0].layout.times)
        return slab, state, state.nbytes // slab.layout.slices

    def numbers(self, mu: int) -> NDArray[np.floating[Any]]:
        """Return the random numbers of all links along `mu` in the next sweep, for tests.

        A link gets as many numbers as an update with several rejected proposals would draw. The
        states of the generator advance.

        Returns
        -------
        ndarray, shape (T, Z, Y, X, n), float32 or float64
            The numbers for this process's time slices, in the precision of the field. n is 12 for
            SU(2) and 24 for SU(3).
        """
        slabs = enumerate(self.field.slabs)
        return np.concatenate([self._numbers(number, slab, mu) for number, slab in slabs])

    def _numbers(self, number: int, slab: Slab, mu: int) -> NDArray[np.floating[Any]]:
        layout = slab.layout
        words = 12 * (slab.group.colours - 1) * layout.real.itemsize // WORD_BYTES
        size = WORD_BYTES * words * layout.slices * layout.lattice.slice_sites
        numbers = slab.device.scratch("numbers", size)
        streams = {"stream": self.stream(number), "numbers": stream((), 0, numbers.address)}
        slab.launch(RANDOM_NUMBERS, slab.whole(mu=mu), self.choice, **streams)
        drawn = slab.device.read(numbers, 0, size).view(np.uint32)
        slices = drawn.reshape(layout.slices, -1)
        by_site = [
            layout.unpack_words(slice_, t) for t, slice_ in zip(layout.times, slices, strict=True)
        ]
        return np.stack(by_site).view(layout.real)
