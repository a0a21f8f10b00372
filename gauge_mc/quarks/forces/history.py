"""Starts of solvers that are extrapolated from earlier solutions."""

from __future__ import annotations

import numpy as np

from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.vectors.algebra import Combine, Multiply
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.rounded import square

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
    x, b : SpinorField
        The solution and the right-hand side, in double precision.
    length : int
        Largest number of solutions that are kept.
    """

    def __init__(
        self, operator: LinearOperator, x: SpinorField, b: SpinorField, length: int
    ) -> None:
        solutions, basis, products = ([x.like() for _ in range(length)] for _ in range(3))
        pairs = list(zip(basis, products, strict=True))
        self._length, self._newest, self._known = length, 0, 0
        self._clear = Combine(x, b)
        self._keep = [Combine(one, x) for one in solutions]
        self._take = [[Combine(one, old) for old in solutions] for one in basis]
        self._apply = [operator.apply(product, one) for one, product in pairs]
        self._norm = [Multiply(product) for product in products]
        self._overlap = [[Multiply(one, other) for other in products] for one in products]
        self._subtract = [
            [(Combine(product, other), Combine(one, its)) for its, other in pairs]
            for one, product in pairs
        ]
        self._scale = [(Combine(one, b), Combine(product, b)) for one, product in pairs]
        rest = b.like()
        self._begin = Combine(rest, b)
        self._part = [Multiply(rest, product) for product in products]
        self._add = [(Combine(x, one), Combine(rest, product)) for one, product in pairs]

    def clear(self) -> None:
        """Forget all solutions."""
        self._known = 0

    def add(self) -> None:
        """Keep the solution x, in the place of the oldest one if there are too many."""
        if self._length:
            self._newest = (self._newest + 1) % self._length
            self._known = min(self._known + 1, self._length)
            self._keep[self._newest](0, 1)

    def extrapolate(self) -> None:
        """Set x to the combination of the solutions with the smallest norm of b - A x.

        The products of the solutions with A are made orthogonal, those of the newest one first.
        """
        self._clear(0, 0)
        self._begin(0, 1)
        used: list[int] = []
        for n in range(self._known):
            self._take[n][self._newest - n](0, 1)
            self._apply[n]()
            before = self._norm[n]().norm2
            for other in used:
                overlap = self._overlap[n][other]().mixed
                for subtract in self._subtract[n][other]:
                    subtract(1, -overlap)
            norm2 = self._norm[n]().norm2
            if (norm2 > square(LEAST_PART) * before).all():
                for scale in self._scale[n]:
                    scale(1 / np.sqrt(norm2), 0)
                part = self._part[n]().mixed  # of the rest, since products lose orthogonality
                for add, sign in zip(self._add[n], (1, -1), strict=True):
                    add(1, sign * part)
                used.append(n)
