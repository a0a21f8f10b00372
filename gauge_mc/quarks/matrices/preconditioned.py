"""The even-odd preconditioned system of a Dirac operator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.quarks.matrices.hopping import (
    ADDED,
    DIVIDED,
    SOLVED,
    WHOLE,
    HoppingOperator,
    PreparedOperator,
)
from gauge_mc.quarks.matrices.linear import EVEN, ODD, Apply, LinearOperator, ReducedOperator
from gauge_mc.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.rounded import square


class PreconditionedOperator(ReducedOperator):
    """The operator on the even sites that is left when the odd sites are eliminated.

    It is divided by A_ee, or not; then it has an adjoint of the same form. See `ReducedOperator`.

    Parameters
    ----------
    prepared : PreparedOperator
        The operator on all sites.
    with_adjoint : bool
        Whether it is the second, whose adjoint can be applied.
    """

    parities = (EVEN,)
    vectors_moved = 5  # two hops, the second one with the source

    def __init__(self, prepared: PreparedOperator, with_adjoint: bool) -> None:
        self._prepared, self.divided = prepared, not with_adjoint
        self._spare: dict[int, SpinorField] = {}

    def _odd(self, source: SpinorField, some: range | None = None) -> SpinorField:
        """Return memory for vectors on the odd sites, which all products share."""
        each = source.count // source.replicas
        if each not in self._spare:
            kind = self._prepared.operator.field, source.storage.name, each, ODD, source.fifth
            self._spare[each] = SpinorField.empty(*kind)
        return self._spare[each] if some is None else self._spare[each].part(some)

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `apply_on`."""
        return self.apply_on(None, target, source, dagger)

    def left_part(self, target: SpinorField, source: SpinorField) -> Apply:
        """Return a call that copies X, if this is not divided; see `ReducedOperator.left_part`."""
        copy = Combine(target, source, parity=EVEN)
        return lambda: copy(0, 1)

    def on(self, some: range) -> LinearOperator:
        """Return the operator for vectors on some replicas alone."""
        return _OnReplicas(self, some)

    def apply_on(
        self, some: range | None, target: SpinorField, source: SpinorField, dagger: bool = False
    ) -> Apply:
        """Return a call that computes the product of vectors on some replicas, or on all.

        See `LinearOperator.apply`.

        Raises
        ------
        ValueError
            If the adjoint is asked of the first form.
        """
        if dagger and self.divided:
            raise ValueError("The form of this operator has no adjoint; declare that it is used.")
        odd, prepare = self._odd(source, some), self._prepared.prepare
        first = prepare(odd, source, ODD, DIVIDED, dagger=dagger, some=some)
        form = ADDED if self.divided else WHOLE
        second = prepare(target, odd, EVEN, form, source, dagger, some)
        kappa2 = square(self._prepared.operator.kappa, source.field.devices.strict)

        def call() -> None:
            first()
            second(-kappa2)

        return call


class _OnReplicas(LinearOperator):
    """A preconditioned operator for vectors on some replicas alone.

    Parameters
    ----------
    one : PreconditionedOperator
        The operator on all replicas.
    some : range
        The replicas.
    """

    def __init__(self, one: PreconditionedOperator, some: range) -> None:
        self._one, self._some, self.parities = one, some, one.parities

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        return self._one.apply_on(self._some, target, source, dagger)


class System:
    """M x = b in double precision, and its reduction to the even sites.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    source : SpinorField
        The right-hand sides b on all sites, in double precision.
    with_adjoint : bool
        See `PreconditionedOperator`.
    """

    def __init__(self, operator: HoppingOperator, source: SpinorField, with_adjoint: bool) -> None:
        self.operator, self.with_adjoint = operator, with_adjoint
        self.exact = operator.prepared(source.storage.name)
        self.preconditioned = self.reduced_operator(source.storage.name)
        self.norms = norms_of(source)
        self.b, self.x, self._product = (source.like() for _ in range(3))
        self._apply = self.exact.apply(self._product, self.x)
        self._scale(self.b, source, 1 / self.units)
        self.reduced = source.like(parity=EVEN)
        self._reduce()

    def reduced_operator(self, precision: str, reals: int | None = None) -> ReducedOperator:
        """Return the operator on the even sites; see `HoppingOperator.prepared`."""
        return self.operator.reduced(self.with_adjoint, precision, reals)

    @property
    def units(self) -> NDArray[np.float64]:
        """The norms of the sources, or 1 for those that are 0. `b` is the source divided by it."""
        return np.where(self.norms > 0, self.norms, 1.0)

    def _scale(self, to: SpinorField, origin: SpinorField, factor: NDArray[np.float64]) -> None:
        for parity in (EVEN, ODD):
            Combine(to, origin, parity=parity)(0, factor)

    def _reduce(self) -> None:
        """Compute the right-hand sides of the preconditioned system."""
        hop, kappa, odd = self.exact.hop, self.operator.kappa, self.b.like(parity=ODD)
        hop(odd, self.x, ODD, SOLVED, self.b, 0.0)
        hop(self.reduced, odd, EVEN, SOLVED, self.b, kappa)
        if not self.preconditioned.divided:
            hop(self.reduced, odd, EVEN, WHOLE, self.reduced, 0.0)

    def complete(self, even: SpinorField) -> None:
        """Set `x` to the solution for `b`, given the solution on the even sites."""
        Combine(self.x, even, parity=EVEN)(0, 1)
        self.exact.hop(self.x, even, ODD, SOLVED, self.b, self.operator.kappa)

    def take(self, solution: SpinorField) -> None:
        """Set `x` to a solution for the sources that is known already."""
        self._scale(self.x, solution, 1 / self.units)

    def residual_norms(self) -> NDArray[np.float64]:
        """Return the norms of b - M x on all sites."""
        self._apply()
        norms2 = np.zeros(self.x.count)
        for parity in (EVEN, ODD):
            step = Advance(self._product, self.b, parity=parity)
            step(-1)
            norms2 += step.products().norm2
        return np.asarray(np.sqrt(norms2))

    def scaled_solution(self) -> SpinorField:
        """Return the solution for the sources."""
        solution = self.x.like()
        self._scale(solution, self.x, self.units)
        return solution


def norms_of(field: SpinorField) -> NDArray[np.float64]:
    """Return the norms of the vectors of a field."""
    return np.asarray(np.sqrt(Multiply(field)().norm2))
