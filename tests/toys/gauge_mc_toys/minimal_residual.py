"""Minimal residuals: the simplest solver."""

import numpy as np

from gauge_mc.extensions.quarks.hopping import LinearOperator
from gauge_mc.extensions.quarks.solvers import Solver, SolverParameters
from gauge_mc.extensions.quarks.solvers.iterations import Norms, Residual
from gauge_mc.extensions.quarks.vectors.algebra import Advance, Multiply


class MinimalResidual(Solver):
    """x += omega r and r -= omega M r, with the omega that makes r smallest."""

    name = "minimal-residual"

    def __init__(
        self, outer: Residual, operator: LinearOperator, parameters: SolverParameters
    ) -> None:
        super().__init__(outer, operator, parameters)
        t = self.r.like()
        self._apply, self._products = operator.apply(t, self.r), Multiply(t, self.r)
        self._step = Advance(self.r, t, self.x, self.r)

    def begin(self) -> None:
        """Do nothing: there is no direction to choose."""

    def step(self) -> Norms:
        """Move along the residual."""
        self._apply()
        found = self._products()
        divisor = np.where(self.done | (found.norm2 == 0), 1, found.norm2)
        omega = np.where(self.done, 0, found.mixed.conj() / divisor)
        self._step(-omega, omega)
        return self._step.products().norm2

    def turn(self, replaced: bool) -> None:
        """Do nothing: there is no direction to choose."""
