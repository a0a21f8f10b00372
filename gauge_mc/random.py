"""Per-site random number generators, for the kernels that draw."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
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
from gauge_mc.layout import Layout

LCG_MODULUS = 2**31 - 1
LCG_SITE_FACTOR = 16807

JAMES_MODULUS = 2147483563
JAMES_FACTOR = 40014
JAMES_SEEDS = JAMES_MODULUS - 1
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
    step : int
        Sweeps done; settable, and part of a checkpoint.
    luxury : int
        The luxury level of ``ranlux``: of every 24, 48, 97, 223 or 389 numbers 24 are used.
    """

    kind: str
    seed: int
    layout: Layout
    field: Field
    state: Buffer | None
    step: int = 0
    luxury: int = DEFAULT_LUXURY

    @classmethod
    def for_field(
        cls, field: Field, kind: str = "philox", seed: int = 1, luxury: int = DEFAULT_LUXURY
    ) -> Random:
        """Seed a generator for the sites of a field, on its device.

        Raises
        ------
        UsageError
            If there is no such generator, or it does not have the seed, the luxury level or as
            many streams as there are sites.
        GaugeError
            If the device has too little memory for the states.
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
            return cls(kind, seed, field.layout, field, None, luxury=luxury)
        words = start(seed, np.zeros(1, np.uint64)).size
        state = field.device.allocate(4 * words * lattice.sites)
        random = cls(kind, seed, field.layout, field, state, luxury=luxury)
        x, y, z, _ = lattice.extents
        sites = np.arange(x * y * z, dtype=np.uint64)
        for t in range(lattice.t):
            states = start(seed, sites + np.uint64(t * sites.size))
            random.restore(t, states.reshape(z, y, x, words))
        return random

    def struct(self) -> StreamStruct:
        """The kernels' stream for the present sweep."""
        return StreamStruct(
            seed=(self.seed & 0xFFFFFFFF, self.seed >> 32),
            step=(self.step & 0xFFFFFFFF, self.step >> 32),
            state=self.state.address if self.state else None,
        )

    def stored(self, t: int) -> NDArray[np.uint32] | None:
        """The states of time slice `t`, shape (Z, Y, X, words); None if there are none."""
        if self.state is None:
            return None
        nbytes = self.state.nbytes // self.layout.slices
        data = self.field.device.read(self.state, t * nbytes, nbytes).view(np.uint32)
        return self.layout.words_of(data, t)

    def restore(self, t: int, states: NDArray[np.uint32]) -> None:
        """Put back what `stored` gave."""
        assert self.state is not None
        data = self.layout.stored_words(states, t)
        self.field.device.write(self.state, t * data.nbytes, data)

    def numbers(self, mu: int) -> NDArray[np.floating[Any]]:
        """What a link along `mu` would draw in the present sweep, if it took so many numbers.

        States advance. For tests of the generators.

        Returns
        -------
        ndarray, shape (T, Z, Y, X, n), float32 or float64 as the field
            n = 12 for SU(2), 24 for SU(3).
        """
        field, layout = self.field, self.layout
        words = 12 * (int(field.group[2]) - 1) * layout.real.itemsize // 4
        size = 4 * words * field.lattice.sites
        numbers = field.device.scratch(size)
        arguments = _NumbersArguments(
            field.geometry, field.work(mu=mu), self.struct(), StreamStruct(state=numbers.address)
        )
        field.kernel("numbers", self.kind, self.luxury)(repeated([arguments], 1))
        found = field.device.read(numbers, 0, size).view(np.uint32)
        slices = found.reshape(layout.slices, -1)
        by_site = np.stack([layout.words_of(slices[t], t) for t in range(layout.slices)])
        return by_site.view(layout.real)


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

    The sites of one seed have consecutive seeds of James, from `SEED_STRIDE` times the seed on.
    Those of n consecutive seeds are all different if n lattices have fewer than 8e8 sites.
    """
    james = np.uint64(SEED_STRIDE * seed % JAMES_SEEDS)
    state = (james + sites) % np.uint64(JAMES_SEEDS) + np.uint64(1)
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
