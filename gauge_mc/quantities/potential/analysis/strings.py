"""The energy of a bosonic string between static charges."""

from __future__ import annotations

import math

import numpy as np

from gauge_mc.arrays import Array

LUSCHER = -math.pi / 12
"""Coefficient of 1/R in the potential of the bosonic string in four dimensions (M. Luescher,
K. Symanzik and P. Weisz, Nucl. Phys. B 173 (1980) 365)."""

STRING_BOUND = math.pi / 6
"""sigma R^2 below which the Nambu-Goto string is unstable."""


def string_energy(r: Array, sigma: float) -> tuple[Array, Array]:
    """Return the energy of the Nambu-Goto string, and its derivative by sigma."""
    root = np.sqrt(np.maximum((sigma * r) ** 2 - STRING_BOUND * sigma, 1e-300))
    return root, (2 * sigma * r**2 - STRING_BOUND) / (2 * root)
