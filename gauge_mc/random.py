"""Per-site random number generators, for the kernels that draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Buffer
from gauge_mc.devices.source import GENERATORS
from gauge_mc.devices.structures import StreamStruct
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.layout import Layout

LCG_MODULUS = 2**31 - 1
LCG_SITE_FACTOR = 16807


@dataclass
class Random:
    """A generator for every site of a lattice.

    Make one with `for_field`. What it yields depends on the seed, the site, the direction and
    the number of sweeps done, never on how the work is shared.

    Attributes
    ----------
    kind : str
        ``philox`` or ``lcg``.
    seed : int
        0 <= seed < 2**64 (``lcg``: x(0, 0), 0 < seed < 2**31 - 1).
    step : int
        Sweeps done; settable, and part of a checkpoint.
    """

    kind: str
    seed: int
    layout: Layout
    field: Field
    state: Buffer | None
    step: int = 0

    @classmethod
    def for_field(cls, field: Field, kind: str = "philox", seed: int = 1) -> Random:
        """Seed a generator for the sites of a field, on its device.

        Raises
        ------
        UsageError
            If there is no such generator, or it does not take the seed.
        GaugeError
            If the device has too little memory for the states.
        """
        if kind not in GENERATORS:
            raise UsageError(
                f"The generator '{kind}' is unknown; there are {', '.join(GENERATORS)}."
            )
        limit = LCG_MODULUS if kind == "lcg" else 2**64
        if not (kind == "lcg") <= seed < limit:
            raise UsageError(
                f"The seed {seed} is outside {int(kind == 'lcg')}…{limit - 1}, the seeds of {kind}."
            )
        if kind == "philox":
            return cls(kind, seed, field.layout, field, None)
        state = field.device.allocate(4 * field.lattice.sites)
        random = cls(kind, seed, field.layout, field, state)
        for t in range(field.lattice.t):
            random.restore(t, _lcg_start(field.lattice, seed, t))
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
        return self.layout.words_of(data, t)[..., np.newaxis]

    def restore(self, t: int, states: NDArray[np.uint32]) -> None:
        """Put back what `stored` gave."""
        assert self.state is not None
        data = self.layout.stored_words(states[..., 0], t)
        self.field.device.write(self.state, t * data.nbytes, data)


def _lcg_start(lattice: Lattice, seed: int, t: int) -> NDArray[np.uint32]:
    """x(0, j) = c^j x(0, 0) mod m for the sites j of slice t (arXiv:1010.4834, eq. 20)."""
    x, y, z, _ = lattice.extents
    volume = x * y * z
    power = pow(LCG_SITE_FACTOR, t * volume, LCG_MODULUS) * seed % LCG_MODULUS
    states = np.full(volume, power, np.uint64)
    site = np.arange(volume)
    factor = LCG_SITE_FACTOR
    for bit in range(volume.bit_length()):
        states = np.where(site >> bit & 1, states * np.uint64(factor) % LCG_MODULUS, states)
        factor = factor * factor % LCG_MODULUS
    return states.astype(np.uint32).reshape(z, y, x, 1)
