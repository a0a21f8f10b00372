"""The ideal gas of gluons, the limit of infinite temperature."""

from __future__ import annotations

import math

import numpy as np

from gauge_mc.arrays import Array

MOMENTA = 48
"""Number of points for each component of the momentum, by which the integral is exact to 1e-6."""


def ideal_pressure(dimension: int) -> float:
    """Return p/T^4 = (pi^2/45) (N^2 - 1) of the ideal gas in the continuum (Stefan and Boltzmann).

    Parameters
    ----------
    dimension : int
        Number of generators of the group, N^2 - 1 for SU(N).
    """
    return dimension * math.pi**2 / 45


def ideal_pressure_on_lattice(dimension: int, extent: int) -> float:
    """Return p/T^4 of the ideal gas for the Wilson action, N_t links along t, and infinite space.

    It is minus the free energy, as the integral method gives it. In Feynman's gauge, each of the
    2 (N^2 - 1) polarisations has the energies E with sinh^2(E/2) = sum_i sin^2(k_i/2), and
    contributes -N_t^3 times the average of ln(1 - exp(-N_t E)) over the momenta k_i in (-pi, pi).
    Relative to the continuum it is 1 + (8/21) (pi/N_t)^2 + ....

    Parameters
    ----------
    dimension : int
        Number of generators of the group.
    extent : int
        Number N_t of links along t.
    """
    squared, weights = _momenta(extent)
    energy = 2 * np.arcsinh(np.sqrt(squared))
    return float(-2 * dimension * extent**3 * (weights @ np.log1p(-np.exp(-extent * energy))))


def _momenta(extent: int) -> tuple[Array, Array]:
    """Return sum_i sin^2(k_i/2) and weights of the momenta in the average over a Brillouin zone.

    By symmetry the components are positive. Each is pi x^3 with the points x of Gauss and Legendre,
    denser at small momenta, which alone contribute at large N_t.
    """
    points, own = np.polynomial.legendre.leggauss(MOMENTA)
    x, own = (points + 1) / 2, own / 2
    power = 3 if extent > 2 else 1
    sines, jacobian = np.sin(math.pi / 2 * x**power) ** 2, own * power * x ** (power - 1)
    total = sines[:, None, None] + sines[:, None] + sines
    weight = jacobian[:, None, None] * jacobian[:, None] * jacobian
    return total.ravel(), weight.ravel()
