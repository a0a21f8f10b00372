"""Best rational approximations of powers x^p on an interval, found when a program runs.

The approximation R(x) is a ratio of two polynomials of degree n whose largest relative error
|1 - x^-p R(x)| on the interval is as small as possible. Its zeros and poles are negative and simple
for 0 < |p| < 1, so that it is a sum of n partial fractions with shifts that are positive, which
conjugate gradients for several shifts apply to a vector
(`gauge_mc.extensions.quarks.solvers.multishift`).

- For p = -1/2, Zolotarev's closed form in Jacobi's elliptic functions (N. I. Achieser, Theory of
  Approximation, Dover, 1992, section 51 and appendix E). x R(x^2) is then the best approximation of
  the sign of x, with the same error, where x^2 is in the interval.
- For all other powers an exchange algorithm by E. Y. Remez (E. W. Cheney, Introduction to
  Approximation Theory, McGraw-Hill, 1966, chapter 5). Its unknowns are the logarithms of the zeros
  and poles and the error of the logarithm of R, which Newton's method changes together with the
  extrema of the error. It begins with Zolotarev's function.

The approximations of x^p and of x^-p are inverse to each other, but for a factor. All is computed
with `DIGITS` decimal digits, and then rounded to double precision.

Polynomials of a linear operator, by Clenshaw's recurrence in three work fields.

With z = s A + t the sum of c_k T_k(z) v follows from b_k = c_k v + 2 z b_{k+1} - b_{k+2}, as
c_0 v + z b_1 - b_2 (C. W. Clenshaw, Math. Comp. 9 (1955) 118).

The polynomial P that makes the largest |1 - sqrt(y) P(y)| on an interval as small as possible.

x P(x^2) is then an approximation of the sign of x. The functions sqrt(y) T_k(z), with Chebyshev
polynomials of z in [-1, 1], fulfil Haar's condition, so that the best approximation of 1 has errors
of equal sizes and changing signs at n + 2 points, which the exchange algorithm by E. Y. Remez finds
(E. W. Cheney, Introduction to Approximation Theory, McGraw-Hill, 1966, chapter 3). Its use for the
overlap operator is described by L. Giusti, C. Hoelbling, M. Luescher and H. Wittig, Comput. Phys.
Commun. 153 (2003) 31, hep-lat/0212012.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, localcontext
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.hopping import LinearOperator, Recur
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.extensions.quarks.vectors.algebra import Combine


class ChebyshevSum:
    """The sum over k of c_k T_k(z), with z = (2 A - lower - upper) / (upper - lower), of vectors.

    Parameters
    ----------
    operator : LinearOperator
        The operator A.
    target, source : SpinorField
        The result, and the vectors v, on the sites on which A acts.
    coefficients : sequence of float
        The coefficients c_k.
    lower, upper : float
        The ends of the interval of A's eigenvalues that is mapped to [-1, 1].
    work : sequence of SpinorField, optional
        Two fields like the source, which are overwritten; by default new ones. The operator may
        have a third one.
    """

    def __init__(
        self,
        operator: LinearOperator,
        target: SpinorField,
        source: SpinorField,
        coefficients: Sequence[float],
        lower: float,
        upper: float,
        work: Sequence[SpinorField] | None = None,
    ) -> None:
        self._coefficients = [float(c) for c in coefficients]
        self._scale = 2 / (upper - lower)
        self._shift = -(upper + lower) / (upper - lower)
        self._work = tuple(work) if work else (source.like(), source.like())
        first, second = self._work
        # b_{k+2} is replaced by b_k.
        self._recur, self._last = (
            [
                operator.recurrence(new or older, b, older, source)
                or _in_passes(operator, new or older, b, older, source, target)
                for older, b in ((second, first), (first, second))
            ]
            for new in (None, target)
        )
        self._first = Combine(first, source)
        self._constant = Combine(target, source)

    def __call__(self, coefficients: Sequence[float] = ()) -> None:
        """Compute the result, with one application of the operator for each degree."""
        *rest, highest = coefficients or self._coefficients
        if not rest:
            self._constant(0, highest)
            return
        self._first(0, highest)
        s, t, turn, older = self._scale, self._shift, 0, 0.0
        for c in reversed(rest[1:]):
            self._recur[turn](-older, 2 * s, t / s, c)
            turn, older = 1 - turn, 1.0
        self._last[turn](-older, s, t / s, rest[0])


def _in_passes(
    operator: LinearOperator,
    new: SpinorField,
    b: SpinorField,
    older: SpinorField,
    constant: SpinorField,
    spare: SpinorField,
) -> Recur:
    """Return a call as that of `LinearOperator.recurrence`, with A b in the spare vectors.

    The new vectors are the older or the spare ones.
    """
    apply = operator.apply(spare, b)
    fields = (older, spare, b) if new is older else (spare, b, older)
    add = Combine(*fields, w=constant)

    def call(a: float, scale: float, shift: float, c: float) -> None:
        apply()
        if new is older:
            add(a, scale, scale * shift, c)
        else:
            add(scale, scale * shift, a, c)

    return call


MOST_DEGREE = 1000
"""Largest degree that is looked for."""

LEAST_MINMAX_ERROR = 1e-12
"""Smallest error that can be asked for, since all is computed in double precision."""

GRID_POINTS = 12
"""Points on which the error is computed, for every extremum."""

EQUAL = 0.01
"""Largest deviation of the largest error from that of equal sizes."""

ROUNDING = 1e-13
"""Rounding error that is added to the largest error."""

MOST_EXCHANGES = 12
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
    def _values(self) -> Array:
        return np.array(self.coefficients)

    def __call__(self, y: Array) -> Array:
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
    if not LEAST_MINMAX_ERROR <= error < 1:
        least = f"{LEAST_MINMAX_ERROR:g}"
        raise UsageError(f"The error is {error:g}; give one from {least} to below 1.")
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
        polynomial = _best(lower, degree)
        if polynomial.error <= error:
            return polynomial
        degree += max(1, math.ceil(math.log(polynomial.error / error) / _rate(lower)))
    raise UsageError(
        f"An error of {error:g} on the interval from {lower:.3g} to 1 needs a polynomial of a "
        f"degree above {MOST_DEGREE}; project more low modes, or choose a larger error."
    )


@cache
def _best(lower: float, degree: int) -> MinmaxPolynomial:
    """Return the best polynomial of a degree; see the module."""
    points = degree + 2
    z = np.cos(np.pi * np.arange(points) / (points - 1))
    grid = np.cos(np.pi * np.arange(GRID_POINTS * points + 1) / (GRID_POINTS * points))
    root, best, smallest = np.sqrt(_y(grid, lower)), np.zeros(degree + 1), math.inf
    for _ in range(MOST_EXCHANGES):
        c, level = _equal_errors(z, lower, degree)
        errors: Array = 1 - root * np.asarray(np.polynomial.chebyshev.chebval(grid, c))
        z, largest = _extrema(grid, errors, points)
        if largest < smallest:
            best, smallest = c, largest
        if largest <= (1 + EQUAL) * abs(level):
            break
    return MinmaxPolynomial(lower, tuple(best.tolist()), (1 + EQUAL) * smallest + ROUNDING)


def _y(z: Array, lower: float) -> Array:
    return (1 + lower) / 2 + (1 - lower) / 2 * z


def _equal_errors(z: Array, lower: float, degree: int) -> tuple[Array, float]:
    """Return coefficients with errors of equal sizes and changing signs at some points."""
    weighted = np.sqrt(_y(z, lower))[:, None] * np.polynomial.chebyshev.chebvander(z, degree)
    signs = (-1.0) ** np.arange(len(z))
    solution = np.linalg.solve(np.column_stack([weighted, signs]), np.ones(len(z)))
    return solution[:-1], float(solution[-1])


def _extrema(grid: Array, errors: Array, points: int) -> tuple[Array, float]:
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


def _refined(grid: Array, errors: Array, places: NDArray[np.intp]) -> Array:
    """Return the extrema of parabolas through three points, in the angle of z = cos(angle)."""
    inner = np.clip(places, 1, len(grid) - 2)
    left, middle, right = errors[inner - 1], errors[inner], errors[inner + 1]
    curvature = left - 2 * middle + right
    divisor = 2 * np.where(curvature == 0, 1, curvature)
    shift = np.where(curvature != 0, (left - right) / divisor, 0)
    step = np.pi / (len(grid) - 1)
    angle = step * (inner + np.clip(shift, -1, 1))
    at_ends = (places == 0) | (places == len(grid) - 1)
    return np.where(at_ends, grid[places], np.cos(angle))


DIGITS = 60
"""Decimal digits of the arithmetic. Shifts are known with fewer digits, by about as many as the
error has zeros after the point."""

CONVERGED = Decimal("1e-20")
"""Largest change of the logarithms of zeros, poles and extrema in the last step."""

LARGEST_STEP = Decimal("0.7")
"""Largest change of the logarithm of a zero or pole in a step."""

LARGEST_SHARE = Decimal("0.4")
"""Largest step of an extremum of the error, as a share of the distance from the next one."""

LEVEL = Decimal("0.1")
"""Largest deviation of the errors from equal sizes with which extrema are moved."""

MOST_STEPS = 60
"""Largest number of steps of the exchange algorithm."""

MOST_POLES = 60
"""Largest number of poles."""

LEAST_ERROR = 1e-14
"""Smallest error that can be asked for, since coefficients are rounded to double precision."""

LARGEST_POWER = 0.9
LEAST_POWER = 0.01
"""Bounds of |p|, between which the exchange algorithm converges from Zolotarev's function."""

