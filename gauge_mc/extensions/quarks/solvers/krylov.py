"""Conjugate gradients and BiCGstab, on one lattice or several, each with links of its own.

Fields of links have one replica for every lattice, and spinor fields one vector on each. Every
vector has its own coefficients, true residuals, history and end, so that its bits are those that it
has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from gauge_mc.devices.kernels import Kernel
from gauge_mc.extensions.quarks import solvers
from gauge_mc.extensions.quarks.hopping import LinearOperator, NormalOperator
from gauge_mc.extensions.quarks.solvers import SOLVERS, Solver, SolverParameters
from gauge_mc.extensions.quarks.solvers import iterations as on_devices
from gauge_mc.extensions.quarks.solvers.iterations import (
    Counts,
    DeviceIterations,
    Norms,
    Residual,
    ResidualWatch,
    runs_ahead,
)
from gauge_mc.extensions.quarks.vectors import (
    Complex,
    SpinorField,
    algebra,
    in_turn,
    precisions_from,
)
from gauge_mc.extensions.quarks.vectors.basis import arithmetic_of, in_kernels
from gauge_mc.quoting import square
from gauge_mc.updates.monomials import Mask, ReplicaProgress


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
        self._q_q, self._s_s = algebra.Multiply(self.q), algebra.Multiply(self.s)
        self._step = algebra.Advance(self.r, self.q)
        self._first_direction = algebra.Combine(self.p, self.s)
        self._advance_x = algebra.Combine(self.x, self.p)
        self._advance = algebra.AdvanceDirection(self.x, self.p, self.s)
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
        parts = on_devices.CURVATURE, on_devices.RESIDUAL, on_devices.DIRECTION
        (curvature, residual, direction), ahead = parts, DeviceIterations(self.r, parts)
        step = algebra.Advance(self.r, self.q, scalars=ahead.factors(curvature, c="STEP"))
        factors = ahead.factors(direction, a="ALPHA", b="BETA")
        advance = algebra.AdvanceDirection(self.x, self.p, self.s, scalars=factors)
        take_curvature = ahead.take(curvature, self._q_q.sums)
        take_residual = ahead.take(residual, step.sums)
        take_direction = ahead.take(direction, self._s_s.sums)
        apply_r = ahead.beside([take_residual], [self._apply_r, self._s_s.launch])
        first = self._apply_p, self._q_q.launch, take_curvature, partial(step, 0)
        ahead.iterate = ahead.record(in_turn(*first, apply_r, take_direction, advance))
        return ahead

    def settle(self) -> None:
        """Add the last step to `x`; see `Solver.settle`."""
        self._advance_x(1, self._alpha)
        self._alpha = np.zeros_like(self._alpha)


BICGSTAB_COEFFICIENTS = Kernel("bicgstab_coefficients")

SHADOW, MINIMUM, TURN = map(BICGSTAB_COEFFICIENTS.constant, ("SHADOW", "MINIMUM", "TURN"))
"""Parts of an iteration, after which the search may halt."""

PARTS = SHADOW, MINIMUM, on_devices.RESIDUAL | TURN


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
        self._shadow_v = algebra.Multiply(self.v, self.shadow)
        self._shadow_r = algebra.Multiply(self.r, self.shadow)
        self._half_step = algebra.Combine(self.r, self.v)
        self._t_r = algebra.Multiply(self.t, self.r)
        self._step = algebra.Advance(self.r, self.t, self.x, self.p, self.shadow)
        self._direction = algebra.Combine(self.p, self.r, self.v)
        self._copy_shadow = algebra.Combine(self.shadow, self.r)
        self.rho: Complex = np.zeros(self.r.count, complex)
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

    def prepare_ahead(self) -> DeviceIterations | None:
        """Return iterations that do not wait for the host; see `Solver.prepare_ahead`."""
        kind = in_kernels(self._arithmetic)
        if kind is None:
            return None
        shadow, minimum, end = PARTS
        arithmetic = on_devices.constants_of(BICGSTAB_COEFFICIENTS)[kind]
        ahead = DeviceIterations(self.r, PARTS, BICGSTAB_COEFFICIENTS, arithmetic)
        half_step = algebra.Combine(self.r, self.v, scalars=ahead.factors(shadow, b="HALF_STEP"))
        factors = ahead.factors(minimum, a="ALPHA", b="OMEGA", c="STEP")
        step = algebra.Advance(self.r, self.t, self.x, self.p, self.shadow, scalars=factors)
        factors = ahead.factors(end, a="BETA", c="BACK")
        direction = algebra.Combine(self.p, self.r, self.v, scalars=factors)
        take_shadow = ahead.take(shadow, self._shadow_v.sums, on_devices.MIXED)
        take_minimum = ahead.take(minimum, self._t_r.sums, on_devices.EVERY)
        take_end = ahead.take(end, step.sums, on_devices.EVERY)
        first = self._apply_p, self._shadow_v.launch, take_shadow, partial(half_step, 1, 0)
        second = self._apply_r, self._t_r.launch, take_minimum, partial(step, 0)
        ahead.iterate = ahead.record(in_turn(*first, *second, take_end, partial(direction, 0, 1)))
        return ahead


Launches = TypeVar("Launches")

MOST_PREPARED = 256
"""Number of ranges of replicas whose launches are kept."""


class _GradientLaunches:
    """Launches of conjugate gradients on consecutive replicas.

    The vectors on all replicas are the residual r, the correction x, the direction p, and
    q = B^dagger p and t = B q with the operator B B^dagger.
    """

    def __init__(
        self, outer: Residual, operator: LinearOperator, vectors: Sequence[SpinorField], some: range
    ) -> None:
        r, x, p, q, t = (vector.part(some) for vector in vectors)
        assert isinstance(operator, NormalOperator)
        self._vectors, self.numbers = (r, x, p, t), slice(some.start, some.stop)
        factor = operator.operator
        self.apply_adjoint = factor.apply(q, p, dagger=True)
        self.apply_rest = factor.apply(t, q)
        self.q_q, self.r_r = algebra.Multiply(q), algebra.Multiply(r)
        self.step, self.turn = algebra.Advance(r, t, x, p), algebra.Combine(p, r)
        self.take_residual, self.clear_x = r.copying(outer.r), algebra.Combine(x, r)
        self.add = partial(outer.add, x, np.zeros(len(some), np.bool_))

    @cached_property
    def ahead(self) -> DeviceIterations | None:
        """Iterations that do not wait for the host, where there can be such."""
        r, x, p, t = self._vectors
        if not runs_ahead(x):
            return None
        curvature, end = on_devices.CURVATURE, on_devices.END
        iterations = DeviceIterations(r, (curvature, end))
        step = algebra.Advance(
            r, t, x, p, scalars=iterations.factors(curvature, a="ALPHA", c="STEP")
        )
        turn = algebra.Combine(p, r, scalars=iterations.factors(end, a="BETA"))
        take_curvature = iterations.take(curvature, self.q_q.sums)
        take_residual = iterations.take(end, step.sums)
        apply_rest = iterations.beside([self.q_q.launch, take_curvature], [self.apply_rest])
        first = self.apply_adjoint, apply_rest, partial(step, 0)
        iterations.iterate = iterations.record(in_turn(*first, take_residual, partial(turn, 0, 1)))
        return iterations


class NormalGradients(Solver):
    """Conjugate gradients for B B^dagger x = b on replicas (Hestenes and Stiefel, 1952).

    Each vector does what it does alone: its true residual is computed when its own iterated one
    asks for it. Launches are those of all vectors between the first and the last one that is not
    solved yet; to solved ones among them they do no harm.

    Parameters
    ----------
    outer, operator, request
        See `Solver`. The operator is a `NormalOperator`.
    on : callable
        Returns solutions and operator on some replicas, in a precision of the iterations.
    """

    plateau = 2000  # the residual need not fall in every iteration, since only the error does

    def __init__(
        self,
        outer: Residual,
        operator: LinearOperator,
        request: SolverParameters,
        on: Callable[[range, str], tuple[Residual, LinearOperator]],
    ) -> None:
        super().__init__(outer, operator, request)
        self._on = on
        self._fields = self.r, self.x, *(self.r.like() for _ in range(3))
        self._launches: dict[range, _GradientLaunches] = {}
        self._next, self._curvature = np.zeros(self.r.count), np.zeros(self.r.count)

    def begin(self) -> None:
        """Begin the iteration along the residuals."""
        if not self.done.all():
            self.rho[self._running.numbers] = self._running.r_r().norm2
            self._running.turn(0, 1)

    def run_ahead(self, watch: ResidualWatch, now: Norms, iterations: Counts) -> None:
        """Iterate as long as nothing has to be decided; see `Solver.run_ahead`."""
        self._begun, some = self._running.ahead, self._running.numbers
        if self._begun:
            watch.run_ahead(self._begun, some, ~self.done, self.rho, now, iterations)
            self._curvature[some] = self._begun["CURVATURES"]
            self._next[some] = self._begun["SQUARES"]

    def step(self) -> Norms:
        """Go along the directions; see `Solver.step`."""
        running = self._running
        if not self._begun:
            running.apply_adjoint()
            self._curvature[running.numbers] = running.q_q().norm2
        stepping = ~self.done & usable(self._curvature)
        self.broken = ~stepping
        if self._begun and self._begun.knows_residual:
            return self._next
        alpha = ratio(self.rho, self._curvature, stepping)
        running.apply_rest()
        # Directions that have broken down may contain anything, and are left out then.
        broken = bool((stepping == self.done).any())
        for some in map(self._launched, runs(stepping)) if broken else (running,):
            some.step(-alpha[some.numbers], alpha[some.numbers])
            self._next[some.numbers] = some.step.products().norm2
        return self._next

    def turn(self, replaced: bool) -> None:
        """Choose the next directions; see `Solver.turn`."""
        self.go_on(*np.zeros((2, self.done.size), np.bool_))

    def leave_out(self, solved: Mask) -> None:
        """Leave vectors out of the launches; see `Solver.leave_out`."""
        self.done = solved
        if not solved.all():
            self._running = self._launched(span(~solved))

    def add(self, some: Mask) -> None:
        """Add `x` on some replicas; see `Solver.add`."""
        for part in map(self._launched, runs(some)):
            part.add()

    def replace(self, some: Mask) -> None:
        """Set `r` on some replicas to the true residuals; see `Solver.replace`."""
        for part in map(self._launched, runs(some)):
            part.take_residual()
            part.clear_x(0, 0)

    def go_on(self, replaced: Mask, broken: Mask) -> None:
        """Choose the next directions on all replicas; see `Solver.go_on`."""
        new = self._next.copy()
        for part in map(self._launched, runs(replaced)):
            new[part.numbers] = part.r_r().norm2
        beta = ratio(new, self.rho, ~self.done & ~broken & usable(self.rho))
        self.rho = np.where(self.done, self.rho, new)
        self._running.turn(beta[self._running.numbers], 1)

    def _launched(self, some: range) -> _GradientLaunches:
        """Return the launches on some replicas."""
        if some not in self._launches:
            system = self._on(some, self.request.inner)
            limited(self._launches)[some] = _GradientLaunches(*system, self._fields, some)
        return self._launches[some]


def usable(squares: Norms) -> Mask:
    """Return where squares are finite and not 0, so that something can be divided by them."""
    return np.asarray((squares > 0) & (squares < np.inf))


def ratio(a: Norms, b: Norms, where: Mask) -> Norms:
    """Return a / b, and 0 elsewhere."""
    return np.where(where, a / np.where(where, b, 1.0), 0.0)


def runs(mask: Mask) -> Iterator[range]:
    """Yield the ranges of consecutive replicas for which a mask is true."""
    if mask.all():
        yield range(mask.size)
        return
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    for first, end in edges.reshape(-1, 2).tolist():
        yield range(first, end)


def span(mask: Mask) -> range:
    """Return the range from the first to the last replica for which a mask is true."""
    numbers = np.flatnonzero(mask)
    return range(int(numbers[0]), int(numbers[-1]) + 1)


def limited(launches: dict[range, Launches]) -> dict[range, Launches]:
    """Return launches that are kept, after forgetting all of them if there are too many."""
    if len(launches) >= MOST_PREPARED:
        launches.clear()
    return launches


EXACT = "double"
"""Precision of residuals."""

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
        self._x, self._b, self._rest = x, b, b.like()
        self._solutions, *basis = ([x.like() for _ in range(length)] for _ in range(3))
        self._pairs = list(zip(*basis, strict=True))
        self._apply = [operator.apply(product, y) for y, product in self._pairs]
        self._algebra, self._newest, self._known = algebra.PairAlgebra(), 0, 0

    def clear(self) -> None:
        """Forget all solutions."""
        self._known = 0

    def add(self) -> None:
        """Keep the solution x, in the place of the oldest one if there are too many."""
        if self._solutions:
            self._newest = (self._newest + 1) % len(self._solutions)
            self._known = min(self._known + 1, len(self._solutions))
            self._algebra.combine(self._solutions[self._newest], 0, self._x, 1)

    def extrapolate(self) -> None:
        """Set x to the combination of the solutions with the smallest norm of b - A x.

        The products of the solutions with A are made orthogonal, those of the newest one first.
        """
        combine, products, rest = self._algebra.combine, self._algebra.products, self._rest
        combine(self._x, 0, self._b, 0)
        combine(rest, 0, self._b, 1)
        used: list[tuple[SpinorField, SpinorField]] = []
        for n, (y, image) in enumerate(self._pairs[: self._known]):
            combine(y, 0, self._solutions[self._newest - n], 1)
            self._apply[n]()
            before = products(image).norm2
            for earlier, its_image in used:
                overlap = products(image, its_image).mixed
                combine(image, 1, its_image, -overlap)
                combine(y, 1, earlier, -overlap)
            norm2 = products(image).norm2
            if (norm2 > square(LEAST_PART) * before).all():
                for vector in (y, image):
                    combine(vector, 1 / np.sqrt(norm2), self._b, 0)
                part = products(rest, image).mixed  # since images lose their orthogonality
                combine(self._x, 1, y, part)
                combine(rest, 1, image, -part)
                used.append((y, image))


class RepeatedSystem:
    """A system A x = b on the even sites, which is solved again and again in the same memory.

    Parameters
    ----------
    operator : callable
        Returns A for vectors on some replicas in a precision.
    b : SpinorField
        The right-hand sides on the even sites, in double precision.
    request : SolverParameters
        Limits and precision.
    kind : type of Solver, optional
        The kind of solver, which finds the solutions on one replica after the other. By default
        these are conjugate gradients for a `NormalOperator` on all replicas at once.
    history : int
        Number of earlier solutions on a replica from which a start is extrapolated.
    """

    def __init__(
        self,
        operator: Callable[[range, str], LinearOperator],
        b: SpinorField,
        request: solvers.SolverParameters,
        kind: type[solvers.Solver] | None = None,
        history: int = 0,
    ) -> None:
        self.operator, self._b, self._request, self._kind = operator, b, request, kind
        self._history = history
        self._residuals: dict[range, Residual] = {}
        self._solvers: dict[tuple[str, range], solvers.Solver] = {}

    @cached_property
    def memory(self) -> Residual:
        """The solutions on all replicas with their true residuals."""
        return Residual(self._b, self.operator(range(self._b.replicas), EXACT))

    def residual(self, some: range) -> Residual:
        """Return the solutions on some replicas with their true residuals."""
        if some not in self._residuals:
            system = self._b.part(some), self.operator(some, EXACT)
            limited(self._residuals)[some] = Residual(*system, self.memory, some)
        return self._residuals[some]

    def forget(self) -> None:
        """Forget the solutions from which starts are extrapolated."""
        for history in self._histories:
            history.clear()

    def solve(
        self, tolerance: float, active: Mask, total: ReplicaProgress, extrapolated: bool
    ) -> Mask:
        """Solve the system on some replicas."""
        for some in runs(active):
            self.residual(some).restart()
        targets, progress = tolerance * self.memory.norms, solvers.SolverProgress.begin(active.size)
        bad = active & ~np.isfinite(targets)
        progress.fail(bad, "The right-hand side contains a value that is not a number.")
        remaining = active & ~bad
        histories = self._histories if extrapolated else []
        for n, history in enumerate(histories):
            if remaining[n]:
                history.extrapolate()
                self.residual(range(n, n + 1)).update()
        number = self._b.replicas
        # A solver of one lattice iterates on each alone.
        groups = [range(n, n + 1) for n in range(number)] if self._kind else [range(number)]
        for inner in precisions_from(self._request.inner):
            parameters = replace(self._request, tolerance=tolerance, inner=inner)
            for some in groups:
                part = slice(some.start, some.stop)
                if remaining[part].any():
                    solver = self._solver(some, parameters)
                    state = solvers.SolverProgress(progress.iterations[part])
                    search = solvers.SolutionSearch(solver, targets[part], state, remaining[part])
                    remaining[part] = search.run()
                    progress.errors |= {some.start + n: x for n, x in state.errors.items()}
        total.iterations += progress.iterations
        total.errors.update(progress.errors)
        for n, history in enumerate(histories):
            if progress.left(active & ~remaining)[n]:
                history.add()
        return remaining

    def _solver(self, some: range, request: solvers.SolverParameters) -> solvers.Solver:
        """Return the solver for some replicas in a precision, with its memory."""
        key = request.inner, some
        if key not in self._solvers:
            system = self.residual(some), self.operator(some, request.inner), request
            gradients = partial(NormalGradients, on=self._on)
            self._solvers[key] = (self._kind or gradients)(*system)
        self._solvers[key].request = request
        return self._solvers[key]

    def _on(self, some: range, inner: str) -> tuple[Residual, LinearOperator]:
        return self.residual(some), self.operator(some, inner)

    @cached_property
    def _histories(self) -> list[SolutionHistory]:
        """The earlier solutions on every replica, if they are wanted."""
        length, histories = self._history, []
        for n in range(self._b.replicas if length else 0):
            some = range(n, n + 1)
            vectors = self.memory.y.part(some), self._b.part(some)
            histories.append(SolutionHistory(self.operator(some, EXACT), *vectors, length))
        return histories
