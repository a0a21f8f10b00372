import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from gauge_mc.analysis.loops import Loops
from gauge_mc.analysis.plateau import find_plateaus
from gauge_mc.analysis.potential import LUSCHER, choose_window, fit_window, static_potential
from gauge_mc.errors import GaugeError, UsageError
from tests.analysis.synthetic_loops import SIGMA, A, B, synthetic_loops

R0, R1 = (brentq(lambda r, f=force: r * r * (SIGMA - B / r**2) - f, 1, 20) for force in (1.65, 1))


def steady(samples=100, size=5, seed=0, **options):
    return synthetic_loops(np.random.default_rng(seed), samples, size, **options)


def pulls(fit):
    """Return the deviations from the truth in standard errors."""
    spacing = math.sqrt(SIGMA) * 197.3269804 / 440
    truth = {"A": A, "B": B, "sigma": SIGMA, "r0": R0, "r1": R1, "spacing": spacing}
    found = {name: getattr(fit, name) for name in truth}
    return [(found[name].value - value) / found[name].error for name, value in truth.items()]


@pytest.mark.parametrize(
    ("samples", "window"),
    [
        pytest.param(600, {"t_min": 1, "r_min": 1, "r_max": 8}, marks=pytest.mark.slow),
        (250, {"t_min": 2, "r_min": 2, "r_max": 8}),
    ],
)
def test_known_potential_is_recovered_with_honest_errors(samples, window):
    rng = np.random.default_rng(11)
    fits, chi2 = [], []
    for _ in range(50):
        plateaus = find_plateaus([synthetic_loops(rng, samples)], t_min=window["t_min"])
        fit = fit_window(plateaus, True, window["r_min"], window["r_max"])
        fits.append(pulls(fit))
        chi2.append(fit.chi2 / fit.chi2_expected)
    spread = np.sqrt(np.mean(np.square(fits), axis=0))  # of 50: 1 +- 0.1
    assert (spread > 0.7).all()
    assert (spread < 1.35).all()
    assert (np.abs(np.mean(fits, axis=0)) < 0.45).all()
    assert 0.55 < np.mean(np.abs(fits) < 1) < 0.8
    assert 0.7 < np.mean(chi2) < 1.4


def test_automatic_plateaus_and_window_stay_near_the_truth():
    rng = np.random.default_rng(12)
    found, t_min = [], []
    for _ in range(25):
        loops = synthetic_loops(rng, 300, excited=0.1)
        plateaus = find_plateaus([loops])
        found.append(pulls(fit_window(plateaus, True, *choose_window(plateaus))))
        t_min.append([one.t_min for one in plateaus.points])
    assert np.mean(t_min) > 3  # at t = 1 the excited state shows clearly
    assert (np.diff(t_min, axis=1)[:, :-1] >= 0).all()
    assert (np.sqrt(np.mean(np.square(found), axis=0)) < 1.6).all()
    clean = find_plateaus([synthetic_loops(rng, 300)])
    assert np.mean([one.t_min for one in clean.points]) < np.mean(t_min)


def test_off_axis_paths_are_fitted_together():
    rng = np.random.default_rng(3)
    sizes = {"100": 6, "110": 4, "111": 4, "210": 3}
    loops = [synthetic_loops(rng, 300, size, path) for path, size in sizes.items()]
    result = static_potential(loops, t_min=1, r_min=1)
    assert len(result.points) == 17
    distances = [one.distance for one in result.points]
    assert distances == sorted(distances)
    assert distances[:4] == pytest.approx([1, math.sqrt(2), math.sqrt(3), 2])
    assert np.abs(pulls(result.free.fit)).max() < 4
    assert result.free.fit.points == 17
    assert not result.free.fit.correlated  # 17 points would take 289 independent samples
    assert any("error alone" in one for one in result.cautions)


def test_fit_equals_that_of_pyerrors():
    pyerrors = pytest.importorskip("pyerrors")
    plateaus = find_plateaus([steady(800, 7, noise=0.001)], t_min=2)
    fit = fit_window(plateaus, True, 1, 7)
    assert fit.correlated
    obs = [pyerrors.Obs([series], ["ensemble"]) for series in plateaus.series.T]
    for one in obs:
        one.gamma_method(S=1.5)
    # The same weights: the errors of pyerrors have a tau_int for each point.
    scatter = plateaus.series.std(axis=0, ddof=1) * np.sqrt(2 * plateaus.tau_int / 800)
    root = pyerrors.obs.invert_corr_cov_cholesky(
        pyerrors.covariance(obs, correlation=True), np.diag(1 / scatter)
    )
    expected = pyerrors.least_squares(
        np.arange(1.0, 8.0),
        obs,
        lambda p, x: p[0] + p[1] / x + p[2] * x,
        silent=True,
        correlated_fit=True,
        inv_chol_cov_matrix=[root, [""]],
    )
    expected.gamma_method(S=1.5)
    for ours, theirs in zip((fit.A, fit.B, fit.sigma), expected.fit_parameters, strict=True):
        assert ours.value == pytest.approx(theirs.value, rel=1e-5)
        assert ours.error == pytest.approx(theirs.dvalue, rel=1e-4)
    assert fit.chi2 == pytest.approx(expected.chisquare, rel=1e-4)
    # The band at a distance: the error of A + B/r + sigma r as pyerrors propagates it.
    a, b, s = expected.fit_parameters
    there = a + b / 2.5 + 2.5 * s
    there.gamma_method(S=1.5)
    value, error = fit.potential(np.array([2.5]))
    assert value[0] == pytest.approx(there.value, rel=1e-6)
    assert error[0] == pytest.approx(there.dvalue, rel=0.15)  # whose tau_int is its own


