"""Solutions that quark forces need on several lattices at once, each with links of its own.

Fields of links have several replicas here, and spinor fields one vector on each. Every vector has
its own coefficients, true residuals and end, so that its bits are those of
`gauge_mc.quarks.forces.normal.QuarkSystem` on its lattice alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from gauge_mc.errors import ConvergenceError
from gauge_mc.quarks.forces.normal import (
    EXACT,
    NormalConjugateGradients,
    QuarkSolver,
    QuarkSystem,
    precisions,
)
from gauge_mc.quarks.matrices.hopping import HoppingOperator
from gauge_mc.quarks.matrices.linear import EVEN, Apply
from gauge_mc.quarks.matrices.preconditioned import PreconditionedOperator
from gauge_mc.quarks.solvers import (
    Mask,
    Norms,
    ReplicaProgress,
    ResidualWatch,
    SolverParameters,
    too_many,
)
from gauge_mc.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.quarks.vectors.spinors import SpinorField

Launches = TypeVar("Launches")

MOST_PREPARED = 256
"""Number of ranges of replicas whose launches are kept."""


class ReplicaQuarkSystem:
    """X = (Mh Mh^dagger)^-1 phi and Y = Mh^dagger X on several replicas, and their memory.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M, on a field of links with several replicas.
    request : QuarkSolver
        Tolerances, limits and precision. Its solver must be one that uses the adjoint, without a
        history.

    Attributes
    ----------
    phi, x, y : SpinorField
        See `gauge_mc.quarks.forces.normal.QuarkSystem`.
    """

    def __init__(self, operator: HoppingOperator, request: QuarkSolver) -> None:
        self._vectors, self._request = QuarkSystem(operator, request), request
        self.phi, self.x, self.y = self._vectors.phi, self._vectors.x, self._vectors.y
        self._residual = _TrueResidual(self.reduced(), self.phi)
        self._solvers: dict[str, _ReplicaGradients] = {}
        self._copy = Combine(self.x, self._residual.y, parity=EVEN)

    def reduced(self, precision: str = EXACT) -> PreconditionedOperator:
        """Return Mh for spinors of some precision."""
        return self._vectors.reduced(precision)

    def solve(self, tolerance: float, wanted: Mask) -> ReplicaProgress:
        """Compute X and Y on all sites of the replicas that are wanted.

        Parameters
        ----------
        tolerance : float
            Largest norm of phi - Mh Mh^dagger X divided by that of phi.
        wanted : ndarray of bool, shape (replicas,)
            The replicas. X and Y of others are arbitrary, as they are where there is no solution.

        Returns
        -------
        ReplicaProgress
            The numbers of iterations, and which solutions there are.
        """
        found = ReplicaProgress.begin(self.phi.count)
        residual = self._residual
        residual.restart(wanted)
        targets, left = tolerance * residual.norms, wanted.copy()
        for n in np.flatnonzero(wanted & ~np.isfinite(targets)).tolist():
            text = "The right-hand side contains a value that is not a number."
            found.errors[n], left[n] = ConvergenceError(text), False
        parameters = self._request.parameters(tolerance)
        for inner in precisions(self._request.inner):
            if left.any():
                left = self._solver(inner).improve(left, targets, parameters, found)
        for n in np.flatnonzero(left).tolist():
            found.errors[n] = ConvergenceError(
                f"The residual of a quark's solution does not become {tolerance:g} of the source: "
                "choose a larger tolerance."
            )
        self._copy(0, 1)
        self._vectors.pairs.complete()
        return found

    solve_half = solve

    def forget(self) -> None:
        """Begin a new trajectory: there are no solutions from which starts are extrapolated."""

    def _solver(self, inner: str) -> _ReplicaGradients:
        """Return the solver that iterates in a precision, with its memory."""
        if inner not in self._solvers:
            self._solvers[inner] = _ReplicaGradients(self._residual, self.reduced(inner), inner)
        return self._solvers[inner]


class OneQuarkSystem:
    """The solutions of `QuarkSystem` on one lattice, with the methods of `ReplicaQuarkSystem`.

    The lattice may be divided, and the solver and its history are any that there are.

    Parameters
    ----------
    operator, request
        See `gauge_mc.quarks.forces.normal.QuarkSystem`.
    """

    def __init__(self, operator: HoppingOperator, request: QuarkSolver) -> None:
        self._system = one = QuarkSystem(operator, request)
        self.phi, self.x, self.y = one.phi, one.x, one.y
        self.reduced, self.forget = one.reduced, one.forget

    def solve(self, tolerance: float, wanted: Mask) -> ReplicaProgress:
        """Compute X and Y on all sites, from earlier solutions if there is a history."""
        return self._found(wanted, partial(self._system.solve, tolerance, extrapolated=True))

    def solve_half(self, tolerance: float, wanted: Mask) -> ReplicaProgress:
        """Compute Y on the even sites."""
        return self._found(wanted, partial(self._system.solve_half, tolerance))

    def _found(self, wanted: Mask, solve: Callable[[], int]) -> ReplicaProgress:
        found = ReplicaProgress.begin(1)
        if wanted.any():
            try:
                found.iterations[0] = solve()
            except ConvergenceError as error:
                found.errors[0] = error
        return found


def quark_system(
    operator: HoppingOperator, request: QuarkSolver
) -> ReplicaQuarkSystem | OneQuarkSystem:
    """Return the solutions of an operator on one lattice, or on several replicas of it."""
    several = operator.field.layouts[0].replicas > 1
    return (ReplicaQuarkSystem if several else OneQuarkSystem)(operator, request)


class _Normal:
    """The product Mh Mh^dagger, and the vector between its factors.

    Parameters
    ----------
    reduced : PreconditionedOperator
        The operator Mh.
    target, source : SpinorField
        The result, and the vector that is multiplied.
    between : SpinorField
        Memory for Mh^dagger times the source.
    some : range
        The replicas.
    """

    def __init__(
        self,
        reduced: PreconditionedOperator,
        target: SpinorField,
        source: SpinorField,
        between: SpinorField,
        some: range,
    ) -> None:
        self.adjoint = reduced.apply_on(some, between, source, dagger=True)
        self.rest = reduced.apply_on(some, target, between)

    def __call__(self) -> None:
        """Compute the product."""
        self.adjoint()
        self.rest()


class _TrueResidual:
    """Solutions y of Mh Mh^dagger y = b in double precision, and their true residuals.

    Parameters
    ----------
    reduced : PreconditionedOperator
        The operator Mh.
    b : SpinorField
        The right-hand sides on the even sites.
    """

    def __init__(self, reduced: PreconditionedOperator, b: SpinorField) -> None:
        self.reduced, self.b = reduced, b
        self.y, self.r, self.product, self.more, self.between = (b.like() for _ in range(5))
        self.norms: Norms = np.zeros(b.count)
        self._begun: dict[range, tuple[Combine, Apply, Multiply]] = {}

    def restart(self, wanted: Mask) -> None:
        """Begin with y = 0 on some replicas, after the right-hand sides have changed."""
        for some in runs(wanted):
            if some not in self._begun:
                y, b = self.y.part(some), self.b.part(some)
                begun = Combine(y, b), self.r.part(some).copying(b), Multiply(b)
                limited(self._begun)[some] = begun
            clear, begin, b_b = self._begun[some]
            clear(0, 0)
            begin()
            self.norms[some.start : some.stop] = np.sqrt(b_b().norm2)


class _Corrections:
    """Launches that add corrections of consecutive replicas, and return to true residuals.

    Parameters
    ----------
    outer : _TrueResidual
        The solutions.
    x, r : SpinorField
        The corrections and the iterated residuals, in any precision.
    some : range
        The replicas.
    """

    def __init__(self, outer: _TrueResidual, x: SpinorField, r: SpinorField, some: range) -> None:
        def part(vectors: SpinorField) -> SpinorField:
            return vectors.part(some)

        self._outer, self._numbers = outer, slice(some.start, some.stop)
        self._take = part(outer.more).copying(part(x))
        self._add = Combine(part(outer.y), part(outer.more))
        self._begin = part(outer.r).copying(part(outer.b))
        self._apply = _Normal(outer.reduced, outer.product, outer.y, outer.between, some)
        self._subtract = Advance(part(outer.r), part(outer.product))
        self._take_residual = part(r).copying(part(outer.r))
        self._clear_x = Combine(part(x), part(r))

    def add(self) -> None:
        """Add the corrections, and compute the true residuals and their norms."""
        self._take()
        self._add(1, 1.0)
        self._begin()
        self._apply()
        self._subtract(-1)
        self._outer.norms[self._numbers] = np.sqrt(self._subtract.products().norm2)

    def replace(self) -> None:
        """Set the iterated residuals to the true ones, and the corrections to 0."""
        self._take_residual()
        self._clear_x(0, 0)


class _GradientLaunches:
    """Launches of an iteration on consecutive replicas.

    Parameters
    ----------
    reduced : PreconditionedOperator
        The operator Mh.
    r, x, p, q, t : SpinorField
        Residual, correction, direction p, Mh^dagger p and Mh Mh^dagger p.
    some : range
        The replicas.
    """

    def __init__(
        self,
        reduced: PreconditionedOperator,
        r: SpinorField,
        x: SpinorField,
        p: SpinorField,
        q: SpinorField,
        t: SpinorField,
        some: range,
    ) -> None:
        self._numbers = slice(some.start, some.stop)
        self.apply = _Normal(reduced, t, p, q, some)
        r, x, p, q, t = (one.part(some) for one in (r, x, p, q, t))
        self._q_q, self._r_r = Multiply(q), Multiply(r)
        self._step = Advance(r, t, x, p)
        self._direction = Combine(p, r)

    def curvature(self, to: Norms) -> None:
        """Compute q, and store its squared norms."""
        self.apply.adjoint()
        to[self._numbers] = self._q_q().norm2

    def step(self, alpha: Norms, to: Norms) -> None:
        """Go along the direction, and store the squared norms of the residuals."""
        own = alpha[self._numbers]
        self._step(-own, own)
        to[self._numbers] = self._step.products().norm2

    def norm2(self, to: Norms) -> None:
        """Store the squared norms of the residuals."""
        to[self._numbers] = self._r_r().norm2

    def turn(self, beta: Norms) -> None:
        """Set the direction to the residual plus beta times the old one."""
        self._direction(beta[self._numbers], 1)


class _ReplicaGradients:
    """Conjugate gradients of `NormalConjugateGradients` for several replicas, in one precision.

    Each vector does what it does alone: its true residual is computed when its own iterated one
    asks for it. Launches are those of all vectors between the first and the last one that is not
    solved yet; to solved ones among them they do no harm.

    Parameters
    ----------
    outer : _TrueResidual
        The solutions in double precision.
    reduced : PreconditionedOperator
        The operator Mh in the inner precision.
    inner : str
        The inner precision.
    """

    def __init__(self, outer: _TrueResidual, reduced: PreconditionedOperator, inner: str) -> None:
        self._outer, self._reduced, self._inner = outer, reduced, inner
        self._iterations: dict[range, _GradientLaunches] = {}
        self._corrections: dict[range, _Corrections] = {}

    @cached_property
    def _vectors(self) -> list[SpinorField]:
        """Memory for r, x, p, q and t."""
        return [self._outer.b.like(self._inner) for _ in range(5)]

    def improve(
        self,
        wanted: Mask,
        targets: Norms,
        parameters: SolverParameters,
        progress: ReplicaProgress,
    ) -> Mask:
        """Iterate until the true residuals of some replicas are at most the targets.

        Parameters
        ----------
        wanted : ndarray of bool, shape (replicas,)
            The replicas.
        targets : ndarray of float64, shape (replicas,)
            Largest norms of the residuals.
        parameters : SolverParameters
            Limits.
        progress : ReplicaProgress
            Iterations, which are counted, and errors, which are added.

        Returns
        -------
        ndarray of bool, shape (replicas,)
            The replicas for which this precision allows no smaller residual.
        """
        own = replace(parameters, inner=self._inner)
        search = _SolutionSearch(self, wanted, targets, own, progress)
        while search.live.any():
            search.iterate()
        return search.stagnated

    @property
    def outer(self) -> _TrueResidual:
        """The solutions in double precision."""
        return self._outer

    def iteration(self, some: range) -> _GradientLaunches:
        """Return the launches of an iteration on some replicas."""
        if some not in self._iterations:
            r, x, p, q, t = self._vectors
            made = _GradientLaunches(self._reduced, r, x, p, q, t, some)
            limited(self._iterations)[some] = made
        return self._iterations[some]

    def corrections(self, some: range) -> _Corrections:
        """Return the launches of corrections of some replicas."""
        if some not in self._corrections:
            r, x, *_ = self._vectors
            limited(self._corrections)[some] = _Corrections(self._outer, x, r, some)
        return self._corrections[some]


class _SolutionSearch:
    """State of a search for solutions, with one number of each kind for every replica.

    Parameters
    ----------
    solver, wanted, targets, parameters, progress
        See `_ReplicaGradients.improve`.

    Attributes
    ----------
    live : ndarray of bool, shape (replicas,)
        Replicas whose search goes on.
    stagnated : ndarray of bool, shape (replicas,)
        Replicas for which the precision allows no smaller residual.
    """

    def __init__(
        self,
        solver: _ReplicaGradients,
        wanted: Mask,
        targets: Norms,
        parameters: SolverParameters,
        progress: ReplicaProgress,
    ) -> None:
        self._solver, self._targets = solver, targets
        self._limit, self._parameters, self._progress = parameters.iterations, parameters, progress
        norms, plateau = solver.outer.norms, NormalConjugateGradients.plateau
        self._watch = ResidualWatch(parameters, norms, targets, plateau, together=False)
        self.stagnated = np.zeros_like(wanted)
        self.live = wanted & ~(norms <= targets)
        self._now = norms.copy()
        self._norm2, self._next, self._curvature = (np.zeros(wanted.size) for _ in range(3))
        for some in runs(wanted):
            solver.corrections(some).replace()
        if self.live.any():
            whole = solver.iteration(span(self.live))
            whole.norm2(self._norm2)
            whole.turn(np.zeros(wanted.size))

    def iterate(self) -> None:
        """Carry out one iteration for all that go on."""
        solver, live = self._solver, self.live
        whole = solver.iteration(span(live))
        self._progress.iterations[live] += 1
        whole.curvature(self._curvature)
        broken = live & unusable(self._curvature)
        stepping = live & ~broken
        alpha = ratio(self._norm2, self._curvature, stepping)
        whole.apply.rest()
        # Directions that have broken down may contain anything, and are left out then.
        for some in runs(stepping) if broken.any() else [span(live)]:
            solver.iteration(some).step(alpha, self._next)
        self._now = np.where(stepping, np.sqrt(self._next), self._now)
        lost = live & ~np.isfinite(self._now)
        stepping, broken = stepping & ~lost, broken & ~lost
        due, ended = self._watch.asks(self._now, stepping, self._progress.iterations)
        renewed, ended = due & stepping, ended & stepping
        turning = stepping & ~renewed
        stuck = turning & unusable(self._norm2)
        turning = turning & ~stuck
        beta = ratio(self._next, self._norm2, turning)
        self._norm2 = np.where(turning, self._next, self._norm2)
        self.stagnated = self.stagnated | lost
        self.live = live & ~lost
        again = renewed | broken | stuck
        if again.any():
            beta = np.where(again, self._renew(again, broken | stuck, ended), beta)
        if self.live.any():
            solver.iteration(span(self.live)).turn(beta)

    def _renew(self, again: Mask, broken: Mask, ended: Mask) -> Norms:
        """Return to the true residuals of some replicas; return the coefficients beta of these."""
        solver, norms = self._solver, self._solver.outer.norms
        adding = again & self._watch.usable(self._now)
        broken = broken | (again & ~adding)
        for some in runs(adding):
            solver.corrections(some).add()
        for some in runs(again):
            solver.corrections(some).replace()
        self._watch.take(norms, self._now, again, broken | ended, again)
        self.live = self.live & ~(again & (norms <= self._targets))
        self._give_up(again & self.live)
        return self._directions(again & self.live, broken)

    def _give_up(self, again: Mask) -> None:
        """End searches with too many iterations, or whose residuals do not become smaller."""
        norms = self._solver.outer.norms
        for n in np.flatnonzero(again & (self._progress.iterations >= self._limit)).tolist():
            text = too_many(self._parameters, norms[n : n + 1], self._targets[n : n + 1])
            self._progress.errors[n] = ConvergenceError(text)
            self.live[n] = again[n] = False
        self.stagnated = self.stagnated | (again & self._watch.stagnates)
        self.live = self.live & ~self.stagnated

    def _directions(self, again: Mask, broken: Mask) -> Norms:
        """Return the coefficients of directions that follow true residuals."""
        new = np.zeros(again.size)
        for some in runs(again):
            self._solver.iteration(some).norm2(new)
        going = again & ~broken & ~unusable(self._norm2)
        beta = ratio(new, self._norm2, going)
        self._norm2 = np.where(again, new, self._norm2)
        return beta


def unusable(values: Norms) -> Mask:
    """Return where numbers are 0 or not finite, so that nothing can be divided by them."""
    return np.asarray((values == 0) | ~np.isfinite(values))


def ratio(a: Norms, b: Norms, where: Mask) -> Norms:
    """Return a / b, and 0 elsewhere."""
    return np.where(where, a / np.where(where, b, 1.0), 0.0)


def runs(mask: Mask) -> Iterator[range]:
    """Yield the ranges of consecutive replicas for which a mask is true."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
    for first, end in edges.reshape(-1, 2).tolist():
        yield range(first, end)


def span(mask: Mask) -> range:
    """Return the range from the first to the last replica for which a mask is true."""
    numbers = np.flatnonzero(mask)
    return range(int(numbers[0]), int(numbers[-1]) + 1)


def limited(kept: dict[range, Launches]) -> dict[range, Launches]:
    """Return launches that are kept, after forgetting all of them if there are too many."""
    if len(kept) >= MOST_PREPARED:
        kept.clear()
    return kept
