"""Random vectors of pseudofermions."""

import numpy as np
import pytest

from gauge_mc import open_device_group
from gauge_mc.domain.lattice import Lattice
from gauge_mc.extensions.quarks.dynamical.monomials import draw_vectors
from gauge_mc.extensions.quarks.vectors import SpinorField
from gauge_mc.fields.field import AlgebraField, Field
from gauge_mc.fields.random_field import Random
from gauge_mc.random import GENERATORS
from gauge_mc.updates.momenta import draw_momenta
from tests.reference.fields import parity

LATTICE = Lattice(4, 6, 8, 4)
DRAWS = 12
SIGMAS = 5
"""Bound of deviations in units of their standard deviation."""


def drawn(field, random, number=0, count=1, sites=0):
    """Vectors on one parity, as real numbers [vector, component]."""
    vectors = SpinorField.empty(field, count=count, parity=sites)
    draw_vectors(vectors, random, number)
    own = parity(field.lattice.extents) == sites
    return vectors.to_numpy()[:, own].reshape(count, -1).view(float)


@pytest.mark.parametrize("rng_name", sorted(GENERATORS))
def test_numbers_are_normal_and_independent(rng_name, best_device):
    field = Field.cold(LATTICE, "su3", "double", best_device)
    random, found = Random.for_field(field, rng_name, seed=11), []
    for random.step in range(1, DRAWS + 1):
        found.append(drawn(field, random, count=2))
    values = np.reshape(found, (-1, 24)) * np.sqrt(2)
    links, numbers = values.shape
    assert links == DRAWS * 2 * LATTICE.sites // 2
    for power, mean, square in ((1, 0, 1), (2, 1, 3), (3, 0, 15), (4, 3, 105), (6, 15, 10395)):
        error = np.sqrt((square - mean**2) / links)
        assert np.abs((values**power).mean(axis=0) - mean).max() < SIGMAS * error
    assert abs((values**2).mean() - 1) < SIGMAS * np.sqrt(2 / values.size)
    correlations = values.T @ values / links - np.eye(numbers)
    np.fill_diagonal(correlations, 0)
    assert np.abs(correlations).max() < SIGMAS / np.sqrt(links)
    by_vector = np.reshape(found, (DRAWS, 2, -1))
    both = 2 * (by_vector[:, 0] * by_vector[:, 1]).mean()
    assert abs(both) < SIGMAS / np.sqrt(values.size / 2)
    between_draws = 2 * (by_vector[1:] * by_vector[:-1]).mean()
    assert abs(between_draws) < SIGMAS / np.sqrt(values.size)


def test_fields_of_different_numbers_and_momenta_have_nothing_in_common():
    field = Field.cold(LATTICE, "su3", "double")
    random = Random.for_field(field, seed=2)
    random.step = 7
    two = drawn(field, random, count=2)
    assert np.array_equal(two[1], drawn(field, random, number=1)[0])
    momenta = AlgebraField.like(field)
    draw_momenta(momenta, random)
    slab = momenta.slabs[0]
    numbers = slab.device.read(slab.buffer, 0, slab.buffer.nbytes).view(float)
    normal = [two[0], two[1], drawn(field, random, number=2)[0], drawn(field, random, sites=1)[0]]
    # Momenta are halves of normal numbers, and vectors 1 / sqrt(2) of them.
    sizes = [np.round(np.abs(one) * np.sqrt(2), 12) for one in normal]
    sizes.append(np.round(np.abs(numbers) * 2, 12))
    assert np.unique(np.concatenate(sizes)).size > 0.999 * np.concatenate(normal).size


@pytest.mark.parametrize("rng_name", sorted(GENERATORS))
def test_numbers_do_not_depend_on_the_division(rng_name):
    found = []
    for devices in ("cpu", "cpu:2", "cpu:3"):
        field = Field.cold(Lattice(4, 2, 4, 6), "su3", "double", open_device_group(devices))
        random = Random.for_field(field, rng_name, seed=4)
        random.step = 3
        found.append([drawn(field, random, n).tobytes() for n in range(2)])
    assert found[0] == found[1] == found[2]
    assert found[0][0] != found[0][1]