BELOW = 0.9
"""Factor of an estimate of the error that makes it smaller than the error for any n."""

GRID = 40
"""Points on which the error is measured, for every pole."""

ZOLOTAREV_POWER = Decimal("-0.5")

Decimals = tuple[Decimal, ...]


@dataclass(frozen=True)
class RationalFunction:
    """R(x) = factor (x + zero_1) ... (x + zero_n) / ((x + pole_1) ... (x + pole_n))."""

    power: float
    """The power p of which it is an approximation."""
    lower: float
    """Lower end of the interval of x."""
    upper: float
    """Upper end of the interval of x."""
    error: float
    """The largest relative error |1 - x^-p R(x)| on it, in exact arithmetic."""
    factor: Decimal
    """The limit for large x."""
    zeros: Decimals
    """The numbers zero_i, which are positive, from the largest to the smallest."""
    poles: Decimals
    """The numbers pole_i, which are positive, from the largest to the smallest."""

    def partial_fractions(self) -> PartialFractions:
        """Return the function as a sum of partial fractions, in double precision."""
        with localcontext(prec=DIGITS):
            residues = []
            for n, pole in enumerate(self.poles):
                rest = self.poles[:n] + self.poles[n + 1 :]
                top = math.prod((zero - pole for zero in self.zeros), start=self.factor)
                residues.append(top / math.prod((x - pole for x in rest), start=Decimal(1)))
            factor = float(self.factor)
        values = zip(map(float, self.poles), map(float, residues), strict=True)
        shifts, weights = np.array(sorted(values)).T
        return PartialFractions(self, factor, weights, shifts)


