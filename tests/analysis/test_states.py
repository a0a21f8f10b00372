"""Energies of states from effective energies that are known."""

import math

import numpy as np
import pytest

from gauge_mc.analysis.states import GAP, GAPS, Correlator, known_times, state_of
from gauge_mc.analysis.timeseries import Replicas

ALONE = Replicas.alone(50)


def noisy(mean, size=1e-6, seed=1):
    """Return series of a mean, with noise that is correlated in t."""
    unit = np.random.default_rng(seed).normal(size=(50, len(mean))).cumsum(axis=1)
    return np.asarray(mean) + size * unit


def total(state):
    return math.hypot(state.energy.error, state.systematic)


@pytest.mark.parametrize("step", [1, 2])
def test_a_single_state_is_found_from_the_first_t(step):
    state = state_of(noisy(np.full(8, 0.3)), ALONE, 3, step)
    assert state.energy.value == pytest.approx(0.3, abs=1e-6)
    assert total(state) < 2e-6
    assert (state.t_min, state.t_max) == (3, 3 + 7 * step)
    np.testing.assert_allclose(state.series.mean(), state.energy.value)


@pytest.mark.parametrize("step", [1, 2])
def test_the_most_probable_fit_begins_behind_what_no_form_describes(step):
    mean = np.full(9, 0.3)
    mean[1:3] += [-0.02, 0.02]
    state = state_of(noisy(mean, 1e-4, 2), ALONE, 2, step)
    assert (state.t_min, state.t_max) == (2 + 3 * step, 2 + 8 * step)
    assert state.energy.value == pytest.approx(0.3, abs=1e-3)


@pytest.mark.parametrize("size", [0.05, -0.05])
@pytest.mark.parametrize("gap", GAPS[[1, 3]])
@pytest.mark.parametrize("step", [1, 2])
def test_an_exponential_is_taken_away_also_if_energies_rise(size, gap, step):
    t = np.arange(10) * step
    state = state_of(noisy(0.3 + size * np.exp(-gap * GAP * t)), ALONE, 2, step)
    assert state.energy.value == pytest.approx(0.3, abs=1e-5)
    assert (state.states, state.t_max) == (2, 2 + 9 * step)


@pytest.mark.parametrize("noise", [1e-5, 1e-3])
@pytest.mark.parametrize("weights", [(), (0.1,), (0.2, 0.1)])
def test_masses_of_periodic_mesons(weights, noise):
    """The curve of one exponential is exact to 3e-4 here, where constants are off by 0.03."""
    t, mass = np.arange(17), 0.25
    states = [(1.0, mass), *((w, mass + 0.4 * (n + 1)) for n, w in enumerate(weights))]
    mean = sum(w * np.cosh(m * (16 - t)) / np.cosh(16 * m) for w, m in states)
    effective = Correlator(np.arange(50), mean * (1 + noisy(np.zeros(17), noise)), 32).effective()
    state = state_of(effective.series[:, 0], ALONE, effective.start)
    assert abs(state.energy.value - mass) < 2 * total(state) + 3e-4 * bool(weights)
    assert total(state) < (1e-3 if weights else noise)
    assert noise > 1e-5 or (state.states == 1) == (not weights)


def test_one_t_may_be_shifted_by_what_is_not_known():
    series = noisy([0.3], 0.01)
    state = state_of(series, ALONE, 4)
    assert (state.t_min, state.t_max) == (4, 4)
    assert state.energy.value == pytest.approx(series.mean(), abs=state.energy.error)
    assert state.systematic > 0.3 * state.energy.error


def test_a_fall_that_may_go_on_is_a_systematic_error():
    """Three t of energies with a small gap cannot tell the level, and the error says so."""
    state = state_of(noisy(0.3 + 0.05 * np.exp(-0.35 * np.arange(3)), 1e-4), ALONE, 1)
    assert state.systematic > 10 * state.energy.error
    assert abs(state.energy.value - 0.3) < 2 * total(state)


def test_an_exponential_of_a_smaller_distance_is_expected_at_a_larger_one():
    """Energies that do not fall by chance have an error by what they fell before."""
    before = state_of(noisy(0.3 + 0.02 * np.exp(-GAP * np.arange(8)), 1e-4), ALONE, 1)
    assert before.exponential == pytest.approx(0.03, rel=0.3)  # 1.5 times the fall
    flat = noisy(np.full(2, 0.3), 0.03)
    flat -= flat.mean(axis=0) - 0.3
    alone, after = (state_of(flat, ALONE, 1, exponential=x) for x in (0.0, before.exponential))
    assert (alone.energy.value, after.energy.value) == pytest.approx((0.3, 0.294), abs=1e-3)
    assert alone.systematic < 0.004 < 0.01 < after.systematic


def test_correlators_are_known_up_to_the_first_large_error():
    assert known_times(np.array([0.01, 0.05, 0.2, 0.01])) == 2
    assert known_times(np.array([0.01, 0.05, math.nan])) == 2
    assert known_times(np.array([0.01, 0.5, math.nan]), math.inf) == 2
    assert known_times(np.array([0.01, 0.02])) == 2
