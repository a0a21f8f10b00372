"""The action density and the topological charge of a field."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.fields.field import Field
from gauge_mc.fields.sums import SlabSums, slices_of_all_slabs

CLOVER = Kernel("clover")
LONG_CLOVER = Kernel("long_clover")
LENGTHEN_LINES = Kernel("lengthen_lines")

IMPROVED = {1: 3 / 2, 2: -3 / 5, 3: 1 / 10}
"""Weights of the charges of clovers of l x l loops, which cancel the errors of order a^2 and a^4:
the combination with c5 = 1/10 of P. de Forcrand, M. Garcia Perez and I.-O. Stamatescu,
hep-lat/9701012."""


CHARGE_NORM = 4 * math.pi * math.pi
"""Denominator of the charge density -Tr (F_01 F_23 - F_02 F_13 + F_03 F_12)."""


@dataclass(frozen=True)
class FieldStrength:
    """Action density and topological charge of the time slices of a field."""

    plaquette: NDArray[np.float64]
    """Sums of a^4 E over each slice, from plaquettes: E = 2 sum_p Re Tr (1 - U_p) (arXiv:1006.4518,
    eq. 3.1), of shape (T,).
    """
    clover: NDArray[np.float64]
    """The same from the traceless clover: E = G^a_mu_nu G^a_mu_nu / 4, of shape (T,)."""
    charge: NDArray[np.float64]
    """Topological charge of each slice, from the clover, of shape (T,); see `topological_charge`.
    """
    largest: NDArray[np.float64]
    """Largest Re Tr (1 - U_p) of the plaquettes that begin on each slice, of shape (T,)."""


class LargestValues:
    """Memory in which kernels find the largest value of each time slice of a field.

    Parameters
    ----------
    field : Field
        The links.
    """

    def __init__(self, field: Field) -> None:
        self._devices, self._slabs = field.devices, field.slabs
        self._memory, self._zeros = [], []
        for slab in field.slabs:
            words = np.zeros(slab.layout.slices_in_memory, np.uint32)
            memory, zeros = (slab.device.allocate(words.nbytes) for _ in range(2))
            slab.device.write(zeros, 0, words)
            self._memory.append(memory)
            self._zeros.append(zeros)

    def clear(self) -> None:
        """Set all values to 0."""
        # A copy within the device does not wait for the work issued so far, as a write would.
        for slab, memory, zeros in zip(self._slabs, self._memory, self._zeros, strict=True):
            slab.device.copy(memory, zeros)

    def address(self, number: int) -> int:
        """Return the address of the values of a slab of this process."""
        return self._memory[number].address

    def by_slice(self) -> NDArray[np.float64]:
        """Return the values of all slices of all replicas, rounded to single precision."""
        local = []
        for slab, memory in zip(self._slabs, self._memory, strict=True):
            slices = slab.layout.replicas * slab.layout.slices
            found = slab.device.read(memory, 0, 4 * slices).view(np.float32)
            local.append(found.astype(np.float64).reshape(1, -1, 1))
        return slices_of_all_slabs(self._devices, local)[0, :, 0]


def field_strength(
    field: Field, largest: LargestValues | None = None, anisotropy: float = 1.0
) -> FieldStrength:
    """Return action density and topological charge of a field.

    Parameters
    ----------
    field : Field
        A field whose halos are up to date.
    largest : LargestValues, optional
        Memory to be used again.
    anisotropy : float
        xi = a_s / a_t. E is in units of a_s^-4: planes with direction t have the weight xi^2.
    """
    largest = largest or LargestValues(field)
    largest.clear()
    sums = [SlabSums(slab, 3, 1, wide=True) for slab in field.slabs]
    for n, one in enumerate(sums):
        addresses = {"links": one.slab.buffer.address, "largest": largest.address(n)}
        one.launch(CLOVER, addresses | {"along_t": anisotropy * anisotropy})
    by_slice = slices_of_all_slabs(field.devices, [one.by_slice() for one in sums])[0]
    plaquette, clover, charge = by_slice.T
    return FieldStrength(2 * plaquette, clover, charge / CHARGE_NORM, largest.by_slice())


def improved_charge(field: Field, spare: Field, charge: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the topological charge from clovers of 1x1, 2x2 and 3x3 loops, for each time slice.

    Parameters
    ----------
    field : Field
        A field whose halos have a depth of 3 and are up to date, if there are several slabs.
    spare : Field
        Memory of the same layout, which is overwritten.
    charge : ndarray, shape (T,)
        The charge from the clover of plaquettes; see `FieldStrength`.
    """
    total = IMPROVED[1] * charge
    lines = field
    for length in (2, 3):
        for slab, old, new in zip(field.slabs, lines.slabs, spare.slabs, strict=True):
            slab.launch(
                LENGTHEN_LINES,
                slab.whole(),
                links=slab.buffer.address,
                lines=old.buffer.address,
                longer=new.buffer.address,
                length=length - 1,
            )
        spare.exchange_halo(depth=None)
        lines = spare
        sums = [SlabSums(slab, 1, 1) for slab in field.slabs]
        for one, slab in zip(sums, spare.slabs, strict=True):
            one.launch(LONG_CLOVER, {"lines": slab.buffer.address, "length": length})
        by_slice = slices_of_all_slabs(field.devices, [one.by_slice() for one in sums])[0, :, 0]
        total = total + IMPROVED[length] * by_slice / (CHARGE_NORM * length**4)
    return total
