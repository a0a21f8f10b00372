"""BiCGstab."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Kernel
from gauge_mc.extensions.quarks.hopping import LinearOperator
from gauge_mc.extensions.quarks.solvers import (
    SOLVERS,
    Norms,
    Residual,
    Solver,
    SolverParameters,
    device_iterations,
)
from gauge_mc.extensions.quarks.vectors.algebra import Advance, AdvanceDirection, Combine, Multiply
from gauge_mc.extensions.quarks.vectors.basis import arithmetic_of, in_kernels
from gauge_mc.extensions.quarks.vectors.spinors import in_turn


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

    def prepare_ahead(self) -> device_iterations.DeviceIterations:
        """Return iterations that do not wait for the host; see `Solver.prepare_ahead`."""
        ahead = device_iterations.DeviceIterations(
            self.r,
            (device_iterations.CURVATURE, device_iterations.RESIDUAL, device_iterations.DIRECTION),
        )
        step = Advance(self.r, self.q, found=ahead.factors(device_iterations.CURVATURE, c="STEP"))
        factors = ahead.factors(device_iterations.DIRECTION, a="ALPHA", b="BETA")
        advance = AdvanceDirection(self.x, self.p, self.s, found=factors)
        take_curvature = ahead.take(device_iterations.CURVATURE, self._q_q.sums)
        take_residual = ahead.take(device_iterations.RESIDUAL, step.sums)
        take_direction = ahead.take(device_iterations.DIRECTION, self._s_s.sums)
        apply_r = ahead.beside([take_residual], [self._apply_r, self._s_s.launch])
        first = self._apply_p, self._q_q.launch, take_curvature, partial(step, 0)
        ahead.iterate = ahead.record(in_turn(*first, apply_r, take_direction, advance))
        return ahead

    def settle(self) -> None:
        """Add the last step to `x`; see `Solver.settle`."""
        self._advance_x(1, self._alpha)
        self._alpha = np.zeros_like(self._alpha)


Scalars = NDArray[np.complex128]

BICGSTAB_COEFFICIENTS = Kernel("bicgstab_coefficients")

SHADOW, MINIMUM, TURN = map(BICGSTAB_COEFFICIENTS.constant, ("SHADOW", "MINIMUM", "TURN"))
"""Parts of an iteration, after which the search may halt."""

PARTS = SHADOW, MINIMUM, device_iterations.RESIDUAL | TURN


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
        self._divide = self._arithmetic.divide
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
        if ahead:
            self._alpha = self._ratio(self.rho, ahead.complex("SHADOWS"))
            t_r, t_t = ahead.complex("PRODUCTS_WITH_T"), ahead["T_NORM2"]
        else:
            self._apply_p()
            self._alpha = self._ratio(self.rho, self._shadow_v().mixed)
            self._half_step(1, -self._alpha)
            self._apply_r()
            products = self._t_r()
            t_r, t_t = products.mixed, products.norm2
        # t_r is <r, t>, and omega is <t, r> / <t, t>.
        # If t is 0, so is r, and omega does not matter.
        self._omega = self._ratio(t_r.conj(), np.where(t_t == 0, 1, t_t).astype(complex))
        if ahead and ahead.knows_residual:
            self._next_rho = ahead.complex("RHOS")
            return ahead["SQUARES"]
        self._step(-self._omega, self._alpha, self._omega)
        products = self._step.products()
        self._next_rho = products.mixed
        return products.norm2

    def turn(self, replaced: bool) -> None:
        """Choose the next direction; see `Solver.turn`."""
        rho = self._shadow_r().mixed if replaced else self._next_rho
        multiply = self._arithmetic.multiply
        beta = multiply(self._ratio(rho, self.rho), self._ratio(self._alpha, self._omega))
        self.rho = np.where(self.done, self.rho, rho)
        self._direction(beta, 1, multiply(-beta, self._omega))

    def prepare_ahead(self) -> device_iterations.DeviceIterations | None:
        """Return iterations that do not wait for the host; see `Solver.prepare_ahead`."""
        kind = in_kernels(self._arithmetic)
        if kind is None:
            return None
        shadow, minimum, end = PARTS
        arithmetic = device_iterations.constants_of(BICGSTAB_COEFFICIENTS)[kind]
        ahead = device_iterations.DeviceIterations(self.r, PARTS, BICGSTAB_COEFFICIENTS, arithmetic)
        half_step = Combine(self.r, self.v, found=ahead.factors(shadow, b="HALF_STEP"))
        factors = ahead.factors(minimum, a="ALPHA", b="OMEGA", c="STEP")
        step = Advance(self.r, self.t, self.x, self.p, self.shadow, found=factors)
        factors = ahead.factors(end, a="BETA", c="BACK")
        direction = Combine(self.p, self.r, self.v, found=factors)
        take_shadow = ahead.take(shadow, self._shadow_v.sums, device_iterations.MIXED)
        take_minimum = ahead.take(minimum, self._t_r.sums, device_iterations.EVERY)
        take_end = ahead.take(end, step.sums, device_iterations.EVERY)
        first = self._apply_p, self._shadow_v.launch, take_shadow, partial(half_step, 1, 0)
        second = self._apply_r, self._t_r.launch, take_minimum, partial(step, 0)
        ahead.iterate = ahead.record(in_turn(*first, *second, take_end, partial(direction, 0, 1)))
        return ahead
