"""Operators with a fifth direction along which the part that is diagonal in the sites acts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gauge_mc.devices.base import Registers
from gauge_mc.quarks.fifth_direction import FifthMatrix, FifthProduct, PreparedProduct
from gauge_mc.quarks.hopping import ADDED, DIVIDED, SOLVED, WHOLE, PreparedHop, PreparedOperator
from gauge_mc.quarks.operators import DiracOperator
from gauge_mc.quarks.spinors import SpinorField


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

    def spare(self, like: SpinorField, parity: int) -> SpinorField:
        """Return memory for vectors on one parity, which all products share."""
        key = like.count, parity
        if key not in self._spares:
            self._spares[key] = like.like(parity=parity)
        return self._spares[key]

    def prepare(
        self,
        target: SpinorField,
        source: SpinorField,
        parity: int,
        form: int = DIVIDED,
        other: SpinorField | None = None,
        dagger: bool = False,
    ) -> PreparedHop:
        """Return a call that carries out `hop`; see `PreparedOperator.prepare`."""
        spare, u, own = self.spare(source, parity), other or target, (parity,)
        along = self.diagonals[form != WHOLE, dagger]
        if form == WHOLE:
            product = along.prepare(spare, u, own)
            hop = super().prepare(target, source, parity, ADDED, spare, dagger)
        elif form == SOLVED:
            hop = super().prepare(spare, source, parity, ADDED, u, dagger)
            product = along.prepare(target, spare, own)
        else:
            hop = super().prepare(spare, source, parity, DIVIDED, None, dagger)
            product = along.prepare(target, spare, own, u if form == ADDED else None)
        return HopAndProduct(hop, product, form)


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
