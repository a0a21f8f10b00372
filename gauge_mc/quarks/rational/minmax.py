"""The polynomial P that makes the largest |1 - sqrt(y) P(y)| on an interval as small as possible.

x P(x^2) is then an approximation of the sign of x. The functions sqrt(y) T_k(z), with Chebyshev
polynomials of z in [-1, 1], fulfil Haar's condition, so that the best approximation of 1 has errors
of equal sizes and changing signs at n + 2 points, which the exchange algorithm by E. Y. Remez finds
(E. W. Cheney, Introduction to Approximation Theory, McGraw-Hill, 1966, chapter 3). Its use for the
overlap operator is described by L. Giusti, C. Hoelbling, M. Luescher and H. Wittig, Comput. Phys.
Commun. 153 (2003) 31, hep-lat/0212012.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import UsageError

GridValues = NDArray[np.float64]

MOST_DEGREE = 1000
"""Largest degree that is looked for."""

LEAST_ERROR = 1e-12
"""Smallest error that can be asked for, since all is computed in double precision."""

GRID = 12
"""Points on which the error is computed, for every extremum."""

LEVEL = 0.01
"""Largest deviation of the largest error from that of equal sizes."""

ROUNDING = 1e-13
"""Rounding error that is added to the largest error."""

MOST_STEPS = 12
"""Largest number of steps of the exchange algorithm. It begins near its end, at a largest error
about twice that of equal sizes; rounding errors stop it at errors of about 1e-12."""


@dataclass(frozen=True)
class MinmaxPolynomial:
    """P(y) = sum over k of c_k T_k(z), with z = (2 y - lower - 1) / (1 - lower)."""

    lower: float
    """The lower end epsilon of the interval [epsilon, 1] of y."""
    coefficients: tuple[float, ...]
    """The numbers c_k."""
    error: float
    """A bound of |1 - sqrt(y) P(y)|, from a dense grid in double precision."""

    @property
    def degree(self) -> int:
        """The degree n of P."""
        return len(self.coefficients) - 1

    @cached_property
    def _values(self) -> GridValues:
        return np.array(self.coefficients)

    def __call__(self, y: NDArray[np.float64]) -> GridValues:
        """Return P(y)."""
        z = (2 * np.asarray(y, np.float64) - self.lower - 1) / (1 - self.lower)
        return np.asarray(np.polynomial.chebyshev.chebval(z, self._values))


def minmax_polynomial(
    lower: float, error: float | None = None, degree: int | None = None
) -> MinmaxPolynomial:
    """Return the best polynomial on [lower, 1].

    Parameters
    ----------
    lower : float
        The lower end of the interval, between 0 and 1.
    error : float, optional
        The wanted error; the degree is about the smallest that reaches it.
    degree : int, optional
        The degree, instead of the error.

    Raises
    ------
    UsageError
        If a value is invalid, or the error needs a degree above `MOST_DEGREE`.
    """
    if not 0 < lower < 1:
        raise UsageError(f"The interval begins at {lower:g}; give a number between 0 and 1.")
    if (error is None) == (degree is None):
        raise UsageError("Give either the error or the degree.")
    if degree is not None:
        if not 0 <= degree <= MOST_DEGREE:
            raise UsageError(f"The degree is {degree}; give one from 0 to {MOST_DEGREE}.")
        return _best(float(lower), degree)
    assert error is not None
    if not LEAST_ERROR <= error < 1:
        raise UsageError(f"The error is {error:g}; give one from {LEAST_ERROR:g} to below 1.")
    return _reaching(float(lower), error)


def degree_for(lower: float, error: float) -> int:
    """Return which degree reaches an error, up to about 1, without computing the polynomial.

    It follows from the asymptotic error for large degrees n, (1 - a) (pi a n)^(-1/2) ((1 - a) /
    (1 + a))^n with a^2 = lower (A. Eremenko and P. Yuditskii, J. Anal. Math. 101 (2007) 313, for
    the sign of x on both sides of the gap from -a to a).
    """
    low, high = 1, 2
    while _asymptotic_error(lower, high) > error:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if _asymptotic_error(lower, middle) > error else (low, middle)
    return high


def _asymptotic_error(lower: float, degree: int) -> float:
    a = math.sqrt(lower)
    return (1 - a) / math.sqrt(math.pi * a * degree) * math.exp(-degree * _rate(lower))


def _rate(lower: float) -> float:
    """Return by how much the logarithm of the error falls with the degree."""
    root = math.sqrt(lower)
    return math.log1p(root) - math.log1p(-root)


def _reaching(lower: float, error: float) -> MinmaxPolynomial:
    """Return a polynomial that reaches an error, of about the smallest degree."""
    degree = degree_for(lower, error)
    while degree <= MOST_DEGREE:
        found = _best(lower, degree)
        if found.error > error:
            degree += max(1, math.ceil(math.log(found.error / error) / _rate(lower)))
        else:
            return found
    raise UsageError(
        f"An error of {error:g} on the interval from {lower:.3g} to 1 needs a polynomial of a "
        f"degree above {MOST_DEGREE}; project more low modes, or choose a larger error."
    )


@cache
def _best(lower: float, degree: int) -> MinmaxPolynomial:
    """Return the best polynomial of a degree; see the module."""
    points = degree + 2
    z = np.cos(np.pi * np.arange(points) / (points - 1))
    grid = np.cos(np.pi * np.arange(GRID * points + 1) / (GRID * points))
    root, best, smallest = np.sqrt(_y(grid, lower)), np.zeros(degree + 1), math.inf
    for _ in range(MOST_STEPS):
        c, level = _equal_errors(z, lower, degree)
        errors: GridValues = 1 - root * np.asarray(np.polynomial.chebyshev.chebval(grid, c))
        z, largest = _extrema(grid, errors, points)
        if largest < smallest:
            best, smallest = c, largest
        if largest <= (1 + LEVEL) * abs(level):
            break
    return MinmaxPolynomial(lower, tuple(best.tolist()), (1 + LEVEL) * smallest + ROUNDING)


def _y(z: GridValues, lower: float) -> GridValues:
    return (1 + lower) / 2 + (1 - lower) / 2 * z


def _equal_errors(z: GridValues, lower: float, degree: int) -> tuple[GridValues, float]:
    """Return coefficients with errors of equal sizes and changing signs at some points."""
    weighted = np.sqrt(_y(z, lower))[:, None] * np.polynomial.chebyshev.chebvander(z, degree)
    signs = (-1.0) ** np.arange(len(z))
    found = np.linalg.solve(np.column_stack([weighted, signs]), np.ones(len(z)))
    return found[:-1], float(found[-1])


def _extrema(grid: GridValues, errors: GridValues, points: int) -> tuple[GridValues, float]:
    """Return where the error has its extrema between changes of its sign, and the largest one.

    If there are more of them than points, those at the ends that are smaller are left out.
    """
    largest = float(np.abs(errors).max())
    starts = np.flatnonzero(np.diff(np.sign(errors)) != 0) + 1
    parts = np.split(np.arange(len(grid)), starts)
    best = [part[np.argmax(np.abs(errors[part]))] for part in parts]
    while len(best) > points:
        best.pop(0 if abs(errors[best[0]]) < abs(errors[best[-1]]) else -1)
    if len(best) < points:  # rounding errors hide changes of the sign
        return np.cos(np.pi * np.arange(points) / (points - 1)), largest
    return _refined(grid, errors, np.array(best)), largest


def _refined(grid: GridValues, errors: GridValues, places: NDArray[np.intp]) -> GridValues:
    """Return the extrema of parabolas through three points, in the angle of z = cos(angle)."""
    inner = np.clip(places, 1, len(grid) - 2)
    left, middle, right = errors[inner - 1], errors[inner], errors[inner + 1]
    curvature = left - 2 * middle + right
    shift = np.where(
        curvature != 0, (left - right) / (2 * np.where(curvature == 0, 1, curvature)), 0
    )
    step = np.pi / (len(grid) - 1)
    angle = step * (inner + np.clip(shift, -1, 1))
    at_ends = (places == 0) | (places == len(grid) - 1)
    return np.where(at_ends, grid[places], np.cos(angle))
