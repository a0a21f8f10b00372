"""Solutions of (A + sigma) y = b for several shifts sigma at once, with a positive operator A.

The Krylov space of A + sigma does not depend on sigma, and the residuals of all shifts are
parallel. So conjugate gradients for the smallest shift give the solutions for all others with no
further applications of A (B. Jegerlehner, hep-lat/9612014; A. Frommer et al., Int. J. Mod. Phys. C6
(1995) 627). Every shift stops when its own residual is small enough. On several replicas, each with
links of its own, the vectors of each have the bits that they have alone, and end or fail alone.

The coefficients of the iteration are those of the Lanczos algorithm, so that the ends of the
spectrum of A are found on the way (`gauge_mc.quarks.rational.lanczos`).

A sum of the solutions needs no memory for each of them if the iteration is carried out twice: the
solutions are combinations of the residuals, whose factors are known after the first time (H.
Neuberger, Int. J. Mod. Phys. C10 (1999) 1051, hep-lat/9811019). That is faster for many shifts, too
(T.-W. Chiu and T.-H. Hsieh, Phys. Rev. E68 (2003) 066704, hep-lat/0306025).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Launch
from gauge_mc.errors import ConvergenceError
from gauge_mc.quarks.matrices.linear import InexactOperator, LinearOperator
from gauge_mc.quarks.matrices.preconditioned import norms_of
from gauge_mc.quarks.rational.lanczos import Lanczos
from gauge_mc.quarks.rational.relaxation import Relaxation
from gauge_mc.quarks.rational.shift_coefficients import PastSteps, ShiftCoefficients
from gauge_mc.quarks.rational.steps_ahead import StepsAhead
from gauge_mc.quarks.solvers import (
    ATTEMPTS,
    SMALLER,
    TIGHTER,
    Mask,
    Norms,
    ReplicaProgress,
    SolverParameters,
)
from gauge_mc.quarks.vectors.algebra import (
    Advance,
    AdvanceShifts,
    Combine,
    Multiply,
    OnDevice,
)
from gauge_mc.quarks.vectors.device_iterations import runs_ahead
from gauge_mc.quarks.vectors.spinors import SpinorField

EXACT, LOWER = "double", "single"
"""Precisions of the iterations. With 16-bit numbers the residuals of shifts do not stay parallel,
so that single precision stands for it."""

LEAST_LOWER = 1e-6
"""Smallest tolerance for which all shifts together iterate in single precision, which rounding
errors allow it to reach. For 17 shifts and a tolerance of 1e-8, to correct each shift alone took
six times as many iterations as all of them together in double precision (8^4, kappa = 0.1575)."""

REDUCTION = 1e-5
"""Factor by which the residual of a correction falls in single precision before the true one is
computed."""

LEAST = 1e-100
"""Size of a residual, divided by that of the right-hand side, whose square does not underflow."""


class _Iteration(ABC):
    """Conjugate gradients for (A + sigma) y = r and several shifts sigma, in one precision.

    Parameters
    ----------
    operator : LinearOperator
        The operator A, which `run` allows larger errors as residuals fall if it is inexact.
    like : SpinorField
        A field like r, in the precision of the iteration.

    Attributes
    ----------
    r : SpinorField
        The right-hand sides, which the caller sets, and then the residuals for the lowest shift.
    progress : ReplicaProgress
        Iterations and errors of the last search.
    lanczos : list of Lanczos
        The coefficients of the last search, for the first vector of every replica.
    """

    def __init__(self, operator: LinearOperator, like: SpinorField) -> None:
        self._operator = operator
        self.r, self._p, self._q = like.like(), like.like(), like.like()
        self.progress, self.lanczos = ReplicaProgress.begin(like.replicas), [Lanczos()]
        self._apply_shifted = _shifted(operator, self._q, self._p)
        self._first = Combine(self._p, self.r)
        self._p_q = Multiply(self._q, self._p)
        self._step = Advance(self.r, self._q)

    @property
    def iterations(self) -> int:
        """Largest number of iterations of a replica in the last search."""
        return int(self.progress.iterations.max())

    @cached_property
    def _ahead(self) -> StepsAhead | None:
        """Steps that do not wait for the host, where there can be such."""
        if not runs_ahead(self.r):
            return None
        return StepsAhead(self.r, self._p, self._q, self._apply_shifted, self._number, self._found)

    @abstractmethod
    def _begin(self, shifts: int, count: int) -> None:
        """Set the solutions to 0, and the directions of all shifts to r."""

    @abstractmethod
    def _advance(self, a: Norms, b: Norms, c: Norms) -> None:
        """Carry out a step of `AdvanceShifts` for the first shifts."""

    @property
    def _number(self) -> int:
        """Largest number of shifts whose coefficients devices compute."""
        return 1

    def _found(self, found: Sequence[OnDevice]) -> Launch:
        """Return a call that carries out a step of `AdvanceShifts` with factors on the devices."""
        return lambda: None

    def _on_devices(self, own: ShiftCoefficients) -> ShiftCoefficients:
        """Return the coefficients that devices compute."""
        return own

    def _repeat(self, own: ShiftCoefficients, past: PastSteps, targets: Norms) -> None:
        """Do what devices have not done in steps that they have carried out; by default nothing."""
        return

    def run(self, shifts: Sequence[float], targets: Norms, most: int, relaxed: float = 1.0) -> None:
        """Compute solutions whose iterated residuals are at most the targets.

        Parameters
        ----------
        shifts : sequence of float
            Shifts in ascending order.
        targets : ndarray of float64, shape (n,)
            The largest norm of the residuals of every vector, for all shifts.
        most : int
            Largest number of iterations.
        relaxed : float
            Largest error that an operator which allows it may have as residuals fall; see
            `Relaxation`. With 0 its errors are the smallest ones.

        Raises
        ------
        ConvergenceError
            If there are too many iterations, or values are not numbers.
        """
        progress = ReplicaProgress.begin(self.r.replicas)
        self.search(shifts, targets, most, progress, relaxed)
        progress.check()

    def search(
        self,
        shifts: Sequence[float],
        targets: Norms,
        most: int,
        progress: ReplicaProgress,
        relaxed: float = 1.0,
    ) -> None:
        """Do `run`, but take note of the replicas on which it fails.

        Parameters
        ----------
        shifts, targets, most, relaxed
            See `run`. A target of infinity leaves a vector out, whose solution is 0.
        progress : ReplicaProgress
            Iterations, which are counted, and errors, which are added.
        """
        self.progress, coefficients = progress, ShiftCoefficients(shifts, self.r.count)
        operator, relaxation, ahead = self._operator, None, None
        if not isinstance(operator, InexactOperator):
            ahead = self._ahead
        elif relaxed:
            relaxation = Relaxation(operator, targets, relaxed)
        try:
            for norms in self._steps(coefficients, targets, most, ahead):
                if relaxation:
                    relaxation.step(norms)
        finally:
            if relaxation:
                relaxation.end()

    def steps(self, shifts: Sequence[float]) -> Iterator[Norms]:
        """Yield the norms of the residuals for the lowest shift before every iteration.

        The iteration ends when they have nearly underflown.
        """
        self.progress = ReplicaProgress.begin(self.r.replicas)
        return self._steps(ShiftCoefficients(shifts, self.r.count), LEAST * norms_of(self.r))

    def _steps(
        self,
        own: ShiftCoefficients,
        targets: Norms,
        most: float = math.inf,
        ahead: StepsAhead | None = None,
    ) -> Iterator[Norms]:
        """Yield the norms for the lowest shift before an iteration, until all shifts are done.

        With steps that may run ahead, these come without norms before the iteration.
        """
        lowest, count, progress = own.lowest, self.r.count, self.progress
        each = count // self.r.replicas
        self.lanczos = [Lanczos(lowest) for _ in range(self.r.replicas)]
        self._first(0, 1)
        self._begin(len(own.shifts), count)
        norm2 = np.square(norms_of(self.r))
        while (going := self._going(own, np.sqrt(norm2), targets, most)).any():
            yield np.sqrt(norm2)
            live, products, new = going.repeat(each) & (norm2 > 0), None, None
            if ahead and own.ends_with_lowest(live):
                norm2, products, new = self._run_ahead(
                    ahead, own, going, live, norm2, targets, most
                )
            progress.iterations[going] += 1
            if products is None:
                self._apply_shifted(lowest)
                products = self._p_q().mixed.real
            alpha = np.where(live, norm2 / _positive(products), 0)
            if new is None:
                self._step(-alpha)
                new = self._step.products().norm2
            if not np.isfinite(new[going.repeat(each)]).all():
                broken = going & self._any(~np.isfinite(new))
                progress.fail(broken, "The iteration broke down; choose a smaller kappa.")
                going &= ~broken
                alpha, new = (np.where(broken.repeat(each), 0, one) for one in (alpha, new))
                if not going.any():
                    return
            beta = np.where(live, new / _positive(norm2), 0)
            self._advance(*own.advance(alpha, beta))
            self._first(beta, 1)
            self._take_steps(going, PastSteps.of(norm2, alpha, beta))
            norm2 = new

    def _run_ahead(
        self,
        ahead: StepsAhead,
        own: ShiftCoefficients,
        going: Mask,
        live: Mask,
        norm2: Norms,
        targets: Norms,
        most: float,
    ) -> tuple[Norms, Norms, Norms | None]:
        """Carry out steps, and begin the next one.

        Returns
        -------
        ndarray of float64, shape (count,)
            The squared norms of the residuals before the step that has begun.
        ndarray of float64, shape (count,)
            The products <p, q> of this step.
        ndarray of float64, shape (count,), or None
            The squared norms after it, if they are known.
        """
        iterations, gradient = self.progress.iterations, ahead.gradient
        ends = np.where(own.active[0], targets, -1.0)
        rows = {"LIVE": live, "NORM2": norm2, "TARGET": ends}
        left = most - iterations[going].max()
        past = ahead.run(self._on_devices(own), targets, left, **rows)
        iterations[going] += len(past.norm2)
        self._take_steps(going, past)
        self._repeat(own, past, targets)
        before, new = gradient["NORM2"].copy(), gradient["SQUARES"].copy()
        own.unfinished(np.sqrt(before), targets)
        return before, gradient["CURVATURES"].copy(), new if gradient.knows_residual else None

    def _take_steps(self, going: Mask, past: PastSteps) -> None:
        """Take note of the coefficients of some steps."""
        each = self.r.count // self.r.replicas
        for n in np.flatnonzero(going).tolist():
            coefficients = past.alpha[:, n * each].tolist(), past.beta[:, n * each].tolist()
            for alpha, beta in zip(*coefficients, strict=True):
                self.lanczos[n].add(alpha, beta)

    def _going(self, own: ShiftCoefficients, norms: Norms, targets: Norms, most: float) -> Mask:
        """Return the replicas on which a shift goes on; those that have had their turn fail."""
        progress, shifts = self.progress, len(own.shifts)
        going = progress.left(self._any(own.unfinished(norms, targets)))
        late = going & (progress.iterations >= most)
        several = f"{shifts} shifts" if shifts > 1 else "a shift"
        progress.fail(
            late,
            f"The solutions for {several} were not found within {most} iterations: allow more "
            "iterations, a larger tolerance, or choose a smaller kappa.",
        )
        return going & ~late

    def _any(self, vectors: Mask) -> Mask:
        """Return the replicas on which something holds for a vector."""
        return np.asarray(vectors.reshape(self.r.replicas, -1).any(axis=1))


class ShiftedSearch(_Iteration):
    """Conjugate gradients that find the solutions for all shifts.

    Parameters
    ----------
    operator, like
        See `_Iteration`.
    number : int
        Largest number of shifts.

    Attributes
    ----------
    y : SpinorField
        The solutions for all shifts, number i n + j for shift i and the j-th of the n vectors of r.
    """

    def __init__(self, operator: LinearOperator, like: SpinorField, number: int) -> None:
        super().__init__(operator, like)
        self.y, self._directions = (_repeated(like, number) for _ in range(2))
        self._clear = Combine(self.y, self.y)
        self._next = AdvanceShifts(self.y, self._directions, self.r)

    def _begin(self, shifts: int, count: int) -> None:
        self._clear(0, 0)
        one, zero = np.ones((shifts, count)), np.zeros((shifts, count))
        self._next(zero, zero, one)

    def _advance(self, a: Norms, b: Norms, c: Norms) -> None:
        self._next(a, b, c)

    @property
    def _number(self) -> int:
        return self.y.count // self.r.count

    def _found(self, found: Sequence[OnDevice]) -> Launch:
        return AdvanceShifts(self.y, self._directions, self.r, found).launch


class TwoPassSum(_Iteration):
    """The sum over shifts of c_i (A + sigma_i)^-1 b, in memory that they do not enlarge.

    A first pass finds the coefficients of conjugate gradients; a second one repeats its residuals
    r_j, without scalar products, and adds them up. The solution for a shift is the sum over j of
    zeta_j s_j r_j with s_j = alpha_j + beta_j s_{j+1}, in the coefficients of this shift.

    Parameters
    ----------
    operator : LinearOperator
        The positive operator A.
    target : SpinorField
        The sum is added to these vectors.
    b : SpinorField
        The right-hand sides, which may change between calls.
    most : int
        Largest number of iterations of the first pass.
    """

    def __init__(
        self, operator: LinearOperator, target: SpinorField, b: SpinorField, most: int
    ) -> None:
        super().__init__(operator, b)
        self._most = most
        self._taken: list[tuple[Norms, Norms, Norms]] = []
        self._copy = Combine(self.r, b)
        self._add = Combine(target, self.r)

    def _begin(self, shifts: int, count: int) -> None:
        self._taken = []

    def _advance(self, a: Norms, b: Norms, c: Norms) -> None:
        self._taken.append((a, b, c))

    def _on_devices(self, own: ShiftCoefficients) -> ShiftCoefficients:
        return ShiftCoefficients((own.lowest,), self.r.count)

    def _repeat(self, own: ShiftCoefficients, past: PastSteps, targets: Norms) -> None:
        for norm2, alpha, beta in zip(past.norm2, past.alpha, past.beta, strict=True):
            own.unfinished(np.sqrt(norm2), targets)
            self._advance(*own.advance(alpha, beta))

    def __call__(self, shifts: Sequence[float], factors: Sequence[float], tolerance: float) -> None:
        """Add the sum to the target.

        Parameters
        ----------
        shifts : sequence of float
            Shifts in ascending order.
        factors : sequence of float
            The factors c_i.
        tolerance : float
            Largest norm of the iterated residuals, divided by that of b, for every shift and
            vector.

        Raises
        ------
        ConvergenceError
            If there are too many iterations, or values are not numbers.
        """
        self._restart()
        norms = norms_of(self.r)
        if not np.isfinite(norms).all():
            raise ConvergenceError("The right-hand side contains a value that is not a number.")
        self.run(shifts, tolerance * norms, self._most, relaxed=0)
        weights = self._weights(np.array(factors))
        self._restart()
        self._first(0, 1)
        for weight, (a, b, _) in zip(weights, self._taken, strict=True):
            alpha, beta = a[0], b[0]  # of the lowest shift, which ends last
            self._add(1, weight)
            self._apply_shifted(float(shifts[0]))
            self._step(-alpha)
            self._first(beta, 1)

    def _restart(self) -> None:
        self._copy(0, 1)

    def _weights(self, factors: Norms) -> list[Norms]:
        """Return the factors of the residuals in the sum, for every step."""
        first = np.ones((len(factors), self.r.count))
        sums, found = np.zeros_like(first), []
        for n in reversed(range(len(self._taken))):
            a, b, _ = self._taken[n]
            zeta = self._taken[n - 1][2] if n else first
            live = len(a)
            sums[:live] = a + b * sums[:live]
            sums[live:] = 0
            found.append((factors[: len(zeta), None] * zeta * sums[: len(zeta)]).sum(axis=0))
        return found[::-1]


def _shifted(operator: LinearOperator, q: SpinorField, p: SpinorField) -> Callable[[float], None]:
    """Return a call that sets q to (A + shift) p, given the shift."""
    step = operator.recurrence(q, p, p, p)
    if step:
        return lambda shift: step(0, 1, 0, shift)
    apply = operator.apply(q, p)
    add = Combine(q, p)

    def call(shift: float) -> None:
        apply()
        add(1, shift)

    return call


class ShiftedSystem:
    """(A + sigma) y = b for any shifts, which is solved again and again in the same memory.

    Parameters
    ----------
    operator : callable
        Returns the positive operator A in a precision.
    b : SpinorField
        The right-hand sides in double precision, which may change between solves.
    number : int
        Largest number of shifts.
    request : SolverParameters
        The precision, and the largest number of iterations of all steps of a solve together.

    Attributes
    ----------
    progress : ReplicaProgress
        Iterations of the last solve, for all shifts together and for the corrections of single
        ones, and errors.
    residuals : list of ndarray of float64
        For every shift of the last solve, the true residuals in double precision: norms divided by
        those of b.
    lanczos : list of Lanczos
        The coefficients of the last search for all shifts, on every replica.
    """

    def __init__(
        self,
        operator: Callable[[str], LinearOperator],
        b: SpinorField,
        number: int,
        request: SolverParameters,
    ) -> None:
        self.b, self.request = b, request
        self.progress = ReplicaProgress.begin(b.replicas)
        self.residuals: list[Norms] = []
        self.lanczos = [Lanczos()]
        self._operator, self._number = operator, number
        self._searches: dict[tuple[str, int], ShiftedSearch] = {}
        self._y, self._rest, self._product = b.like(), b.like(), b.like()
        self._apply = operator(EXACT).apply(self._product, self._y)
        self._copy_b = Combine(self._rest, b)
        self._subtract = Advance(self._rest, self._product)
        self._add_shift = Combine(self._product, self._y)
        self._add_product = Combine(self._y, self._product)

    def solutions(self, shifts: Sequence[float], tolerance: float) -> Iterator[SpinorField]:
        """Yield the solutions for all shifts, one after the other in the same field.

        Parameters
        ----------
        shifts : sequence of float
            Shifts in ascending order.
        tolerance : float
            Largest norm of the true residual b - (A + sigma) y in double precision, divided by that
            of b, for every shift and vector.

        Raises
        ------
        ConvergenceError
            If that needs too many iterations, or is impossible in double precision.
        """
        for y in self.solutions_on(np.ones(self.b.replicas, np.bool_), shifts, tolerance):
            self.progress.check()
            yield y

    def solutions_on(
        self, wanted: Mask, shifts: Sequence[float], tolerance: float
    ) -> Iterator[SpinorField]:
        """Yield the solutions on the replicas that are wanted, and take note of those that fail.

        Parameters
        ----------
        wanted : ndarray of bool, shape (replicas,)
            The replicas. Solutions on others are arbitrary, as they are where there is none; see
            `progress`.
        shifts, tolerance
            See `solutions`.
        """
        progress = self.progress = ReplicaProgress.begin(self.b.replicas)
        self.residuals = []
        norms = norms_of(self.b)
        text = "The right-hand side contains a value that is not a number."
        progress.fail(wanted & self._any(~np.isfinite(norms)), text)
        inner = EXACT if tolerance < LEAST_LOWER else self._inner
        search = self._search(inner, self._number)
        search.r.copy(self.b)
        reduction = tolerance if inner == EXACT else TIGHTER * tolerance
        targets = self._targets(progress.left(wanted), reduction * norms)
        search.search(shifts, targets, self.request.iterations, progress)
        self.lanczos = search.lanczos
        for i, shift in enumerate(shifts):
            self._y.copy(search.y, first=i * self._each)
            self.residuals.append(self._refine(wanted, shift, norms, tolerance))
            yield self._y

    @property
    def iterations(self) -> int:
        """Largest number of iterations of a replica in the last solve."""
        return int(self.progress.iterations.max())

    @property
    def _inner(self) -> str:
        return EXACT if self.request.inner == EXACT else LOWER

    @property
    def _each(self) -> int:
        """Number of vectors on every replica."""
        return self.b.count // self.b.replicas

    def _any(self, vectors: Mask) -> Mask:
        """Return the replicas on which something holds for a vector."""
        return np.asarray(vectors.reshape(self.b.replicas, -1).any(axis=1))

    def _targets(self, some: Mask, norms: Norms) -> Norms:
        """Return targets for the vectors of some replicas; those of others are left out."""
        return np.where(some.repeat(self._each), norms, np.inf)

    def _refine(self, wanted: Mask, shift: float, norms: Norms, tolerance: float) -> Norms:
        """Add corrections to a solution until its true residual is small enough, and return it."""
        progress, bounds = self.progress, tolerance * norms
        exact, found = np.full(self.b.replicas, self._inner == EXACT), self._residual_norms(shift)
        for _ in range(2 * ATTEMPTS):
            due = progress.left(wanted & self._any(~(found <= bounds)))
            if not due.any():
                return np.asarray(found / _positive(norms))
            for inner, some in ((LOWER, due & ~exact), (EXACT, due & exact)):
                if some.any():
                    targets = np.maximum(TIGHTER * bounds, self._reach(inner) * found)
                    self._correct(some, inner, shift, targets)
            before, found = found, self._residual_norms(shift)
            exact |= due & self._any((before > bounds) & ~(found < SMALLER * before))
        smallest = (found / _positive(norms)).reshape(self.b.replicas, -1).max(axis=1)
        for n in np.flatnonzero(progress.left(due)).tolist():
            progress.errors[n] = ConvergenceError(
                f"The residual for the shift {shift:.3g} does not become smaller than "
                f"{smallest[n]:.2g} of the source, and the tolerance is {tolerance:g}: choose a "
                "larger tolerance."
            )
        return np.asarray(found / _positive(norms))

    def _correct(self, some: Mask, inner: str, shift: float, targets: Norms) -> None:
        """Add corrections on some replicas to the solution for a shift."""
        search = self._search(inner, 1)
        search.r.copy(self._rest)
        most, own = self.request.iterations, self._targets(some, targets)
        search.search((shift,), own, most, self.progress)
        self._product.copy(search.y)
        # Corrections of others are 0, but to add them would change the sign of zeros.
        self._add_product(1, some.repeat(self._each).astype(float))

    def _reach(self, inner: str) -> float:
        return 0.0 if inner == EXACT else REDUCTION

    def _residual_norms(self, shift: float) -> Norms:
        """Compute the true residuals, and return their norms."""
        self._apply()
        self._add_shift(1, shift)
        self._copy_b(0, 1)
        self._subtract(-1)
        return np.asarray(np.sqrt(self._subtract.products().norm2))

    def _search(self, inner: str, number: int) -> ShiftedSearch:
        """Return a search in a precision for so many shifts, with its memory."""
        if (inner, number) not in self._searches:
            like = self.b if inner == EXACT else self.b.like(inner)
            self._searches[inner, number] = ShiftedSearch(self._operator(inner), like, number)
        return self._searches[inner, number]


def _repeated(like: SpinorField, number: int) -> SpinorField:
    """Return a field with the vectors of another one for each of several shifts."""
    parity = like.parities[0] if len(like.parities) == 1 else None
    count = like.count // like.replicas * number
    return SpinorField.empty(like.field, like.storage.name, count, parity, like.fifth)


def _positive(numbers: Any) -> NDArray[np.float64]:
    """Return numbers, and 1 instead of those that are not positive."""
    return np.where(numbers > 0, numbers, 1.0)
