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
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.errors import ConvergenceError, GaugeError, UsageError
from gauge_mc.extensions.quarks.hopping import Apply, HoppingOperator, LinearOperator
from gauge_mc.extensions.quarks.preconditioned import (
    DEFLATE,
    DeflatedCorrection,
    Deflation,
    System,
)
from gauge_mc.extensions.quarks.solvers.device_iterations import (
    UNWATCHED,
    DeviceIterations,
    runs_ahead,
)
from gauge_mc.extensions.quarks.vectors.algebra import Advance, Combine, Multiply
from gauge_mc.extensions.quarks.vectors.spinors import (
    STORAGES,
    SpinorField,
    precisions_from,
    storage_of,
)
from gauge_mc.options import Option, check_declared
from gauge_mc.registry import Registry, in_words
from gauge_mc.updates.monomials import Mask

Norms = NDArray[np.float64]
Counts = NDArray[np.int64]
Decision = bool | Mask
"""Whether something is so for all vectors together, or for each of them."""

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

SLOWEST = 0.99

STAGNATION = 2
"""Number of true residuals in a row of which none is smaller, by the factor `SMALLER`, than the
smallest of its vector before, because of rounding errors."""

SMALLER = 0.8

ROUNDED = 2.0
"""Ratio of the true residual to the iterated one beyond which rounding errors matter."""

LARGEST_GROWTH = 1e3
"""Growth of a residual, since the last true one, beyond which the correction is not used."""

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
class SolverProgress:
    """The iterations and restarts of a solver so far.

    Attributes
    ----------
    iterations : int
        Number of iterations.
    updates : int
        Number of true residuals that replaced the iterated ones.
    iterated : ndarray of float64, shape (count,)
        Norms of the iterated residuals of the preconditioned system, for sources of the norm 1.
    notes : list of str
        What happened on the way, such as a change of the precision.
    """

    iterations: int = 0
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


class ResidualWatch:
    """Norms of residuals in a search, from which follows when the true ones are computed.

    Parameters
    ----------
    request : SolverParameters
        The precision of the iterations, and their largest number.
    norms, targets : ndarray of float64, shape (count,)
        Norms of the true residuals at the beginning, and those of solutions.
    plateau : int
        See `Solver.plateau`.
    together : bool
        Whether one vector that needs its true residual asks for those of all, and whether the
        search for all stagnates only if no residual becomes smaller. Otherwise what is returned
        holds for every vector alone.

    Attributes
    ----------
    smallest : ndarray of float64, shape (count,)
        The smallest true residuals so far.
    """

    def __init__(
        self, request: SolverParameters, norms: Norms, targets: Norms, plateau: int, together: bool
    ) -> None:
        self._reduction = request.falls
        self._most, self._targets, self._plateau = request.iterations, targets, plateau
        self._together = together
        self._norms = self._highest = self._lowest = self.smallest = norms.copy()
        self._since: int | Counts | Norms = 0
        self._fails: int | Counts = 0

    def asks(self, now: Norms, going: Mask, iterations: int | Counts) -> tuple[Decision, Decision]:
        """Return whether true residuals are needed, and whether because of the end."""
        self._highest = np.maximum(self._highest, now)
        slower = now < SLOWEST * self._lowest
        self._since = _chosen(self._of_all(slower & going), 0, self._since + 1)
        self._lowest = np.where(slower, now, self._lowest)
        low = (now < self._reduction * self._highest) | (now <= self._targets)
        ended = (self._since >= self._plateau) | (iterations >= self._most)
        grown = now > LARGEST_GROWTH * self._norms
        return self._of_all((low | grown) & going) | ended, ended

    def run_ahead(
        self,
        ahead: DeviceIterations,
        columns: slice,
        live: Mask,
        norm2: NDArray[Any],
        now: Norms,
        iterations: Counts,
    ) -> bool:
        """Iterate on some vectors as long as nothing has to be decided."""
        state = {"LIVE": live, "NORM2": norm2, "SQUARES": np.square(now), "ITERATIONS": iterations}
        rows = self._rows(iterations) | state
        has_begun = ahead.run(
            **{
                name: values[columns] if np.ndim(values) else values
                for name, values in rows.items()
            }
        )
        since = np.broadcast_to(self._since, live.size).astype(float)
        history = self._highest.copy(), self._lowest.copy(), since
        for name, values in zip(("HIGHEST", "LOWEST", "SINCE"), history, strict=True):
            values[columns] = ahead[name]
        self._highest, self._lowest, _ = history
        self._since = int(since.min()) if self._together else since
        norm2[columns] = ahead.complex("NORM2") if np.iscomplexobj(norm2) else ahead["NORM2"]
        iterations[columns] = ahead["ITERATIONS"]
        if not ahead.knows_residual:
            now[columns] = np.sqrt(ahead["SQUARES"])
        return has_begun

    def _rows(self, iterations: Counts) -> dict[str, Any]:
        """Return the numbers that `asks` needs, by the rows of the kernel."""
        history = {"HIGHEST": self._highest, "LOWEST": self._lowest, "SINCE": self._since}
        grown = LARGEST_GROWTH * self._norms
        falls = {"TARGET": self._targets, "GROWN": grown, "REDUCTION": self._reduction}
        limits = {"SLOWEST": SLOWEST, "PLATEAU": self._plateau, "MOST": self._most}
        if self._together:  # no earlier than now is the plateau of all vectors reached
            plateau = iterations + self._plateau - self._since
            limits |= {"PLATEAU": np.inf, "MOST": np.minimum(self._most, plateau)}
        return history | falls | limits

    def usable(self, now: Norms) -> Mask:
        """Return whether corrections with these iterated residuals may be added."""
        return np.asarray(now <= LARGEST_GROWTH * self._norms)

    def take(
        self, norms: Norms, now: Norms, going: Mask, rounded: Decision, again: Decision = True
    ) -> None:
        """Take note of true residuals."""
        better = self._of_all(going & (norms < SMALLER * self.smallest))
        # A residual that is as large as the iterated one comes from a peak, not from rounding.
        rounded = rounded | self._of_all(going & (norms > ROUNDED * now))
        fails = _chosen(better, 0, self._fails + rounded)
        self._fails = _chosen(again, fails, self._fails)
        self.smallest = _chosen(again, np.minimum(self.smallest, norms), self.smallest)
        self._norms = norms = norms.copy()
        self._highest = _chosen(again, norms, self._highest)
        self._lowest = _chosen(again, norms, self._lowest)
        self._since = _chosen(again, 0, self._since)

    @property
    def stagnates(self) -> Decision:
        """Whether residuals do not become smaller because of rounding errors."""
        return self._fails >= STAGNATION

    def _of_all(self, mask: Mask) -> Decision:
        """Return whether something is so for a vector, or for one of all."""
        return bool(mask.any()) if self._together else mask


