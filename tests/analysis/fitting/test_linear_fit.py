import numpy as np
import pytest
from scipy import stats
from scipy.optimize import curve_fit

from gauge_mc.analysis.fitting import can_invert, exceedance, fit_linear

X = np.linspace(1, 4, 7)
DESIGN = np.stack([np.ones_like(X), 1 / X, X], axis=1)
TRUTH = DESIGN @ [0.5, -0.3, 0.04]
ROOT = 0.01 * X[:, None] * np.linalg.cholesky(np.exp(-np.abs(X[:, None] - X)))


@pytest.mark.parametrize("correlated", [True, False])
def test_fit_equals_scipy(correlated):
    series = TRUTH + np.random.default_rng(2).normal(size=(60, X.size)) @ ROOT.T
    tau_int = 1.7
    covariance = np.cov(series, rowvar=False) * 2 * tau_int / 60
    sigma = covariance if correlated else np.sqrt(np.diag(covariance))
    data = series.mean(axis=0)
    expected, _ = curve_fit(lambda x, a, b, c: a + b / x + c * x, X, data, sigma=sigma)
    fit = fit_linear(DESIGN, series, tau_int, correlated)
    np.testing.assert_allclose(fit.projection @ data, expected, rtol=1e-6)
    residual = data - DESIGN @ expected
    weight = np.linalg.inv(sigma) if correlated else np.diag(sigma**-2)
    assert fit.chi2 == pytest.approx(residual @ weight @ residual, rel=1e-6)
    assert fit.dof == 4


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [True, False])
def test_expected_chi2_is_the_mean_of_chi2(correlated):
    rng = np.random.default_rng(3)
    fits = [
        fit_linear(DESIGN, TRUTH + rng.normal(size=(400, X.size)) @ ROOT.T, 0.5, correlated)
        for _ in range(1000)
    ]
    expected = np.mean([fit.chi2_expected for fit in fits])
    assert np.mean([fit.chi2 for fit in fits]) == pytest.approx(expected, rel=0.1)
    if correlated:
        assert expected == pytest.approx(4, rel=1e-9)
    else:
        assert expected < 3  # neighbours fluctuate together


@pytest.mark.parametrize("dof", [1, 2, 7, 30])
def test_probabilities_of_equal_weights_are_those_of_chi2(dof):
    for chi2 in (1e-3, 0.1, 1.0, 5.0, 20.0, 60.0, 1e4):
        found = exceedance(0.3 * chi2, np.full(dof, 0.3))
        assert found == pytest.approx(stats.chi2.sf(chi2, dof), abs=1e-8)
    assert exceedance(0.0, np.zeros(3)) == 1.0


def test_probabilities_of_unequal_weights_are_those_of_samples():
    weights = np.array([2.0, 0.3, 0.1, 0.003, -1e-17])
    samples = np.random.default_rng(5).normal(size=(40000, 5)) ** 2 @ weights
    for chi2 in (0.05, 1.0, 6.0):
        assert exceedance(chi2, weights) == pytest.approx(np.mean(samples > chi2), abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [True, False])
def test_p_values_are_uniform(correlated):
    """If the expectation of chi2 alone decided, every eleventh uncorrelated fit would be poor."""
    rng = np.random.default_rng(6)
    fits = [
        fit_linear(DESIGN, TRUTH + rng.normal(size=(200, X.size)) @ ROOT.T, 0.5, correlated)
        for _ in range(1000)
    ]
    found = np.sort([fit.p_value for fit in fits])
    assert stats.kstest(found, "uniform").statistic < 0.05
    assert np.mean(found < 0.01) < 0.025
    far = TRUTH + 0.02 * (X[3] == X)
    wrong = [
        fit_linear(DESIGN, far + rng.normal(size=(200, X.size)) @ ROOT.T, 0.5, correlated).p_value
        for _ in range(20)
    ]
    assert max(wrong) < 1e-4
    if not correlated:
        assert np.mean([fit.chi2 > 2 * fit.chi2_expected for fit in fits]) > 0.07


def test_dependent_points_do_not_break_the_fit():
    one = 1 + np.random.default_rng(4).normal(size=50)
    fit = fit_linear(np.ones((2, 1)), np.stack([one, one], axis=1), 0.5, True)
    assert fit.projection @ np.full(2, one.mean()) == pytest.approx([one.mean()])


def test_samples_that_a_covariance_matrix_takes():
    assert can_invert(12, 144)
    assert not can_invert(12, 143)
    assert not can_invert(3, 39)
    assert can_invert(3, 40)
