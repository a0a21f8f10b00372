"""Shrunk covariance matrices and averages over fits, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq

from gauge_mc.analysis.fitting import ModelAverage, Points


def test_correlations_shrink_by_the_ratio_of_their_variance_to_their_square():
    x, y, samples, tau_int = [1.0, 2.0, 4.0, 3.0, 6.0], [1.0, 3.0, 2.0, 5.0, 4.0], 5, 0.8
    means = sum(x) / samples, sum(y) / samples
    parts = list(zip(x, y, strict=True))
    xx = sum((a - means[0]) ** 2 for a in x)
    yy = sum((b - means[1]) ** 2 for b in y)
    r = sum((a - means[0]) * (b - means[1]) for a, b in parts) / math.sqrt(xx * yy)
    variance = (1 - r * r) ** 2 * 2 * tau_int / samples
    size = [math.sqrt(s / (samples - 1) * 2 * tau_int / samples) for s in (xx, yy)]
    points = Points.shrunk(np.array(parts), tau_int, np.array([0.3, 0.4]))
    plain = Points.shrunk(np.array(parts), tau_int)
    off = r * (1 - variance / r**2) * size[0] * size[1]
    assert 0 < variance < r**2
    assert plain.covariance == pytest.approx(np.array([[size[0] ** 2, off], [off, size[1] ** 2]]))
    assert points.covariance == pytest.approx(plain.covariance + np.diag([0.09, 0.16]))
    assert points.mean.tolist() == [*means]


def test_fewer_samples_than_points_have_a_matrix_that_can_be_inverted():
    series = np.random.default_rng(1).normal(size=(5, 12)).cumsum(axis=1)
    points = Points.shrunk(series, 0.5)
    assert np.linalg.matrix_rank(np.cov(series, rowvar=False)) < 12
    assert np.linalg.eigvalsh(points.correlation)[0] > 0.01
    weight = points.root.T @ points.root
    np.testing.assert_allclose(weight @ points.covariance, np.eye(12), atol=1e-8)


@pytest.mark.parametrize(("samples", "size"), [(60, 16), (75, 34), (400, 20)])
def test_errors_grow_because_the_weights_follow_the_noise_of_the_samples(samples, size):
    """They are those of the scatter of 200 fits of a line; within the samples they are smaller."""
    rng, design = np.random.default_rng(1), np.stack([np.ones(size), np.arange(size)], axis=1)
    slopes, squares, growths = [], [], []
    for _ in range(200):
        unit = rng.normal(size=(samples, size))
        points = Points.shrunk(unit.cumsum(axis=1) + unit, 0.5)
        fit = points.fit(design)
        slopes.append(fit.projection[1] @ points.mean)
        squares.append(fit.projection[1] @ points.sample @ fit.projection[1])
        growths.append(fit.growth)
    scatter = np.std(slopes)
    assert math.sqrt(np.mean(np.square(growths) * squares)) == pytest.approx(scatter, rel=0.1)
    assert math.sqrt(np.mean(squares)) < scatter * (0.85 if size**2 > samples else 1.05)


VALUES, ERRORS = np.array([1.0, 1.3, 0.9, 30.0]), np.array([0.1, 0.2, 0.4, 0.1])
CHI2, EXPECTED, SHARES = (3.0, 1.0, 7.0, 5.0), (4.0, 2.0, 6.0, 1.0), np.array([1.0, 1.0, 0.2, 1.0])


def test_fits_have_their_weights_and_the_width_of_their_mixture():
    fits = [SimpleNamespace(chi2=c, chi2_expected=e) for c, e in zip(CHI2, EXPECTED, strict=True)]
    pairs = zip(CHI2, EXPECTED, ERRORS, SHARES, strict=True)
    weights = np.array([share / e**2 * math.exp(-c / 2 + x) for c, x, e, share in pairs])
    weights /= weights.sum()
    found = ModelAverage.of(fits, VALUES, ERRORS, SHARES)
    near = np.append(weights[:3], 0.0) / weights[:3].sum()  # the last one is too far
    assert found.weights == pytest.approx(near)
    assert found.value == pytest.approx(near @ VALUES)

    def density(x):
        normal = np.exp(-(((x - VALUES) / ERRORS) ** 2) / 2) / ERRORS / math.sqrt(2 * math.pi)
        return weights @ normal

    def quantile(p):
        return brentq(lambda x: quad(density, -3, x, points=[0.9, 1.3], limit=200)[0] - p, -2, 5)

    width = quantile(0.841345) - quantile(0.158655)
    assert found.error == pytest.approx(width / 2, rel=1e-5)


def test_one_fit_is_its_own_average():
    fit = SimpleNamespace(chi2=9.0, chi2_expected=1.0)
    found = ModelAverage.of([fit], VALUES[:1], ERRORS[:1], SHARES[:1])
    assert (found.weights.tolist(), found.value) == ([1.0], 1.0)
    assert found.error == pytest.approx(0.1, rel=1e-5)
