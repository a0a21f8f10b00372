"""The distances at which V(R) is known, and those that are fitted."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from gauge_mc.arrays import Array
from gauge_mc.quantities.potential.analysis.plateaus import Plateaus

LEAST_DISTANCES = 4
"""Minimum number of distances in a fit: one more than A + B/R + sigma R has parameters."""

TRUSTED_DISTANCES = 5
"""Minimum number of distances in a window that is not asked for: two degrees of freedom are left,
so that chi2 can tell whether the form fits."""

SMALLEST_R = 2.0
"""Smallest R of a window that is not asked for. At R = 1 lattice artefacts are largest."""


def window_points(
    plateaus: Plateaus, r_min: float, r_max: float
) -> tuple[Array, NDArray[np.bool_]]:
    """Return the distances of a window, and which points they are."""
    distances = np.array([one.distance for one in plateaus.points])
    used = between(distances, r_min, r_max)
    return distances[used], used


def known_distances(plateaus: Plateaus) -> Array:
    """Return the distances that have a plateau, without duplicates, ascending."""
    return np.unique([one.distance for one in plateaus.points])


def usable_distances(plateaus: Plateaus) -> Array:
    """Return the distances that may be fitted if no window is asked for."""
    known = known_distances(plateaus)
    return known[between(known, SMALLEST_R, math.inf)]


def between(r: Array, low: float, high: float) -> NDArray[np.bool_]:
    """Mark the distances from low to high; 1e-9 allows for the rounding of their square roots."""
    return np.asarray((r >= low - 1e-9) & (r <= high + 1e-9))
