"""The part of a Dirac operator that is diagonal in the sites, in the forms that kernels know.

It is A = H + i m gamma_5, where H is 1 plus the sum of hermitian terms; see
`gauge_mc.quarks.diagonal`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.fields.field import Field
from gauge_mc.quarks.diagonal import DiagonalTerm
from gauge_mc.quarks.vectors.links import in_precision
from gauge_mc.quarks.vectors.spinors import SPINS
from gauge_mc.quarks.vectors.storage import STORAGES, Storage, StoredSlab, elsewhere, empty_slabs

ADD_TERM = Kernel("add_term")
INVERT_BLOCKS = Kernel("invert_blocks")
CONVERT_BLOCKS = Kernel("convert_blocks")

EXACT = STORAGES["double"]
"""Storage in which the hermitian part and its inverse are computed, whatever the precision."""

UNIT = Choice.of("diagonal", "Unit", "dirac/unit.h", "Unit")
TWIST = Choice.of("diagonal", "Twist", "dirac/twist.h", "Twist")
HERMITIAN = Choice.of("diagonal", "Hermitian", "dirac/hermitian.h", "Hermitian")
FORMS = (UNIT, TWIST, HERMITIAN)
"""The forms 1, 1 + i m gamma_5 and H + i m gamma_5 of A."""

Slabs = tuple[StoredSlab, ...]
"""Hermitian blocks of all sites on the devices of this process."""


def form_of(terms: Sequence[DiagonalTerm]) -> Choice:
    """Return the form of A that needs least memory and has all terms."""
    if any(one.matrix for one in terms):
        return HERMITIAN
    return TWIST if terms else UNIT


def empty_blocks(field: Field, storage: Storage) -> Slabs:
    """Return hermitian blocks of all sites, which are zero."""
    reals = (SPINS // 2 * field.group.colours) ** 2
    return empty_slabs(field, storage.layouts(field), 2 * storage.bytes(reals))


class HermitianPart:
    """H and (H^2 + m^2)^-1, which is H^-1 if m is 0, on all sites and in any storage.

    Parameters
    ----------
    field : Field
        The links, whose halos must be up to date. Call `refresh` after they have changed.
    terms : sequence of DiagonalTerm
        The terms of H and m.

    Attributes
    ----------
    mass : float
        The number m.
    """

    def __init__(self, field: Field, terms: Sequence[DiagonalTerm]) -> None:
        self._field, self.mass = field, math.fsum(one.mass for one in terms)
        self._terms = [(one.matrix, one.coefficients) for one in terms if one.matrix]
        self._stored: dict[Storage, tuple[Slabs, Slabs]] = {}

    def stored(self, storage: Storage) -> tuple[Slabs, Slabs]:
        """Return H and its inverse."""
        if storage not in self._stored:
            if storage != EXACT:
                self.stored(EXACT)
            empty = empty_blocks(self._field, storage), empty_blocks(self._field, storage)
            self._stored[storage] = empty
            self._compute(storage)
        return self._stored[storage]

    def refresh(self) -> None:
        """Compute what has been used anew, after the links have changed."""
        for storage in self._stored:  # in double precision first
            self._compute(storage)

    def _compute(self, storage: Storage) -> None:
        """Compute H and its inverse, by conversion unless the storage is `EXACT`."""
        if storage == EXACT:
            self._compute_exact()
        else:
            self._convert(storage)

    def _compute_exact(self) -> None:
        field = in_precision(self._field, EXACT.arithmetic)
        for links, blocks, inverse in zip(field.slabs, *self._stored[EXACT], strict=True):
            for n, (matrix, values) in enumerate(self._terms):
                variant = blocks.variant(EXACT.choice, matrix)
                blocks.launch(
                    ADD_TERM,
                    blocks.whole(),
                    EXACT.choice,
                    matrix,
                    links=links.buffer.address,
                    term=ADD_TERM.part("TERM::Coefficients", variant)(**values),
                    blocks=blocks.buffer.address,
                    first=n == 0,
                )
            blocks.launch(
                INVERT_BLOCKS,
                blocks.whole(),
                EXACT.choice,
                blocks=blocks.buffer.address,
                inverse=inverse.buffer.address,
                mass=self.mass,
            )
            blocks.device.synchronize()

    def _convert(self, storage: Storage) -> None:
        for mine, exact in zip(self._stored[storage], self._stored[EXACT], strict=True):
            for slab, old in zip(mine, exact, strict=True):
                slab.launch(
                    CONVERT_BLOCKS,
                    slab.whole(),
                    storage.choice,
                    target=slab.buffer.address,
                    source=old.buffer.address,
                    elsewhere=elsewhere(EXACT.number_bytes, slab.layout, old.layout).structure,
                )
