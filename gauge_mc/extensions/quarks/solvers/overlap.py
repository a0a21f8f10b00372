"""Solutions of D(m) x = b for overlap quarks of several masses.

x = D(m)^dagger y with (A + s) y = b / (4 rho^2 - m^2), s = m^2 / (4 rho^2 - m^2) and the operator A
of a chirality (`gauge_mc.extensions.quarks.overlap`), so that a chiral part of b needs one
Krylov space for all masses and one sign function an iteration, whose errors may grow as residuals
fall (N. Cundy et al., Comput. Phys. Commun. 165 (2005) 221, hep-lat/0405003). The true residual b -
D(m) x decides: what is left of it is the right-hand side of a correction, because A is D^dagger D
only within the error of the sign function.

Low modes v of A with eigenvalues a may be known: their part of y is the sum of v <v, b> / (a + s),
and the Krylov space of what is left has no small eigenvalues. Errors of the modes are corrected
with the rest of the residual.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from gauge_mc.arrays import Array
from gauge_mc.errors import ConvergenceError
from gauge_mc.extensions.quarks.hopping import EVEN, ODD, LinearOperator, norms_of
from gauge_mc.extensions.quarks.modes import LowModes
from gauge_mc.extensions.quarks.modes.chirality import CombineChiralities
from gauge_mc.extensions.quarks.operators import QUARK_MASS, QuarkOperator
from gauge_mc.extensions.quarks.solvers import ATTEMPTS, LEAST_TOLERANCE, SolverParameters
from gauge_mc.extensions.quarks.solvers.iterations import SMALLER, Norms
from gauge_mc.extensions.quarks.solvers.multishift import ShiftedSearch
from gauge_mc.extensions.quarks.spectroscopy.contractions import Propagator
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import PairAlgebra
from gauge_mc.extensions.quarks.vectors.basis import Projection, VectorView
from gauge_mc.fields.field import Field
from gauge_mc.files.columns import TableColumns
from gauge_mc.files.table import Value


@dataclass(frozen=True)
class FamilySolution:
    """Propagators of quarks with several masses from one source.

    Attributes
    ----------
    propagators : tuple of Propagator
        The propagators, in the order of the masses.
    iterations, updates : int
        Numbers of iterations, and of corrections by the true residual, for all columns together.
    iterated, residuals : ndarray of float64, shape (masses,)
        The largest iterated and true residual of a column, divided by the norm of the source.
    """

    propagators: tuple[Propagator, ...]
    iterations: int
    updates: int
    iterated: Array
    residuals: Array


class MassFamily(QuarkOperator):
    """A Dirac operator that is made for one or several masses, and solves for all of them together.

    Attributes
    ----------
    masses : tuple of float
        The masses, in the order in which they were given.
    """

    quark = QUARK_MASS
    solver: ClassVar[str]
    """Name of the solver, which cannot be chosen."""
    together: ClassVar[int]
    """Default of the largest number of columns that are solved for at once."""
    columns: ClassVar[TableColumns]
    """Columns that describe the operator on a field of links, without the update."""

    field: Field
    masses: tuple[float, ...]

    @abstractmethod
    def record(self) -> tuple[Value, ...]:
        """Return the values of `columns`."""

    @abstractmethod
    def propagators(
        self,
        source: SpinorField,
        request: SolverParameters,
        place: tuple[int, int, int, int] = (0, 0, 0, 0),
        together: int | None = None,
        progress: Callable[[str], None] = lambda line: None,
    ) -> FamilySolution:
        """Return the propagators of all masses.

        Parameters
        ----------
        source : SpinorField
            The 4 N vectors of a source on all sites, in double precision.
        request : SolverParameters
            The largest true residual of a column, and the largest number of iterations.
        place : tuple of int
            x, y, z and t of the source.
        together : int, optional
            Largest number of columns that are solved for at once; by default that of the class.
        progress : callable
            Called with a line whenever some columns have been solved for.

        Raises
        ------
        ConvergenceError
            If the residual cannot be reached.
        """


BOTH = (EVEN, ODD)

LOOSER = 0.1
"""Largest error of A that is allowed, as a part of the smallest shift, below which A plus the shift
has no eigenvalue: with larger errors it may not be positive, and the iteration not converge."""

TIGHTER = 0.5
"""Factor from the tolerance of D(m) x = b to that of the systems with A."""

TOGETHER = 6
"""Default of the largest number of vectors that are solved for at once: half of the spins and
colours of a point, which have one chirality."""


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
    residuals: Array
    """The true residuals, divided by the norms of b, of shape (masses, vectors)."""
    iterations: int
    """Number of iterations, which vectors that are solved for at once share."""
    updates: int
    """Number of corrections by the true residual for all masses together, shared likewise."""
    iterated: Array
    """The true residuals before corrections, of the shape of `residuals`."""


class OverlapSolver:
    """Solves D(m) x = b for some vectors b at once, again and again in the same memory.

    Parameters
    ----------
    operator : OverlapOperator
        The overlap operator.
    like : SpinorField
        As many vectors in double precision as are solved for at once.
    masses : sequence of float
        The masses, from 0 to below 2 rho; they may be equal.
    request : SolverParameters
        The largest true residual, and the largest number of iterations for a chiral part of b.
    relaxed : bool
        Whether the sign function may have larger errors as residuals fall.
    low : mapping of int to LowModes, optional
        Low modes of A by chirality, whose parts of solutions are not iterated for.

    Attributes
    ----------
    residuals, first : dict of float to ndarray of float64, shape (count,)
        The true residuals of the last solutions by mass, divided by the norms of b, and those
        before corrections.
    iterations, updates : int
        Numbers of iterations, which all vectors share, and of corrections so far.
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
        self.residuals: dict[float, Norms] = {}
        self.first: dict[float, Norms] = {}
        self.b, self._combine = like.like(), PairAlgebra().combine
        self._rho, self._different = operator.rho, sorted(set(masses))
        self._part, self._x, self._rest = (like.like() for _ in range(3))
        self._y = {mass: like.like() for mass in self._different}
        count, low, product = len(self._y), low or {}, operator.massless.apply
        self._searches = {c: ShiftedSearch(a, like, count) for c, a in operator.squares.items()}
        self._more = like.like()
        self._low = {
            c: (modes.values, Projection(modes.vectors, self._searches[c].r))
            for c, modes in low.items()
        }
        self._add_low = {c: Projection(modes.vectors, self._more) for c, modes in low.items()}
        self._adjoint = {m: product(self._more, y, dagger=True) for m, y in self._y.items()}
        self._product = product(self._rest, self._x)
        self._split = CombineChiralities(self._part, self._rest)

    def solve(self) -> dict[float, SpinorField]:
        """Return the solutions for the vectors `b`, by mass, in memory that is used again."""
        norms = norms_of(self.b)
        if not np.isfinite(norms).all():
            raise ConvergenceError("The source contains a value that is not a number.")
        self._norms = np.where(norms > 0, norms, 1.0)
        self._rest.copy(self.b)
        looser = LOOSER if self._relaxed else 0.0
        self._improve(self._different, TIGHTER * self.request.tolerance, looser)
        for mass, y in self._y.items():
            self._times_adjoint(mass, y)  # y becomes x
            self._x.copy(y)
            self.first[mass] = self.residuals[mass] = self._residuals(mass)
            self._refine(mass, y, looser)
        return self._y

    def _improve(self, masses: Sequence[float], tolerance: float, looser: float) -> None:
        """Carry out `_add`, and again with the smallest errors of A if larger ones make it fail."""
        try:
            self._add(masses, tolerance, looser)
        except ConvergenceError:
            if not looser:
                raise
            self._add(masses, tolerance, 0)

    def _add(self, masses: Sequence[float], tolerance: float, looser: float) -> None:
        """Set y of some masses to the solutions of D^dagger D y = rest.

        Errors of A may be as large as a part of the smallest shift; with 0 they are as usual.
        """
        for mass in masses:
            self._combine(self._y[mass], 0, self._y[mass], 0)
        scales = [4 * self._rho**2 - m**2 for m in masses]
        shifts = [m**2 / scale for m, scale in zip(masses, scales, strict=True)]
        for c, search in self._searches.items():
            self._split(0, 0, 0.5, c / 2)
            norms = norms_of(self._part)
            if not norms.any():
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
                self._more.copy(search.y, first=i * search.r.count)
                if inside is not None:
                    self._add_low[c].add(inside / (self._low[c][0] + shifts[i]))
                self._combine(self._y[mass], 1, self._more, 1 / scale)
            self.iterations += search.iterations

    def _times_adjoint(self, mass: float, y: SpinorField) -> None:
        """Replace y by D(m)^dagger y."""
        self._adjoint[mass]()
        self._combine(y, mass, self._more, self._rho - mass / 2)

    def _residuals(self, mass: float) -> Norms:
        """Set the rest to b - D(m) x, and return its norms, divided by those of b."""
        self._product()
        self._combine(self._rest, -(self._rho - mass / 2), self._x, -mass)
        self._combine(self._rest, 1, self.b, 1)
        return norms_of(self._rest) / self._norms

    def _refine(self, mass: float, y: SpinorField, looser: float) -> None:
        """Correct x until its true residuals are small enough.

        Errors of A are the smallest ones once a correction with larger ones has not sufficed.
        """
        tolerance = self.request.tolerance
        for _ in range(ATTEMPTS):
            before = self.residuals[mass]
            unconverged = before > tolerance
            if not unconverged.any():
                break
            self.updates += 1
            # Others stay as they are.
            self._combine(self._rest, unconverged.astype(float), self._rest, 0)
            reduction = max(LEAST_TOLERANCE, TIGHTER * tolerance / float(before.max()))
            self._improve((mass,), reduction, looser)
            self._times_adjoint(mass, y)
            self._combine(self._x, 1, y, 1)
            self.residuals[mass] = self._residuals(mass)
            if (self.residuals[mass] > SMALLER * before)[unconverged].any():
                if not looser:
                    break
                looser = 0.0
        largest = float(self.residuals[mass].max())
        if largest > tolerance:
            raise ConvergenceError(
                f"The residual for the mass {mass:g} does not become smaller than "
                f"{largest:.2g} of the source, and the tolerance is {tolerance:g}: "
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
    most: int = TOGETHER,
    progress: Callable[[str], None] = lambda line: None,
) -> OverlapSolution:
    """Return the solutions of D(m) x = b for several masses; see `OverlapSolver`."""
    solvers: dict[int, OverlapSolver] = {}
    solutions = tuple(source.like() for _ in masses)
    shape = len(solutions), source.count
    residuals, first, solved = np.zeros(shape), np.zeros(shape), 0
    for columns in _of_equal_parts(source, most):
        began, count = time.perf_counter(), len(columns)
        if count not in solvers:
            like = SpinorField.empty(source.field, source.storage.name, count)
            solvers[count] = OverlapSolver(operator, like, masses, request, relaxed, low)
        solver = solvers[count]
        before = solver.iterations, solver.updates
        for n, column in enumerate(columns):
            solver.b.copy(VectorView.of(source, column), to=n)
        vectors = solver.solve()
        for number, (mass, to) in enumerate(zip(masses, solutions, strict=True)):
            for n, column in enumerate(columns):
                to.copy(VectorView.of(vectors[mass], n), to=column)
            residuals[number, columns] = solver.residuals[mass]
            first[number, columns] = solver.first[mass]
        solved += count
        progress(
            f"{solved} of {source.count} columns, the last {count} with "
            f"{solver.iterations - before[0]} iterations and {solver.updates - before[1]} "
            f"corrections in {time.perf_counter() - began:.1f} s"
        )
    iterations = sum(solver.iterations for solver in solvers.values())
    updates = sum(solver.updates for solver in solvers.values())
    return OverlapSolution(solutions, residuals, iterations, updates, first)


def _of_equal_parts(source: SpinorField, most: int) -> list[list[int]]:
    """Return the numbers of vectors in groups of at most so many with the same chiral parts.

    Those of a point have one each, so that no part of a group is 0 for some of its vectors.
    """
    part = source.like()
    split = CombineChiralities(part, source)
    kinds: dict[tuple[bool, ...], list[int]] = {}
    sizes = []
    for c in (1, -1):
        split(0, 0, 0.5, c / 2)
        sizes.append((norms_of(part) > 0).tolist())
    for n, kind in enumerate(zip(*sizes, strict=True)):
        kinds.setdefault(kind, []).append(n)
    return [some[n : n + most] for some in kinds.values() for n in range(0, len(some), most)]
