"""The coefficients of the elementary functions are those of the stated interpolation.

They are computed again with decimal numbers of 50 digits: Newton's divided differences at the zeros
of the Chebyshev polynomial of the interval.
"""

import re
import subprocess
from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import pytest

from gauge_mc.devices.cpu import compiler
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


def arctangent(z: Decimal) -> Decimal:
    """atan(y)/(pi y) as a function of z = y^2."""
    return horner([Decimal((-1) ** k) / (2 * k + 1) for k in range(80)], z) / PI


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


INTERVALS = {
    "natural_log": log_interval,
    "arctangent_over_pi": lambda _: (Decimal(0), (Decimal(2).sqrt() - 1) ** 2),
}

CASES = [
    ("sin_pi", True, sine, 6.7e-9),
    ("sin_pi", False, sine, 3.3e-19),
    ("cos_pi", True, cosine, 2.3e-10),
    ("cos_pi", False, cosine, 6.4e-21),
    ("arctangent_over_pi", True, arctangent, 6.3e-10),
    ("arctangent_over_pi", False, arctangent, 1.3e-18),
    ("natural_log", True, log_single, 2.1e-8),
    ("natural_log", False, log_double, 4.6e-18),
]


@pytest.mark.parametrize(("name", "single", "function", "stated"), CASES)
def test_coefficients_interpolate_at_chebyshev_nodes(name, single, function, stated):
    given = coefficients(name, single)
    low, high = INTERVALS.get(name, lambda _: (Decimal(0), QUARTER))(single)
    expected = interpolation(function, low, high, len(given))
    real = np.float32 if single else np.float64
    assert [real(one) for one in given] == [real(one) for one in expected]

    def error(x: Decimal) -> float:
        difference = horner(expected, x) - function(x)
        if name in ("sin_pi", "arctangent_over_pi"):
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


PROGRAM = r"""
#include <cmath>
#include <cstdio>
#include "arch/maths.h"

static double worst;
static const long double PI = std::acos(-1.0L);
using Exact = long double (*)(long double);
template <class F> void compare(const char* name, double low, double high, F of, Exact exact) {
    worst = 0;
    for (int i = 0; i < 200000; i++) {
        const scalar x = scalar(low + (high - low) * (i + 0.5) / 200000);
        const scalar found = of(broadcast(x))[0];
        const long double right = exact(x);
        const scalar nearest = scalar(std::fabs((double)right));
        const double unit = std::nextafter(nearest, scalar(INFINITY)) - nearest;
        worst = std::fmax(worst, std::fabs((double)((long double)found - right)) / unit);
    }
    std::printf("%s %.3f\n", name, worst);
}

int main() {
    compare("natural_log", 1e-6, 0.5, natural_log, [](long double x) { return std::log(x); });
    compare("sin_pi", -0.5, 0.5, sin_pi, [](long double x) { return std::sin(PI * x); });
    compare("cos_pi", -0.33, 0.33, cos_pi, [](long double x) { return std::cos(PI * x); });
    compare("arctangent_over_pi", -20, 20, arctangent_over_pi,
            [](long double x) { return std::atan(x) / PI; });
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("real_bytes", [4, 8])
def test_functions_are_accurate_when_fused_as_in_strict_runs(real_bytes, tmp_path):
    """Compared with the C library in higher precision, in units of the last place."""
    source, program = tmp_path / "accuracy.cpp", tmp_path / "accuracy"
    source.write_text(PROGRAM)
    flags = [one for one in compiler.FLAGS if one not in ("-shared", "-fPIC")]
    defined = [f"-DREAL_BYTES={real_bytes}", "-DLANES=4", "-DLARGE=0", "-DSTRICT=1"]
    command = [*compiler.find_compiler().words, *flags, compiler.CONTRACTIONS[True], *defined]
    subprocess.run([*command, f"-I{source_folder()}", source, "-o", program, "-lm"], check=True)
    found = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    errors = dict(zip(found[::2], map(float, found[1::2]), strict=True))
    assert len(errors) == 4
    assert all(0.4 < error < 3 for error in errors.values()), errors
