"""Solutions of (M M^dagger + sigma) y = b for several shifts sigma at once.

The Krylov space of M M^dagger + sigma does not depend on sigma, and the residuals of all shifts are
parallel. So conjugate gradients for the smallest shift give the solutions for all others with no
further applications of M (B. Jegerlehner, hep-lat/9612014; A. Frommer et al., Int. J. Mod. Phys. C6
(1995) 627).

M is gamma_5-Hermitian without a twisted mass, with or without the clover term. Hence

    (M + 2 i kappa mu gamma_5) (M + 2 i kappa mu gamma_5)^dagger = M M^dagger + (2 kappa mu)^2

on all sites, so that y gives the solution x = (M + 2 i kappa mu gamma_5)^dagger y of
(M + 2 i kappa mu gamma_5) x = b for every mu, with the same residual. The even-odd preconditioned
operators of several mu do not differ by a shift; so this is the full operator, which needs about
twice as many iterations for a single mu as the preconditioned one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.algebra import Advance, Combine, Multiply
from gauge_mc.quarks.operators import DiracOperator, Wilson
from gauge_mc.quarks.preconditioned import norms_of
from gauge_mc.quarks.solvers import (
    ATTEMPTS,
    TIGHTER,
    Norms,
    SolverParameters,
    not_reached,
    too_many,
)
from gauge_mc.quarks.spinors import SpinorField, in_units
from gauge_mc.quarks.transport import ANTIPERIODIC

PRECISION = "double"
"""Precision of all vectors."""


class ShiftedSystem:
    """(M M^dagger + sigma) y = b for one field b and any sigma, on all sites.

    Parameters
    ----------
    operator : DiracOperator
        The operator M.
    b : SpinorField
        The right-hand sides, in double precision.
    request : SolverParameters
        The tolerance, and the largest number of iterations of all steps together; the iteration is
        in double precision.
    """

    def __init__(self, operator: DiracOperator, b: SpinorField, request: SolverParameters) -> None:
        self.operator, self.b, self.request = operator, b, request
        self.iterations = 0
        self._half, self._full = b.like(), b.like()
        self._prepared = operator.prepared(PRECISION)

    def solve(self, shifts: Sequence[float]) -> list[SpinorField]:
        """Return the solutions for all shifts, whose true residuals are at most the tolerance.

        Raises
        ------
        GaugeError
            If that needs too many iterations, or is impossible in double precision.
        """
        targets = self.request.tolerance * norms_of(self.b)
        solutions = self._search(self.b, shifts, targets)
        for y, shift in zip(solutions, shifts, strict=True):
            self._refine(y, shift, targets)
        return solutions

    def _refine(self, y: SpinorField, shift: float, targets: Norms) -> None:
        """Add corrections to a solution until its true residual is small enough."""
        rest = self.b.like()
        for attempt in range(ATTEMPTS + 1):
            self._multiply(self._full, y, shift)
            norms2 = np.zeros(y.count)
            for parity in y.parities:
                Combine(rest, self.b, parity=parity)(0, 1)
                step = Advance(rest, self._full, parity=parity)
                step(-1)
                norms2 += step.products().norm2
            norms = np.sqrt(norms2)
            if (norms <= targets).all():
                return
            if attempt < ATTEMPTS:
                (more,) = self._search(rest, (shift,), targets * TIGHTER)
                for parity in y.parities:
                    Combine(y, more, parity=parity)(1, 1)
        relative = norms / np.where(targets > 0, targets, 1) * self.request.tolerance
        raise GaugeError(not_reached(self.request, relative))

    def _multiply(self, target: SpinorField, source: SpinorField, shift: float) -> None:
        """Compute (M M^dagger + shift) source."""
        self._product(target, source)()
        for parity in source.parities:
            Combine(target, source, parity=parity)(1, shift)

    def _product(self, target: SpinorField, source: SpinorField) -> Callable[[], None]:
        """Return a call that computes M M^dagger source."""
        first = self._prepared.apply(self._half, source, dagger=True)
        second = self._prepared.apply(target, self._half)

        def call() -> None:
            first()
            second()

        return call

    def _search(self, b: SpinorField, shifts: Sequence[float], targets: Norms) -> list[SpinorField]:
        """Return solutions whose iterated residuals are at most the targets."""
        lowest = min(shifts)
        r, p, q = b.like(), b.like(), self._full
        both = b.parities
        apply = self._product(q, p)
        begin = [Combine(one, b, parity=parity) for one in (r, p) for parity in both]
        add_shift = [Combine(q, p, parity=parity) for parity in both]
        p_q = [Multiply(q, p, parity=parity) for parity in both]
        step = [Advance(r, q, parity=parity) for parity in both]
        turn = [Combine(p, r, parity=parity) for parity in both]
        for copy in begin:
            copy(0, 1)
        norm2 = norms_of(b) ** 2
        all_shifts = [_Shift(b, r, shift - lowest) for shift in shifts]
        before: tuple[Norms, Norms] = (np.ones(b.count), np.zeros(b.count))
        while any((one.zeta * np.sqrt(norm2) > targets).any() for one in all_shifts):
            self.iterations += 1
            if self.iterations > self.request.iterations:
                raise GaugeError(too_many(self.request, np.sqrt(norm2) / _positive(norms_of(b))))
            apply()
            for add in add_shift:
                add(1, lowest)
            products = sum(part().mixed.real for part in p_q)
            live = norm2 > 0
            alpha = np.where(live, norm2 / _positive(products), 0)
            for one in all_shifts:
                one.advance(alpha, before)
            for advance in step:
                advance(-alpha)
            new = np.asarray(sum(part.products().norm2 for part in step))
            if not np.isfinite(new).all():
                raise GaugeError("The iteration broke down; choose a smaller kappa.")
            beta = np.where(live, new / _positive(norm2), 0)
            for one in all_shifts:
                one.turn(beta)
            for combine in turn:
                combine(beta, 1)
            norm2, before = new, (alpha, beta)
        return [one.y for one in all_shifts]


class _Shift:
    """The solution for a shift above the lowest one, its direction, and its factors.

    Parameters
    ----------
    b, r : SpinorField
        The right-hand side, and the residual for the lowest shift.
    shift : float
        Difference from the lowest shift.
    """

    def __init__(self, b: SpinorField, r: SpinorField, shift: float) -> None:
        self.y, self._p, self._shift = b.like(), b.like(), shift
        for parity in b.parities:
            Combine(self._p, b, parity=parity)(0, 1)
        self._add = [Combine(self.y, self._p, parity=parity) for parity in b.parities]
        self._turn = [Combine(self._p, r, parity=parity) for parity in b.parities]
        self.zeta = np.ones(b.count)
        self._older, self._ratio = np.ones(b.count), np.ones(b.count)

    def advance(self, alpha: Norms, before: tuple[Norms, Norms]) -> None:
        """Add the direction to the solution, given alpha, and alpha and beta of the step before."""
        a, b = before
        down = alpha * b * (self._older - self.zeta) + self._older * a * (1 + alpha * self._shift)
        zeta = np.where(down == 0, 0, self.zeta * self._older * a / _nonzero(down))
        self._ratio = np.where(self.zeta == 0, 0, zeta / _nonzero(self.zeta))
        for one in self._add:
            one(1, alpha * self._ratio)
        self.zeta, self._older = zeta, self.zeta

    def turn(self, beta: Norms) -> None:
        """Choose the next search direction."""
        for one in self._turn:
            one(beta * self._ratio**2, self.zeta)


def _positive(numbers: Any) -> Norms:
    """Return numbers, and 1 instead of those that are not positive."""
    return np.where(numbers > 0, numbers, 1.0)


def _nonzero(numbers: Norms) -> Norms:
    return np.where(numbers == 0, 1.0, numbers)


def solve_shifted(
    operator: DiracOperator,
    source: NDArray[np.complexfloating[Any, Any]],
    shifts: Sequence[float],
    tolerance: float = defaults.TOLERANCE,
    iterations: int = SolverParameters.iterations,
) -> NDArray[np.complex128]:
    """Return the solutions y of (M M^dagger + sigma) y = source for several shifts sigma.

    Parameters
    ----------
    operator : DiracOperator
        The operator M.
    source : ndarray, shape (T, Z, Y, X, 4, N) or (count, T, Z, Y, X, 4, N)
        One source, or several.
    shifts : sequence of float
        Shifts, which are not negative.
    tolerance : float
        Largest norm of a residual, divided by that of the source.
    iterations : int
        Largest number of iterations.

    Returns
    -------
    ndarray, complex128
        The shape is that of the source, preceded by the number of shifts. The true residual for
        every shift and vector is at most the tolerance.

    Raises
    ------
    UsageError
        If a value is invalid.
    GaugeError
        If the tolerance cannot be reached, or the array has the wrong shape.
    """
    _check(shifts)
    b, unit = in_units(operator.field, source)
    system = ShiftedSystem(operator, b, SolverParameters(tolerance, iterations))
    found = [y.to_numpy() * unit for y in system.solve(shifts)]
    return np.reshape(found, (len(found), *np.shape(source)))


def solve_twisted(
    field: Field,
    kappa: float,
    mus: Sequence[float],
    source: NDArray[np.complexfloating[Any, Any]],
    csw: float = 0.0,
    boundary: complex | Sequence[complex] = ANTIPERIODIC,
    tolerance: float = defaults.TOLERANCE,
    iterations: int = SolverParameters.iterations,
) -> NDArray[np.complex128]:
    """Return the solutions x of (M + 2 i kappa mu gamma_5) x = source for several mu.

    Parameters
    ----------
    field, kappa, csw, boundary
        See `Wilson`.
    mus : sequence of float
        Twisted masses.
    source, tolerance, iterations
        See `solve_shifted`.

    Returns
    -------
    ndarray, complex128
        The shape is that of the source, preceded by the number of masses.

    Raises
    ------
    UsageError, GaugeError
        See `solve_shifted`.
    """
    shifts = [(2 * kappa * mu) ** 2 for mu in mus]
    _check(shifts)
    b, unit = in_units(field, source)
    operator = Wilson(field, kappa, csw, 0.0, boundary)
    solutions = ShiftedSystem(operator, b, SolverParameters(tolerance, iterations)).solve(shifts)
    found = []
    for mu, y in zip(mus, solutions, strict=True):
        twisted = Wilson(field, kappa, csw, mu, boundary)
        twisted.prepared(PRECISION).apply(b, y, dagger=True)()  # b is not needed any more
        found.append(b.to_numpy() * unit)
    return np.reshape(found, (len(found), *np.shape(source)))


def _check(shifts: Sequence[float]) -> None:
    if not len(shifts) or not all(0 <= one < np.inf for one in shifts):
        raise UsageError(f"The shifts are {list(shifts)}; give numbers that are not negative.")
