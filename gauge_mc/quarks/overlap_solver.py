"""Solutions of D(m) x = b for overlap quarks of several masses.

x = D(m)^dagger y with (A + s) y = b / (4 rho^2 - m^2), s = m^2 / (4 rho^2 - m^2) and the operator A
of a chirality (`gauge_mc.quarks.overlap`), so that a chiral part of b needs one Krylov space for
all masses and one sign function an iteration, whose errors may grow as residuals fall (N. Cundy et
al., Comput. Phys. Commun. 165 (2005) 221, hep-lat/0405003). The true residual b - D(m) x decides:
what is left of it is the right-hand side of a correction, because A is D^dagger D only within the
error of the sign function.

Low modes v of A with eigenvalues a may be known: their part of y is the sum of v <v, b> / (a + s),
and the Krylov space of what is left has no small eigenvalues. Errors of the modes are corrected
with the rest of the residual.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import ConvergenceError
from gauge_mc.quarks.algebra import Combine
from gauge_mc.quarks.basis import Projection
from gauge_mc.quarks.chirality import CombineChiralities
from gauge_mc.quarks.linear import EVEN, ODD, LinearOperator
from gauge_mc.quarks.low_modes import LowModes
from gauge_mc.quarks.multishift import ShiftedSearch
from gauge_mc.quarks.preconditioned import norms_of
from gauge_mc.quarks.solvers import ATTEMPTS, LEAST_TOLERANCE, SMALLER, SolverParameters
from gauge_mc.quarks.spinors import SpinorField

BOTH = (EVEN, ODD)

LOOSER = 0.1
"""Largest error of A that is allowed, as a part of the smallest shift, below which A plus the shift
has no eigenvalue: with larger errors it may not be positive, and the iteration not converge."""

TIGHTER = 0.5
"""Factor from the tolerance of D(m) x = b to that of the systems with A."""


class OverlapOperator(Protocol):
    """The overlap operator, as solutions need it."""

    @property
    def rho(self) -> float:
        """The number rho."""

    @property
    def massless(self) -> LinearOperator:
        """D(0) / rho."""

    @property
    def squares(self) -> Mapping[int, LinearOperator]:
        """A for both chiralities, 1 and -1."""


@dataclass(frozen=True)
class OverlapSolution:
    """Solutions of D(m) x = b for several masses."""

    solutions: tuple[SpinorField, ...]
    """The vectors x for every mass, in the order of the masses."""
    residuals: NDArray[np.float64]
    """The true residuals, divided by the norms of b, of shape (masses, vectors)."""
    iterations: int
    """Number of iterations for all vectors together."""
    updates: int
    """Number of corrections by the true residual for all vectors and masses together."""
    iterated: NDArray[np.float64]
    """The true residuals before corrections, of the shape of `residuals`."""


class OverlapSolver:
    """Solves D(m) x = b for one vector after the other, in the same memory.

    Parameters
    ----------
    operator : OverlapOperator
        The overlap operator.
    like : SpinorField
        One vector in double precision.
    masses : sequence of float
        The masses, from 0 to below 2 rho; they may be equal.
    request : SolverParameters
        The largest true residual, and the largest number of iterations for a chiral part of b.
    relaxed : bool
        Whether the sign function may have larger errors as residuals fall.
    low : mapping of int to LowModes, optional
        Low modes of A by chirality, whose parts of solutions are not iterated for.
    """

    def __init__(
        self,
        operator: OverlapOperator,
        like: SpinorField,
        masses: Sequence[float],
        request: SolverParameters,
        relaxed: bool = True,
        low: Mapping[int, LowModes] | None = None,
    ) -> None:
        self.masses, self.request, self._relaxed = tuple(masses), request, relaxed
        self.iterations = self.updates = 0
        self._rho, self._different = operator.rho, sorted(set(masses))
        self._b, self._part, self._x, self._rest = (like.like() for _ in range(4))
        self._y = {mass: like.like() for mass in self._different}
        self._searches = {
            c: ShiftedSearch(square, like, len(self._y)) for c, square in operator.squares.items()
        }
        self._more = like.like()
        self._low = {
            c: (modes.values, Projection(modes.vectors, self._searches[c].r))
            for c, modes in (low or {}).items()
        }
        self._add_low = {
            c: Projection(modes.vectors, self._more) for c, modes in (low or {}).items()
        }
        self._adjoint = {
            m: operator.massless.apply(self._more, y, dagger=True) for m, y in self._y.items()
        }
        self._product = operator.massless.apply(self._rest, self._x)
        self._split = CombineChiralities(self._part, self._rest)

    def solve(self, b: SpinorField, n: int) -> dict[float, SpinorField]:
        """Return the solutions for vector number n, by mass, in memory that is used again.

        Raises
        ------
        ConvergenceError
            If there are too many iterations, or the tolerance cannot be reached.
        """
        self._b.copy(b, n)
        self.norm = float(norms_of(self._b)[0])
        if not np.isfinite(self.norm):
            raise ConvergenceError("The source contains a value that is not a number.")
        self._rest.copy(self._b)
        self._begin(TIGHTER * self.request.tolerance)
        self.first, self.residuals = {}, {}
        for mass, y in self._y.items():
            self._times_adjoint(mass, y)  # y becomes x
            self._x.copy(y)
            self.first[mass] = self.residuals[mass] = self._residual(mass)
            self._refine(mass, y)
        return self._y

    def _begin(self, tolerance: float) -> None:
        """Set y of all masses to the first solutions of D^dagger D y = b."""
        try:
            self._add(self._different, tolerance, LOOSER if self._relaxed else 0)
        except ConvergenceError:
            if not self._relaxed:
                raise
            self._add(self._different, tolerance, 0)

    def _add(self, masses: Sequence[float], tolerance: float, looser: float) -> None:
        """Set y of some masses to the solutions of D^dagger D y = rest.

        Errors of A may be as large as a part of the smallest shift; with 0 they are as usual.
        """
        for mass in masses:
            _set(self._y[mass], self._y[mass], 0, 0)
        scales = [4 * self._rho**2 - m**2 for m in masses]
        shifts = [m**2 / scale for m, scale in zip(masses, scales, strict=True)]
        for c, search in self._searches.items():
            self._split(0, 0, 0.5, c / 2)
            norms = norms_of(self._part)
            if norms[0] == 0:
                continue
            search.r.copy(self._part)
            inside = self._low[c][1].remove() if c in self._low else None
            try:
                search.run(shifts, tolerance * norms, self.request.iterations, looser * shifts[0])
            except ConvergenceError as error:
                raise ConvergenceError(
                    f"The solutions for overlap quarks were not found within "
                    f"{self.request.iterations} iterations: allow more iterations, a larger "
                    "tolerance, or choose heavier quarks."
                ) from error
            for i, (mass, scale) in enumerate(zip(masses, scales, strict=True)):
                self._more.copy(search.y, first=i)
                if inside is not None:
                    self._add_low[c].add(inside / (self._low[c][0] + shifts[i]))
                _set(self._y[mass], self._more, 1, 1 / scale)
            self.iterations += search.iterations

    def _times_adjoint(self, mass: float, y: SpinorField) -> None:
        """Replace y by D(m)^dagger y."""
        self._adjoint[mass]()
        _set(y, self._more, mass, self._rho - mass / 2)

    def _residual(self, mass: float) -> float:
        """Set the rest to b - D(m) x, and return its norm, divided by that of b."""
        self._product()
        _set(self._rest, self._x, -(self._rho - mass / 2), -mass)
        _set(self._rest, self._b, 1, 1)
        return float(norms_of(self._rest)[0]) / (self.norm or 1.0)

    def _refine(self, mass: float, y: SpinorField) -> None:
        """Correct x until its true residual is small enough."""
        wanted = self.request.tolerance
        for _ in range(ATTEMPTS):
            before = self.residuals[mass]
            if before <= wanted:
                break
            self.updates += 1
            self._add((mass,), max(LEAST_TOLERANCE, TIGHTER * wanted / before), looser=0)
            self._times_adjoint(mass, y)
            _set(self._x, y, 1, 1)
            self.residuals[mass] = self._residual(mass)
            if self.residuals[mass] > SMALLER * before:
                break
        if self.residuals[mass] > wanted:
            raise ConvergenceError(
                f"The residual for the mass {mass:g} does not become smaller than "
                f"{self.residuals[mass]:.2g} of the source, and the tolerance is {wanted:g}: "
                "choose a larger tolerance, or a heavier quark."
            )
        y.copy(self._x)


def solve_all(
    operator: OverlapOperator,
    source: SpinorField,
    masses: Sequence[float],
    request: SolverParameters,
    relaxed: bool = True,
    low: Mapping[int, LowModes] | None = None,
) -> OverlapSolution:
    """Return the solutions of D(m) x = b for several masses; see `OverlapSolver`.

    Parameters
    ----------
    operator : OverlapOperator
        The overlap operator.
    source : SpinorField
        The vectors b on all sites, in double precision.
    masses, request, relaxed, low
        See `OverlapSolver`.
    """
    one = SpinorField.empty(source.field, source.storage.name)
    solver = OverlapSolver(operator, one, masses, request, relaxed, low)
    solutions = tuple(source.like() for _ in masses)
    shape = len(solutions), source.count
    residuals, first = np.zeros(shape), np.zeros(shape)
    for n in range(source.count):
        found = solver.solve(source, n)
        for number, (mass, to) in enumerate(zip(masses, solutions, strict=True)):
            to.copy(found[mass], 0, n)
            residuals[number, n], first[number, n] = solver.residuals[mass], solver.first[mass]
    return OverlapSolution(solutions, residuals, solver.iterations, solver.updates, first)


def _set(target: SpinorField, other: SpinorField, a: float, b: float) -> None:
    """Set the target to a times itself and b times other vectors."""
    Combine(target, other)(a, b)
