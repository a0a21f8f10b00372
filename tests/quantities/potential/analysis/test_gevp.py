"""Operators and energies of matrices of correlators that are known."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential.loop_tables import effective_energies
from gauge_mc.quantities.potential.static_potential import potential_of, variational
from tests.analysis.synthetic_loops import (
    FINE,
    GAPS,
    LEVELS,
    fine_matrices,
    potential,
    synthetic_matrices,
)


def exact(levels, **options):
    """Return matrices of some levels without noise but for its last digits."""
    whole = synthetic_matrices(np.random.default_rng(1), 12, noise=1e-12, **options)
    values = whole.values[..., levels, :][..., levels]
    return replace(whole, values=values, levels=tuple(LEVELS[n] for n in levels))


def truth(matrices, state):
    return potential(matrices.distances)[:, None] + GAPS[state]


@pytest.mark.parametrize("levels", [[0, 3], [0, 1, 3], [0, 1, 2, 3]])
def test_as_many_states_as_levels_are_exact(levels):
    matrices = exact(levels, states=len(levels), times=6)
    states = variational(matrices)
    assert len(states) == len(levels)
    for number, state in enumerate(states):
        energies = effective_energies(state).series.mean(axis=0)
        np.testing.assert_allclose(energies - truth(matrices, number), 0, atol=2e-5)
        assert state.levels == matrices.levels
        np.testing.assert_allclose(state.values.mean(axis=0)[:, 0], 1, rtol=1e-5)


def test_levels_that_say_nothing_new_are_dropped():
    """A third level that is the sum of two others makes C(t0) singular."""
    two = exact([0, 3], states=2, times=6)
    mix = np.array([[1.0, 0.0], [0.0, 1.0], [0.3, 0.7]])
    singular = replace(two, values=mix @ two.values @ mix.T, levels=(0, 5, 25))
    states = variational(singular)
    assert len(states) == 2
    for number, state in enumerate(states):
        energies = effective_energies(state).series.mean(axis=0)
        np.testing.assert_allclose(energies - truth(two, number), 0, atol=2e-5)


def test_more_levels_bring_energies_nearer_from_above():
    deviations = []
    for levels in ([0], [0, 1], [0, 1, 2], [0, 1, 2, 3]):
        matrices = exact(levels)
        ground = effective_energies(variational(matrices)[0]).series.mean(axis=0)
        assert (np.diff(ground, axis=1) < 1e-8).all()
        deviations.append((ground - truth(matrices, 0))[0, 2])
    pairs = pairwise(deviations)
    assert all(before > 3 * after > 0 for before, after in pairs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "trials", [pytest.param(12, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.every)]
)
def test_ground_states_of_a_fine_lattice(trials):
    """Two thirds of V(R) of SU(3) at beta = 6.2 are within one error, which is of a per mille."""
    rng, pulls, errors = np.random.default_rng(8), [], []
    for _ in range(trials):
        matrices = fine_matrices(rng, 300, 0.05)
        energies = [effective_energies(variational(matrices)[0])]
        for point in potential_of(energies, matrices.replicas, single=False).points:
            pulls.append((point.potential.value - potential(point.distance, **FINE)) / point.error)
            errors.append(point.error / point.potential.value)
    assert np.median(errors) < 2e-3
    assert 0.683 - 3 * (0.22 / trials) ** 0.5 < np.mean(np.abs(pulls) < 1)
    assert np.mean(np.abs(pulls) < 2) > 0.9 - 0.6 / trials**0.5
    assert abs(np.mean(pulls)) < 0.8


def test_what_cannot_be_analysed():
    matrices = exact([0, 3])
    with pytest.raises(UsageError, match="needs loops of at least two t; measure larger t"):
        variational(replace(matrices, t=matrices.t[:1], values=matrices.values[:, :, :1]))
    matrices.values[:, 1, 0, 1, 1] *= -1
    with pytest.raises(GaugeError, match="shortest t are not positive"):
        variational(matrices)
