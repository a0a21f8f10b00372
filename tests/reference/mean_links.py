"""The mean of a link given all others, from the integral over the group."""

from decimal import Decimal, localcontext
from itertools import combinations
from math import factorial

import numpy as np
from scipy.special import iv

from .fields import Complex, Real


def log_integral(j: Complex) -> Real:
    """log of the integral of exp(2 Re Tr U J^dagger) over SU(N), up to a constant.

    With the singular values s_i of J and the phase a of its determinant it is the sum over n of
    exp(i n a) det [z_i^(k-1) I_(n+k-1)(z_i)] / prod_(i<k) (z_i^2 - z_k^2), z = 2 s (Leutwyler and
    Smilga, Phys. Rev. D 46 (1992) 5607).
    """
    n = j.shape[-1]
    z = 2 * np.linalg.svd(j, compute_uv=False)
    phase = np.angle(np.linalg.det(j))
    powers = np.arange(n)
    vandermonde = np.ones(z.shape[:-1])
    for i in range(n):
        for k in range(i):
            vandermonde *= z[..., k] ** 2 - z[..., i] ** 2
    total = np.zeros(z.shape[:-1])
    for charge in range(21):
        columns = z[..., None] ** powers * iv(charge + powers, z[..., None])
        total += (2 if charge else 1) * np.cos(charge * phase) * np.linalg.det(columns)
    return np.log(np.abs(total / vandermonde))


def mean_links(staples: Complex, weight: float, step: float = 1e-4) -> Complex:
    """Mean of U with the density exp(weight Re Tr U s^dagger), by numerical differentiation.

    For SU(2), s = k V, and it is V I_2(2 weight k) / I_1(2 weight k).
    """
    j = weight / 2 * staples
    if j.shape[-1] == 2:
        k = np.sqrt(np.linalg.det(j).real)[..., None, None]
        return j / k * iv(2, 4 * k) / iv(1, 4 * k)
    mean = np.zeros_like(j)
    for index in np.ndindex(j.shape[-2:]):
        for unit in (1, 1j):
            moved = np.zeros(j.shape[-2:], complex)
            moved[index] = unit * step
            near = log_integral(j + moved) - log_integral(j - moved)
            far = log_integral(j + 2 * moved) - log_integral(j - 2 * moved)
            mean[(..., *index)] += unit * (8 * near - far) / (24 * step)
    return mean


def mean_trace(n: int, beta: float) -> float:
    """<Re Tr U> / N of one link with the density exp(beta / N Re Tr U), U in SU(N).

    The integral over the eigenvalues is a sum over powers of the determinant of Toeplitz
    determinants of Bessel functions (Bars and Green, Phys. Rev. D 20 (1979) 3311). Their digits
    cancel, so that they are computed with 60 of them.
    """
    with localcontext(prec=60):
        half = Decimal(beta) / n / 2
        bessel = [_bessel(order, half) for order in range(n + 30)]

        def total(shift: int) -> Decimal:
            """Return the sum of the determinants whose last row has orders larger by `shift`."""
            return sum(
                (
                    _determinant(
                        [
                            [bessel[abs(q + i - j + shift * (i == n - 1))] for j in range(n)]
                            for i in range(n)
                        ]
                    )
                    for q in range(-20, 21)
                ),
                Decimal(0),
            )

        return float(total(1) / total(0) / n)


def _bessel(order: int, half: Decimal) -> Decimal:
    """I_order(2 half), by its series."""
    terms = (half ** (2 * k + order) / (factorial(k) * factorial(k + order)) for k in range(150))
    return sum(terms, Decimal(0))


def _determinant(rows: list[list[Decimal]]) -> Decimal:
    """Determinant by elimination."""
    if len(rows) == 1:
        return rows[0][0]
    first, *others = sorted(rows, key=lambda row: -abs(row[0]))
    swaps = sum(rows.index(a) > rows.index(b) for a, b in combinations([first, *others], 2))
    smaller = [
        [x - row[0] / first[0] * y for x, y in zip(row, first, strict=True)] for row in others
    ]
    return (-1) ** swaps * first[0] * _determinant([row[1:] for row in smaller])
