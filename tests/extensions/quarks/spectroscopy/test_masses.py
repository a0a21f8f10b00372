"""Masses of synthetic correlators, whose masses are known."""

import math
import re
from contextlib import suppress

import numpy as np
import pytest

from gauge_mc.analysis.states import Correlator
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.spectroscopy.correlators import Ranges, fit_mass, fold
from tests.extensions.quarks.synthetic_hadrons import cosh_correlator, exp_correlator

MASS = 0.35


def correlator(values, periodic=True):
    samples, extent = values.shape
    return Correlator(10 * np.arange(1, samples + 1), fold(values, 1), extent, periodic)


def pion(seed=1, samples=300, **options):
    values = cosh_correlator(np.random.default_rng(seed), samples, MASS, **options)
    return correlator(values)


def pulls(trials, samples, ranges, seed=11, **options):
    """Deviations of the mass and of the amplitude from the truth in standard errors."""
    rng, found, chi2 = np.random.default_rng(seed), [], []
    for _ in range(trials):
        values = cosh_correlator(rng, samples, MASS, size=0.02, growth=0.05, **options)
        fit, series = fit_mass(correlator(values), ranges)
        assert estimate(series) == fit.mass
        found.append([(fit.mass.value - MASS) / fit.mass.error])
        found[-1].append((fit.amplitude.value - 1) / fit.amplitude.error)
        chi2.append(fit.chi2 / fit.chi2_expected)
    return np.array(found), np.array(chi2)


@pytest.mark.parametrize("extent", [16, 24])
def test_effective_masses_of_exact_correlators(extent):
    found = pion(samples=10, extent=extent, size=1e-12, amplitude=-3.0).effective()
    assert found.t == range(1, extent // 2)
    np.testing.assert_allclose(found.series.mean(axis=0), MASS, atol=1e-9)
    values = exp_correlator(np.random.default_rng(1), 10, MASS, extent, size=1e-12)[:, :10]
    one = Correlator(np.arange(10), values, extent, False).effective()
    np.testing.assert_allclose(one.series.mean(axis=0), MASS, atol=1e-9)


def test_effective_masses_fluctuate_as_their_derivatives():
    """The linearised series, compared with the change of the mean by a small amount."""
    one = pion(samples=20, size=1e-4)
    series = one.effective().series[:, 0]
    for leave_out in (0, 7):
        fewer = Correlator(one.sweeps[1:], np.delete(one.values, leave_out, axis=0), one.extent)
        change = fewer.effective().series.mean(axis=0)[0] - series.mean(axis=0)
        expected = (series.mean(axis=0) - series[leave_out]) / 19
        np.testing.assert_allclose(change, expected, rtol=0.01, atol=1e-9)


@pytest.mark.slow
def test_effective_masses_of_skew_correlators_are_within_their_errors():
    """Correlators are exp(-m t + s), with a random walk s whose mean makes their mean exp(-m t).

    They fluctuate by 1.2 of their size at t = 3, as on small lattices. Of 20 measurements, 58 and
    89 % would be within one and two errors without `SKEWNESS`, and without the correction of the
    bias the mean would be too large by 0.09 of the true error.
    """
    rng, times, samples, mass = np.random.default_rng(4), np.arange(6), 20, 1.5
    variance = 0.3 * times
    means, found = [], []
    for _ in range(1000):
        steps = rng.normal(size=(samples, times.size)) * np.sqrt(np.diff(variance, prepend=0.0))
        values = np.exp(-mass * times + steps.cumsum(axis=1) - variance / 2)
        one = Correlator(np.arange(samples), values, 16, False)
        own = estimate(one.effective().series[:, 0, 2])
        means.append(own.value - mass)
        found.append(abs(own.value - mass) / own.error)
    within = [np.mean(np.array(found) < errors) for errors in (1, 2)]
    assert abs(np.mean(means)) < 0.06 * np.std(means)
    assert 0.66 < within[0] < 0.78
    assert within[1] > 0.92


def test_correlators_that_do_not_decay_have_no_effective_mass():
    one = pion(samples=10, size=1e-9)
    one.values[:, 6] = 2 * one.values[:, 5]
    one.values[:, 9] *= -1
    known = np.isfinite(one.effective().precision[0])
    assert known.tolist() == [n + 1 not in (5, 8, 9) for n in range(known.size)]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trials", "samples", "options"),
    [
        (100, 400, {"rho": 0.4}),
        (150, 100, {}),
        (400, 400, {}),
        pytest.param(1500, 400, {}, marks=pytest.mark.every),
        pytest.param(1500, 800, {"rho": 0.4}, marks=pytest.mark.every),
    ],
)
def test_one_standard_deviation_covers_two_thirds(trials, samples, options):
    found, chi2 = pulls(trials, samples, Ranges(4, 16), **options)
    spread = 1 / math.sqrt(2 * trials)  # of the width of the pulls
    covered = math.sqrt(0.683 * 0.317 / trials)
    # Correlated fits of 13 points make errors of 400 samples 2 % too small.
    assert np.abs(np.sqrt(np.mean(found**2, axis=0)) - 1.0).max() < 3 * spread + 0.04
    assert np.abs(np.mean(np.abs(found) < 1, axis=0) - 0.683).max() < 3 * covered + 0.02
    assert np.abs(np.mean(found, axis=0)).max() < 3 / math.sqrt(trials) + 0.05
    assert 0.85 < chi2.mean() < 1.15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("excited", "trials"),
    [(0.3, 16), *(pytest.param(one, 40, marks=pytest.mark.every) for one in (0.0, 0.3, 0.8))],
)
def test_automatic_ranges_leave_little_of_excited_states(excited, trials):
    """The plateau rule alone lets an excited state of 0.3 move the mass by 1.2 errors."""
    found, _ = pulls(trials, 400, Ranges(), excited=excited)
    assert 0.5 < np.mean(np.abs(found[:, 0]) < 1) < 0.9  # of 40: 0.683 +- 0.074
    assert -0.4 < found[:, 0].mean() < 0.7  # of 40: 0.16, and up to 0.3 of the excited state


