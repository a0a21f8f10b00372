"""Solutions of (M M^dagger + sigma) y = b for several shifts sigma at once.

They are those of `gauge_mc.quarks.multishift`, on all sites. M is gamma_5-Hermitian without a
twisted mass, with or without the clover term. Hence

    (M + 2 i kappa mu gamma_5) (M + 2 i kappa mu gamma_5)^dagger = M M^dagger + (2 kappa mu)^2

on all sites, so that y gives the solution x = (M + 2 i kappa mu gamma_5)^dagger y of
(M + 2 i kappa mu gamma_5) x = b for every mu, with the same residual. The even-odd preconditioned
operators of several mu do not differ by a shift; so this is the full operator, which needs about
twice as many iterations for a single mu as the preconditioned one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc import defaults
from gauge_mc.errors import UsageError
from gauge_mc.fields.field import Field
from gauge_mc.quarks.multishift import ShiftedSystem
from gauge_mc.quarks.normal import NormalOperator
from gauge_mc.quarks.operators import DiracOperator, Wilson
from gauge_mc.quarks.solvers import SolverParameters
from gauge_mc.quarks.spinors import SpinorField, in_units
from gauge_mc.quarks.transport import ANTIPERIODIC


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
    b, unit = in_units(operator.field, source)
    found = {}
    for n, y in _solutions(operator, b, shifts, SolverParameters(tolerance, iterations)):
        found[n] = y.to_numpy() * unit
    return np.reshape([found[n] for n in range(len(shifts))], (len(shifts), *np.shape(source)))


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
    b, unit = in_units(field, source)
    operator = Wilson(field, kappa, csw, 0.0, boundary)
    found, x = {}, b.like()
    for n, y in _solutions(operator, b, shifts, SolverParameters(tolerance, iterations)):
        twisted = Wilson(field, kappa, csw, mus[n], boundary)
        twisted.prepared(b.storage.name).apply(x, y, dagger=True)()
        found[n] = x.to_numpy() * unit
    return np.reshape([found[n] for n in range(len(mus))], (len(mus), *np.shape(source)))


def _solutions(
    operator: DiracOperator, b: SpinorField, shifts: Sequence[float], request: SolverParameters
) -> Iterator[tuple[int, SpinorField]]:
    """Yield the number of a shift and its solution, which the next one overwrites."""
    if not len(shifts) or not all(0 <= one < np.inf for one in shifts):
        raise UsageError(f"The shifts are {list(shifts)}; give numbers that are not negative.")
    different = sorted(set(shifts))

    def normal(precision: str) -> NormalOperator:
        return NormalOperator(operator.prepared(precision))

    system = ShiftedSystem(normal, b, len(different), request)
    solutions = system.solutions(different, request.tolerance)
    for shift, y in zip(different, solutions, strict=True):
        yield from ((n, y) for n, one in enumerate(shifts) if one == shift)
