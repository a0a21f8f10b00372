"""BiCGstab."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.solvers import (
    SOLVERS,
    Norms,
    Residual,
    Solver,
    SolverParameters,
    StagnationError,
)
from gauge_mc.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.quarks.vectors.arithmetic import arithmetic_of

Scalars = NDArray[np.complex128]


@SOLVERS.register
class BiCGstab(Solver):
    """The stabilised biconjugate gradients.

    H. van der Vorst, SIAM J. Sci. Stat. Comput. 13 (1992) 631. The shadow residual is the residual
    at the beginning. The iteration need not converge if the real parts of eigenvalues have both
    signs, as beyond the critical kappa of a configuration. Then conjugate gradients continue.
    """

    name = "bicgstab"
    vectors_moved = 18  # <r0, v>; s; <t, s> and <t, t>; x and r with |r|^2 and <r0, r>; p
    patience = 300

    def __init__(
        self, outer: Residual, operator: LinearOperator, request: SolverParameters
    ) -> None:
        super().__init__(outer, operator, request)
        self._arithmetic = arithmetic_of(self.r.field.devices.strict)
        self.shadow, self.p, self.v, self.t = (self.r.like() for _ in range(4))
        self._apply_p = operator.apply(self.v, self.p)
        self._apply_r = operator.apply(self.t, self.r)
        self._shadow_v = Multiply(self.v, self.shadow)
        self._shadow_r = Multiply(self.r, self.shadow)
        self._half_step = Combine(self.r, self.v)
        self._t_r = Multiply(self.t, self.r)
        self._step = Advance(self.r, self.t, self.x, self.p, self.shadow)
        self._direction = Combine(self.p, self.r, self.v)
        self._copy_shadow = Combine(self.shadow, self.r)
        self._rho: Scalars = np.zeros(self.r.count, complex)
        self._next_rho = self._alpha = self._omega = self._rho

    def begin(self) -> None:
        """Begin the iteration, with the residual as its own shadow."""
        self._copy_shadow(0, 1)
        self._direction(0, 1)
        self._rho = self._shadow_r().mixed

    def step(self) -> Norms:
        """Carry out one step with two applications of the operator; see `Solver.step`."""
        self._apply_p()
        found = self._shadow_v()
        self._alpha = self._ratio(self._rho, found.mixed)
        self._half_step(1, -self._alpha)
        self._apply_r()
        found = self._t_r()
        # t_r has <r, t> and <t, t>, and omega is <t, r> / <t, t>.
        # If t is 0, so is r, and omega does not matter.
        divisor = np.where(found.norm2 == 0, 1, found.norm2)
        self._omega = self._ratio(found.mixed.conj(), divisor.astype(complex))
        self._step(-self._omega, self._alpha, self._omega)
        found = self._step.products()
        self._next_rho = found.mixed
        return found.norm2

    def turn(self, replaced: bool) -> None:
        """Choose the next direction; see `Solver.turn`."""
        rho = self._shadow_r().mixed if replaced else self._next_rho
        multiply = self._arithmetic.multiply
        beta = multiply(self._ratio(rho, self._rho), self._ratio(self._alpha, self._omega))
        self._rho = np.where(self.done, self._rho, rho)
        self._direction(beta, 1, multiply(-beta, self._omega))

    def _ratio(self, a: Scalars, b: Scalars) -> Scalars:
        """Return a / b, and 0 for vectors that are done."""
        if (~self.done & ((b == 0) | ~np.isfinite(b))).any():
            raise StagnationError
        return np.where(self.done, 0, self._arithmetic.divide(a, np.where(self.done, 1, b)))
