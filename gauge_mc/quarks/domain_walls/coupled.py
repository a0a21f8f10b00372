"""Operators with a fifth direction along which the part that is diagonal in the sites acts."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property

from gauge_mc.devices.base import Registers
from gauge_mc.devices.kernels import Choice
from gauge_mc.quarks.domain_walls.fifth_direction import (
    CHIRALITIES,
    FifthMatrix,
    FifthProduct,
    PreparedProduct,
    along_of,
    kept_extent,
)
from gauge_mc.quarks.matrices.hopping import (
    ADDED,
    DIVIDED,
    SOLVED,
    WHOLE,
    Hop,
    PreparedHop,
    PreparedOperator,
)
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.vectors.spinors import SpinorField

MOST_THREADS = 8
"""Largest number of threads of a block that share a site in a hop with a product after it.

The more there are, the fewer sites has a block, whose vectors it reads again for the product."""


class CoupledOperator(DiracOperator):
    """An operator M = A - kappa D on spinors with a fifth direction, along which A acts.

    Attributes
    ----------
    fifth : int
        The extent of the fifth direction.
    diagonal_matrix : FifthMatrix
        A, whose adjoint is A with the two chiralities exchanged.
    """

    fifth: int
    diagonal_matrix: FifthMatrix


class PreparedWalls(PreparedOperator):
    """M of an operator with a fifth direction for spinors in one type of storage.

    A hop is the hopping term alone, and a product along the fifth direction before or after it.
    After it, both are one launch where they can be: what a site needs is still in a cache then.
    """

    operator: CoupledOperator

    @cached_property
    def diagonals(self) -> dict[tuple[bool, bool], FifthProduct]:
        """A by whether it is inverted, and whether it is the adjoint."""
        a = self.operator.diagonal_matrix
        return {
            (inverted, dagger): FifthProduct(two.with_directions_exchanged() if dagger else two)
            for inverted, two in ((False, a), (True, a.inverse))
            for dagger in (False, True)
        }

    @cached_property
    def _spares(self) -> dict[tuple[int, int], SpinorField]:
        return {}

    def spare(self, like: SpinorField, parity: int, some: range | None = None) -> SpinorField:
        """Return memory for vectors on one parity, and on some replicas, which all products share.

        Parameters
        ----------
        like : SpinorField
            Vectors on these replicas, as many and of the same storage.
        parity : int
            The parity.
        some : range, optional
            The replicas; by default all.
        """
        each = like.count // like.replicas
        if (each, parity) not in self._spares:
            kind = self.operator.field, like.storage.name, each, parity, like.fifth
            self._spares[each, parity] = SpinorField.empty(*kind)
        found = self._spares[each, parity]
        return found if some is None else found.part(some)

    def prepare(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int = DIVIDED,
        other: SpinorField | None = None,
        dagger: bool = False,
        some: range | None = None,
    ) -> PreparedHop:
        """Return a call that carries out `hop`; see `PreparedOperator.prepare`."""
        u, own = other or target, (parity,)
        along = self.diagonals[form != WHOLE, dagger]
        if self.in_one and form != WHOLE and not (form == ADDED and u is target):
            return self._prepare_in_one(target, source, parity, form, u, dagger, some)
        spare = self.spare(source, parity, some)
        if form == WHOLE:
            product = along.prepare(spare, u, own, None, some)
            hop = super().prepare(target, source, parity, ADDED, spare, dagger, some)
        elif form == SOLVED:
            hop = super().prepare(spare, source, parity, ADDED, u, dagger, some)
            product = along.prepare(target, spare, own, None, some)
        else:
            hop = super().prepare(spare, source, parity, DIVIDED, None, dagger, some)
            product = along.prepare(target, spare, own, u if form == ADDED else None, some)
        return HopAndProduct(hop, product, form)

    @property
    def in_one(self) -> bool:
        """Whether a hop and the product after it are one launch.

        The product takes the place of the result of the hop. If all numbers of a site have a unit
        in common, it can only where threads keep what they have read.
        """
        kind = self.operator.field, self.storage, self.operator.fifth
        return not self.storage.norm_bytes or kept_extent(*kind, together=True) > 0

    def _prepare_in_one(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int,
        u: SpinorField,
        dagger: bool,
        some: range | None,
    ) -> PreparedHop:
        """Return a call that carries out a hop with the inverse of A in one launch.

        The forms are `DIVIDED`, `ADDED` and `SOLVED`; in the second one u is not `target`.
        """
        added = u if form == ADDED else None
        more = ProductOfHop(self.diagonals[True, dagger], target, added, some)
        first, addend = (ADDED, u) if form == SOLVED else (DIVIDED, target)
        return HopInOne(Hop(self, target, source, parity, first, addend, dagger, more, some), form)


@dataclass(frozen=True)
class ProductOfHop:
    """A product along the fifth direction of the result of a hop; see `Completion`."""

    product: FifthProduct
    """The product."""
    target: SpinorField
    """The result of the hop, whose place the product takes."""
    added: SpinorField | None
    """Vectors to which the product is added."""
    some: range | None
    """The replicas on which it is done; all if it is None."""

    @property
    def reflection(self) -> Choice:
        """The compile-time selection."""
        target = self.target
        kept = kept_extent(target.field, target.storage, target.fifth, together=True)
        return along_of(kept)

    def addends(self, made: type[ctypes.Structure], slab: int) -> ctypes.Structure:
        """Return the product on a slab; see `Completion.addends`."""
        fields = self.target, self.target, self.added
        return made(fifth=self.product.structure(slab, *fields, self.some))

    def shares(self, usual: tuple[int, int], sites: int) -> tuple[int, int]:
        """Return threads of one block, which wait for each other; see `Completion.shares`."""
        vectors, alone = self.target.per_site, usual[0] == 1
        threads = 1 if alone else max(n for n in range(2, MOST_THREADS + 1) if vectors % n == 0)
        if self.target.storage.norm_bytes:
            threads = max(threads, CHIRALITIES * self.target.field.group.colours)
        return threads, 1


@dataclass(frozen=True)
class HopInOne:
    """A hop and a product along the fifth direction in one launch."""

    hop: Hop
    """The launches."""
    form: int
    """See `PreparedOperator.hop`."""

    def __call__(self, factor: float = 1.0) -> None:
        """Carry out the hop with this factor."""
        for one in self.hop.added:
            one.fifth.factor = factor if self.form == ADDED else 1.0
        self.hop(factor if self.form == SOLVED else 1.0)

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel on a GPU."""
        return self.hop.registers


@dataclass(frozen=True)
class HopAndProduct:
    """A hop of a domain-wall operator."""

    hop: PreparedHop
    """The hopping term."""
    product: PreparedProduct
    """The product with A or its inverse."""
    form: int
    """See `PreparedOperator.hop`."""

    def __call__(self, factor: float = 1.0) -> None:
        """Carry out the hop with this factor."""
        if self.form == WHOLE:
            self.product()
            self.hop(factor)
        elif self.form == SOLVED:
            self.hop(factor)
            self.product()
        else:
            self.hop()
            self.product(factor if self.form == ADDED else 1.0)

    @property
    def registers(self) -> Registers | None:
        """Register usage of the kernel of the hopping term on a GPU."""
        return self.hop.registers
