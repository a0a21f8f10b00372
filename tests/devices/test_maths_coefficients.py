"""The coefficients of the elementary functions are those of the stated interpolation.

They are computed again with decimal numbers of 50 digits: Newton's divided differences at the zeros
of the Chebyshev polynomial of the interval.
"""

import re
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest

from gauge_mc.devices.source import source_folder

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
DIGITS = 50
SOURCE = (source_folder() / "arch" / "maths.h").read_text()
ONE, QUARTER = Decimal(1), Decimal("0.25")


@pytest.fixture(autouse=True)
def digits():
    with localcontext() as context:
        context.prec = DIGITS
        yield


def horner(coefficients: list[Decimal], x: Decimal) -> Decimal:
    total = Decimal(0)
    for one in reversed(coefficients):
        total = total * x + one
    return total


def alternating(x2: Decimal, first: int) -> Decimal:
    """Return sum_k (-x2)^k / (first + 2 k)!: cos x for first = 0, sin(x)/x for first = 1."""
    total = term = ONE
    n = first
    while abs(term) > Decimal(10) ** -DIGITS:
        term *= -x2 / ((n + 1) * (n + 2))
        n += 2
        total += term
    return total


def sine(w2: Decimal) -> Decimal:
    """sin(pi w)/w as a function of w^2."""
    return PI * alternating(PI * PI * w2, 1)


def cosine(w2: Decimal) -> Decimal:
    """cos(pi w) as a function of w^2."""
    return alternating(PI * PI * w2, 0)


def log_single(f: Decimal) -> Decimal:
    """p with log(1 + f) = f - f^2/2 + f^3 p(f)."""
    return ((ONE + f).ln() - f + f * f / 2) / f**3


def log_double(z: Decimal) -> Decimal:
    """p with log((1 + s)/(1 - s)) = 2 s + s^3 p(s^2)."""
    return horner([Decimal(2) / (2 * k + 3) for k in range(40)], z)


def log_interval(single: bool) -> tuple[Decimal, Decimal]:
    root = Decimal(2).sqrt()
    return (1 / root - 1, root - 1) if single else (Decimal(0), (root - 1) ** 4)


def interpolation(
    function: Callable[[Decimal], Decimal], low: Decimal, high: Decimal, count: int
) -> list[Decimal]:
    """Return the coefficients of the interpolating polynomial, the constant one first."""
    cosines = [cosine((Decimal(2 * k + 1) / (2 * count)) ** 2) for k in range(count)]
    x = [(low + high) / 2 + (high - low) / 2 * one for one in cosines]
    differences = [function(one) for one in x]
    for order in range(1, count):
        for i in range(count - 1, order - 1, -1):
            difference = differences[i] - differences[i - 1]
            differences[i] = difference / (x[i] - x[i - order])
    found = [differences[-1]]
    for node, difference in zip(x[-2::-1], differences[-2::-1], strict=True):
        shifted = [Decimal(0), *found]
        found = [a - node * b for a, b in zip(shifted, [*found, Decimal(0)], strict=True)]
        found[0] += difference
    return found


def coefficients(function: str, single: bool) -> list[Decimal]:
    """Return the coefficients in the source, in either branch of its ``#if REAL_BYTES == 4``."""
    body = SOURCE.partition(f"INLINE real {function}(real ")[2].partition("#endif")[0]
    branch = body.split("#else")[0 if single else 1]
    polynomial = re.search(r"polynomial\([^{;]*\{([^}]*)\}", branch)
    assert polynomial
    return [Decimal(one) for one in re.findall(r"scalar\(([^)]*)\)", polynomial[1])]


CASES = [
    ("sin_pi", True, sine, 6.7e-9),
    ("sin_pi", False, sine, 3.3e-19),
    ("cos_pi", True, cosine, 2.3e-10),
    ("cos_pi", False, cosine, 6.4e-21),
    ("natural_log", True, log_single, 2.1e-8),
    ("natural_log", False, log_double, 4.6e-18),
]


@pytest.mark.parametrize(("name", "single", "function", "stated"), CASES)
def test_coefficients_interpolate_at_chebyshev_nodes(name, single, function, stated):
    given = coefficients(name, single)
    low, high = log_interval(single) if name == "natural_log" else (Decimal(0), QUARTER)
    expected = interpolation(function, low, high, len(given))
    real = np.float32 if single else np.float64
    assert [real(one) for one in given] == [real(one) for one in expected]

    def error(x: Decimal) -> float:
        difference = horner(expected, x) - function(x)
        if name == "sin_pi":
            return abs(float(difference / function(x)))
        if name == "cos_pi":
            return abs(float(difference))
        if single:
            return abs(float(difference * x**3 / (ONE + x).ln()))
        return abs(float(difference * x / (2 + x * function(x))))

    worst = max(error(low + (high - low) * k / 400) for k in range(401))
    assert 0.9 * stated < worst < stated
    assert stated < 2.0**-25 if single else stated < 2.0**-54


def test_exponents_are_split_off_at_the_square_root_of_one_half():
    root = Decimal("0.5").sqrt()
    bits = {"0x3f3504f3": np.float32(root), "0x3fe6a09e667f3bcd": np.float64(root)}
    for literal, value in bits.items():
        assert literal in SOURCE
        assert f"0x{int.from_bytes(value.tobytes(), 'little'):x}" == literal