def _chosen(where: Decision, a: Any, b: Any) -> Any:
    """Return a where something is so, and b elsewhere."""
    return np.where(where, a, b) if isinstance(where, np.ndarray) else a if where else b


class StagnationError(Exception):
    """The inner precision allows no smaller residual, or the iteration broke down."""


class Solver(ABC):
    """A Krylov solver for several vectors at once, each with its own coefficients.

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
        self.done: NDArray[np.bool_] = np.zeros(outer.y.count, np.bool_)
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

    def run_ahead(self, watch: ResidualWatch, now: Norms, progress: SolverProgress) -> None:
        """Carry out iterations that need no decision of the host, and perhaps begin a step.

        Parameters
        ----------
        watch : ResidualWatch
            Takes note of the residuals.
        now : ndarray of float64, shape (count,)
            The norms of `r`, which go on.
        progress : SolverProgress
            The iterations, which are counted.
        """
        if self.ahead:
            iterations = np.full(self.r.count, progress.iterations)
            begun = watch.run_ahead(self.ahead, slice(None), ~self.done, self.rho, now, iterations)
            self._begun = self.ahead if begun else None
            progress.iterations = int(iterations.max())

    def settle(self) -> None:
        """Add to `x` what still waits to be added; by default nothing does."""
        return

    def improve(self, targets: Norms, progress: SolverProgress) -> None:
        """Iterate until the true residuals are at most the targets.

        Raises
        ------
        StagnationError
            If that is impossible in this precision.
        GaugeError
            If there are too many iterations.
        """
        request, outer = self.request, self.outer
        now = outer.norms.copy()
        watch = ResidualWatch(request, now, targets, self.plateau, together=True)
        best, best_at = math.inf, progress.iterations
        ended: Decision
        _ = self.ahead  # a rehearsal, for which all is done, counts its memory
        self._replace(now <= targets)
        self.begin()
        while not self.done.all():
            self.run_ahead(watch, now, progress)
            progress.iterations += 1
            broken = ended = False
            try:
                now = np.sqrt(self.step())
                if not np.isfinite(now).all():
                    raise StagnationError
                progress.iterated = now
                due, ended = watch.asks(now, ~self.done, progress.iterations)
                if not due:
                    self.turn(replaced=False)
                    continue
            except StagnationError:
                if not np.isfinite(now).all():
                    raise  # `x` is unusable
                broken = True
            if watch.usable(now)[~self.done].all():
                self.settle()
                outer.add(self.x, self.done)
            else:
                broken = True
            progress.updates += 1
            self._replace(outer.norms <= targets)
            watch.take(outer.norms, now, ~self.done, broken | ended)
            smallest = watch.smallest.max()
            if smallest < SMALLER * best:
                best, best_at = smallest, progress.iterations
            if self.done.all():
                return
            if progress.iterations >= request.iterations:
                raise ConvergenceError(too_many(request, outer.norms, targets))
            if watch.stagnates or progress.iterations - best_at > self.patience:
                raise StagnationError
            if broken or request.method == DEFECT:
                self.begin()
                continue
            try:
                self.turn(replaced=True)
            except StagnationError:
                self.begin()

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
        self._replace(np.zeros_like(self.done))
        self.begin()

    def _ratio(self, a: NDArray[Any], b: NDArray[Any]) -> NDArray[Any]:
        """Return a / b, and 0 for vectors that are done."""
        if (~self.done & ((b == 0) | ~np.isfinite(b))).any():
            raise StagnationError
        return np.where(self.done, 0, self._divide(a, np.where(self.done, 1, b)))

    def _replace(self, converged: NDArray[np.bool_]) -> None:
        """Set `r` to the true residual, and `x` to 0."""
        self.done = converged
        self._take_residual()
        self.clear_x(0, 0)


class ReducedSystem(Protocol):
    """A system on the even sites, in double precision."""

    @property
    def reduced(self) -> SpinorField:
        """The right-hand sides."""

    @property
    def preconditioned(self) -> LinearOperator:
        """The operator."""


@dataclass(frozen=True)
class ResidualMemory:
    """Memory of a `Residual`.

    Attributes
    ----------
    y, r, product, more : SpinorField
        The solutions, the true residuals, and work fields for products and for corrections.
    norms : ndarray of float64, shape (count,)
        The norms of the true residuals.
    """

    y: SpinorField
    r: SpinorField
    product: SpinorField
    more: SpinorField
    norms: Norms

    @classmethod
    def like(cls, b: SpinorField) -> Self:
        """Return new memory for right-hand sides b."""
        return cls(b.like(), b.like(), b.like(), b.like(), np.zeros(b.count))

    def part(self, some: range) -> ResidualMemory:
        """Return the memory of some replicas with a vector on each."""
        y, r, product, more = (x.part(some) for x in (self.y, self.r, self.product, self.more))
        return ResidualMemory(y, r, product, more, self.norms[some.start : some.stop])


class Residual:
    """The current solution y of the preconditioned system, and its true residual.

    Parameters
    ----------
    system : ReducedSystem
        The system that is solved.
    before : Residual, optional
        That of the same system in another form, whose solution is kept if it is better than 0.
    memory : ResidualMemory, optional
        Memory of the caller, who calls `restart` first; by default it is new.
    deflation : Deflation, optional
        Low modes, along which the solution is completed whenever the true residual is computed.
    """

    def __init__(
        self,
        system: ReducedSystem,
        before: Residual | None = None,
        memory: ResidualMemory | None = None,
        deflation: Deflation | None = None,
    ) -> None:
        self._b = system.reduced
        buffers = memory or ResidualMemory.like(self._b)
        better = before and (before.norms < before.first).all()
        self.y: SpinorField = before.y if before and better else buffers.y
        self.r: SpinorField = buffers.r
        self.norms: Norms = buffers.norms
        self._product, self._more = buffers.product, buffers.more
        self._apply: Apply = system.preconditioned.apply(self._product, self.y)
        self._subtract = Advance(self.r, self._product)
        self._add = Combine(self.y, self._more)
        self._begin = self.r.copying(self._b)
        self._take: dict[int, Apply] = {}
        """Copies of corrections by their identity; the calls keep these."""
        self._b_b = Multiply(self._b)
        modes, operator = deflation, system.preconditioned
        self._deflate = modes and DeflatedCorrection(modes, operator, self.y, self.r)
        if not memory:
            self.first: Norms = np.sqrt(self._b_b().norm2)
            self.update()
            self._complete(np.zeros(self._b.count, np.bool_))

    def restart(self) -> None:
        """Begin with y = 0, after the right-hand sides have changed."""
        self._add(0, 0)
        self._begin()
        self.first = np.sqrt(self._b_b().norm2)
        self.norms[:] = self.first

    def forget(self) -> None:
        """Free the memory of all corrections."""
        self._take.clear()

    def add(self, x: SpinorField, converged: Mask) -> None:
        """Add a correction in any precision, except to vectors that are done."""
        if id(x) not in self._take:
            self._take[id(x)] = self._more.copying(x)
        self._take[id(x)]()
        self._add(1, np.where(converged, 0.0, 1.0))
        self.update()
        self._complete(converged)

    def update(self) -> None:
        """Compute the true residual and its norms."""
        self._begin()
        self._apply()
        self._subtract(-1)
        self.norms[:] = np.sqrt(self._subtract.products().norm2)

    def _complete(self, converged: Mask) -> None:
        """Add what solutions that are not done lack along low modes."""
        if self._deflate:
            self._deflate(converged)
            self.update()


def solve(
    operator: HoppingOperator,
    source: SpinorField,
    solver: str,
    request: SolverParameters,
    deflation: Deflation | None = None,
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
    system = System(operator, source, kind.uses_adjoint)
    if not np.isfinite(system.norms).all():
        raise GaugeError("The source contains a value that is not a number, or is too large.")
    if deflation:
        deflation.check(system.preconditioned)
    outer = Residual(system, deflation=deflation)
    progress = SolverProgress(iterated=np.zeros_like(system.norms))
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
                    system = System(operator, source, kind.uses_adjoint)
                    outer = Residual(system, outer)
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
        progress.iterations,
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
            f"{DEFLATE.flag} is for solvers that use the adjoint of the operator, not for "
            f"{solver}; choose {in_words(names, 'or')}, or leave it out."
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
