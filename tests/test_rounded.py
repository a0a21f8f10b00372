"""Functions that are rounded once, compared with rational arithmetic."""

import math
import random
from fractions import Fraction

import pytest

from gauge_mc.quoting import (
    complementary_error_function,
    cosine,
    exponential,
    modulus,
    power,
    root_of_unity,
)

RANDOM = random.Random(1)


def series(x):
    total = term = Fraction(1)
    for n in range(1, 120):
        term *= Fraction(x) / n
        total += term
    return total


@pytest.mark.parametrize("x", [RANDOM.uniform(-8, 0) for _ in range(50)])
def test_the_exponential_function_is_rounded_once(x):
    assert exponential(x) == float(series(x))


def test_exponential_functions_of_large_arguments():
    assert exponential(0.0) == 1.0
    assert exponential(-745.0) == 5e-324
    assert exponential(-1e300) == exponential(-746.0) == 0.0
    assert exponential(1e300) == math.inf


@pytest.mark.parametrize("x", [RANDOM.uniform(0.01, 100) for _ in range(20)])
def test_powers(x):
    assert power(x, 1 / 2) == math.sqrt(x)
    assert power(x, 3.0) == float(Fraction(x) ** 3)


@pytest.mark.parametrize("x", [0.0, *(RANDOM.uniform(0, 4) for _ in range(20))])
def test_the_error_function(x):
    assert complementary_error_function(x) == pytest.approx(math.erfc(x), rel=1e-14)


@pytest.mark.parametrize("x", [0.0, *(RANDOM.uniform(-8, 8) for _ in range(20))])
def test_the_cosine_is_rounded_once(x):
    total = term = Fraction(1)
    for n in range(2, 120, 2):
        term *= -(Fraction(x) ** 2) / (n * (n - 1))
        total += term
    assert cosine(x) == float(total)


def test_cosines_of_large_arguments():
    assert cosine(1e5) == pytest.approx(math.cos(1e5), rel=1e-14)


@pytest.mark.parametrize("order", range(2, 9))
def test_roots_of_unity(order):
    """Powers of the first one are the others, and their angles are equal."""
    found = [complex(*root_of_unity(n, order)) for n in range(order)]
    assert found[0] == 1
    for n, one in enumerate(found):
        assert abs(one - found[1] ** n) < 1e-15 * order
        assert abs(one) == pytest.approx(1, abs=2e-16)
    if order % 2 == 0:
        assert found[order // 2] == -1
    assert root_of_unity(1, 3)[0] == -0.5
    assert root_of_unity(3, 4) == (0.0, -1.0)


def test_the_modulus_is_rounded_once():
    for _ in range(50):
        x, y = RANDOM.gauss(0, 1e-3), RANDOM.gauss(0, 1)
        found, square = Fraction(modulus(x, y)), Fraction(x) ** 2 + Fraction(y) ** 2
        below, above = (
            (found + Fraction(math.nextafter(float(found), end))) / 2 for end in (0, math.inf)
        )
        assert below**2 <= square <= above**2
