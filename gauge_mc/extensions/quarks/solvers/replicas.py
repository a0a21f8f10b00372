"""Solutions on one lattice or several, each with links of its own, again and again.

Fields of links have one replica for every lattice, and spinor fields one vector on each. Every
vector has its own coefficients, true residuals, history and end, so that its bits are those that it
has alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

import numpy as np

from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks import hopping, solvers
from gauge_mc.extensions.quarks.preconditioned import NormalOperator
from gauge_mc.extensions.quarks.solvers.device_iterations import (
    CURVATURE,
    DIRECTION,
    RESIDUAL,
    DeviceIterations,
    runs_ahead,
)
from gauge_mc.extensions.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.extensions.quarks.vectors.spinors import SpinorField, in_turn, precisions_from
from gauge_mc.quoting import square
from gauge_mc.updates.monomials import Mask, ReplicaProgress

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
        self, operator: hopping.LinearOperator, x: SpinorField, b: SpinorField, length: int
    ) -> None:
        solutions, basis, products = ([x.like() for _ in range(length)] for _ in range(3))
        pairs = list(zip(basis, products, strict=True))
        self._length, self._newest, self._known = length, 0, 0
        self._clear = Combine(x, b)
        self._keep = [Combine(s, x) for s in solutions]
        self._take = [[Combine(x, old) for old in solutions] for x in basis]
        self._apply = [operator.apply(product, x) for x, product in pairs]
        self._norm = [Multiply(product) for product in products]
        self._overlap = [[Multiply(x, p) for p in products] for x in products]
        self._subtract = [
            [(Combine(product, x), Combine(y, its)) for its, x in pairs] for y, product in pairs
        ]
        self._scale = [(Combine(x, b), Combine(product, b)) for x, product in pairs]
        rest = b.like()
        self._begin = Combine(rest, b)
        self._part = [Multiply(rest, product) for product in products]
        self._add = [(Combine(x, y), Combine(rest, product)) for y, product in pairs]

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
            for earlier in used:
                overlap = self._overlap[n][earlier]().mixed
                for subtract in self._subtract[n][earlier]:
                    subtract(1, -overlap)
            norm2 = self._norm[n]().norm2
            if (norm2 > square(LEAST_PART) * before).all():
                for scale in self._scale[n]:
                    scale(1 / np.sqrt(norm2), 0)
                part = self._part[n]().mixed  # of the rest, since products lose orthogonality
                for add, sign in zip(self._add[n], (1, -1), strict=True):
                    add(1, sign * part)
                used.append(n)


Launches = TypeVar("Launches")

MOST_PREPARED = 256
"""Number of ranges of replicas whose launches are kept."""

PLATEAU = 2000
"""`Solver.plateau` of conjugate gradients for Mh Mh^dagger, whose residual need not fall in every
iteration, since only the error does."""


@dataclass(frozen=True)
class _PartOfSystem:
    """A system on some replicas, for a `Residual`."""

    reduced: SpinorField
    preconditioned: hopping.LinearOperator


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
        operator: Callable[[range, str], hopping.LinearOperator],
        b: SpinorField,
        request: solvers.SolverParameters,
        kind: type[solvers.Solver] | None = None,
        history: int = 0,
    ) -> None:
        self.operator, self._b, self._request, self._kind = operator, b, request, kind
        self._history = history
        self._residuals: dict[range, solvers.Residual] = {}
        self._searches: dict[str, _ReplicaGradients | _OneByOne] = {}

    @cached_property
    def memory(self) -> solvers.ResidualMemory:
        """The solutions `y`, and their true residuals."""
        return solvers.ResidualMemory.like(self._b)

    def residual(self, some: range) -> solvers.Residual:
        """Return the solutions on some replicas with their true residuals."""
        if some not in self._residuals:
            system = _PartOfSystem(self._b.part(some), self.operator(some, EXACT))
            limited(self._residuals)[some] = solvers.Residual(system, memory=self.memory.part(some))
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
        targets, progress = tolerance * self.memory.norms, ReplicaProgress.begin(active.size)
        bad = active & ~np.isfinite(targets)
        progress.fail(bad, "The right-hand side contains a value that is not a number.")
        remaining = active & ~bad
        histories = self._histories if extrapolated else []
        for n, history in enumerate(histories):
            if remaining[n]:
                history.extrapolate()
                self.residual(range(n, n + 1)).update()
        for inner in precisions_from(self._request.inner):
            if remaining.any():
                parameters = replace(self._request, tolerance=tolerance, inner=inner)
                remaining = self._search(inner).improve(remaining, targets, parameters, progress)
        total.iterations += progress.iterations
        total.errors.update(progress.errors)
        for n, history in enumerate(histories):
            if progress.left(active & ~remaining)[n]:
                history.add()
        return remaining

    @cached_property
    def _histories(self) -> list[SolutionHistory]:
        """The earlier solutions on every replica, if they are wanted."""
        length, histories = self._history, []
        for n in range(self._b.replicas if length else 0):
            some = range(n, n + 1)
            vectors = self.memory.y.part(some), self._b.part(some)
            histories.append(SolutionHistory(self.operator(some, EXACT), *vectors, length))
        return histories

    def _search(self, inner: str) -> _ReplicaGradients | _OneByOne:
        """Return what iterates in a precision, with its memory."""
        if inner not in self._searches:
            kind = self._kind
            search = _OneByOne(self, kind) if kind else _ReplicaGradients(self, inner)
            self._searches[inner] = search
        return self._searches[inner]


class _OneByOne:
    """A solver of any kind in one precision, for one replica after the other.

    Parameters
    ----------
    system : RepeatedSystem
        The system.
    kind : type of Solver
        The kind of solver.
    """

    def __init__(self, system: RepeatedSystem, kind: type[solvers.Solver]) -> None:
        self._system, self._kind = system, kind
        self._solvers: dict[int, solvers.Solver] = {}

    def improve(
        self,
        active: Mask,
        targets: solvers.Norms,
        parameters: solvers.SolverParameters,
        progress: ReplicaProgress,
    ) -> Mask:
        """Iterate on some replicas; see `_ReplicaGradients.improve`."""
        stagnated = np.zeros_like(active)
        for n in np.flatnonzero(active).tolist():
            some, state = range(n, n + 1), solvers.SolverProgress(int(progress.iterations[n]))
            if n not in self._solvers:
                operator = self._system.operator(some, parameters.inner)
                self._solvers[n] = self._kind(self._system.residual(some), operator, parameters)
            self._solvers[n].request = parameters
            try:
                self._solvers[n].improve(targets[n : n + 1], state)
            except solvers.StagnationError:
                stagnated[n] = True
            except ConvergenceError as error:
                progress.errors[n] = error
            progress.iterations[n] = state.iterations
        return stagnated


class _GradientLaunches:
    """Launches of conjugate gradients on consecutive replicas.

    Parameters
    ----------
    system : RepeatedSystem
        The system, whose operator is a `NormalOperator`.
    vectors : sequence of SpinorField
        Residual r, correction x, direction p, q = Mh^dagger p and t = Mh q on all replicas.
    some : range
        The replicas.
    """

    def __init__(self, system: RepeatedSystem, vectors: Sequence[SpinorField], some: range) -> None:
        r, x, p, q, t = (vector.part(some) for vector in vectors)
        operator = system.operator(some, r.storage.name)
        assert isinstance(operator, NormalOperator)
        self._vectors = r, x, p, t
        self.numbers, self._outer, self._x = slice(some.start, some.stop), system.residual(some), x
        self._apply_adjoint = operator.one.apply(q, p, dagger=True)
        self.apply_rest = operator.one.apply(t, q)
        self._q_q, self._r_r = Multiply(q), Multiply(r)
        self._step = Advance(r, t, x, p)
        self._direction = Combine(p, r)
        self._none = np.zeros(len(some), np.bool_)
        self._take_residual, self._clear_x = r.copying(self._outer.r), Combine(x, r)

    @cached_property
    def ahead(self) -> DeviceIterations | None:
        """Iterations that do not wait for the host, where there can be such."""
        if not runs_ahead(self._x):
            return None
        r, x, p, t = self._vectors
        iterations = DeviceIterations(r, (CURVATURE, RESIDUAL | DIRECTION))
        step = Advance(r, t, x, p, found=iterations.factors(CURVATURE, a="ALPHA", c="STEP"))
        turn = Combine(p, r, found=iterations.factors(RESIDUAL | DIRECTION, a="BETA"))
        take_curvature = iterations.take(CURVATURE, self._q_q.sums)
        take_residual = iterations.take(RESIDUAL | DIRECTION, step.sums)
        apply_rest = iterations.beside([self._q_q.launch, take_curvature], [self.apply_rest])
        first = self._apply_adjoint, apply_rest, partial(step, 0)
        iterations.iterate = iterations.record(in_turn(*first, take_residual, partial(turn, 0, 1)))
        return iterations

    def curvature(self, to: solvers.Norms) -> None:
        """Compute q, and store its squared norms."""
        self._apply_adjoint()
        to[self.numbers] = self._q_q().norm2

    def step(self, alpha: solvers.Norms, to: solvers.Norms) -> None:
        """Go along the direction, and store the squared norms of the residuals."""
        self._step(-alpha[self.numbers], alpha[self.numbers])
        to[self.numbers] = self._step.products().norm2

    def norm2(self, to: solvers.Norms) -> None:
        """Store the squared norms of the residuals."""
        to[self.numbers] = self._r_r().norm2

    def turn(self, beta: solvers.Norms) -> None:
        """Set the direction to the residual plus beta times the old one."""
        self._direction(beta[self.numbers], 1)

    def add(self) -> None:
        """Add the corrections, and compute the true residuals and their norms."""
        self._outer.add(self._x, self._none)

    def replace(self) -> None:
        """Set the iterated residuals to the true ones, and the corrections to 0."""
        self._take_residual()
        self._clear_x(0, 0)


class _ReplicaGradients:
    """Conjugate gradients for B B^dagger x = b on replicas (Hestenes and Stiefel, 1952).

    Each vector does what it does alone: its true residual is computed when its own iterated one
    asks for it. Launches are those of all vectors between the first and the last one that is not
    solved yet; to solved ones among them they do no harm.

    Parameters
    ----------
    system : RepeatedSystem
        The system, whose operator is a `NormalOperator`.
    inner : str
        The precision of the iterations.
    """

    def __init__(self, system: RepeatedSystem, inner: str) -> None:
        self._system, self.norms = system, system.memory.norms
        self._vectors = [system.memory.r.like(inner) for _ in range(5)]
        self._launches: dict[range, _GradientLaunches] = {}

    def improve(
        self,
        active: Mask,
        targets: solvers.Norms,
        parameters: solvers.SolverParameters,
        progress: ReplicaProgress,
    ) -> Mask:
        """Iterate until the true residuals of some replicas are at most the targets."""
        search = _SolutionSearch(self, active, targets, parameters, progress)
        while search.live.any():
            search.iterate()
        return search.stagnated

    def on(self, some: range) -> _GradientLaunches:
        """Return the launches on some replicas."""
        if some not in self._launches:
            launches = _GradientLaunches(self._system, self._vectors, some)
            limited(self._launches)[some] = launches
        return self._launches[some]


class _SolutionSearch:
    """State of a search for solutions, with one number of each kind for every replica.

    Parameters
    ----------
    solver, active, targets, parameters, progress
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
        active: Mask,
        targets: solvers.Norms,
        parameters: solvers.SolverParameters,
        progress: ReplicaProgress,
    ) -> None:
        self._solver, self._targets = solver, targets
        self._limit, self._parameters, self._progress = parameters.iterations, parameters, progress
        norms = solver.norms
        self._watch = solvers.ResidualWatch(parameters, norms, targets, PLATEAU, together=False)
        self.stagnated = np.zeros_like(active)
        self.live = active & ~(norms <= targets)
        self._now = norms.copy()
        self._norm2, self._next, self._curvature = (np.zeros(active.size) for _ in range(3))
        for some in runs(active):
            solver.on(some).replace()
        if self.live.any():
            self._whole = solver.on(span(self.live))
            self._whole.norm2(self._norm2)
            self._whole.turn(np.zeros(active.size))

    def iterate(self) -> None:
        """Carry out one iteration for all that go on, and those before it that need no decision."""
        live, ahead = self.live, self._whole.ahead
        if ahead:
            self._run_ahead(ahead)
        else:
            self._whole.curvature(self._curvature)
        self._progress.iterations += live
        stepping = live & usable(self._curvature)
        if not (ahead and ahead.knows_residual):
            self._step(stepping)
        self._now = np.where(stepping, np.sqrt(self._next), self._now)
        going = stepping & np.isfinite(self._now)
        due, ended = self._watch.asks(self._now, going, self._progress.iterations)
        turning = usable(self._norm2) & going & np.logical_not(due)
        beta = ratio(self._next, self._norm2, turning)
        self._norm2 = np.where(turning, self._next, self._norm2)
        if (turning != live).any():
            lost = live & ~np.isfinite(self._now)
            self.stagnated, self.live = self.stagnated | lost, live & ~lost
            again = self.live & ~turning
            renewed = self._renew(again, again & ~(going & due), going & ended)
            beta = np.where(again, renewed, beta)
            if not self.live.any():
                return
            self._whole = self._solver.on(span(self.live))
        self._whole.turn(beta)

    def _run_ahead(self, ahead: DeviceIterations) -> None:
        """Iterate as long as nothing has to be decided; see `ResidualWatch.run_ahead`."""
        numbers, iterations = self._whole.numbers, self._progress.iterations
        self._watch.run_ahead(ahead, numbers, self.live, self._norm2, self._now, iterations)
        self._curvature[numbers], self._next[numbers] = ahead["CURVATURES"], ahead["SQUARES"]

    def _step(self, stepping: Mask) -> None:
        """Go along the directions of some replicas, whose curvatures are known."""
        alpha = ratio(self._norm2, self._curvature, stepping)
        self._whole.apply_rest()
        # Directions that have broken down may contain anything, and are left out then.
        broken = bool((stepping != self.live).any())
        for gradients in map(self._solver.on, runs(stepping)) if broken else (self._whole,):
            gradients.step(alpha, self._next)

    def _renew(self, again: Mask, broken: Mask, ended: Mask) -> solvers.Norms:
        """Return to the true residuals of some replicas; return the coefficients beta of these."""
        solver, norms = self._solver, self._solver.norms
        adding = again & self._watch.usable(self._now)
        broken = broken | (again & ~adding)
        for some in runs(adding):
            solver.on(some).add()
        for some in runs(again):
            solver.on(some).replace()
        self._watch.take(norms, self._now, again, broken | ended, again)
        self.live = self.live & ~(again & (norms <= self._targets))
        self._give_up(again & self.live)
        return self._directions(again & self.live, broken)

    def _give_up(self, again: Mask) -> None:
        """End searches with too many iterations, or whose residuals do not become smaller."""
        norms = self._solver.norms
        for n in np.flatnonzero(again & (self._progress.iterations >= self._limit)).tolist():
            text = solvers.too_many(self._parameters, norms[n : n + 1], self._targets[n : n + 1])
            self._progress.errors[n] = ConvergenceError(text)
            self.live[n] = again[n] = False
        self.stagnated = self.stagnated | (again & self._watch.stagnates)
        self.live = self.live & ~self.stagnated

    def _directions(self, again: Mask, broken: Mask) -> solvers.Norms:
        """Return the coefficients of directions that follow true residuals."""
        new = np.zeros(again.size)
        for some in runs(again):
            self._solver.on(some).norm2(new)
        beta = ratio(new, self._norm2, again & ~broken & usable(self._norm2))
        self._norm2 = np.where(again, new, self._norm2)
        return beta


def usable(squares: solvers.Norms) -> Mask:
    """Return where squares are finite and not 0, so that something can be divided by them."""
    return np.asarray((squares > 0) & (squares < np.inf))


def ratio(a: solvers.Norms, b: solvers.Norms, where: Mask) -> solvers.Norms:
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
