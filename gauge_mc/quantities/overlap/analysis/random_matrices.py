"""Means of the lowest eigenvalues of chiral random matrices, for the microscopic Dirac spectrum.

In quenched gauge theory, the low eigenvalues i lambda of the Dirac operator in a sector of the
topological charge nu are distributed as those of chiral random matrices, in units of
1 / (Sigma V). The class is the unitary one for SU(N) with N > 2 and the orthogonal one for SU(2),
with quarks in the fundamental representation (J. J. M. Verbaarschot, hep-th/9405006).

With the operator V on (0, 1) whose kernel is s sqrt(x y) J_nu(s x y), the number n of eigenvalues
of the unitary class between 0 and s has the generating function <x^n> = det(1 - (1 - x) V^2), since
V^2 is the Bessel kernel. If two independent spectra of the orthogonal class are put together, every
second eigenvalue of them is one of the unitary class (P. J. Forrester, nlin/0005064). This
determines the generating function G of the orthogonal one by

(1 + x) G(x)^2 - (1 - x) G(-x)^2 = 2 x det(1 - (1 - x^2) V^2)

together with G(0) = det(1 - V), and the solution is, with r = sqrt(1 - x^2),

G(x) = [(1 + c) det(1 - r V) + (1 - c) det(1 + r V)] / 2,  c = sqrt((1 - x) / (1 + x)).

Determinants are computed on the nodes of a quadrature (F. Bornemann, arXiv:0804.2543).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from gauge_mc.arrays import Array

UNITARY, ORTHOGONAL = 2, 1
"""The Dyson indices of the classes."""

CLASSES = {UNITARY: "chiral unitary", ORTHOGONAL: "chiral orthogonal"}
"""Their names."""

NODES = 20
"""Nodes of the quadrature of a determinant besides one for every two units of the interval."""

BEYOND = 10.0
"""Distance beyond the largest mean eigenvalue up to which probabilities are integrated."""

STEPS = 2.0
"""Nodes of the integral over the eigenvalue per unit."""

RADIUS, CIRCLE = 0.5, 128
"""Radius of the circle on which generating functions are evaluated, and number of points."""


def dyson_index(colours: int) -> int:
    """Return the Dyson index of quarks in the fundamental representation of SU(N)."""
    return ORTHOGONAL if colours == 2 else UNITARY


@cache
def mean_eigenvalues(dyson: int, nu: int, number: int) -> tuple[float, ...]:
    """Return the means of the lowest eigenvalues in units of 1 / (Sigma V).

    Parameters
    ----------
    dyson : int
        `UNITARY` or `ORTHOGONAL`.
    nu : int
        Topological charge, which is the number of zero modes; its sign has no effect.
    number : int
        How many of the eigenvalues that are not 0.
    """
    nu = abs(nu)
    last = math.pi * (number + nu / 2) + BEYOND
    x, w = np.polynomial.legendre.leggauss(round(STEPS * last))
    s, weights = last * (x + 1) / 2, last * w / 2
    within = np.array([_fewer(dyson, nu, number, float(one)) for one in s])
    return tuple((weights @ within).tolist())  # <z_k> is the integral of P(fewer than k below s)


def _fewer(dyson: int, nu: int, number: int, s: float) -> Array:
    """Return the probabilities of fewer than 1, 2, … eigenvalues between 0 and s."""
    x = RADIUS * np.exp(2j * np.pi * np.arange(CIRCLE) / CIRCLE)
    mu = _kernel_eigenvalues(nu, s)
    if dyson == UNITARY:
        values = np.prod(1 - np.multiply.outer(1 - x, mu**2), axis=1)
    else:
        r, c = np.sqrt(1 - x**2), np.sqrt((1 - x) / (1 + x))
        one = np.multiply.outer(r, mu)
        values = ((1 + c) * np.prod(1 - one, axis=1) + (1 - c) * np.prod(1 + one, axis=1)) / 2
    probabilities = (np.fft.fft(values) / CIRCLE).real[:number] / RADIUS ** np.arange(number)
    return np.asarray(np.cumsum(probabilities))


def _kernel_eigenvalues(nu: int, s: float) -> Array:
    x, w = np.polynomial.legendre.leggauss(NODES + math.ceil(s / 2))
    t, weights = (x + 1) / 2, w / 2
    scales = np.sqrt(weights * t)  # the measure t dt, so that the rest of the kernel is analytic
    kernel = s * np.outer(scales, scales) * bessel_j(nu, s * np.outer(t, t))
    return np.asarray(np.linalg.eigvalsh(kernel), dtype=np.float64)


def bessel_j(order: int, x: Array) -> Array:
    """Return the Bessel function J_n(x) of whole order by its integral over an angle."""
    number = order + 30 + math.ceil(float(np.abs(x).max()))  # errors are J_k(x) with k > x + 29
    angles = np.pi * np.arange(number + 1) / number
    weights = np.where((angles == 0) | (angles == angles[-1]), 0.5, 1.0) / number
    terms = np.cos(order * angles - np.multiply.outer(x, np.sin(angles)))
    return np.asarray(terms @ weights, dtype=np.float64)
