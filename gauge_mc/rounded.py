"""Functions of numbers whose results are rounded once, and so the same on all machines.

Those of the C library, which Python and NumPy call, depend on its version and on the processor in
their last bits; even a square by ``**`` does. Decimal arithmetic does not.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext

DIGITS = Context(prec=60)
"""Decimal digits of all steps, of which a number in double precision keeps 17."""

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494")

VANISHING = -800.0
"""Argument below which the exponential function is 0 in double precision."""


def exponential(x: float) -> float:
    """Return exp(x) for finite x; infinity if it is too large."""
    if x < VANISHING:
        return 0.0
    return float(DIGITS.exp(Decimal(min(x, -VANISHING))))


def square(x: float, strict: bool = True) -> float:
    """Return x * x, or, unless strict, what the C library takes for it."""
    return x * x if strict else x**2


def power(x: float, y: float) -> float:
    """Return x to the power y for finite x > 0 and y; infinity if it is too large."""
    with localcontext(DIGITS):
        return float((Decimal(x).ln() * Decimal(y)).exp())


def modulus(re: float, im: float) -> float:
    """Return the modulus of a complex number; that of the C library if it is not finite."""
    if not (math.isfinite(re) and math.isfinite(im)):
        return math.hypot(re, im)
    (a, b), (c, d) = float(re).as_integer_ratio(), float(im).as_integer_ratio()
    scale = max(b, d) << 64
    square = (a * (scale // b)) ** 2 + (c * (scale // d)) ** 2
    root = math.isqrt(square)
    return (2 * root + (root * root < square)) / (2 * scale)


def complementary_error_function(x: float) -> float:
    """Return erfc(x) for 0 <= x <= 5, from the alternating series of erf."""
    with localcontext(DIGITS):
        square = Decimal(x) * Decimal(x)
        total, term, n = Decimal(0), Decimal(x), 0
        while abs(term) > Decimal("1e-40"):
            total += term / (2 * n + 1)
            n += 1
            term *= -square / n
        return float(1 - 2 * total / PI.sqrt())


def cosine(x: float) -> float:
    """Return cos(x) for a finite x."""
    with localcontext(DIGITS):
        return float(_parts_of_unit(Decimal(x) % (2 * PI))[0])


def unit_number(angle: float) -> complex:
    """Return exp(i pi angle) for a finite angle."""
    number, order = float(angle).as_integer_ratio()
    return complex(*root_of_unity(number, 2 * order))


def root_of_unity(number: int, order: int) -> tuple[float, float]:
    """Return real and imaginary part of exp(2 pi i number / order)."""
    with localcontext(DIGITS):
        parts = _parts_of_unit(2 * PI * (number % order) / order)
        # An angle whose cosine or sine is 0 leaves an error of the series.
        real, imaginary = (one if abs(one) > Decimal("1e-30") else Decimal(0) for one in parts)
        return float(real), float(imaginary)


def _parts_of_unit(angle: Decimal) -> list[Decimal]:
    """Return cosine and sine of a small angle, in the context of `DIGITS`."""
    parts, term, n = [Decimal(0), Decimal(0)], Decimal(1), 0
    while abs(term) > Decimal("1e-40") or n <= abs(angle):
        parts[n % 2] += -term if n % 4 > 1 else term
        n += 1
        term *= angle / n
    return parts