def test_fixed_string_term():
    rng = np.random.default_rng(5)
    result = static_potential([synthetic_loops(rng, 300)], t_min=1, r_min=1, r_max=8)
    fit = result.string.fit
    assert (fit.B.value, fit.B.error) == (LUSCHER, 0.0)
    assert fit.dof == result.free.fit.dof + 1
    assert fit.sigma.error < result.free.fit.sigma.error
    assert fit.r0.value == pytest.approx(math.sqrt((1.65 - math.pi / 12) / fit.sigma.value))
    assert np.array(fit.covariance)[1].tolist() == [0.0, 0.0, 0.0]


def test_windows_are_as_asked_for():
    loops = steady(200, 8)
    result = static_potential([loops], t_min=2, t_max=4, r_min=2, r_max=7)
    assert {(one.t_min, one.t_max) for one in result.points} == {(2, 4)}
    assert (result.free.fit.r_min, result.free.fit.r_max) == (2, 7)
    assert [one.r_min for one in result.free.from_r] == [1, 2, 3, 4]
    assert [one.r_max for one in result.free.to_r] == [5, 6, 7, 8]
    sigma = result.free.fit.sigma.value
    near = [one for row in (result.free.from_r, result.free.to_r) for one in row]
    near = [one.sigma.value for one in near if (one.r_min, one.r_max) in {(1, 7), (3, 7), (2, 6)}]
    assert result.free.shift("sigma") >= max(abs(one - sigma) for one in near) > 0
    default = static_potential([loops], t_min=2).free.fit
    assert (default.r_min, default.r_max) == (3, 8)  # r0/3 = 2.1


def test_gaps_between_configurations_are_allowed():
    loops = steady(120)
    kept = np.delete(np.arange(120), [5, 6, 77])
    gappy = replace(loops, sweeps=loops.sweeps[kept], values=loops.values[kept])
    whole, fit = (static_potential([one], t_min=1).free.fit for one in (loops, gappy))
    assert fit.sigma.samples == 117
    assert fit.sigma.error == pytest.approx(whole.sigma.error, rel=0.3)


def test_no_scale_without_confinement():
    result = static_potential([steady(200, 8, sigma=-0.02)], t_min=1)
    assert result.free.fit.sigma.value < 0
    for quantity in (result.free.fit.spacing, result.free.fit.r0, result.free.fit.r1):
        assert math.isnan(quantity.value)
        assert math.isnan(quantity.error)


def test_too_little_or_unfit_data_end_in_one_sentence():
    loops = steady()
    few = replace(loops, sweeps=loops.sweeps[:9], values=loops.values[:9])
    other = replace(steady(path="110"), sweeps=loops.sweeps + 1)
    small = Loops("100", 25, loops.sweeps, loops.r[:3], loops.t, loops.values[:, :3])
    still = replace(loops, values=np.repeat(loops.values[:1], 100, axis=0))
    short = Loops("100", 25, loops.sweeps, loops.r, loops.t[:1], loops.values[:, :, :1])
    noisy = replace(loops, values=loops.values + np.random.default_rng(1).normal(size=(100, 5, 5)))
    cases = [
        ([few], {}, "at least 10 configurations; measure more than these 9"),
        ([loops, other], {}, "different configurations"),
        ([loops, replace(loops, smearing=3)], {}, "different smearing levels"),
        ([small], {}, "plateaus at 3 distances"),
        ([still], {}, "do not fluctuate"),
        ([short], {}, "two values of t"),
        ([noisy], {"t_min": 4}, "too noisy"),
    ]
    for data, options, message in cases:
        with pytest.raises(GaugeError, match=message):
            static_potential(data, **options)
    windows = [
        ({"t_min": 5}, "No plateau can go from t = 5 to 4"),
        ({"t_min": 0}, "No plateau can go from t = 0"),
        ({"t_max": 0}, "No plateau can go from t = 1 to 0"),
        ({"t_min": 3, "t_max": 2}, "from t = 3 to 2"),
        ({"r_min": 3}, "contains 3 distances"),
        ({"r_max": 2.5}, "contains 2 distances"),
    ]
    for options, message in windows:
        with pytest.raises(UsageError, match=message):
            static_potential([loops], **options)


def test_missing_pyerrors_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyerrors", None)
    with pytest.raises(GaugeError, match=r"pip install 'gauge-mc\[analysis\]'"):
        static_potential([steady()], t_min=1)