@dataclass(frozen=True)
class PartialFractions:
    """R(x) = constant + residue_1 / (x + shift_1) + ... + residue_n / (x + shift_n)."""

    function: RationalFunction
    """The function in more digits."""
    constant: float
    """The limit for large x."""
    residues: Array
    """Numbers of shape (n,), positive if the power is negative, and negative if it is positive."""
    shifts: Array
    """Positive numbers of shape (n,), in ascending order."""

    def __call__(self, x: Array) -> Array:
        """Return R(x) in double precision."""
        terms = self.residues / (np.asarray(x, np.float64)[..., None] + self.shifts)
        return np.asarray(self.constant + terms.sum(axis=-1))

    @cached_property
    def error(self) -> float:
        """The largest relative error of these rounded coefficients on a dense grid.

        The grid has `GRID` points for every pole, at equal distances of log x, and includes the
        ends of the interval. Sums are computed with `DIGITS` digits.
        """
        with localcontext(prec=DIGITS):
            pairs = zip(self.residues.tolist(), self.shifts.tolist(), strict=True)
            terms = [(Decimal(residue), Decimal(shift)) for residue, shift in pairs]
            lower, upper = Decimal(self.function.lower), Decimal(self.function.upper)
            count, power = GRID * len(terms), -Decimal(self.function.power)
            x, step = lower, (upper / lower) ** (1 / Decimal(count))
            scale, factor = lower**power, step**power
            largest = Decimal(0)
            for _ in range(count + 1):
                value = sum((r / (x + s) for r, s in terms), Decimal(self.constant))
                largest = max(largest, abs(value * scale - 1))
                x, scale = x * step, scale * factor
            return float(largest)


