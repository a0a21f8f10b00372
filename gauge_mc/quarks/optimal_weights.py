"""The weights along the fifth direction with which a domain-wall operator is optimal."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from gauge_mc.errors import UsageError

LEAST_NOME = 1e-30
"""A nome so small that S is 1 within rounding errors."""

ROUNDS = 64
"""Bisections of an interval below pi, after which it is smaller than rounding errors."""


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
    inner = _scaled_dn(math.exp(-math.pi * ratio))
    outer = _scaled_dn(max(LEAST_NOME, math.exp(-math.pi * ratio * extent)))
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


def _scaled_dn(nome: float) -> Callable[[float], float]:
    """Return dn(2 K z / pi) / dn(0), given the nome.

    It is a quotient of theta functions, theta_3(z) / theta_4(z) times theta_4(0) / theta_3(0); see
    E. T. Whittaker and G. N. Watson, A Course of Modern Analysis, section 22.11.
    """
    terms = np.arange(1, 2 + math.isqrt(math.ceil(40 / -math.log(nome))))
    powers = 2 * nome ** (terms**2.0)

    def ratio(z: float) -> float:
        waves = powers * np.cos(2 * terms * z)
        return float((1 + waves.sum()) / (1 + (waves * (-1.0) ** terms).sum()))

    first = ratio(0.0)
    return lambda z: ratio(z) / first
