"""Conjugate gradients on the normal equations."""

from __future__ import annotations

import numpy as np

from gauge_mc.quarks.matrices.linear import LinearOperator
from gauge_mc.quarks.solvers import (
    SOLVERS,
    Norms,
    Residual,
    Solver,
    SolverParameters,
    StagnationError,
)
from gauge_mc.quarks.vectors.algebra import Advance, AdvanceDirection, Combine, Multiply
from gauge_mc.quarks.vectors.device_iterations import (
    CURVATURE,
    DIRECTION,
    RESIDUAL,
    DeviceIterations,
)


@SOLVERS.register
class ConjugateGradients(Solver):
    """Conjugate gradients for M^dagger M x = M^dagger b, in the form that iterates b - M x.

    It is the algorithm CGLS (Bjoerck, Numerical Methods for Least Squares Problems, 1996, section
    7.4), so that the residual that is tested is that of the system itself.
    """

    name = "cg"
    uses_adjoint = True
    always_converges = True
    vectors_moved = 10  # <q, q>; r += c q and <r, r>; <s, s>; x += a p and p = b p + s

    def __init__(
        self, outer: Residual, operator: LinearOperator, request: SolverParameters
    ) -> None:
        super().__init__(outer, operator, request)
        self.p, self.q, self.s = (self.r.like() for _ in range(3))
        self._apply_p = operator.apply(self.q, self.p)
        self._apply_r = operator.apply(self.s, self.r, dagger=True)
        self._q_q, self._s_s = Multiply(self.q), Multiply(self.s)
        self._step = Advance(self.r, self.q)
        self._first_direction = Combine(self.p, self.s)
        self._advance_x = Combine(self.x, self.p)
        self._advance = AdvanceDirection(self.x, self.p, self.s)
        self._alpha = np.zeros(self.r.count)

    def begin(self) -> None:
        """Begin the iteration along the gradient."""
        self._apply_r()
        self.rho = self._s_s().norm2
        self._first_direction(0, 1)
        self._alpha = np.zeros_like(self.rho)

    def step(self) -> Norms:
        """Carry out one step with one application of the operator; see `Solver.step`."""
        ahead, self._begun = self._begun, None
        if not ahead:
            self._apply_p()
        self._alpha = self._ratio(self.rho, ahead["CURVATURES"] if ahead else self._q_q().norm2)
        if ahead:
            return ahead["SQUARES"]
        self._step(-self._alpha)
        return self._step.products().norm2

    def turn(self, replaced: bool) -> None:
        """Choose the next direction, with another application; see `Solver.turn`."""
        self._apply_r()
        gamma = self._s_s().norm2
        beta = self._ratio(gamma, self.rho)
        self.rho = np.where(self.done, self.rho, gamma)
        self._advance(self._alpha, beta)
        self._alpha = np.zeros_like(beta)

    def prepare_ahead(self) -> DeviceIterations:
        """Return iterations that do not wait for the host; see `Solver.prepare_ahead`."""
        made = DeviceIterations(self.r, (CURVATURE, RESIDUAL, DIRECTION))
        step = Advance(self.r, self.q, found=made.factors(CURVATURE, c="STEP"))
        found = made.factors(DIRECTION, a="ALPHA", b="BETA")
        advance = AdvanceDirection(self.x, self.p, self.s, found=found)
        take_curvature = made.take(CURVATURE, self._q_q.sums)
        take_residual = made.take(RESIDUAL, step.sums)
        take_direction = made.take(DIRECTION, self._s_s.sums)
        apply_p, q_q = self._apply_p, self._q_q
        apply_r = made.beside([take_residual], [self._apply_r, self._s_s.launch])

        def iterate() -> None:
            apply_p()
            q_q.launch()
            take_curvature()
            step(0)
            apply_r()
            take_direction()
            advance()

        made.iterate = made.record(iterate)
        return made

    def settle(self) -> None:
        """Add the last step to `x`; see `Solver.settle`."""
        self._advance_x(1, self._alpha)
        self._alpha = np.zeros_like(self._alpha)

    def _ratio(self, a: Norms, b: Norms) -> Norms:
        """Return a / b, and 0 for vectors that are done."""
        if (~self.done & ((b == 0) | ~np.isfinite(b))).any():
            raise StagnationError
        return np.where(self.done, 0, a / np.where(self.done, 1, b))
