"""Energies of matrices of correlators with known energies."""

from dataclasses import replace

import numpy as np
import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential.analysis.gevp import last_references, reference_time, variational
from gauge_mc.quantities.potential.analysis.plateau_search import find_plateaus
from tests.analysis.synthetic_loops import (
    GAPS,
    LEVELS,
    fine_matrices,
    potential,
    static_potential,
    synthetic_matrices,
)


def exact(**options):
    """Return matrices without noise but for its last digits."""
    return synthetic_matrices(np.random.default_rng(1), 2, noise=1e-12, **options)


def levels(matrices, state):
    return potential(matrices.distances)[:, None] + GAPS[state]


@pytest.mark.parametrize("t0", [None, 1, 3])
def test_energies_of_matrices_of_as_many_states_as_levels_are_exact(t0):
    whole = exact()
    cut = replace(whole, values=whole.values[..., :2, :2], levels=LEVELS[:2])
    two = synthetic_matrices(np.random.default_rng(1), 2, noise=1e-12, states=2)
    two = replace(two, values=two.values[..., ::3, ::3], levels=LEVELS[::3])
    for state, found in enumerate(variational(two, t0)):
        np.testing.assert_allclose(
            found.series.mean(axis=0),
            np.broadcast_to(levels(two, state), found.series.shape[1:]),
            atol=1e-6,
        )
        assert found.start == (t0 or 1)
        assert found.t[-1] == 11
    # With more states than levels the energies come from above.
    for state, found in enumerate(variational(cut, t0)):
        mean = found.series.mean(axis=0)
        assert (mean > levels(cut, state) - 1e-9).all()
        assert (np.diff(mean, axis=1) < 1e-9).all()


@pytest.mark.slow
def test_more_levels_bring_the_energies_nearer():
    whole = exact()
    deviations = []
    for count in (2, 3, 4):
        some = replace(whole, values=whole.values[..., :count, :count], levels=LEVELS[:count])
        ground = variational(some)[0].series.mean(axis=0)
        deviations.append((ground - levels(whole, 0))[0, 2])
    assert deviations[0] > 3 * deviations[1] > 9 * deviations[2] > 0


def test_states_keep_their_places_in_the_noise():
    """Sorted by eigenvalues alone, states would be exchanged where the noise exceeds the gaps."""
    matrices = synthetic_matrices(np.random.default_rng(3), 400, size=1, noise=0.02)
    for state in (0, 1):
        mean = variational(matrices, 2)[state].series.mean(axis=0)[0]
        assert np.abs(mean[2:] - levels(matrices, state)[0]).max() < 0.25


@pytest.mark.slow
@pytest.mark.parametrize(
    ("t0", "state", "t_min", "trials"),
    [
        (None, 0, 5, 20),
        pytest.param(None, 0, 5, 60, marks=pytest.mark.slow),
        pytest.param(3, 0, 5, 60, marks=pytest.mark.slow),
        pytest.param(None, 1, 7, 60, marks=pytest.mark.slow),
    ],
)
def test_one_standard_deviation_covers_two_thirds(t0, state, t_min, trials):
    rng, pulls = np.random.default_rng(4), []
    for _ in range(trials):
        matrices = synthetic_matrices(rng, 200, size=2)
        found = find_plateaus([variational(matrices, t0)[state]], t_min=t_min)
        truth = levels(matrices, state)[:, 0]
        pulls.extend(
            (p.potential.value - truth[i]) / p.potential.error for i, p in enumerate(found.points)
        )
    assert 0.58 < np.mean(np.abs(pulls) < 1) < 0.78  # 120 values: 0.683 +- 0.042
    assert 0.8 < np.sqrt(np.mean(np.square(pulls))) < 1.2


@pytest.mark.slow
@pytest.mark.parametrize("trials", [12, pytest.param(40, marks=pytest.mark.slow)])
def test_automatic_plateaus_of_the_ground_state(trials):
    rng, pulls = np.random.default_rng(5), []
    for _ in range(trials):
        matrices = synthetic_matrices(rng, 200, size=2)
        found = find_plateaus([variational(matrices)[0]])
        pulls += [
            (p.potential.value - potential(p.distance)) / p.potential.error for p in found.points
        ]
    assert 0.5 < np.mean(np.abs(pulls) < 1) < 0.82
    assert abs(np.mean(pulls)) < 0.4


def test_matrices_that_are_not_positive_are_no_references():
    matrices = exact()
    matrices.values[:, :, 5:, 0, 0] *= 1 - 1e-3
    assert last_references(matrices).tolist() == [4] * matrices.r.size
    ground = variational(matrices, 1)[0]
    assert np.isfinite(ground.series[:, :, :4]).all()
    later = variational(matrices)[0].series.mean(axis=0)[:, 4:]
    np.testing.assert_allclose(later, np.broadcast_to(levels(matrices, 0), later.shape), atol=2e-3)
    with pytest.raises(GaugeError, match=r"t0 = 6 are not positive.* choose t0 up to 4"):
        variational(matrices, 6)


@pytest.mark.slow
@pytest.mark.parametrize("trials", [10, pytest.param(30, marks=pytest.mark.slow)])
def test_noise_of_single_matrix_elements_does_not_enlarge_errors(trials):
    """Where it exceeds the smallest eigenvalue of C(t0), errors would grow a hundredfold."""
    rng, pulls, errors = np.random.default_rng(6), [], []
    for _ in range(trials):
        matrices = synthetic_matrices(rng, 200, size=2, apart=0.2)
        assert 1 <= last_references(matrices).max() <= 3
        found = find_plateaus([variational(matrices)[0]], t_min=4)
        errors.append([one.potential.error for one in found.points])
        pulls += [
            (one.potential.value - potential(one.distance)) / one.potential.error
            for one in found.points
        ]
    assert 0.55 < np.mean(np.abs(pulls) < 1) < 0.8
    assert abs(np.mean(pulls)) < 0.4
    quiet = find_plateaus([variational(synthetic_matrices(rng, 200, size=2))[0]], t_min=4)
    best = [one.potential.error for one in quiet.points]
    assert (np.max(errors, axis=0) < 3 * np.array(best)).all()


@pytest.mark.slow
@pytest.mark.parametrize("apart", [0.05, pytest.param(0.2, marks=pytest.mark.every)])
def test_scale_of_a_fine_lattice(apart):
    """r0/a of SU(3) at beta = 6.2 is found to about a per mille, without a bias."""
    rng, found = np.random.default_rng(8), []
    for _ in range(16):
        ground = variational(fine_matrices(rng, 400, apart))[0]
        found.append(static_potential([ground]).free.fit.r0)
    pulls = np.array([(one.value - 7.38) / one.error for one in found])
    errors = np.array([one.error for one in found]) / 7.38
    assert np.median(errors) < 2e-3
    assert abs(np.mean(pulls)) < 0.8
    assert np.sqrt(np.mean(pulls**2)) < 1.5


def test_what_cannot_be_analysed():
    matrices = exact()
    one = replace(matrices, values=matrices.values[..., :1, :1], levels=LEVELS[:1])
    with pytest.raises(UsageError, match="at least two smearing levels"):
        variational(one)
    with pytest.raises(UsageError, match="t0 = 12 leaves no energy"):
        variational(matrices, 12)
    assert reference_time("half") is None
    assert reference_time("3") == 3
    for text in ("0", "-1", "t/2", "1.5", ""):
        with pytest.raises(UsageError, match="give a time from 1 on, or half"):
            reference_time(text)
