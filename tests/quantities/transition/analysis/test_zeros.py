"""Zeros of noisy curves, such as differences of Binder cumulants and slopes of susceptibilities."""

import math

import numpy as np
import pytest

from gauge_mc.quantities.transition.reweighting import bootstrapped, curve_zero, root_of

X = np.linspace(-1.0, 1.0, 81)
"""Couplings of the curves."""


def sampled(rng, slope, size, noise, replicas=200):
    """Return the line slope x + noise (a + b x + c x^2), and bootstrap samples of `size` of it."""
    powers = np.array([np.ones_like(X), X, X**2])
    measured = noise * math.sqrt(size) * rng.normal(size=(size, 3))
    drawn = rng.multinomial(size, np.full(size, 1 / size), replicas) / size
    weights = np.concatenate([np.full((1, size), 1 / size), drawn])
    return slope * X + weights @ measured @ powers


def zeros_of_samples(x, curves, at):
    """Return the zeros of all samples that are closest to the first one, which is what was done."""
    return np.array([at, *(root_of(x, row, at) for row in curves[1:])])


def within(deviations, errors):
    return [float(np.mean(np.abs(deviations) < sigma * np.array(errors))) for sigma in (1, 2)]


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "count"), [(0.1, 400), (1.2, 1500)])
def test_errors_of_zeros_contain_the_truth_at_least_as_often_as_they_should(noise, count):
    """At a noise of 1.2 a third of the curves have no zero, and most zeros are near an end.

    Zeros of samples between the ends are then too close to each other: 58 and 93 % of the zeros are
    within one and two of their standard deviations. The limits are four standard deviations of the
    binomial distribution.
    """
    rng, found, errors = np.random.default_rng(7), [], []
    for _ in range(count):
        curves = sampled(rng, 1.0, 40, noise)
        at = root_of(X, curves[0], 0.0)
        if math.isfinite(at):
            found.append(at)
            errors.append(bootstrapped(curve_zero(X, curves, at).samples).error)
    assert len(found) > count / 2
    for part, expected in zip(within(found, errors), (0.683, 0.954), strict=True):
        chance = 4 * math.sqrt(expected * (1 - expected) / len(found))
        assert part > expected - chance


def test_a_steep_zero_has_the_error_of_its_samples():
    rng = np.random.default_rng(8)
    curves = sampled(rng, 1.0, 400, 0.02)
    at = root_of(X, curves[0], 0.0)
    one = curve_zero(X, curves, at)
    plain = zeros_of_samples(X, curves, at)
    assert one.samples[0] == at
    assert not one.open
    assert bootstrapped(one.samples).error == pytest.approx(bootstrapped(plain).error, rel=0.05)
    assert np.corrcoef(one.samples[1:], plain[1:])[0, 1] > 0.99  # of the right sign
    assert at - one.begin == pytest.approx(one.end - at, rel=0.1)
    down = curve_zero(X, -curves, at)
    np.testing.assert_allclose(down.samples, one.samples)


def test_a_curve_that_is_zero_within_its_error_up_to_its_end_is_open():
    rng = np.random.default_rng(9)
    curves = sampled(rng, 0.1, 50, 0.2)
    curves -= curves[0] - 0.1 * (X - 0.3)
    one = curve_zero(X, curves, 0.3)
    assert one.open
    assert (one.begin, one.end) == (-1.0, 1.0)
    assert bootstrapped(one.samples).error == pytest.approx(1.3)
    lost = curve_zero(X, curves, math.nan)
    assert np.isnan(lost.samples).all()
    assert not lost.open


@pytest.mark.parametrize("replicas", [0, 1])
def test_a_zero_is_known_without_its_error(replicas):
    """A scan that adds runs at the peak needs no bootstrap."""
    one = curve_zero(X, np.array([X - 0.2] * (1 + replicas)), 0.2)
    assert one.samples.tolist() == [0.2] * (1 + replicas)
    assert math.isnan(bootstrapped(one.samples).error)
    assert not one.open


def test_the_end_of_the_interval_is_where_the_curve_is_as_large_as_its_error():
    """A curve with the error 0.1 everywhere, on one side twice as steep."""
    base = np.where(X < 0, X, 2 * X)
    curves = np.array([base, *(base + 0.1 * s for s in (-1.0, 1.0, -1.0, 1.0))])
    error = 0.1 * math.sqrt(4 / 3)
    one = curve_zero(X, curves, 0.0)
    assert (one.begin, one.end) == (pytest.approx(-error), pytest.approx(error / 2))
    assert bootstrapped(one.samples).error == pytest.approx(error)
