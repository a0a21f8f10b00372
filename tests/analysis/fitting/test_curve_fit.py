"""Nonlinear fits, compared with SciPy's."""

import numpy as np
import pytest
from scipy.optimize import curve_fit

from gauge_mc.analysis.fitting import fit_curve
from gauge_mc.errors import GaugeError

T = np.arange(1.0, 9.0)

SCIPY_STOPS = 1e-12
"""Relative change of chi2 at which SciPy takes a fit for converged.

At a distance of n standard errors from the minimum chi2 is larger by n². SciPy's parameters are
thus within sqrt(SCIPY_STOPS chi2) standard errors of the minimum, whatever the processor rounds.
"""

ROOT = 0.02 * np.exp(-0.4 * T)[:, None] * np.linalg.cholesky(np.exp(-np.abs(T[:, None] - T)))


def decay(parameters):
    log, mass = parameters
    value = np.exp(log - mass * T)
    return value, np.stack([value, -T * value], axis=1)


def data(samples, seed=2):
    noise = np.random.default_rng(seed).normal(size=(samples, T.size)) @ ROOT.T
    return np.exp(-0.4 * T) + noise


@pytest.mark.parametrize("correlated", [True, False])
@pytest.mark.parametrize("start", [(0.1, 0.3), (3.0, 2.0), (-2.0, 0.0)])
def test_fit_equals_scipy(correlated, start):
    series, tau_int = data(60), 1.7
    covariance = np.cov(series, rowvar=False) * 2 * tau_int / 60
    sigma = covariance if correlated else np.sqrt(np.diag(covariance))
    mean = series.mean(axis=0)
    expected, squares = curve_fit(
        lambda t, *parameters: decay(parameters)[0],
        T,
        mean,
        (0, 0.4),
        sigma,
        absolute_sigma=True,
        jac=lambda t, *parameters: decay(parameters)[1],
        ftol=SCIPY_STOPS,
        xtol=SCIPY_STOPS,
    )
    found = fit_curve(decay, np.array(start), series, tau_int, correlated)
    residual = mean - decay(found.values)[0]
    weight = np.linalg.inv(sigma) if correlated else np.diag(sigma**-2)
    assert found.fit.chi2 == pytest.approx(residual @ weight @ residual, rel=1e-6)
    deviation = np.abs(found.values - expected) / np.sqrt(np.diag(squares))
    assert (deviation <= np.sqrt(SCIPY_STOPS * found.fit.chi2)).all()
    assert found.fit.dof == 6


@pytest.mark.slow
def test_errors_are_those_of_many_fits():
    fits = [fit_curve(decay, np.array([0, 0.4]), data(200, n), 0.5, True) for n in range(300)]
    scatter = np.std([one.values for one in fits], axis=0)
    errors = np.mean([one.series.std(axis=0) / np.sqrt(200) for one in fits], axis=0)
    np.testing.assert_allclose(errors, scatter, rtol=0.12)  # of 300: 4 %


def test_a_fit_that_cannot_converge():
    """An exponential is fitted to negative data, so that its minimum is at infinity."""

    def exponential(parameters):
        value = np.full(T.size, np.exp(parameters[0]))
        return value, value[:, np.newaxis]

    with pytest.raises(GaugeError, match="does not converge; choose another range"):
        fit_curve(exponential, np.array([1.0]), -data(50), 0.5, False)
