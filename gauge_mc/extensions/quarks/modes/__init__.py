"""The lowest eigenvectors of a positive operator, by the Lanczos algorithm with thick restarts.

The Krylov space is that of a Chebyshev polynomial T_k of the operator A, which is large only where
the wanted eigenvalues are (Y. Saad, Numerical Methods for Large Eigenvalue Problems, SIAM, 2011,
section 7.4). When the space is full, the best Ritz vectors are kept, with the next vector of the
space (K. Wu and H. Simon, SIAM J. Matrix Anal. Appl. 22 (2000) 602). All vectors are made
orthogonal to all earlier ones, twice. The error of an eigenvalue is at most the norm of A's true
residual, which is computed at the end.

The Ritz functional <x, A x> / <x, x>, whose minimum is the lowest eigenvalue, is independent of
this: conjugate gradients find it, also outside of a subspace (T. Kalkreuter and H. Simma, Comput.
Phys. Commun. 93 (1996) 33, hep-lat/9507023). A smaller value there than those that have been found
shows that one was missed, such as an eigenvalue that occurs twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from gauge_mc.arrays import Array
from gauge_mc.errors import ConvergenceError, UsageError
from gauge_mc.extensions.quarks.hopping import LinearOperator
from gauge_mc.extensions.quarks.modes.chirality import CombineChiralities
from gauge_mc.extensions.quarks.rational_functions import ChebyshevSum
from gauge_mc.extensions.quarks.vectors import SPINS, Complex, SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Combine, Multiply, PairAlgebra
from gauge_mc.extensions.quarks.vectors.basis import BasisProducts, CombineBasis, Projection


@cache
def _libraries() -> ThreadpoolController:
    """Return the libraries with threads that are loaded, which takes a millisecond to find out."""
    return ThreadpoolController()


def eigenvectors(matrix: Complex | Array) -> tuple[Array, Complex]:
    """Return the eigenvalues of a hermitian matrix, ascending, and eigenvectors as columns.

    One thread computes them: OpenBLAS divides even matrices of 50 rows among all cores, which takes
    20 to 50 times as long while other threads or processes use these.
    """
    with _libraries().limit(limits=1, user_api="blas"):
        values, vectors = np.linalg.eigh(matrix)
    return values, vectors


EXTRA = 8
"""Number of Ritz vectors that are kept besides the wanted ones."""

ROOM = 24
"""Least number of vectors that are added between restarts."""

MOST_RESTARTS = 60
"""Largest number of restarts."""

TRIAL = 12
"""Number of vectors besides the wanted ones that show whether the end of the wanted eigenvalues is
well chosen."""

MOST_SEARCHES = 50
"""Largest number of searches for modes that occur several times."""

SAME = 1e-6
"""Relative difference of eigenvalues below which one is not looked for again."""

FIRST_CUT = 0.05
"""First guess of the end of the wanted eigenvalues, as a part of the largest eigenvalue."""

LEAST_CUT = 1e-4
"""Smallest end of the wanted eigenvalues that is tried, as a part of the largest eigenvalue."""

PRODUCTS_STEP = 16
"""Numbers of vectors with which products are prepared are multiples of this."""

CHECKED = 6
"""Number of vectors after which convergence is checked."""

LARGEST_CUT = 0.4
"""End of the wanted eigenvalues, as a part of the largest eigenvalue, above which the Krylov space
is that of the operator itself."""

AMPLIFIED = 2.0
"""Value of the polynomial above which a Ritz value is one of a low eigenvalue."""

AMPLIFICATION = 2.5
"""Degree of the polynomial times the root of the cut, as a part of the largest eigenvalue; the
value at 0 is about cosh of twice this."""

LONG = 160
"""Number of vectors of the Krylov space of an operator whose products are costly."""

ASYMPTOTIC = 0.1
"""Part of the distance of an eigenvalue from the next one below which its residual r shows that its
error is r^2 divided by the distance."""

RESOLVED = 0.01
"""Part of an eigenvalue of a positive operator below which its residual shows that it is not a
mixture with eigenvalues near 0."""

EXHAUSTED = 1e-10
"""Norm of the next vector of the space, as a part of the last one, below which it has ended."""

SUBTRACTED = 0.01
"""Part of the square of a vector's norm that a projection may take away if the rest is known by
subtraction."""

RENEWED = 50
"""Number of iterations after which A x is computed anew."""

CONVERGED = 1e-14
"""Smallest residual of the polynomial, as a part of its largest value, that is waited for."""


def random_vector(like: SpinorField, seed: int = 1) -> SpinorField:
    """Return one vector of independent normal numbers, which depend on seed and site alone."""
    field = like.field
    vector = like.like(count=1)
    shape = (2, 1, *field.lattice.extents[2::-1], SPINS, field.group.colours)
    for t in range(field.lattice.t):
        numbers = np.random.default_rng((seed, t)).normal(size=shape)
        vector.put_slice(t, numbers[0] + 1j * numbers[1])
    return vector


def joined(vectors: SpinorField | None, new: SpinorField) -> SpinorField:
    """Return the vectors of both fields."""
    if vectors is None:
        return new
    both = new.like(count=vectors.count + new.count)
    both.copy(vectors)
    both.copy(new, 0, vectors.count)
    return both


@dataclass(frozen=True)
class LowModes:
    """Approximate eigenvectors of a positive operator A with the smallest eigenvalues."""

    values: Array
    """Eigenvalues, ascending, of shape (number,)."""
    residuals: Array
    """The norms of A v - value v, of shape (number,)."""
    vectors: SpinorField
    """The orthonormal vectors v."""
    applications: int
    """Number of applications of A."""


@dataclass(frozen=True)
class LowModeRequest:
    """How low modes are looked for.

    Attributes
    ----------
    number : int
        Number of modes.
    upper : float
        A number above all eigenvalues.
    tolerance : float
        Largest residual, divided by `upper`.
    seed : int
        Seed of vectors that are drawn when the Krylov space ends.
    chirality : int
        The chirality of all vectors, 1 or -1; 0 if they have both.
    costly : bool
        Whether a product takes much longer than making a vector orthogonal to some hundred others.
        Then the space is that of the operator itself, which needs the fewest products.
    error : float
        Error of an eigenvalue with which a costly search ends, although its residual may be larger
        than the tolerance.
    """

    number: int
    upper: float
    tolerance: float = 1e-13
    seed: int = 1
    chirality: int = 0
    costly: bool = False
    error: float = 0.0


def low_modes(
    operator: LinearOperator,
    start: SpinorField,
    request: LowModeRequest,
    outside: SpinorField | None = None,
) -> LowModes:
    """Return the lowest eigenvectors of a positive operator.

    Parameters
    ----------
    operator : LinearOperator
        The operator, which acts on the sites of the vector.
    start : SpinorField
        One vector in double precision that has a part along every eigenvector, such as a
        `random_vector`.
    request : LowModeRequest
        The modes that are wanted, and how accurately.
    outside : SpinorField, optional
        Orthonormal eigenvectors that are known; the search is outside of their space.

    Raises
    ------
    UsageError
        If the lattice has too few modes.
    ConvergenceError
        If there are too many restarts.
    """
    if request.costly:
        return _KrylovSpace(operator, start, request, request.upper, outside).run()
    cut, applications = FIRST_CUT * request.upper, 0
    highest, grown = LARGEST_CUT * request.upper, False
    while True:
        search = _KrylovSpace(operator, start, request, cut, outside)
        search.extend(request.number + TRIAL)
        count, goal = search.amplified(), request.number + 1
        if count < goal and cut < highest:
            # The number of eigenvalues of H below a value grows about with the value.
            factor = max(1.5, min(16.0, 1.2 * (goal / (count + 1)) ** 2))
            cut, grown = min(highest, cut * factor), True
        elif count >= request.number + TRIAL - 1 and not grown and cut > LEAST_CUT * request.upper:
            cut /= 4
        else:
            modes = search.run()
            return replace(modes, applications=modes.applications + applications)
        applications += search.applications


def all_low_modes(
    operator: LinearOperator, start: SpinorField, request: LowModeRequest
) -> LowModes:
    """Return the lowest eigenvectors, each as often as it occurs.

    A Krylov space has one vector of every eigenvalue, so that others with the same eigenvalue, such
    as zero modes, appear late or not at all. So the search is repeated outside of what has been
    found, with other first vectors, until no lower eigenvalue appears.

    Parameters
    ----------
    operator, start, request
        See `low_modes`.

    Raises
    ------
    UsageError, ConvergenceError
        See `low_modes`.
    """
    modes = low_modes(operator, start, request)
    applications = modes.applications
    for search in range(1, MOST_SEARCHES):
        vector = _of_chirality(random_vector(start, request.seed + search), request)
        more = low_modes(operator, vector, replace(request, number=1), modes.vectors)
        applications += more.applications
        highest = float(modes.values[-1])
        if more.values[0] >= highest - max(2 * request.tolerance * request.upper, SAME * highest):
            return replace(modes, applications=applications)
        vectors = start.like(count=request.number)
        vectors.copy(modes.vectors)
        vectors.copy(more.vectors, 0, request.number - 1)
        values, residuals = rayleigh_ritz(operator, vectors)
        modes = LowModes(values, residuals, vectors, applications)
    raise ConvergenceError(
        f"There were still lower modes after {MOST_SEARCHES} searches; look for fewer of them."
    )


def modes_up_to(
    operator: LinearOperator, start: SpinorField, request: LowModeRequest, above: float
) -> LowModes:
    """Return all modes with eigenvalues up to a number, and the lowest one that is above it.

    A Krylov space has one vector of every eigenvalue, so that modes that are 0 are found one after
    the other. The first one above the number is the lowest of them; no other is looked for.
    """
    single = replace(request, number=1)
    modes = low_modes(operator, start, single)
    while modes.values[-1] <= above:
        vector = _of_chirality(random_vector(start, request.seed + modes.values.size), request)
        more = low_modes(operator, vector, single, modes.vectors)
        vectors = joined(modes.vectors, more.vectors)
        values, residuals = rayleigh_ritz(operator, vectors)
        applications = modes.applications + more.applications + 2 * vectors.count
        modes = LowModes(values, residuals, vectors, applications)
    return modes


def _of_chirality(vector: SpinorField, request: LowModeRequest) -> SpinorField:
    """Return a vector without its part of the other chirality, if one is wanted."""
    if request.chirality:
        CombineChiralities(vector, vector)(0.5, request.chirality / 2, 0, 0)
    return vector


class _Norm:
    """The norm of a vector, which is prepared once: that takes longer than the kernel on a GPU."""

    def __init__(self, w: SpinorField) -> None:
        self._product = Multiply(w)

    def __call__(self) -> float:
        return math.sqrt(float(self._product().norm2[0]))


class _KrylovSpace:
    """The Krylov space of a polynomial of an operator, with its matrix in this space.

    Parameters
    ----------
    operator, start, request, outside
        See `low_modes`.
    cut : float
        The end of the wanted eigenvalues.
    """

    def __init__(
        self,
        operator: LinearOperator,
        start: SpinorField,
        request: LowModeRequest,
        cut: float,
        outside: SpinorField | None,
    ) -> None:
        self._operator, self._request, self._cut = operator, request, cut
        self._kept = request.number + EXTRA
        self.size = self._kept + max(ROOM, request.number)
        colours, sites = start.field.group.colours, math.prod(start.field.lattice.extents)
        halves = len(start.parities) * (1 if request.chirality else 2)
        dimension = sites * SPINS * colours * halves // 4
        if request.costly:
            self.size = max(self.size, min(LONG, dimension))
        if self.size > dimension:
            raise UsageError(
                f"{request.number} low modes are too many on a lattice of {sites} sites, with "
                f"{dimension} modes in all; look for fewer."
            )
        self._basis, self._other = (start.like("double", count=n) for n in (self.size, self._kept))
        self._w, self._v = start.like(), start.like()
        # Without low eigenvalues there is nothing to amplify: A itself, with the other sign.
        plain = cut >= LARGEST_CUT * request.upper
        self._degree = 1 if plain else math.ceil(AMPLIFICATION / math.sqrt(cut / request.upper))
        self._slope = 2 / request.upper if plain else 0.0
        top = [0.0] * self._degree + [(-1.0) ** self._degree]
        lower = 0.0 if plain else cut
        self._filter = ChebyshevSum(operator, self._w, self._v, top, lower, request.upper)
        self._combine = CombineBasis(self._w, 0, self._basis)
        numbers = range(self._kept)
        self._combinations = [CombineBasis(self._other, n, self._basis) for n in numbers]
        self._matrix = np.zeros((self.size, self.size), np.complex128)
        self._products: dict[int, BasisProducts] = {}
        self._norm = _Norm(self._w)
        self._scale = Combine(self._w, self._w)
        self._copy_w = self._v.copying(self._w)
        self._filled, self._beta, self._drawn = 0, 0.0, 0
        self.applications = 0
        self._outside = Projection(outside, self._w) if outside else None
        self._w.copy(start)
        if self._outside:
            self._outside.remove()
        self._normalise()

    def extend(self, most: int | None = None) -> bool:
        """Add vectors until the wanted ones have converged, or there are as many as asked for.

        By default the space becomes full. Its next vector is in `_w`, normalised.
        """
        last = min(self.size, most or self.size)
        while self._filled < last:
            j = self._filled
            self._basis.copy(self._w, 0, j)
            self._copy_w()
            self._filled += 1
            self._filter()
            self.applications += self._degree
            column, norm = self._orthogonalise()
            self._matrix[: j + 1, j] = column
            self._matrix[j, : j + 1] = column.conj()
            size = float(np.linalg.norm(column))
            self._normalise(norm)
            if self._beta <= EXHAUSTED * max(size, 1.0):
                self._draw()
            if (last - self._filled) % CHECKED == 0 and self._converged():
                return True
        return False

    def _converged(self) -> bool:
        """Return whether the errors of the wanted vectors are small enough."""
        number, goal = self._request.number, self._request.tolerance * self._request.upper
        if self._filled <= number or self._beta == 0:
            return False
        values, vectors = self._ritz()
        errors = self._beta * np.abs(vectors[-1, :number])
        # dA = dT_k(y) / T_k'(y), with T_k' about k T_k / sqrt(y^2 - 1) near the end
        slopes = self._slope or values[:number] * AMPLIFICATION / self._cut
        least = CONVERGED * max(1.0, float(values[0]))
        small = errors <= np.maximum(goal * slopes / 10, least)
        return bool((small | self._known(values, errors)).all())

    def _known(self, values: Array, errors: Array) -> NDArray[np.bool_]:
        """Return which wanted eigenvalues are known well enough, given their residuals.

        The error of a Ritz value is at most the square of the residual, divided by the distance
        from the other eigenvalues (B. Parlett, The Symmetric Eigenvalue Problem, section 11.7). One
        that is 0 may not be among the Ritz values yet, but a part of their lowest vector; then the
        residual is as large as the eigenvalue.
        """
        if not self._request.error:
            return np.zeros(len(errors), np.bool_)
        below = np.abs(np.diff(values[: len(errors) + 1]))
        gaps = np.minimum(below, np.concatenate([[np.inf], below[:-1]]))
        enough = self._request.error * np.broadcast_to(self._slope, errors.shape)
        near = np.minimum(ASYMPTOTIC * gaps, RESOLVED * (1 - values[: len(errors)]))
        return np.asarray((errors <= near) & (errors**2 <= enough * gaps))

    def _orthogonalise(self) -> tuple[Complex, float | None]:
        """Make `_w` orthogonal to the basis, and return the products with it and its norm.

        The norm is None if it cannot be known from the norm before the last subtraction.
        """
        products = self._products_with(self._filled)
        total = np.zeros(self._filled, np.complex128)
        for _ in range(2):
            if self._outside:
                self._outside.remove()
            overlaps = products()[: self._filled]
            self._combine(-overlaps)
            total += overlaps
        removed, before = float(np.linalg.norm(overlaps)) ** 2, products.norm2
        small = math.isfinite(before) and removed <= SUBTRACTED * before
        return total, math.sqrt(before - removed) if small else None

    def _products_with(self, count: int) -> BasisProducts:
        """Return products of `_w` with so many vectors or a few more, which are prepared once."""
        most = min(self.size, -(-count // PRODUCTS_STEP) * PRODUCTS_STEP)
        if most not in self._products:
            self._products[most] = BasisProducts(self._basis, self._w, 0, most)
        return self._products[most]

    def _normalise(self, norm: float | None = None) -> None:
        self._beta = self._norm() if norm is None else norm
        if not math.isfinite(self._beta):
            raise ConvergenceError("The search for low modes met a value that is not a number.")
        if self._beta > 0:
            self._scale(1 / self._beta, 0)

    def _draw(self) -> None:
        """Go on with a random vector, since the space does not grow any more."""
        self._drawn += 1
        drawn = random_vector(self._w, self._request.seed + 1000 + self._drawn)
        self._w.copy(_of_chirality(drawn, self._request))
        self._orthogonalise()
        self._normalise()
        self._beta = 0.0

    def _ritz(self) -> tuple[Array, Complex]:
        """Return the Ritz values, the largest first, and the vectors."""
        values, vectors = eigenvectors(self._matrix[: self._filled, : self._filled])
        return values[::-1], vectors[:, ::-1]

    def amplified(self) -> int:
        """Return the number of Ritz values of low eigenvalues."""
        return int((self._ritz()[0] > AMPLIFIED).sum())

    def run(self) -> LowModes:
        """Restart until the wanted vectors have converged, and return them."""
        for _ in range(MOST_RESTARTS):
            if self._converged() or self.extend():
                self._rotate(self._ritz()[1][:, : self._request.number])
                modes = self._w.like("double", count=self._request.number)
                modes.copy(self._basis)
                values, residuals = rayleigh_ritz(self._operator, modes)
                return LowModes(values, residuals, modes, self.applications + 2 * modes.count)
            self._restart(*self._ritz())
        raise ConvergenceError(
            f"{self._request.number} low modes were not found within {MOST_RESTARTS} restarts; "
            "look for more or fewer of them."
        )

    def _restart(self, values: Array, vectors: Complex) -> None:
        count = self._filled = self._kept
        self._rotate(vectors[:, :count])
        self._matrix[:] = 0
        self._matrix[:count, :count] = np.diag(values[:count])
        self._orthogonalise()
        self._normalise()
        self._beta = 0.0  # the matrix does not have the next vector yet

    def _rotate(self, rotation: Complex) -> None:
        """Replace the basis by combinations of it, one for each column of a matrix."""
        for n, column in enumerate(rotation.T):
            self._combinations[n](column, 0.0)
        self._basis.copy(self._other)


def rayleigh_ritz(operator: LinearOperator, vectors: SpinorField) -> tuple[Array, Array]:
    """Rotate orthonormal vectors to the eigenvectors of a hermitian operator in their space."""
    count = vectors.count
    v = vectors.like(count=1)
    image, rotated = v.like(), vectors.like()
    apply = operator.apply(image, v)
    matrix = np.zeros((count, count), np.complex128)
    products = BasisProducts(vectors, image, 0, count)
    for n in range(count):
        v.copy(vectors, n)
        apply()
        matrix[:, n] = products()
    values, rotation = eigenvectors((matrix + matrix.conj().T) / 2)
    for n, column in enumerate(rotation.T):
        CombineBasis(rotated, n, vectors)(column, 0.0)
    vectors.copy(rotated)
    residuals, norm = np.zeros(count), _Norm(image)
    subtract = Combine(image, v)
    for n, value in enumerate(values.tolist()):
        v.copy(vectors, n)
        apply()
        subtract(1, -value)
        residuals[n] = norm()
    return values, residuals


def ritz_minimum(
    operator: LinearOperator,
    start: SpinorField,
    outside: SpinorField | None = None,
    accuracy: float = 0.01,
    iterations: int = 10000,
) -> tuple[float, float]:
    """Return the minimum of the Ritz functional of a positive operator outside of a subspace.

    Parameters
    ----------
    operator : LinearOperator
        The operator A.
    start : SpinorField
        The first vector.
    outside : SpinorField, optional
        Orthonormal vectors of the subspace.
    accuracy : float
        Largest norm of A x - mu x at the end, divided by mu.
    iterations : int
        Largest number of iterations.

    Returns
    -------
    minimum : float
        The value mu of the functional.
    residual : float
        The norm of A x - mu x, within which there is an eigenvalue of A in the complement.

    Raises
    ------
    ConvergenceError
        If the accuracy is not reached.
    """
    return _RitzFunctional(operator, start, outside).minimum(accuracy, iterations)


class _RitzFunctional:
    """Conjugate gradients for the Ritz functional; see `ritz_minimum`."""

    def __init__(
        self, operator: LinearOperator, start: SpinorField, outside: SpinorField | None
    ) -> None:
        self._x, self._p, self._g = start.like(), start.like(), start.like()
        self._ax, self._ap = start.like(), start.like()
        self._x.copy(start)
        self._apply_x = operator.apply(self._ax, self._x)
        self._apply_p = operator.apply(self._ap, self._p)
        self._algebra = PairAlgebra()
        fields = (self._x, self._p, self._ax, self._ap)
        self._projections = [Projection(outside, vector) for vector in fields] if outside else []

    def _product(self, w: SpinorField, r: SpinorField) -> float:
        return float(self._algebra.products(r, w).mixed[0].real)

    def _project(self, number: int) -> None:
        if self._projections:
            self._projections[number].remove()

    def _renewed(self) -> float:
        """Normalise x, compute A x, and return <x, A x>."""
        self._project(0)
        self._algebra.combine(self._x, 1 / math.sqrt(self._product(self._x, self._x)), self._x, 0)
        self._apply_x()
        self._project(2)
        return self._product(self._x, self._ax)

    def minimum(self, accuracy: float, iterations: int) -> tuple[float, float]:
        """Return the minimum and the norm of the gradient; see `ritz_minimum`."""
        mu, before = self._renewed(), 0.0
        for iteration in range(iterations):
            self._g.copy(self._ax)
            self._algebra.combine(self._g, 1, self._x, -mu)
            norm2 = math.sqrt(self._product(self._g, self._g)) ** 2
            if math.sqrt(norm2) <= accuracy * mu:
                return mu, math.sqrt(norm2)
            beta = norm2 / before if before and iteration % RENEWED else 0.0
            self._algebra.combine(self._p, beta, self._g, 1)
            before = norm2
            self._algebra.combine(self._p, 1, self._x, -self._product(self._x, self._p))
            self._project(1)
            self._apply_p()
            self._project(3)
            mu = self._minimise_along(mu)
            if iteration % RENEWED == RENEWED - 1:
                mu = self._renewed()
        raise ConvergenceError(
            f"The minimum of the Ritz functional was not found within {iterations} iterations."
        )

    def _minimise_along(self, mu: float) -> float:
        """Replace x by the lowest combination of x and p, and return its value."""
        products = self._algebra.products(self._p, self._ap)
        norm2 = float(products.norm2[0])
        size, along = math.sqrt(norm2), float(products.mixed[0].real) / norm2
        off = self._product(self._x, self._ap) / size
        (lowest, _), vectors = eigenvectors(np.array([[mu, off], [off, along]]))
        a, b = (float(vector) for vector in vectors[:, 0] * (1 if vectors[0, 0] > 0 else -1))
        self._algebra.combine(self._x, a, self._p, b / size)
        self._algebra.combine(self._ax, a, self._ap, b / size)
        return float(lowest)