def short(rng, mass, excited):
    """A correlator of ten times, too few for two states, so that effective masses decide."""
    options = {"extent": 10, "size": 0.04, "growth": 0.1, "excited": excited}
    return correlator(cosh_correlator(rng, 100, mass, **options))


@pytest.mark.parametrize("excited", [0.3, -0.3])
def test_excited_states_of_either_sign_that_remain_are_refused(excited):
    """From t = 2 on, where rising masses once began, they make a mass too small by 17 errors."""
    rng = np.random.default_rng(5)
    for _ in range(10):
        one = short(rng, 0.5, excited)
        with pytest.raises(GaugeError, match="has no plateau up to") as error:
            fit_mass(one, Ranges())
        assert fit_mass(one, advised(error))[0].dof > 0


def advised(error):
    return Ranges(*map(int, re.search(r"--t-min (\d+) --t-max (\d+)", str(error.value)).groups()))


def test_advice_about_times_leads_on():
    """Once two messages sent from one option to the other and back."""
    noisy = pion(size=5.0)
    with pytest.raises(GaugeError, match=r"too noisy for a fit; measure more .*, or name") as error:
        fit_mass(noisy, Ranges())
    assert fit_mass(noisy, advised(error))[0].dof == 1
    with pytest.raises(GaugeError, match=r"too noisy for a fit; measure more configurations\.$"):
        fit_mass(pion(size=50.0), Ranges())


@pytest.mark.slow
@pytest.mark.parametrize("excited", [0.3, -0.3])
def test_excited_states_of_either_sign_move_the_range(excited):
    rng, found, starts = np.random.default_rng(5), [], []
    for _ in range(30):
        with suppress(GaugeError):
            fit, _ = fit_mass(short(rng, 1.5, excited), Ranges())
            found.append((fit.mass.value - 1.5) / fit.mass.error)
            starts.append(fit.t_min)
    assert len(found) > 20
    assert np.mean(starts) > 2.9
    assert abs(np.mean(found)) < 0.8


@pytest.mark.slow
def test_an_excited_state_moves_the_range():
    fit, _ = fit_mass(pion(excited=0.3, size=0.005), Ranges())
    assert fit.t_min > 5
    assert fit.t_max == 16
    assert abs(fit.mass.value - MASS) < 4 * fit.mass.error
    clean, _ = fit_mass(pion(size=0.005), Ranges())
    assert clean.t_min < fit.t_min
    early, _ = fit_mass(pion(excited=0.3, size=0.005), Ranges(1, 16))
    assert early.chi2 > 10 * early.chi2_expected


def test_noise_ends_the_range():
    fit, _ = fit_mass(pion(size=0.01, growth=0.6), Ranges())
    assert fit.t_max < 12
    given, _ = fit_mass(pion(size=0.01, growth=0.6), Ranges(2, 6))
    assert (given.t_min, given.t_max, given.dof) == (2, 6, 3)


def test_masses_of_noise_are_not_negative():
    """The curve does not change with the sign of the mass, so that a fit finds either."""
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        values = cosh_correlator(rng, 60, 1.5, size=0.1, growth=1.2, extent=16)
        with suppress(GaugeError):
            found.append(fit_mass(correlator(values), Ranges(4, 7))[0])
    assert len(found) > 5
    assert all(one.mass.value > 0 and one.amplitude.value > 1e-12 for one in found)


def test_averages_over_ranges():
    one = pion(excited=0.05, size=0.005)
    fit, series = fit_mass(one, Ranges(average=True))
    assert estimate(series) == fit.mass
    assert fit.systematic > 0
    singles = [fit_mass(one, Ranges(t, 16))[0].mass.value for t in range(1, 15)]
    assert min(singles) < fit.mass.value < max(singles)
    assert fit.mass.value == pytest.approx(singles[fit.t_min - 1], abs=3 * fit.mass.error)
    assert math.isnan(fit_mass(one, Ranges(5))[0].systematic)


def test_ranges_that_are_refused():
    with pytest.raises(UsageError, match="--t-min is 0; choose a time from 1 on"):
        Ranges(0)
    with pytest.raises(UsageError, match="--t-max is 6; a fit from t = 5 on needs at least 7"):
        Ranges(5, 6)


def test_correlators_that_are_refused():
    with pytest.raises(GaugeError, match=r"from t = 15 on, but .* end at t = 16; use a longer"):
        fit_mass(pion(), Ranges(15))
    constant = pion(samples=20)
    constant.values[:] = constant.values[0]
    with pytest.raises(GaugeError, match="the configurations are all the same; generate"):
        fit_mass(constant, Ranges())
