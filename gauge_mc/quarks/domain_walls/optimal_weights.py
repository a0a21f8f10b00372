"""The weights along the fifth direction with which a domain-wall operator is optimal."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

from gauge_mc.errors import UsageError
from gauge_mc.rounded import cosine, exponential

MOST_RATE = 69.0
"""Minus the logarithm of a nome so small that S is 1 within rounding errors."""

LEAST_TERM = 40.0
"""Minus the logarithm of terms that are left out."""

ROUNDS = 64
"""Bisections of an interval below pi, after which it is smaller than rounding errors."""


@cache
def optimal_weights(extent: int, least: float, most: float) -> tuple[float, ...]:
    """Return the weights w_s for which the sign of H is approximated best.

    The effective operator has S = (1 - T) / (1 + T) in place of the sign, with the product T of all
    (1 - w_s H) / (1 + w_s H). S - 1 then has the smallest maximum for the eigenvalues in an
    interval, and takes it, with alternating signs, at L + 1 points (T.-W. Chiu, Phys. Rev. Lett. 90
    (2003) 071601, hep-lat/0209153). The 1 / w_s are the points at which S is 1. With H = least /
    dn(u), where dn has the modulus k', k = least / most, S is inversely proportional to a dn whose
    nome is the L-th power and whose period is the L-th part.

    Parameters
    ----------
    extent : int
        The extent L of the fifth direction.
    least, most : float
        The smallest and the largest modulus of the eigenvalues of H for which S is optimal.

    Returns
    -------
    tuple of float
        The weights of s = 0, …, L - 1, descending. They may be exchanged.

    Raises
    ------
    UsageError
        If a value is invalid.
    """
    if extent < 1:
        raise UsageError(f"The fifth direction has {extent} sites; give at least 1.")
    if not (0 < least < most < math.inf and least / most > 0):
        raise UsageError(
            f"The eigenvalues are from {least:g} to {most:g}; give two numbers above 0, the "
            "smaller one first."
        )
    k = least / most
    ratio = _mean(1.0, k) / _mean(1.0, math.sqrt((1 - k) * (1 + k)))  # K(k) / K(k')
    inner = _scaled_dn(math.pi * ratio)
    outer = _scaled_dn(min(MOST_RATE, math.pi * ratio * extent))
    smallest = outer(math.pi / 2)
    level = 2 * smallest / (1 + smallest)  # S is 1, amid its smallest and its largest value
    low, high = 0.0, math.pi / 2
    for _ in range(ROUNDS):
        middle = (low + high) / 2
        low, high = (middle, high) if outer(middle) > level else (low, middle)
    crossings = (j * math.pi + sign * low for j in range(extent) for sign in (-1, 1))
    places = sorted(z for z in crossings if 0 < z < extent * math.pi / 2)
    return tuple(inner(z / extent) / least for z in places)


def _mean(a: float, b: float) -> float:
    """Return the arithmetic-geometric mean."""
    while abs(a - b) > 1e-15 * a:
        a, b = (a + b) / 2, math.sqrt(a * b)
    return (a + b) / 2


def _scaled_dn(rate: float) -> Callable[[float], float]:
    """Return dn(2 K z / pi) / dn(0), given minus the logarithm of the nome.

    It is a quotient of theta functions, theta_3(z) / theta_4(z) times theta_4(0) / theta_3(0); see
    E. T. Whittaker and G. N. Watson, A Course of Modern Analysis, section 22.11.
    """
    terms = range(1, 2 + math.isqrt(math.ceil(LEAST_TERM / rate)))
    powers = [2 * exponential(-rate * n * n) for n in terms]

    def ratio(z: float) -> float:
        waves = [power * cosine(2 * n * z) for n, power in zip(terms, powers, strict=True)]
        signed = [one if n % 2 == 0 else -one for n, one in zip(terms, waves, strict=True)]
        return math.fsum([1, *waves]) / math.fsum([1, *signed])

    first = ratio(0.0)
    return lambda z: ratio(z) / first