def approximate(
    power: float, lower: float, upper: float, error: float | None = None, poles: int | None = None
) -> PartialFractions:
    """Return the best rational approximation of x^power for lower <= x <= upper.

    Parameters
    ----------
    power : float
        The power p, with `LEAST_POWER` <= |p| <= `LARGEST_POWER`.
    lower, upper : float
        The interval, of positive numbers.
    error : float, optional
        The wanted relative error; the number of poles is the smallest that reaches it.
    poles : int, optional
        The number of poles, instead of the error.

    Raises
    ------
    UsageError
        If a value is invalid, or if the error would need more than `MOST_POLES` poles or cannot be
        reached with coefficients in double precision.
    """
    if not LEAST_POWER <= abs(power) <= LARGEST_POWER:
        raise UsageError(
            f"The power is {power:g}; give one whose size is from {LEAST_POWER:g} to "
            f"{LARGEST_POWER:g}."
        )
    if not 0 < lower < upper < math.inf:
        raise UsageError(
            f"The range is from {lower:g} to {upper:g}; give two positive numbers, the smaller one "
            "first."
        )
    if (error is None) == (poles is None):
        raise UsageError("Give either the error or the number of poles.")
    if error is not None and not LEAST_ERROR <= error < 1:
        raise UsageError(f"The error is {error:g}; give one from {LEAST_ERROR:g} to below 1.")
    if poles is not None and not 1 <= poles <= MOST_POLES:
        raise UsageError(f"The number of poles is {poles}; give one from 1 to {MOST_POLES}.")
    if poles is not None:
        return _partial_fractions(power, lower, upper, poles)
    assert error is not None
    request = f"An error of {error:g} for x^{power:g} from {lower:g} to {upper:g}"
    # The error is nearly that of Zolotarev's function times sin(pi |p|); rather too few poles.
    scale = BELOW * math.sin(math.pi * abs(power))
    with localcontext(prec=DIGITS):
        errors = (_zolotarev(n, Decimal(lower / upper)).error for n in range(1, MOST_POLES))
        enough = (n for n, e in enumerate(errors, 1) if scale * float(e) <= error)
        first = next(enough, MOST_POLES)
    for number in range(first, MOST_POLES + 1):
        partial_fractions = _partial_fractions(power, lower, upper, number)
        if partial_fractions.error <= error:
            return partial_fractions
        if partial_fractions.function.error <= error / 2:
            raise UsageError(
                f"{request} is out of reach, since rounding the coefficients leaves one of "
                f"{partial_fractions.error:.1e}; choose a larger error or a smaller range."
            )
    raise UsageError(
        f"{request} needs more than {MOST_POLES} poles; choose a larger error or a smaller range."
    )


@cache
def _partial_fractions(power: float, lower: float, upper: float, poles: int) -> PartialFractions:
    with localcontext(prec=DIGITS):
        low, high = Decimal(lower), Decimal(upper)
        ratio, p = low / high, Decimal(power)
        optimum = _zolotarev(poles, ratio)
        if p != ZOLOTAREV_POWER:
            optimum = _remez(-abs(p), optimum)
        factor, zeros, denominators = optimum.factor, optimum.zeros, optimum.poles
        if p > 0:  # the inverse, whose errors lie between 1 / (1 + error) and 1 / (1 - error)
            zeros, denominators = denominators, zeros
            factor = (1 - optimum.error**2) / factor
        return RationalFunction(
            power,
            lower,
            upper,
            float(optimum.error),
            factor * high**p,
            tuple(zero * high for zero in zeros),
            tuple(d * high for d in denominators),
        ).partial_fractions()


@dataclass(frozen=True)
class _BestApproximation:
    """The best approximation on [ratio, 1], its error, and where the error has its extrema."""

    factor: Decimal
    zeros: Decimals
    poles: Decimals
    error: Decimal
    extrema: Decimals


