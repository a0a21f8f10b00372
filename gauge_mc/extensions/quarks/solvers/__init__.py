"""Solvers of M x = b.

Each solver is a subclass of `Solver` that is registered in `SOLVERS`. A solver knows only vectors,
and calls that apply the operator to them.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.errors import ConvergenceError, GaugeError, UsageError
from gauge_mc.extensions.quarks import hopping
from gauge_mc.extensions.quarks.hopping import HoppingOperator, LinearOperator
from gauge_mc.extensions.quarks.solvers.iterations import (
    SMALLER,
    UNWATCHED,
    Counts,
    DeviceIterations,
    Norms,
    Residual,
    ResidualWatch,
    in_groups,
    runs_ahead,
)
from gauge_mc.extensions.quarks.vectors import STORAGES, SpinorField, precisions_from, storage_of
from gauge_mc.extensions.quarks.vectors.algebra import Combine
from gauge_mc.options import Option, check_declared
from gauge_mc.registry import Registry, in_words
from gauge_mc.updates.monomials import Mask, ReplicaProgress

ITERATIONS = 10_000
"""Default of the largest number of iterations."""

LEAST_TOLERANCE = 2.0**-52
"""Smallest tolerance, the distance from 1 to the next number of double precision. Rounding the
solution alone leaves a residual of this order."""

RELIABLE, DEFECT = "reliable", "defect"
METHODS = {
    RELIABLE: "the true residual replaces the iterated one now and then, and the search goes on",
    DEFECT: "the search begins again with the true residual",
}
"""How lower precision is combined with double precision."""

USUAL_REDUCTIONS = {
    (RELIABLE, "double"): 1e-6,
    (RELIABLE, "single"): 1e-3,
    (RELIABLE, "half"): 1e-1,
    (DEFECT, "double"): 1e-6,
    (DEFECT, "single"): 1e-4,
    (DEFECT, "half"): 1e-1,
}
"""Default of `REDUCTION` by method and inner precision. With half precision and reliable updates it
is 0.1, as in arXiv:0911.3191, section 5."""


def _usual_in(inner: str) -> str:
    """Return the different values of `USUAL_REDUCTIONS` in a precision, as text."""
    return " or ".join(dict.fromkeys(f"{USUAL_REDUCTIONS[name, inner]:g}" for name in METHODS))


REDUCTION = Option(
    "reduction",
    float,
    "Factor by which the iterated residual falls, from its largest value since the last true one, "
    "before the true residual is computed: δ of reliable updates, ε_in of defect correction.",
    default=", ".join(f"{_usual_in(inner)} in {inner} precision" for inner in reversed(STORAGES)),
    least=0,
    most=1,
    inside=True,
)
"""When the true residual is computed (M. A. Clark et al., arXiv:0911.3191)."""

PATIENCE = 200
"""Usual value of `Solver.plateau`."""

TIGHTER = 0.3
"""Factor of the target if the residual of the full system is above the tolerance."""

ATTEMPTS = 5
"""Number of times that the target is made tighter."""


@dataclass(frozen=True)
class SolverParameters:
    """Parameters of a solver: tolerance, limits and precision.

    Attributes
    ----------
    tolerance : float
        Largest norm of the residual of the full system, divided by that of the source.
    iterations : int
        Largest number of iterations.
    method : str
        A key of `METHODS`.
    inner : str
        Precision of the iterations: ``half``, ``single`` or ``double``.
    reals : int, optional
        Reals per link in the iterations; see `DiracOperator.prepared`.
    reduction : float, optional
        Factor by which the iterated residual falls before the true one is computed, in every
        precision of the iterations; by default that of `USUAL_REDUCTIONS`.
    """

    tolerance: float = defaults.TOLERANCE
    iterations: int = ITERATIONS
    method: str = RELIABLE
    inner: str = defaults.INNER
    reals: int | None = None
    reduction: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not LEAST_TOLERANCE <= self.tolerance < 1:
            raise UsageError(
                f"The tolerance is {self.tolerance:g}; give the norm of the residual divided by "
                f"that of the source, from {LEAST_TOLERANCE:.2g} to below 1."
            )
        if self.iterations < 1:
            raise UsageError(f"The number of iterations is {self.iterations}; give at least 1.")
        if self.method not in METHODS:
            choices = in_words(METHODS, "or")
            raise UsageError(f"There is no method '{self.method}'; choose {choices}.")
        storage_of(self.inner)
        check_declared((REDUCTION,), {REDUCTION.name: self.reduction})

    @property
    def falls(self) -> float:
        """Factor by which the iterated residual falls before the true one is computed."""
        return self.reduction or USUAL_REDUCTIONS[self.method, self.inner]


@dataclass
class SolverProgress(ReplicaProgress):
    """The iterations and restarts of a solver so far, for all vectors together or on replicas.

    Attributes
    ----------
    updates : int
        Number of times that true residuals replaced the iterated ones.
    iterated : ndarray of float64, shape (count,)
        Norms of the iterated residuals of the preconditioned system, for sources of the norm 1.
    notes : list of str
        What happened on the way, such as a change of the precision.
    """

    updates: int = 0
    iterated: Norms = field(default_factory=lambda: np.zeros(0))
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Solution:
    """A solution of M x = b.

    Attributes
    ----------
    x : SpinorField
        The solutions on all sites, in double precision.
    solver : str
        Name of the solver.
    inner : str
        Precision of the last iterations.
    iterations : int
        Number of iterations, which all vectors share.
    updates : int
        Number of true residuals that replaced the iterated ones.
    iterated, residual : ndarray of float64, shape (count,)
        The iterated residual of the preconditioned system, and the true one of the full system in
        double precision: norms divided by that of the source.
    seconds : float
        Time that the solution took.
    notes : tuple of str
        What the user should know, such as a change of the precision.
    """

    x: SpinorField
    solver: str
    inner: str
    iterations: int
    updates: int
    iterated: Norms
    residual: Norms
    seconds: float
    notes: tuple[str, ...]


class StagnationError(Exception):
    """The inner precision allows no smaller residual, or the iteration broke down."""


class Solver(ABC):
    """A Krylov iteration for several vectors at once, each with its own coefficients.

    An instance iterates in one inner precision.

    Parameters
    ----------
    outer : Residual
        The system in double precision.
    operator : LinearOperator
        The operator in the inner precision.
    request : SolverParameters
        Tolerance, limits and precision.

    Attributes
    ----------
    done, broken : ndarray of bool, shape (count,)
        Vectors that are left unchanged, and those whose last step has broken down alone.
    rho : ndarray of float64 or complex128, shape (count,)
        The numbers from which the next coefficients follow, besides scalar products.
    """

    name: ClassVar[str]
    uses_adjoint: ClassVar[bool] = False
    """Whether it applies the adjoint of the operator."""
    always_converges: ClassVar[bool] = False
    """Whether it converges for every operator that has an inverse, apart from rounding errors. Such
    a solver goes on if another one does not converge."""
    plateau: ClassVar[int] = PATIENCE
    """Number of iterations after which the true residual is computed if the iterated one of no
    vector has become smaller by the factor `SLOWEST`."""
    vectors_moved: ClassVar[int] = 0
    """Number of vectors that an iteration reads or writes besides the products with the operator,
    for benchmarks; 0 if it is unknown."""
    patience: ClassVar[float] = math.inf
    """Number of iterations after which it gives up unless the largest of the smallest true
    residuals of all vectors has become smaller by the factor `SMALLER`."""

    def __init__(
        self, outer: Residual, operator: LinearOperator, request: SolverParameters
    ) -> None:
        self.outer, self.operator, self.request = outer, operator, request
        self.r = outer.y.like(request.inner)
        self.x = outer.y.like(request.inner)
        self.clear_x = Combine(self.x, self.r)
        self._take_residual = self.r.copying(outer.r)
        self.done = self.broken = np.zeros(outer.y.count, np.bool_)
        self.rho: NDArray[Any] = np.zeros(outer.y.count)
        self._begun: DeviceIterations | None = None
        self._divide: Callable[[Any, Any], NDArray[Any]] = np.true_divide

    @abstractmethod
    def begin(self) -> None:
        """Begin the iteration, given the residual `r`."""

    @abstractmethod
    def step(self) -> Norms:
        """Add to `x`, update `r`, and return the squared norms of `r`.

        Vectors that are `done` are left unchanged. What is added to `x` may wait until `turn`, or
        until `settle`.

        Raises
        ------
        StagnationError
            If the iteration has broken down, and must begin again.
        """

    @abstractmethod
    def turn(self, replaced: bool) -> None:
        """Choose the next search direction.

        Parameters
        ----------
        replaced : bool
            Whether `r` is no longer that of the last step, but the true residual.

        Raises
        ------
        StagnationError
            See `step`.
        """

    @cached_property
    def ahead(self) -> DeviceIterations | None:
        """Iterations that do not wait for the host, where there are such."""
        return self.prepare_ahead() if runs_ahead(self.r) else None

    def prepare_ahead(self) -> DeviceIterations | None:
        """Return iterations that do not wait for the host; by default there are none.

        When they have halted, `step` finds in their rows what has been computed of a step.
        """
        return None

    def run_ahead(self, watch: ResidualWatch, now: Norms, iterations: Counts) -> None:
        """Carry out iterations that need no decision of the host, and perhaps begin a step.

        Parameters
        ----------
        watch : ResidualWatch
            Takes note of the residuals.
        now : ndarray of float64, shape (count,)
            The norms of `r`, which go on.
        iterations : ndarray of int64, shape (groups,)
            The iterations, which are counted.
        """
        if self.ahead:
            state = ~self.done, self.rho, now, iterations
            begun = watch.run_ahead(self.ahead, slice(None), *state)
            self._begun = self.ahead if begun else None

    def settle(self) -> None:
        """Add to `x` what still waits to be added; by default nothing does."""
        return

    def leave_out(self, solved: Mask) -> None:
        """Leave vectors unchanged from now on."""
        self.done = solved

    def add(self, some: Mask) -> None:
        """Add `x` of some vectors to the solution, and compute their true residuals."""
        self.settle()
        self.outer.add(self.x, self.done)

    def replace(self, some: Mask) -> None:
        """Set `r` of some vectors to the true residuals, and `x` to 0."""
        self._take_residual()
        self.clear_x(0, 0)

    def go_on(self, replaced: Mask, broken: Mask) -> None:
        """Choose the next directions, where `r` of some vectors has been replaced.

        Those whose iteration has broken down begin again.
        """
        if not broken.any():
            try:
                self.turn(replaced=True)
                return
            except StagnationError:
                pass
        self.begin()

    def improve(self, targets: Norms, progress: SolverProgress) -> None:
        """Iterate until the true residuals are at most the targets.

        Raises
        ------
        StagnationError
            If that is impossible in this precision.
        GaugeError
            If there are too many iterations.
        """
        stagnated = SolutionSearch(self, targets, progress).run()
        progress.check()
        if stagnated.any():
            raise StagnationError

    def repeat(self, times: int) -> None:
        """Carry out so many iterations, whatever the residuals are."""
        if self.ahead:
            rows = {"LIVE": ~self.done, "NORM2": self.rho, "MOST": times}
            self._begun = self.ahead if self.ahead.run(**UNWATCHED | rows) else None
            is_complex = np.iscomplexobj(self.rho)
            self.rho = self.ahead.complex("NORM2") if is_complex else self.ahead["NORM2"]
            times -= int(self.ahead["ITERATIONS"].max())
        for _ in range(times):
            self.step()
            self.turn(replaced=False)

    def restart(self) -> None:
        """Begin with the true residual for all vectors, as if none had been solved."""
        self.leave_out(np.zeros_like(self.done))
        self.replace(~self.done)
        self.begin()

    def _ratio(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return a / b, and 0 for vectors that are done."""
        if (~self.done & ((b == 0) | ~np.isfinite(b))).any():
            raise StagnationError
        return np.where(self.done, 0, self._divide(a, np.where(self.done, 1, b)))


