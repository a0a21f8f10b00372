"""Starts of solvers that are extrapolated from earlier solutions."""

from __future__ import annotations

from gauge_mc.quarks.algebra import Combine, Multiply
from gauge_mc.quarks.linear import EVEN, LinearOperator
from gauge_mc.quarks.spinors import SpinorField

LEAST_PART = 1e-10
"""Part of the product of an earlier solution that must be linearly independent of the others."""


class SolutionHistory:
    """Earlier solutions of A x = b, from which a start is chosen with the smallest residual.

    It is the minimal residual extrapolation of R. C. Brower, T. Ivanenko, A. R. Levi and
    K. N. Orginos, Nucl. Phys. B 484 (1997) 353 (hep-lat/9509012). A start costs as many
    applications of A as there are solutions.

    Parameters
    ----------
    operator : LinearOperator
        The operator A on the even sites, in double precision.
    like : SpinorField
        A field like x.
    length : int
        Largest number of solutions that are kept.
    """

    def __init__(self, operator: LinearOperator, like: SpinorField, length: int) -> None:
        self._solutions = [like.like() for _ in range(length)]
        self._basis = [like.like() for _ in range(length)]
        self._products = [like.like() for _ in range(length)]
        pairs = zip(self._products, self._basis, strict=True)
        self._apply = [operator.apply(product, one) for product, one in pairs]
        self._newest, self._known = 0, 0

    def clear(self) -> None:
        """Forget all solutions."""
        self._known = 0

    def add(self, x: SpinorField) -> None:
        """Keep a solution, in the place of the oldest one if there are too many."""
        length = len(self._solutions)
        if length:
            self._newest = (self._newest + 1) % length
            self._known = min(self._known + 1, length)
            Combine(self._solutions[self._newest], x, parity=EVEN)(0, 1)

    def extrapolate(self, x: SpinorField, b: SpinorField) -> None:
        """Set x to the combination of the solutions with the smallest norm of b - A x."""
        Combine(x, b)(0, 0)
        used: list[tuple[SpinorField, SpinorField]] = []
        for age in range(self._known):
            basis, product = self._basis[age], self._products[age]
            Combine(basis, self._solutions[self._newest - age])(0, 1)
            self._apply[age]()
            before = Multiply(product)().norm2
            for other, its_product in used:
                overlap = Multiply(product, its_product)().mixed
                Combine(product, its_product)(1, -overlap)
                Combine(basis, other)(1, -overlap)
            norm2 = Multiply(product)().norm2
            if not (norm2 > LEAST_PART**2 * before).all():
                continue
            for one in (basis, product):
                Combine(one, b)(1 / norm2**0.5, 0)
            Combine(x, basis)(1, Multiply(b, product)().mixed)
            used.append((basis, product))