def _zolotarev(poles: int, ratio: Decimal) -> _BestApproximation:
    """Return the best approximation of x^(-1/2) on [ratio, 1].

    With c_r = sn^2(r K / (2 n + 1), k) and k^2 = 1 - ratio, the zeros are (1 - c_r) / c_r for odd
    r, the poles those for even r, and the extrema of the error 1 - k^2 c_r.
    """
    intervals = 2 * poles + 1
    c = _squares_of_sn(intervals, ratio)
    cotangents = tuple((1 - x) / x for x in c[1:-1])
    odd = math.prod(c[1:-1:2], start=Decimal(1))
    even = math.prod(c[2:-1:2], start=Decimal(1))
    d = (1 - ratio).sqrt() ** intervals * odd**2
    divisor = 1 + (1 - d**2).sqrt()
    return _BestApproximation(
        2 / divisor * odd / even,
        cotangents[0::2],
        cotangents[1::2],
        (d / divisor) ** 2,
        tuple(1 - (1 - ratio) * x for x in c),
    )


def _squares_of_sn(intervals: int, complement: Decimal) -> list[Decimal]:
    """Return sn^2(r K / intervals, k) for r = 0, 1, ..., intervals, with k^2 = 1 - complement.

    Landen's transformation leads to smaller and smaller moduli, where sn is a sine; the ratio of
    its argument to the quarter period does not change (Abramowitz and Stegun, section 16.12).
    """
    k_prime = complement.sqrt()
    moduli: list[Decimal] = []
    while not moduli or moduli[-1] > Decimal(10) ** (-DIGITS // 2 - 2):
        moduli.append((1 - k_prime) / (1 + k_prime))
        k_prime = 2 * k_prime.sqrt() / (1 + k_prime)
    values = [_sine(_pi() * r / (2 * intervals)) for r in range(intervals + 1)]
    for k in reversed(moduli):
        values = [(1 + k) * value / (1 + k * value * value) for value in values]
    return [value * value for value in values]


@cache
def _pi() -> Decimal:
    """Return pi, by arithmetic and geometric means (E. Salamin, Math. Comp. 30 (1976) 565)."""
    a, b, t, p = Decimal(1), 1 / Decimal(2).sqrt(), Decimal("0.25"), 1
    while a - b > Decimal(10) ** (-DIGITS // 2 - 2):
        mean = (a + b) / 2
        a, b, t, p = mean, (a * b).sqrt(), t - p * (a - mean) ** 2, 2 * p
    return (a + b) ** 2 / (4 * t)


def _sine(x: Decimal) -> Decimal:
    total, term, n = Decimal(0), x, 1
    while abs(term) > Decimal(10) ** (-DIGITS - 5):
        total, term, n = total + term, -term * x * x / ((n + 1) * (n + 2)), n + 2
    return total


def _remez(power: Decimal, start: _BestApproximation) -> _BestApproximation:
    """Return the best approximation of x^power for a negative power, from that of x^(-1/2).

    The error of log R is made equal, with changing signs, at points that approach its extrema. It
    is between -e and e, so that R / cosh(e) has the relative error tanh(e).
    """
    n, x = len(start.zeros), list(start.extrema)
    # Between a zero and its pole R falls like 1 / x, so that their distance grows with the power.
    stretch = power / ZOLOTAREV_POWER
    logs = [Decimal(0)] * (2 * n + 2)  # log factor, logs of zeros and of poles, error
    for i, (zero, pole) in enumerate(zip(start.zeros, start.poles, strict=True)):
        middle, half = (zero * pole).ln() / 2, (zero / pole).ln() / 2
        logs[1 + i], logs[1 + n + i] = middle + stretch * half, middle - stretch * half
    moved = Decimal(1)
    for _ in range(MOST_STEPS):
        zeros = tuple(log.exp() for log in logs[1 : n + 1])
        poles = tuple(log.exp() for log in logs[n + 1 : -1])
        rest = _deviations(x, power, logs, zeros, poles)
        # Between points where the error has equal sizes and changing signs there are extrema.
        if max(map(abs, rest)) < LEVEL * abs(logs[-1]):
            x, moved = _moved_extrema(x, power, zeros, poles)
            rest = _deviations(x, power, logs, zeros, poles)
        matrix = [
            [
                Decimal(1),
                *(zero / (y + zero) for zero in zeros),
                *(-pole / (y + pole) for pole in poles),
                -Decimal((-1) ** j),
            ]
            for j, y in enumerate(x)
        ]
        change = _solution(matrix, rest)
        largest = max(abs(x) for x in change[1:-1])
        part = min(Decimal(1), LARGEST_STEP / largest)
        logs = [old + part * more for old, more in zip(logs, change, strict=True)]
        if max(largest, moved) < CONVERGED:
            error = logs[-1]
            cosh = (error.exp() + (-error).exp()) / 2
            tanh = (error.exp() - (-error).exp()) / 2 / cosh
            return _BestApproximation(logs[0].exp() / cosh, zeros, poles, tanh, tuple(x))
    raise GaugeError(
        f"The rational approximation of x^{float(power):g} with {n} poles was not found; choose "
        "another number of poles."
    )


def _deviations(
    x: Sequence[Decimal], power: Decimal, logs: Sequence[Decimal], zeros: Decimals, poles: Decimals
) -> list[Decimal]:
    """Return by how much the error of log R differs from the common one, with its changing sign."""
    return [
        (-1) ** j * logs[-1] - logs[0] - _product(y, zeros, poles).ln() + power * y.ln()
        for j, y in enumerate(x)
    ]


def _moved_extrema(
    x: Sequence[Decimal], power: Decimal, zeros: Decimals, poles: Decimals
) -> tuple[list[Decimal], Decimal]:
    """Return points that are nearer to the extrema of the error, and the largest change of a log.

    A point is moved uphill in the direction of its sign, by a step of Newton's method where that is
    shorter than a part of the distance from the neighbour.
    """
    moved, largest = [x[0]], Decimal(0)
    for j, (before, point, behind) in enumerate(zip(x, x[1:], x[2:], strict=False)):
        slope = sum((point / (point + zero) for zero in zeros), -power)
        slope -= sum(point / (point + pole) for pole in poles)
        curvature = sum((point * zero / (point + zero) ** 2 for zero in zeros), Decimal(0))
        curvature -= sum(point * pole / (point + pole) ** 2 for pole in poles)
        uphill = slope if j % 2 else -slope
        most = LARGEST_SHARE * abs((point / (before if uphill > 0 else behind)).ln())
        newton = abs(slope / curvature) if curvature else most
        step = min(newton, most).copy_sign(uphill)
        largest = max(largest, abs(step))
        moved.append(point * step.exp())
    return [*moved, x[-1]], largest


def _product(x: Decimal, zeros: Decimals, poles: Decimals) -> Decimal:
    """Return the product of (x + zero) / (x + pole)."""
    pairs = zip(zeros, poles, strict=True)
    return math.prod(((x + zero) / (x + pole) for zero, pole in pairs), start=Decimal(1))


def _solution(matrix: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """Return the solution of a system of linear equations, by elimination with pivots."""
    size = len(right)
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(size):
        sizes = [abs(row[i]) for row in rows[i:]]
        pivot = i + sizes.index(max(sizes))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for row in rows[i + 1 :]:
            factor = row[i] / rows[i][i]
            pairs = zip(row[i + 1 :], rows[i][i + 1 :], strict=True)
            row[i + 1 :] = [a - factor * b for a, b in pairs]
    x = [Decimal(0)] * size
    for i in reversed(range(size)):
        subtotal = sum((rows[i][j] * x[j] for j in range(i + 1, size)), Decimal(0))
        x[i] = (rows[i][size] - subtotal) / rows[i][i]
    return x


BISECTION = 1e-13
"""Relative accuracy of eigenvalues of T."""

LEAST_STEPS = 10
"""Number of steps before which bounds are not looked for."""

GROWTH = 1.3
"""Ratio of the numbers of steps after which bounds are looked for."""

LARGEST = 1e150
"""Numbers whose squares do not overflow."""


@dataclass(frozen=True)
class SpectrumEnds:
    """The smallest and the largest eigenvalue of a positive operator."""

    smallest: float
    """Approximation of the smallest eigenvalue; there is one that is no larger."""
    largest: float
    """Approximation of the largest eigenvalue; there is one that is no smaller."""
    smallest_error: float
    """Bound of the distance of `smallest` from the nearest eigenvalue."""
    largest_error: float
    """Bound of the distance of `largest` from the nearest eigenvalue."""

    def is_accurate(self, accuracy: float) -> bool:
        """Return whether both errors are at most the accuracy times the eigenvalues."""
        least, most = accuracy * self.smallest, accuracy * self.largest
        return self.smallest_error <= least and self.largest_error <= most


@dataclass
class Lanczos:
    """The coefficients of conjugate gradients for A + shift, for one vector."""

    shift: float = 0.0
    """The number that is added to A."""
    alphas: list[float] = field(default_factory=list)
    """The coefficients alpha of all steps."""
    betas: list[float] = field(default_factory=list)
    """The coefficients beta of all steps."""

    def add(self, alpha: float, beta: float) -> None:
        """Keep the coefficients of a step."""
        if alpha > 0:  # or else the residual was 0 already
            self.alphas.append(alpha)
            self.betas.append(beta)

    def ends(self) -> SpectrumEnds:
        """Return the ends of the spectrum of A as far as they are known."""
        if not self.alphas:
            raise ValueError("The spectrum is not known without a step.")
        # Eigenvalues are repeated after they have converged, so that their bounds grow again. An
        # earlier bound holds for later values as well, which are farther outside.
        sizes = [len(self.alphas)]
        while sizes[-1] > LEAST_STEPS:
            sizes.append(int(sizes[-1] / GROWTH))
        ends = [self._after(size) for size in sizes]
        smallest = min(bound.smallest_error for bound in ends)
        largest = min(bound.largest_error for bound in ends)
        return replace(ends[0], smallest_error=smallest, largest_error=largest)

    def _after(self, steps: int) -> SpectrumEnds:
        """Return the ends as they are known after some steps, with their own bounds."""
        d = [1 / alpha for alpha in self.alphas[:steps]]
        squares = self.betas[: steps - 1]  # of L below its diagonal
        beyond = math.sqrt(self.betas[steps - 1]) * d[-1]
        diagonal = [d[0], *(a + b * c for a, b, c in zip(d[1:], squares, d, strict=False))]
        bound = 2 * max(diagonal) * (1 + BISECTION)  # 2 max - T is positive as well
        smallest = _eigenvalue(d, squares, 1, min(diagonal) * (1 + BISECTION))
        largest = _eigenvalue(d, squares, steps, bound)
        return SpectrumEnds(
            smallest - self.shift,
            largest - self.shift,
            beyond * _last_component(d, squares, smallest) + BISECTION * smallest,
            beyond * _last_component(d, squares, largest) + BISECTION * largest,
        )


def _pivots(d: Sequence[float], squares: Sequence[float], x: float) -> list[float]:
    """Return the pivots of T - x, from the factors of T (the stationary quotient differences).

    As many of them are negative as there are eigenvalues below x.
    """
    pivots, s = [], -x
    for factor, square in zip(d, squares, strict=False):
        pivot = factor + s or math.ulp(x)
        pivots.append(pivot)
        s = factor / pivot * square * s - x
    pivots.append(d[-1] + s or math.ulp(x))
    return pivots


def _eigenvalue(d: Sequence[float], squares: Sequence[float], number: int, above: float) -> float:
    """Return an eigenvalue of T below a bound, the smallest one for the number 1, by bisection."""
    low, high = 0.0, above
    while high - low > BISECTION * high:
        middle = (low + high) / 2
        if sum(pivot < 0 for pivot in _pivots(d, squares, middle)) >= number:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def _last_component(d: Sequence[float], squares: Sequence[float], value: float) -> float:
    """Return the size of the last component of the normalised eigenvector of an eigenvalue."""
    pivots = _pivots(d, squares, value)
    component, norm2 = 1.0, 1.0
    for n in reversed(range(len(squares))):
        component *= d[n] * math.sqrt(squares[n]) / pivots[n]
        if abs(component) > LARGEST:
            return 1 / LARGEST
        norm2 += component * component
    return 1 / math.sqrt(norm2)