class SolutionSearch:
    """The search for solutions: reliable updates or defect correction around a solver.

    The corrections of the solver are added to a solution in double precision, whose residual
    replaces the iterated one now and then, until it is small enough.

    Parameters
    ----------
    solver : Solver
        The solver.
    targets : ndarray of float64, shape (count,)
        The largest norms of the true residuals.
    progress : SolverProgress
        Iterations and errors of every group of vectors that take decisions together.
    active : ndarray of bool, shape (groups,), optional
        The groups to solve for; by default all.

    Attributes
    ----------
    live : ndarray of bool, shape (groups,)
        Groups whose search goes on.
    stagnated : ndarray of bool, shape (groups,)
        Groups for which the precision allows no smaller residual.
    """

    def __init__(
        self, solver: Solver, targets: Norms, progress: SolverProgress, active: Mask | None = None
    ) -> None:
        self._solver, self._targets, self._progress = solver, targets, progress
        groups, norms = progress.iterations.size, solver.outer.norms
        limits = solver.request.falls, solver.request.iterations
        self._watch = ResidualWatch(*limits, norms, targets, solver.plateau, groups)
        self._now, self.stagnated = norms.copy(), np.zeros(groups, np.bool_)
        some = self._vectors(~self.stagnated if active is None else active)
        self._best, self._best_at = math.inf, progress.iterations.copy()
        _ = solver.ahead  # a rehearsal, for which all is done, counts its memory
        solver.leave_out(~some | (norms <= targets))
        self.live = self._any(~solver.done)
        solver.replace(some)
        solver.begin()

    def run(self) -> Mask:
        """Iterate until all groups are done, and return those that have stagnated."""
        while self.live.any():
            self._iterate()
        return self.stagnated

    def _any(self, mask: Mask) -> Mask:
        return in_groups(mask, self.stagnated.size)

    def _vectors(self, groups: Mask) -> Mask:
        return groups.repeat(self._now.size // groups.size)

    def _iterate(self) -> None:
        """Carry out one iteration, and those before it that need no decision."""
        solver, live, iterations = self._solver, self.live, self._progress.iterations
        solver.run_ahead(self._watch, self._now, iterations)
        iterations += live
        again = broken = live
        lost = ended = np.zeros_like(live)
        try:
            squares = solver.step()
            self._now = np.where(solver.broken, self._now, np.sqrt(squares))
            finite = np.isfinite(self._now)
            lost = live & self._any(~finite)
            if not lost.any():
                self._progress.iterated = self._now
            stepping = ~solver.done & ~solver.broken & finite
            due, ended = self._watch.asks(self._now, stepping, iterations)
            broken = live & self._any(~solver.done & solver.broken)
            again = live & (due | broken | lost)
            if not again.any():
                solver.turn(replaced=False)
                return
        except StagnationError:
            again = broken = live
        self.stagnated = self.stagnated | lost
        self._renew(again & ~lost, broken, ended, lost)

    def _renew(self, again: Mask, broken: Mask, ended: Mask, lost: Mask) -> None:
        """Return to the true residuals of some groups, unless their search has ended."""
        solver, request, progress = self._solver, self._solver.request, self._progress
        norms, watch = solver.outer.norms, self._watch
        unusable = self._any(~solver.done & ~watch.usable(self._now))
        adding, broken = again & ~unusable, broken | unusable
        if adding.any():
            solver.add(self._vectors(adding))
        solver.replace(self._vectors(again))
        progress.updates += int(again.any())
        some = self._vectors(again)
        solved = solver.done | self._vectors(lost) | (some & (norms <= self._targets))
        watch.take(norms, self._now, some & ~solved, broken | ended, again)
        smallest = watch.smallest.max()
        if smallest < SMALLER * self._best:
            self._best, self._best_at = smallest, progress.iterations.copy()
        again = again & self._any(~solved)
        late = again & (progress.iterations >= request.iterations)
        impatient = progress.iterations - self._best_at > solver.patience
        stuck = again & ~late & (watch.stagnates | impatient)
        for n in np.flatnonzero(late).tolist():
            of_group = (x.reshape(late.size, -1)[n] for x in (norms, self._targets))
            progress.errors[n] = ConvergenceError(too_many(request, *of_group))
        self.stagnated = self.stagnated | stuck
        solved = solved | self._vectors(late | stuck)
        solver.leave_out(solved)
        self.live = self._any(~solved)
        if self.live.any():
            again = again & self.live
            restarted = again & (broken | (request.method == DEFECT))
            solver.go_on(self._vectors(again), self._vectors(restarted))


def solve(
    operator: HoppingOperator,
    source: SpinorField,
    solver: str,
    request: SolverParameters,
    deflation: hopping.Deflation | None = None,
) -> Solution:
    """Solve M x = b for all vectors of a field.

    Parameters
    ----------
    operator : HoppingOperator
        The operator M.
    source : SpinorField
        The right-hand sides b on all sites, in double precision.
    solver : str
        Name of a registered solver.
    request : SolverParameters
        Tolerance, limits and precision.
    deflation : Deflation, optional
        Low modes of the operator, along which solutions need no iteration, for a solver that uses
        the adjoint.

    Returns
    -------
    Solution
        Its true residual, of the full system and in double precision, is at most the tolerance for
        every vector. If the residual does not become smaller, the iteration goes on in higher
        precision, and then with a solver that always converges; the notes say so.

    Raises
    ------
    UsageError
        If the solver does not use the adjoint, but there are low modes.
    GaugeError
        If the tolerance cannot be reached, or low modes are those of another operator.
    """
    if deflation:
        check_deflates(solver)
    began = time.perf_counter()
    ladder = _ladder(SOLVERS[solver], request.inner)
    kind, inner = ladder.pop(0)
    system = hopping.System(operator, source, kind.uses_adjoint)
    if not np.isfinite(system.norms).all():
        raise GaugeError("The source contains a value that is not a number, or is too large.")
    if deflation:
        deflation.check(system.preconditioned)
    outer = Residual(system.reduced, system.preconditioned, deflation=deflation)
    progress = SolverProgress(np.zeros(1, np.int64), iterated=np.zeros_like(system.norms))
    targets = np.full_like(system.norms, request.tolerance)
    residual = np.full_like(targets, math.inf)
    for _ in range(ATTEMPTS):
        while True:
            parameters = replace(request, inner=inner)
            reduced = system.reduced_operator(inner, request.reals)
            try:
                kind(outer, reduced, parameters).improve(targets, progress)
                break
            except StagnationError:
                if not ladder:
                    break
                before, (kind, inner) = (kind, inner), ladder.pop(0)
                progress.notes.append(_changed(before, (kind, inner)))
                if kind.uses_adjoint != system.with_adjoint:
                    system = hopping.System(operator, source, kind.uses_adjoint)
                    previous, outer = outer, Residual(system.reduced, system.preconditioned)
                    outer.start_from(previous)
            finally:
                outer.forget()
        system.complete(outer.y)
        residual = system.residual_norms()
        if (residual <= request.tolerance).all():
            break
        targets = np.minimum(targets, outer.norms) * TIGHTER
    else:
        raise ConvergenceError(
            f"The residual of the full system does not become smaller than {residual.max():.2g} of "
            f"the source, and the tolerance is {request.tolerance:g}: choose a larger tolerance."
        )
    return Solution(
        system.scaled_solution(),
        kind.name,
        inner,
        int(progress.iterations[0]),
        progress.updates,
        progress.iterated,
        residual,
        time.perf_counter() - began,
        tuple(progress.notes),
    )


def check_deflates(solver: str) -> None:
    """Refuse a solver that does not use the adjoint of the operator, and so has no low modes."""
    names = [name for name, x in SOLVERS.items() if x.uses_adjoint]
    if solver not in names:
        raise UsageError(
            f"{hopping.DEFLATE.flag} is for solvers that use the adjoint of the operator, "
            f"not for {solver}; choose {in_words(names, 'or')}, or leave it out."
        )


Step = tuple[type[Solver], str]
"""A solver and the precision of its iterations."""


def _ladder(kind: type[Solver], inner: str) -> list[Step]:
    """Return what is tried one after the other: higher precisions, and then a safer solver."""
    safer = (x for x in SOLVERS.values() if x.always_converges)
    kinds = dict.fromkeys([kind, *([] if kind.always_converges else islice(safer, 1))])
    return [(each, precision) for each in kinds for precision in precisions_from(inner)]


def _changed(before: Step, now: Step) -> str:
    """Return a note about a change of the precision or of the solver."""
    names = [f"with {kind.name} " * (before[0] is not now[0]) for kind, _ in (before, now)]
    return (
        f"The residual did not become smaller {names[0]}in {before[1]} precision, so that the "
        f"iteration went on {names[1]}in {now[1]} precision."
    )


def too_many(request: SolverParameters, residual: Norms, targets: Norms) -> str:
    """Return the sentence for too many iterations, given the residuals and what they should be.

    The wanted residual is smaller than the tolerance where the full system needs that.
    """
    return (
        f"The residual is {residual.max():.2g} of the source after {request.iterations} "
        f"iterations, and not {targets.min():.2g}: allow more iterations, a larger tolerance, or "
        "choose heavier quarks."
    )


SOLVERS: Registry[type[Solver]] = Registry("solver", __name__, Solver)
