"""Links to begin with, and how far links are from the group."""

from functools import cache

import numpy as np

from gauge_mc.domain.lattice import Lattice
from tests.reference.fields import cold_field, dagger, random_field, reunitarise

LATTICES = [Lattice(4, 6, 8, 10), Lattice(8, 8, 4, 6)]


def unitarity_violation(links):
    """Return the largest deviation of U U^dagger and of det U from 1."""
    n = links.shape[-1]
    return max(
        np.abs(links @ dagger(links) - np.eye(n)).max(), np.abs(np.linalg.det(links) - 1).max()
    )


@cache
def start(lattice, group):
    """Return random links about 1: the staples of mere noise may leave a link undetermined."""
    rough = random_field(lattice.extents, group, np.random.default_rng(61))
    return reunitarise(cold_field(lattice.extents, group) + 0.7 * rough)
