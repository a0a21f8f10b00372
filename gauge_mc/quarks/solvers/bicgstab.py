"""BiCGstab."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
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
from gauge_mc.quarks.vectors.arithmetic import arithmetic_of, in_kernels
from gauge_mc.quarks.vectors.device_iterations import (
    EVERY,
    MIXED,
    RESIDUAL,
    DeviceIterations,
    constants_of,
)

Scalars = NDArray[np.complex128]

BICGSTAB_COEFFICIENTS = Kernel("bicgstab_coefficients")

SHADOW, MINIMUM, TURN = (
    constants_of(BICGSTAB_COEFFICIENTS)[name] for name in ("SHADOW", "MINIMUM", "TURN")
)
"""Parts of an iteration, after which the search may halt."""

PARTS = SHADOW, MINIMUM, RESIDUAL | TURN


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
        self.rho: Scalars = np.zeros(self.r.count, complex)
        self._next_rho = self._alpha = self._omega = self.rho

    def begin(self) -> None:
        """Begin the iteration, with the residual as its own shadow."""
        self._copy_shadow(0, 1)
        self._direction(0, 1)
        self.rho = self._shadow_r().mixed

    def step(self) -> Norms:
        """Carry out one step with two applications of the operator; see `Solver.step`."""
        ahead, self._begun = self._begun, None
        self._alpha = self._ratio(self.rho, ahead.complex("SHADOWS") if ahead else self._shadow())
        if ahead:
            t_r, t_t = ahead.complex("PRODUCTS_WITH_T"), ahead["T_NORM2"]
        else:
            self._half_step(1, -self._alpha)
            self._apply_r()
            found = self._t_r()
            t_r, t_t = found.mixed, found.norm2
        # t_r is <r, t>, and omega is <t, r> / <t, t>.
        # If t is 0, so is r, and omega does not matter.
        self._omega = self._ratio(t_r.conj(), np.where(t_t == 0, 1, t_t).astype(complex))
        if ahead and ahead.knows_residual:
            self._next_rho = ahead.complex("RHOS")
            return ahead["SQUARES"]
        self._step(-self._omega, self._alpha, self._omega)
        found = self._step.products()
        self._next_rho = found.mixed
        return found.norm2

    def _shadow(self) -> Scalars:
        """Return <r0, v> for the current direction."""
        self._apply_p()
        return self._shadow_v().mixed

    def turn(self, replaced: bool) -> None:
        """Choose the next direction; see `Solver.turn`."""
        rho = self._shadow_r().mixed if replaced else self._next_rho
        multiply = self._arithmetic.multiply
        beta = multiply(self._ratio(rho, self.rho), self._ratio(self._alpha, self._omega))
        self.rho = np.where(self.done, self.rho, rho)
        self._direction(beta, 1, multiply(-beta, self._omega))

    def prepare_ahead(self) -> DeviceIterations | None:
        """Return iterations that do not wait for the host; see `Solver.prepare_ahead`."""
        kind = in_kernels(self._arithmetic)
        if kind is None:
            return None
        shadow, minimum, end = PARTS
        arithmetic = constants_of(BICGSTAB_COEFFICIENTS)[kind]
        made = DeviceIterations(self.r, PARTS, BICGSTAB_COEFFICIENTS, arithmetic)
        half_step = Combine(self.r, self.v, found=made.factors(shadow, b="HALF_STEP"))
        found = made.factors(minimum, a="ALPHA", b="OMEGA", c="STEP")
        step = Advance(self.r, self.t, self.x, self.p, self.shadow, found=found)
        found = made.factors(end, a="BETA", c="BACK")
        direction = Combine(self.p, self.r, self.v, found=found)
        take_shadow = made.take(shadow, self._shadow_v.sums, MIXED)
        take_minimum = made.take(minimum, self._t_r.sums, EVERY)
        take_end = made.take(end, step.sums, EVERY)
        apply_p, apply_r, shadow_v, t_r = self._apply_p, self._apply_r, self._shadow_v, self._t_r

        def iterate() -> None:
            apply_p()
            shadow_v.launch()
            take_shadow()
            half_step(1, 0)
            apply_r()
            t_r.launch()
            take_minimum()
            step(0)
            take_end()
            direction(0, 1)

        made.iterate = made.record(iterate)
        return made

    def _ratio(self, a: Scalars, b: Scalars) -> Scalars:
        """Return a / b, and 0 for vectors that are done."""
        if (~self.done & ((b == 0) | ~np.isfinite(b))).any():
            raise StagnationError
        return np.where(self.done, 0, self._arithmetic.divide(a, np.where(self.done, 1, b)))
