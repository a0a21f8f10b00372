"""Best rational approximations of powers x^p on an interval, found when a program runs.

The approximation R(x) is a ratio of two polynomials of degree n whose largest relative error
|1 - x^-p R(x)| on the interval is as small as possible. Its zeros and poles are negative and simple
for 0 < |p| < 1, so that it is a sum of n partial fractions with shifts that are positive, which
conjugate gradients for several shifts apply to a vector (`gauge_mc.quarks.rational.multishift`).

- For p = -1/2, Zolotarev's closed form in Jacobi's elliptic functions (N. I. Achieser, Theory of
  Approximation, Dover, 1992, section 51 and appendix E). x R(x^2) is then the best approximation of
  the sign of x, with the same error, where x^2 is in the interval.
- For all other powers an exchange algorithm by E. Y. Remez (E. W. Cheney, Introduction to
  Approximation Theory, McGraw-Hill, 1966, chapter 5). Its unknowns are the logarithms of the zeros
  and poles and the error of the logarithm of R, which Newton's method changes together with the
  extrema of the error. It begins with Zolotarev's function.

The approximations of x^p and of x^-p are inverse to each other, but for a factor. All is computed
with `DIGITS` decimal digits, and then rounded to double precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, localcontext
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError, UsageError

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
                others = self.poles[:n] + self.poles[n + 1 :]
                top = math.prod((zero - pole for zero in self.zeros), start=self.factor)
                residues.append(top / math.prod((one - pole for one in others), start=Decimal(1)))
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
    residues: NDArray[np.float64]
    """Numbers of shape (n,), positive if the power is negative, and negative if it is positive."""
    shifts: NDArray[np.float64]
    """Positive numbers of shape (n,), in ascending order."""

    def __call__(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
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
    _check(power, lower, upper, error, poles)
    if poles is not None:
        return _partial_fractions(power, lower, upper, poles)
    assert error is not None
    what = f"An error of {error:g} for x^{power:g} from {lower:g} to {upper:g}"
    for number in range(_poles_for(power, lower / upper, error), MOST_POLES + 1):
        found = _partial_fractions(power, lower, upper, number)
        if found.error <= error:
            return found
        if found.function.error <= error / 2:
            raise UsageError(
                f"{what} is out of reach, since rounding the coefficients leaves one of "
                f"{found.error:.1e}; choose a larger error or a smaller range."
            )
    raise UsageError(
        f"{what} needs more than {MOST_POLES} poles; choose a larger error or a smaller range."
    )


def _check(
    power: float, lower: float, upper: float, error: float | None, poles: int | None
) -> None:
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


def _poles_for(power: float, ratio: float, error: float) -> int:
    """Return about how many poles reach an error, and rather too few than too many.

    The error is nearly that of Zolotarev's function times sin(pi |p|).
    """
    scale = BELOW * math.sin(math.pi * abs(power))
    with localcontext(prec=DIGITS):
        errors = (_zolotarev(n, Decimal(ratio)).error for n in range(1, MOST_POLES))
        enough = (n for n, one in enumerate(errors, 1) if scale * float(one) <= error)
        return next(enough, MOST_POLES)


@cache
def _partial_fractions(power: float, lower: float, upper: float, poles: int) -> PartialFractions:
    with localcontext(prec=DIGITS):
        low, high = Decimal(lower), Decimal(upper)
        ratio, p = low / high, Decimal(power)
        if p == ZOLOTAREV_POWER:
            found = _zolotarev(poles, ratio)
        else:
            found = _remez(-abs(p), _zolotarev(poles, ratio))
        factor, zeros, denominators = found.factor, found.zeros, found.poles
        if p > 0:  # the inverse, whose errors lie between 1 / (1 + error) and 1 / (1 - error)
            zeros, denominators = denominators, zeros
            factor = (1 - found.error**2) / factor
        return RationalFunction(
            power,
            lower,
            upper,
            float(found.error),
            factor * high**p,
            tuple(one * high for one in zeros),
            tuple(one * high for one in denominators),
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
    cotangents = tuple((1 - one) / one for one in c[1:-1])
    odd = math.prod(c[1:-1:2], start=Decimal(1))
    even = math.prod(c[2:-1:2], start=Decimal(1))
    d = (1 - ratio).sqrt() ** intervals * odd**2
    divisor = 1 + (1 - d**2).sqrt()
    return _BestApproximation(
        2 / divisor * odd / even,
        cotangents[0::2],
        cotangents[1::2],
        (d / divisor) ** 2,
        tuple(1 - (1 - ratio) * one for one in c),
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
        values = [(1 + k) * one / (1 + k * one * one) for one in values]
    return [one * one for one in values]


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

    Raises
    ------
    GaugeError
        If the algorithm does not converge.
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
        zeros = tuple(one.exp() for one in logs[1 : n + 1])
        poles = tuple(one.exp() for one in logs[n + 1 : -1])
        rest = _deviations(x, power, logs, zeros, poles)
        # Between points where the error has equal sizes and changing signs there are extrema.
        if max(map(abs, rest)) < LEVEL * abs(logs[-1]):
            x, moved = _moved_extrema(x, power, zeros, poles)
            rest = _deviations(x, power, logs, zeros, poles)
        matrix = [
            [
                Decimal(1),
                *(zero / (one + zero) for zero in zeros),
                *(-pole / (one + pole) for pole in poles),
                -Decimal((-1) ** j),
            ]
            for j, one in enumerate(x)
        ]
        change = _solution(matrix, rest)
        largest = max(abs(one) for one in change[1:-1])
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
    x: Sequence[Decimal],
    power: Decimal,
    logs: Sequence[Decimal],
    zeros: Decimals,
    poles: Decimals,
) -> list[Decimal]:
    """Return by how much the error of log R differs from the common one, with its changing sign."""
    return [
        (-1) ** j * logs[-1] - logs[0] - _product(one, zeros, poles).ln() + power * one.ln()
        for j, one in enumerate(x)
    ]


def _moved_extrema(
    x: Sequence[Decimal], power: Decimal, zeros: Decimals, poles: Decimals
) -> tuple[list[Decimal], Decimal]:
    """Return points that are nearer to the extrema of the error, and the largest change of a log.

    A point is moved uphill in the direction of its sign, by a step of Newton's method where that is
    shorter than a part of the distance from the neighbour.
    """
    moved, largest = [x[0]], Decimal(0)
    for j, (before, one, behind) in enumerate(zip(x, x[1:], x[2:], strict=False)):
        slope = sum((one / (one + zero) for zero in zeros), -power)
        slope -= sum(one / (one + pole) for pole in poles)
        curvature = sum((one * zero / (one + zero) ** 2 for zero in zeros), Decimal(0))
        curvature -= sum(one * pole / (one + pole) ** 2 for pole in poles)
        uphill = slope if j % 2 else -slope
        most = LARGEST_SHARE * abs((one / (before if uphill > 0 else behind)).ln())
        newton = abs(slope / curvature) if curvature else most
        step = min(newton, most).copy_sign(uphill)
        largest = max(largest, abs(step))
        moved.append(one * step.exp())
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
        own = rows[i]
        for j in range(i + 1, size):
            factor = rows[j][i] / own[i]
            pairs = zip(rows[j][i + 1 :], own[i + 1 :], strict=True)
            rows[j][i + 1 :] = [a - factor * b for a, b in pairs]
    x = [Decimal(0)] * size
    for i in reversed(range(size)):
        known = sum((rows[i][j] * x[j] for j in range(i + 1, size)), Decimal(0))
        x[i] = (rows[i][size] - known) / rows[i][i]
    return x
