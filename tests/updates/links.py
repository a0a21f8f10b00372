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


def assert_overrelaxed(field, expected, tolerance, most=20):
    """Compare links after a sweep; few may deviate by so many times the tolerance at most."""
    difference = field.to_numpy() - expected
    assert np.abs(difference).max() < most * tolerance
    assert np.sqrt(np.mean(np.abs(difference) ** 2)) < tolerance


def assert_heated(field, expected, tolerance, changed=2e-3):
    """Compare links after a sweep, of which this share may differ.

    Rounding can decide otherwise about a proposal; the link is then another one.
    """
    difference = np.abs(field.to_numpy() - expected).max(axis=(-2, -1))
    assert np.mean(difference > 100 * tolerance) < changed
    assert np.median(difference) < tolerance
