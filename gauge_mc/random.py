"""Per-site random number generators, for the kernels that draw."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Buffer
from gauge_mc.devices.base import repeated
from gauge_mc.devices.source import DEFAULT_LUXURY, LUXURY_PERIODS
from gauge_mc.devices.structures import GeometryStruct, StreamStruct, WorkStruct
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.ring.slab import Slab

LCG_MODULUS = 2**31 - 1
LCG_SITE_FACTOR = 16807

JAMES_MODULUS = 2147483563
JAMES_FACTOR = 40014
JAMES_SEEDS = JAMES_MODULUS - 1
JAMES_POWER = 2**16 + 1
"""Prime to `JAMES_SEEDS`: numbers that differ mod `JAMES_MODULUS` have powers that differ."""
SEED_STRIDE = 1327217831
"""The golden section of `JAMES_SEEDS`, prime to it: seeds 1, 2, ... are spread over the circle."""


class _NumbersArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("stream", StreamStruct),
        ("numbers", StreamStruct),
    ]


@dataclass
class Random:
    """A generator for every site of a lattice.

    Make one with `for_field`. What it yields depends on the seed, the site, the direction and
    the number of sweeps done, never on how the work is shared.

    Attributes
    ----------
    kind : str
        One of `KINDS`.
    seed : int
        One of the kind's seeds.
    field : Field
        Whose sites it is for.
    states : tuple of Buffer
        Of the sites of every slab; empty if the generator has none.
    step : int
        Sweeps done; settable, and part of a checkpoint.
    luxury : int
        The luxury level of ``ranlux``: of every 24, 48, 97, 223 or 389 numbers 24 are used.
    """

    kind: str
    seed: int
    field: Field
    states: tuple[Buffer, ...]
    step: int = 0
    luxury: int = DEFAULT_LUXURY

    @classmethod
    def for_field(
        cls, field: Field, kind: str = "philox", seed: int = 1, luxury: int = DEFAULT_LUXURY
    ) -> Random:
        """Seed a generator for the sites of a field, on its devices.

        Raises
        ------
        UsageError
            If there is no such generator, or it does not have the seed, the luxury level or as
            many streams as there are sites.
        GaugeError
            If a device has too little memory for the states.
        """
        if kind not in KINDS:
            raise UsageError(f"The generator '{kind}' is unknown; there are {', '.join(KINDS)}.")
        seeds, streams, start = KINDS[kind].seeds, KINDS[kind].streams, KINDS[kind].start
        if seed not in seeds:
            raise UsageError(
                f"The seed {seed} is outside {seeds[0]}…{seeds[-1]}, the seeds of {kind}."
            )
        if luxury not in range(len(LUXURY_PERIODS)):
            raise UsageError(f"luxury is {luxury}; the levels are 0…{len(LUXURY_PERIODS) - 1}.")
        lattice = field.lattice
        if lattice.sites > streams:
            raise UsageError(
                f"The lattice {lattice} has more sites than {kind} has streams, {streams}: "
                "choose another generator."
            )
        if start is None:
            return cls(kind, seed, field, (), luxury=luxury)
        words = start(seed, np.zeros(1, np.uint64)).size
        x, y, z, _ = lattice.extents
        states = tuple(
            slab.device.allocate(4 * words * x * y * z * slab.layout.slices) for slab in field.slabs
        )
        random = cls(kind, seed, field, states, luxury=luxury)
        sites = np.arange(x * y * z, dtype=np.uint64)
        for slab in field.slabs:
            for t in slab.layout.times:
                fresh = start(seed, sites + np.uint64(t * sites.size))
                random._put(t, fresh.reshape(z, y, x, words))
        return random

    def struct(self, slab: Slab) -> StreamStruct:
        """The kernels' stream on one of the field's slabs for the present sweep."""
        address = self.states[self.field.slabs.index(slab)].address if self.states else None
        return StreamStruct.of(self.seed, self.step, address)

    def stored(self) -> Iterator[NDArray[np.uint32]]:
        """The states.

        Yields
        ------
        ndarray, shape (Z, Y, X, words), uint32
            For t = 0, 1, …; nothing if there are none, and nothing but in the root.
        """
        if KINDS[self.kind].start is None:
            return iter(())
        return self.field.ring.gathered(self.field.lattice, self._get)

    def restore(self, slices: Iterator[NDArray[np.uint32]]) -> None:
        """Put back what `stored` gave."""
        if KINDS[self.kind].start is not None:
            self.field.ring.spread(self.field.lattice, slices, self._put)

    def _get(self, t: int) -> NDArray[np.uint32]:
        slab, state, nbytes = self._slice(t)
        data = slab.device.read(state, (t - slab.layout.first) * nbytes, nbytes)
        return slab.layout.words_of(data.view(np.uint32), t)

    def _put(self, t: int, states: NDArray[np.uint32]) -> None:
        slab, state, nbytes = self._slice(t)
        data = slab.layout.stored_words(states, t)
        slab.device.write(state, (t - slab.layout.first) * nbytes, data)

    def _slice(self, t: int) -> tuple[Slab, Buffer, int]:
        """Where the states of a time slice are, and their bytes."""
        pairs = zip(self.field.slabs, self.states, strict=True)
        slab, state = next(pair for pair in pairs if t in pair[0].layout.times)
        return slab, state, state.nbytes // slab.layout.slices

    def numbers(self, mu: int) -> NDArray[np.floating[Any]]:
        """What a link along `mu` would draw in the present sweep, if it took so many numbers.

        States advance. For tests of the generators.

        Returns
        -------
        ndarray, shape (T, Z, Y, X, n), float32 or float64 as the field
            n = 12 for SU(2), 24 for SU(3); of this process's time slices.
        """
        return np.concatenate([self._numbers(slab, mu) for slab in self.field.slabs])

    def _numbers(self, slab: Slab, mu: int) -> NDArray[np.floating[Any]]:
        layout, lattice = slab.layout, self.field.lattice
        words = 12 * (int(slab.group[2]) - 1) * layout.real.itemsize // 4
        size = 4 * words * layout.slices * lattice.sites // lattice.t
        numbers = slab.device.scratch("numbers", size)
        arguments = _NumbersArguments(
            slab.geometry, slab.work(mu=mu), self.struct(slab), StreamStruct(state=numbers.address)
        )
        slab.kernel("numbers", self.kind, self.luxury)(repeated([arguments], 1))
        found = slab.device.read(numbers, 0, size).view(np.uint32)
        slices = found.reshape(layout.slices, -1)
        by_site = [layout.words_of(one, t) for t, one in zip(layout.times, slices, strict=True)]
        return np.stack(by_site).view(layout.real)


@dataclass(frozen=True)
class Kind:
    """What is to be known of a generator to seed it.

    Attributes
    ----------
    seeds : range
        The seeds that it takes.
    streams : int
        Sites that it can tell apart.
    start : callable or None
        From a seed and the numbers of sites (uint64, shape (n,)) to their first states (uint32,
        shape (n, words)); None for a generator without states.
    """

    seeds: range
    streams: int
    start: Callable[[int, NDArray[np.uint64]], NDArray[np.uint32]] | None = None


def _lcg_start(seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """x(0, j) = c^j x(0, 0) mod m for the sites j (arXiv:1010.4834, eq. 20)."""
    states = np.full(sites.shape, seed, np.uint64)
    factor = LCG_SITE_FACTOR
    for bit in range(int(sites.max()).bit_length()):
        odd = (sites >> np.uint64(bit) & np.uint64(1)).astype(bool)
        states[odd] = states[odd] * np.uint64(factor) % np.uint64(LCG_MODULUS)
        factor = factor * factor % LCG_MODULUS
    return states.astype(np.uint32)[:, np.newaxis]


def _ranlux_start(seed: int, sites: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """James's initialisation (Comput. Phys. Commun. 79 (1994) 111), with a seed for every site.

    The sites of one seed are numbered from `SEED_STRIDE` times the seed on, which gives different
    numbers for n consecutive seeds if n lattices have fewer than 8e8 sites. Seeds of James are
    powers of these: from seeds as evenly spaced as the numbers, neighbours would draw numbers of
    equal differences for some batches (Matsumoto et al., ACM Trans. Model. Comput. Simul. 17
    (2007) 15).
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
    return ranlux_state(numbers, borrow=numbers[:, 0] == 0)


def ranlux_state(numbers: NDArray[np.uint64], borrow: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """States of RANLUX as the kernels have them (``cuda_src/random/ranlux.h``).

    Parameters
    ----------
    numbers : ndarray, shape (n, 24), uint64
        Of 24 bits, from which all others follow; the oldest first.
    borrow : ndarray, shape (n,), bool
        The first borrow.

    Returns
    -------
    ndarray, shape (n, 20), uint32
        The numbers as 18 words, minus the borrow, and zero since none has been used.
    """
    words = np.zeros((len(numbers), 20), np.uint32)
    by_bytes = np.ascontiguousarray(numbers, dtype="<u4").view(np.uint8).reshape(-1, 24, 4)
    words[:, :18] = np.ascontiguousarray(by_bytes[..., :3]).reshape(-1, 72).view("<u4")
    words[:, 18] = np.where(borrow, 2**32 - 1, 0)
    return words


KINDS = {
    "philox": Kind(range(2**64), 2**32),
    "lcg": Kind(range(1, LCG_MODULUS), LCG_MODULUS - 1, _lcg_start),
    "ranlux": Kind(range(JAMES_SEEDS), JAMES_SEEDS, _ranlux_start),
}
"""The generators by their names."""
