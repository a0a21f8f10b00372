"""Solutions that quark forces need, of Mh Mh^dagger X = phi on the even sites, again and again.

Mh = A_ee - kappa^2 D_eo A_oo^-1 D_oe is what is left of an operator M = A - kappa D when the odd
sites are eliminated (`PreconditionedOperator`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from gauge_mc import defaults
from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.quarks.forces.history import SolutionHistory
from gauge_mc.quarks.matrices.hopping import DIVIDED, WHOLE, HoppingOperator
from gauge_mc.quarks.matrices.linear import EVEN, ODD, Apply, LinearOperator
from gauge_mc.quarks.matrices.preconditioned import PreconditionedOperator
from gauge_mc.quarks.solvers import (
    ITERATIONS,
    SOLVERS,
    Norms,
    Residual,
    Solver,
    SolverParameters,
    SolverProgress,
    StagnationError,
)
from gauge_mc.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.quarks.vectors.spinors import SpinorField
from gauge_mc.quarks.vectors.storage import STORAGES

FORCE_TOLERANCE = 1e-8
"""Default of the largest residual for forces, with which trajectories of conjugate gradients in
single precision are reversible to 1e-12."""

ACTION_TOLERANCE = 1e-11
"""Default of the largest residual for actions and for pseudofermions."""

MOST_HISTORY = 12
"""Largest number of earlier solutions for a start."""


@dataclass(frozen=True)
class QuarkSolver:
    """How the solutions for quark forces and actions are computed.

    Attributes
    ----------
    solver : str
        Name of a registered solver. One that uses the adjoint, such as conjugate gradients, stands
        for conjugate gradients for Mh Mh^dagger X = phi. Another one solves Mh Y = phi and then
        Mh^dagger X = Y.
    inner : str
        Precision of the iterations; residuals are those of double precision.
    force_tolerance, action_tolerance : float
        Largest norm of a residual, divided by that of the right-hand side, for forces, and for
        actions and pseudofermions. BiCGstab amplifies rounding errors of iterations in single
        precision, so that trajectories are reversible only to about the tolerance for forces, as
        with a `history`.
    iterations : int
        Largest number of iterations of a solve.
    history : int
        Number of earlier solutions of a trajectory from which the start for a force is
        extrapolated; with 0 it is zero. Otherwise forces depend on how the links have been reached,
        so that trajectories are reversible only to about the `force_tolerance`, instead of 1e-5 of
        it: choose 1e-11 for it.
    """

    solver: str = defaults.QUARK_SOLVER
    inner: str = defaults.INNER
    force_tolerance: float = FORCE_TOLERANCE
    action_tolerance: float = ACTION_TOLERANCE
    iterations: int = ITERATIONS
    history: int = 0

    def __post_init__(self) -> None:
        SOLVERS.check(self.solver, "solver")
        if not 0 <= self.history <= MOST_HISTORY:
            raise UsageError(
                f"The history is {self.history}; give the number of earlier solutions from which "
                f"a start is extrapolated, from 0 to {MOST_HISTORY}."
            )
        for tolerance in (self.force_tolerance, self.action_tolerance):
            self.parameters(tolerance)

    def parameters(self, tolerance: float) -> SolverParameters:
        """Return the parameters of a solve.

        Raises
        ------
        UsageError
            If a value is invalid.
        """
        return SolverParameters(tolerance, self.iterations, inner=self.inner)


class NormalOperator(LinearOperator):
    """The product B B^dagger of an operator B.

    Parameters
    ----------
    one : LinearOperator
        The operator B.
    """

    def __init__(self, one: LinearOperator) -> None:
        self.one, self.parities = one, one.parities
        self._spare: dict[int, SpinorField] = {}

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        if source.count not in self._spare:
            self._spare[source.count] = source.like()
        between = self._spare[source.count]
        first = self.one.apply(between, source, dagger=True)
        second = self.one.apply(target, between)

        def call() -> None:
            first()
            second()

        return call


class AdjointOperator(LinearOperator):
    """The adjoint of an operator on the even sites.

    Parameters
    ----------
    one : LinearOperator
        The operator.
    """

    parities = (EVEN,)

    def __init__(self, one: LinearOperator) -> None:
        self.one = one

    def apply(self, target: SpinorField, source: SpinorField, dagger: bool = False) -> Apply:
        """Return a call that computes the product; see `LinearOperator.apply`."""
        return self.one.apply(target, source, not dagger)


class NormalConjugateGradients(Solver):
    """Conjugate gradients for B B^dagger x = b (Hestenes and Stiefel, 1952).

    Parameters
    ----------
    outer : Residual
        The system in double precision.
    operator : LinearOperator
        A `NormalOperator` in the inner precision.
    request : SolverParameters
        Tolerance, limits and precision.
    """

    name = "normal"
    uses_adjoint = True
    always_converges = True
    plateau = 2000  # the residual need not fall in every iteration, only the error does

    def __init__(
        self, outer: Residual, operator: LinearOperator, request: SolverParameters
    ) -> None:
        super().__init__(outer, operator, request)
        assert isinstance(operator, NormalOperator)
        self.p, self.q, self.t = (self.r.like() for _ in range(3))
        self._apply_adjoint = operator.one.apply(self.q, self.p, dagger=True)
        self._apply = operator.one.apply(self.t, self.q)
        self._q_q, self._r_r = Multiply(self.q), Multiply(self.r)
        self._step = Advance(self.r, self.t, self.x, self.p)
        self._direction = Combine(self.p, self.r)
        self._norm2 = self._next = np.zeros(self.r.count)

    def begin(self) -> None:
        """Begin the iteration along the residual."""
        self._norm2 = self._r_r().norm2
        self._direction(0, 1)

    def step(self) -> Norms:
        """Carry out one step with one application of the operator; see `Solver.step`."""
        self._apply_adjoint()
        alpha = self._ratio(self._norm2, self._q_q().norm2)
        self._apply()
        self._step(-alpha, alpha)
        self._next = self._step.products().norm2
        return self._next

    def turn(self, replaced: bool) -> None:
        """Choose the next direction; see `Solver.turn`."""
        norm2 = self._r_r().norm2 if replaced else self._next
        beta = self._ratio(norm2, self._norm2)
        self._norm2 = np.where(self.done, self._norm2, norm2)
        self._direction(beta, 1)

    def _ratio(self, a: Norms, b: Norms) -> Norms:
        """Return a / b, and 0 for vectors that are done."""
        if (~self.done & ((b == 0) | ~np.isfinite(b))).any():
            raise StagnationError
        return np.where(self.done, 0, a / np.where(self.done, 1, b))


class RepeatedSystem:
    """A system A x = b on the even sites, which is solved again and again in the same memory.

    Parameters
    ----------
    operator : callable
        Returns A in a precision.
    b : SpinorField
        The right-hand side on the even sites, in double precision.
    solver : type of Solver
        The kind of solver.
    request : QuarkSolver
        Tolerances, limits and precision.
    """

    def __init__(
        self,
        operator: Callable[[str], LinearOperator],
        b: SpinorField,
        solver: type[Solver],
        request: QuarkSolver,
    ) -> None:
        self._operator, self._kind, self._request = operator, solver, request
        self.reduced, self.preconditioned = b, operator(b.storage.name)
        self._outer = Residual(self)
        self._solvers: dict[str, Solver] = {}
        self._copy: Combine | None = None
        self.iterations = 0
        """Number of iterations of the last solve, also of one that was given up."""
        self.history = SolutionHistory(self.preconditioned, self.x, b, request.history)

    @property
    def x(self) -> SpinorField:
        """The solution."""
        return self._outer.y

    def copy_to(self, vector: SpinorField) -> None:
        """Copy the solution to the even sites of a vector, always the same one."""
        if not self._copy:
            self._copy = Combine(vector, self.x, parity=EVEN)
        self._copy(0, 1)

    def solve(self, tolerance: float, extrapolated: bool) -> int:
        """Solve the system, and return the number of iterations.

        Parameters
        ----------
        tolerance : float
            Largest norm of the residual in double precision, divided by that of b.
        extrapolated : bool
            Whether the start is extrapolated from the history, which is then continued.

        Raises
        ------
        StagnationError
            If the residual does not become smaller in any precision.
        ConvergenceError
            If there are too many iterations, or b contains values that are not numbers.
        """
        outer = self._outer
        outer.restart()
        targets, progress = tolerance * outer.norms, SolverProgress()
        if not np.isfinite(targets).all():
            raise ConvergenceError("The right-hand side contains a value that is not a number.")
        if extrapolated:
            self.history.extrapolate()
            outer.update()
        try:
            self._improve(targets, progress, tolerance)
        finally:
            self.iterations = progress.iterations
        if extrapolated:
            self.history.add()
        return self.iterations

    def _improve(self, targets: Norms, progress: SolverProgress, tolerance: float) -> None:
        for inner in precisions(self._request.inner):
            solver = self._solver(inner)
            solver.request = replace(self._request.parameters(tolerance), inner=inner)
            try:
                solver.improve(targets, progress)
                return
            except StagnationError:
                if inner == EXACT:
                    raise

    def _solver(self, inner: str) -> Solver:
        """Return the solver that iterates in a precision, with its memory."""
        if inner not in self._solvers:
            request = replace(self._request.parameters(0.5), inner=inner)
            self._solvers[inner] = self._kind(self._outer, self._operator(inner), request)
        return self._solvers[inner]


EXACT = "double"


def precisions(inner: str) -> Sequence[str]:
    """Return the precisions that are tried one after the other, from `inner` to double."""
    return list(STORAGES)[list(STORAGES).index(inner) :: -1]


class QuarkSystem:
    """The solutions X = (Mh Mh^dagger)^-1 phi and Y = Mh^-1 phi of an operator, and its memory.

    The operator's links may change between solves; call its `refresh` then.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    request : QuarkSolver
        Tolerances, limits and precision.

    Attributes
    ----------
    phi : SpinorField
        The right-hand side on the even sites, which the caller sets.
    x, y : SpinorField
        X and Y on all sites after `solve`, with X_o = kappa A_oo^-dagger (D^dagger)_oe X_e and
        Y_o = kappa A_oo^-1 D_oe Y_e. Then dS = -2 Re X^dagger (dM) Y for
        S = phi^dagger (Mh Mh^dagger)^-1 phi.
    """

    def __init__(self, operator: HoppingOperator, request: QuarkSolver) -> None:
        self.operator, self.request = operator, request
        self.phi = SpinorField.empty(operator.field, EXACT, parity=EVEN)
        self.x, self.y = (SpinorField.empty(operator.field, EXACT) for _ in range(2))
        self._reduced: dict[str, PreconditionedOperator] = {}
        self._normal: RepeatedSystem | None = None
        self._direct: tuple[RepeatedSystem, RepeatedSystem] | None = None
        self.pairs = NormalPairs(operator, self.x, self.y)

    def reduced(self, precision: str = EXACT) -> PreconditionedOperator:
        """Return Mh for spinors of some precision."""
        if precision not in self._reduced:
            prepared = self.operator.prepared(precision)
            self._reduced[precision] = PreconditionedOperator(prepared, with_adjoint=True)
        return self._reduced[precision]

    def forget(self) -> None:
        """Begin a new trajectory: forget the solutions from which starts are extrapolated."""
        for one in (self._normal, *(self._direct or ())):
            if one:
                one.history.clear()

    def solve(self, tolerance: float, extrapolated: bool = False) -> int:
        """Compute X and Y on all sites, and return the number of iterations.

        Parameters
        ----------
        tolerance : float
            Largest norm of phi - Mh Mh^dagger X divided by that of phi; for two solves, of
            phi - Mh Y and of Y - Mh^dagger X, divided by those of phi and Y.
        extrapolated : bool
            Whether to start from earlier solutions; see `QuarkSolver`.

        Raises
        ------
        ConvergenceError
            If the tolerance cannot be reached.
        """
        extrapolated = extrapolated and self.request.history > 0
        if SOLVERS[self.request.solver].uses_adjoint:
            return self._solve_normal(tolerance, extrapolated)
        first, second = self._two_systems()
        second.iterations = 0
        try:
            iterations = first.solve(tolerance, extrapolated)
            iterations += second.solve(tolerance, extrapolated)
        except StagnationError:
            given_up = first.iterations + second.iterations
            return given_up + self._solve_normal(tolerance, extrapolated=False)
        first.copy_to(self.y)
        second.copy_to(self.x)
        self.pairs.lift()
        return iterations

    def solve_half(self, tolerance: float) -> int:
        """Compute Y on the even sites, and return the number of iterations; see `solve`."""
        if SOLVERS[self.request.solver].uses_adjoint:
            return self._solve_normal(tolerance, extrapolated=False)
        first, _ = self._two_systems()
        try:
            iterations = first.solve(tolerance, extrapolated=False)
        except StagnationError:
            return first.iterations + self._solve_normal(tolerance, extrapolated=False)
        first.copy_to(self.y)
        return iterations

    def _solve_normal(self, tolerance: float, extrapolated: bool) -> int:
        if not self._normal:

            def operator(precision: str) -> LinearOperator:
                return NormalOperator(self.reduced(precision))

            kind = NormalConjugateGradients
            self._normal = RepeatedSystem(operator, self.phi, kind, self.request)
        try:
            iterations = self._normal.solve(tolerance, extrapolated)
        except StagnationError as error:
            raise ConvergenceError(
                f"The residual of a quark's solution does not become {tolerance:g} of the source: "
                "choose a larger tolerance."
            ) from error
        self._normal.copy_to(self.x)
        self.pairs.complete()
        return iterations

    def _two_systems(self) -> tuple[RepeatedSystem, RepeatedSystem]:
        """Return the systems Mh Y = phi and Mh^dagger X = Y."""
        if not self._direct:
            kind = SOLVERS[self.request.solver]
            first = RepeatedSystem(self.reduced, self.phi, kind, self.request)

            def adjoint(precision: str) -> LinearOperator:
                return AdjointOperator(self.reduced(precision))

            self._direct = first, RepeatedSystem(adjoint, first.x, kind, self.request)
        return self._direct


class OddSites:
    """Set a vector on the odd sites to kappa A_oo^-1 D_oe times its part on the even sites.

    Parameters
    ----------
    operator : HoppingOperator
        The operator A - kappa D.
    vector : SpinorField
        The vector on all sites, in double precision.
    dagger : bool
        Whether to use the adjoints of A and D.
    """

    def __init__(
        self, operator: HoppingOperator, vector: SpinorField, dagger: bool = False
    ) -> None:
        self._kappa = operator.kappa
        prepared = operator.prepared(vector.storage.name)
        self._hop = prepared.prepare(vector, vector, ODD, DIVIDED, dagger=dagger)
        self._scale = Combine(vector, vector, parity=ODD)

    def __call__(self) -> None:
        """Set the vector on the odd sites."""
        self._hop()
        self._scale(self._kappa, 0)


class NormalPairs:
    """Pairs of vectors X and Y on all sites, whose odd parts follow from the even ones.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    x, y : SpinorField
        The vectors on all sites, in double precision, as many of each.
    """

    def __init__(self, operator: HoppingOperator, x: SpinorField, y: SpinorField) -> None:
        self._kappa = operator.kappa
        self._lift_x, self._lift_y = OddSites(operator, x, dagger=True), OddSites(operator, y)
        self._adjoint = operator.prepared(EXACT).prepare(y, x, EVEN, WHOLE, x, dagger=True)

    def lift(self) -> None:
        """Set both on the odd sites, given both on the even ones; see `OddSites`."""
        self._lift_x()
        self._lift_y()

    def complete(self) -> None:
        """Set Y = Mh^dagger X on the even sites, and both on the odd ones, given X on the even."""
        self._lift_x()
        # M^dagger X on the even sites, A^dagger X_e - kappa D^dagger X_o, is Mh^dagger X_e.
        self._adjoint(-self._kappa)
        self._lift_y()
