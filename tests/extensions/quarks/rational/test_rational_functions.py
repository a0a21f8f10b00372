"""Rational approximations of powers: optimal, as accurate as they say, and as published."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import ellipj, ellipk

from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks import rational_functions
from gauge_mc.extensions.quarks.rational_functions import approximate

POWERS = (-0.5, -0.25, 0.25, 0.5, -0.75, 0.125, -0.9, -0.05)
RANGES = ((1e-3, 1.0), (1e-7, 5.0))


def relative_error(function, x):
    """The error x^-p R(x) - 1."""
    factors = [
        (x + zero) / (x + pole) for zero, pole in zip(function.zeros, function.poles, strict=True)
    ]
    return math.prod(factors, start=function.factor) * x ** -Decimal(function.power) - 1


def extreme_errors(function, points=2000):
    """The extrema of the relative error on a dense grid, ends included, in ascending order of x."""
    x = np.geomspace(function.lower, function.upper, points)
    x[0], x[-1] = function.lower, function.upper
    with localcontext(prec=rational_functions.DIGITS):
        errors = np.array([float(relative_error(function, Decimal(one))) for one in x])
    inner = [
        n
        for n in range(1, points - 1)
        if (errors[n] - errors[n - 1]) * (errors[n + 1] - errors[n]) <= 0
    ]
    return errors[[0, *inner, points - 1]]


@pytest.mark.first_quick
@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize(("lower", "upper"), RANGES)
def test_the_error_oscillates_between_equal_sizes(power, lower, upper):
    """Which is equivalent to being the best function (Chebyshev): 2 n + 2 extrema."""
    function = approximate(power, lower, upper, poles=5).function
    found = extreme_errors(function)
    assert len(found) == 12
    assert all(a * b < 0 for a, b in pairwise(found))
    # A grid misses an extremum by at most half its distance, where the error is flat.
    assert np.abs(np.abs(found) / function.error - 1).max() < 1e-3
    assert abs(abs(found[0]) / function.error - 1) < 1e-9


def test_zolotarev_against_elliptic_functions_of_another_library():
    """Zeros and poles are (cn / sn)^2 (r K / (2 n + 1)) for r = 1, 3, ... and r = 2, 4, ..."""
    n, lower = 6, 1e-3
    function = approximate(-0.5, lower, 1.0, poles=n).function
    m = 1 - lower
    sn, cn, _, _ = ellipj(np.arange(1, 2 * n + 1) * ellipk(m) / (2 * n + 1), m)
    expected = (cn / sn) ** 2
    np.testing.assert_allclose([float(one) for one in function.zeros], expected[::2], rtol=1e-12)
    np.testing.assert_allclose([float(one) for one in function.poles], expected[1::2], rtol=1e-12)


# Of the program AlgRemez (M. A. Clark and A. D. Kennedy), for x^(-1/4) and x^(1/8): power, range,
# number of poles, error; constant, last residue, first shift.
PUBLISHED = [
    (-0.25, 1e-4, 45, 9, 1.928152e-05, 0.20777859903, 14.235435645, 3.0945740856e-05),
    (0.125, 1e-4, 45, 9, 1.038366e-05, 2.1830271621, -80.587284363, 5.5083850325e-05),
    (-0.25, 1e-8, 5e4, 19, 1.680918e-05, 0.035781609297, 2786.5429991, 3.0177513487e-09),
    (0.125, 0.02, 50, 6, 8.140949e-06, 2.2231956780, -95.059971756, 1.0516496797e-02),
]


@pytest.mark.parametrize(
    ("power", "lower", "upper", "poles", "error", "constant", "residue", "shift"), PUBLISHED
)
def test_published_coefficients(power, lower, upper, poles, error, constant, residue, shift):
    found = approximate(power, lower, upper, poles=poles)
    assert found.function.error == pytest.approx(error, rel=1e-6)
    assert found.constant == pytest.approx(constant, rel=1e-7)
    assert found.residues[-1] == pytest.approx(residue, rel=1e-7)
    assert found.shifts[0] == pytest.approx(shift, rel=1e-6)


@pytest.mark.first_quick
@pytest.mark.parametrize("power", POWERS)
def test_as_few_poles_as_an_error_needs(power):
    lower, upper, error = 3e-5, 4.0, 3e-8
    found = approximate(power, lower, upper, error=error)
    assert found.error <= error
    assert approximate(power, lower, upper, poles=len(found.shifts) - 1).error > error
    x = np.geomspace(lower, upper, 1000)
    deviation = np.abs(found(x) / x**power - 1).max()
    assert deviation == pytest.approx(found.error, rel=1e-3, abs=1e-11)
    assert (np.diff(found.shifts) > 0).all()
    assert found.shifts[0] > 0
    assert (found.residues * power < 0).all()


@pytest.mark.slow
def test_rounded_coefficients_are_measured():
    """Rounding to double precision is part of the error that is stated."""
    found = approximate(-0.5, 1e-6, 1.0, error=2e-14)
    assert found.function.error < found.error <= 2e-14
    worse = approximate(0.9, 1e-6, 1.0, poles=23)
    assert worse.error > 100 * worse.function.error
    with pytest.raises(UsageError, match=r"rounding the coefficients leaves one of \d"):
        approximate(0.9, 1e-6, 1.0, error=1e-12)


def test_x_times_a_function_of_its_square_is_the_sign():
    found = approximate(-0.5, 0.02**2, 1.0, error=1e-6)
    x = np.geomspace(0.02, 1, 500)
    for sign in (-1, 1):
        assert np.abs(sign * x * found((sign * x) ** 2) - sign).max() <= found.error * 1.0001


@pytest.mark.slow
def test_what_is_refused():
    for power, lower, upper, how, message in (
        (0.0, 0.1, 1.0, {"poles": 3}, "The power is 0; give one whose size is from 0.01 to 0.9"),
        (-0.5, 1.0, 0.1, {"poles": 3}, "The range is from 1 to 0.1; give two positive numbers"),
        (-0.5, 0.1, 1.0, {"error": 1e-15}, r"The error is .*; give one from 1e-14"),
        (-0.5, 0.1, 1.0, {"poles": 61}, "number of poles is 61; give one from 1 to 60"),
        (-0.5, 1e-60, 1.0, {"error": 1e-10}, "needs more than 60 poles; choose a larger error or"),
    ):
        with pytest.raises(UsageError, match=message):
            approximate(power, lower, upper, **how)


@pytest.mark.parametrize("poles", [1, 4, 9])
def test_the_exchange_algorithm_finds_the_function_of_zolotarev(poles):
    """From another function, with other points."""
    with localcontext(prec=rational_functions.DIGITS):
        known = rational_functions._zolotarev(poles, Decimal("1e-5"))
        start = replace(
            known,
            factor=Decimal(1),
            zeros=tuple(one * Decimal("1.2") for one in known.zeros),
            poles=tuple(one * Decimal("0.9") for one in known.poles),
            error=known.error * 3,
            extrema=(
                known.extrema[0],
                *(one * Decimal("1.05") for one in known.extrema[1:-1]),
                known.extrema[-1],
            ),
        )
        found = rational_functions._remez(Decimal("-0.5"), start)
        assert found.error != known.error
        pairs = zip(found.zeros + found.poles, known.zeros + known.poles, strict=True)
        assert max(abs(one / other - 1) for one, other in pairs) < Decimal("1e-18")
        assert abs(found.error / known.error - 1) < Decimal("1e-18")
        assert abs(found.factor / known.factor - 1) < Decimal("1e-18")
