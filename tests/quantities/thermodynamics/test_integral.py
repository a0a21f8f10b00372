"""The equation of state of synthetic data whose pressure is known, and lengths of SU(3)."""

import math

import numpy as np
import pytest

from gauge_mc.actions.loops import SCALES, Wilson
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.thermodynamics.integral import (
    MeasuredLength,
    action_difference,
    cautions_of,
    equation_of_state,
    ideal_pressure,
    ideal_pressure_on_lattice,
    integration_weights,
    known_scale,
    measured_scale,
)

BETA = np.linspace(5.6, 6.4, 33)
EXTENT = 4
CENTRE, WIDTH, HEIGHT = 5.85, 0.08, 1.6


def pressure(beta):
    """p/T^4 of the model, which is 0 at the first coupling."""
    rise = np.tanh((beta - CENTRE) / WIDTH) - math.tanh((BETA[0] - CENTRE) / WIDTH)
    return HEIGHT * rise / 2


def slope(beta):
    """Its derivative by beta."""
    return HEIGHT / (2 * WIDTH * np.cosh((beta - CENTRE) / WIDTH) ** 2)


def logarithm(beta):
    """ln(length / a) of the model."""
    x = beta - 6
    return 1.1 + 1.7 * x - 0.6 * x**2 + 0.2 * x**3


def rate(beta):
    """-d ln(a) / d beta of the model."""
    x = beta - 6
    return 1.7 - 1.2 * x + 0.6 * x**2


def differences(rng=None, error=1e-5, beta=BETA):
    """Return couplings and differences of the model, with independent errors or without."""
    noise = np.zeros((2, beta.size)) if rng is None else rng.normal(size=(2, beta.size)) * error
    values = slope(beta) / EXTENT**4 + noise[0] - noise[1]
    return beta, [Estimate(v, math.sqrt(2) * error, 0.5, 0.0, 200) for v in values.tolist()]


def model_scale(beta=BETA, error=0.0):
    """Return the scale of the model, from lengths that are exact."""
    at = np.linspace(5.5, 6.5, 7)
    points = [MeasuredLength(b, math.exp(logarithm(b)), error or 1e-6) for b in at.tolist()]
    return measured_scale("l", "the model", points, beta)


def test_the_known_equation_of_state_is_found():
    exact = differences(error=2e-4)
    states = equation_of_state(*exact, EXTENT, model_scale(), math.exp(logarithm(5.85)))
    for beta, state in zip(BETA, states, strict=True):
        p, anomaly = pressure(beta), slope(beta) / rate(beta)
        assert state.pressure.value == pytest.approx(p, abs=2e-3)
        assert state.anomaly.value == pytest.approx(anomaly, rel=1e-6, abs=1e-9)
        assert state.energy.value == pytest.approx(anomaly + 3 * p, abs=6e-3)
        assert state.entropy.value == pytest.approx(anomaly + 4 * p, abs=8e-3)
        assert state.length == pytest.approx(math.exp(logarithm(beta)) / EXTENT)
        assert state.ratio == pytest.approx(math.exp(logarithm(beta) - logarithm(5.85)))
        assert state.beta_function == pytest.approx(1 / rate(beta))
    assert states[0].pressure.value == 0
    assert cautions_of(states) == []


@pytest.mark.slow
def test_errors_are_those_of_repeated_measurements():
    rng, names = np.random.default_rng(3), ("pressure", "anomaly", "energy", "entropy")
    scale = model_scale()
    found = [equation_of_state(*differences(rng), EXTENT, scale) for _ in range(120)]
    for n in (1, 16, 32):
        for name in names:
            values = np.array([getattr(one[n], name).value for one in found])
            error = getattr(found[0][n], name).error
            assert error > 0
            assert values.std(ddof=1) == pytest.approx(error, rel=0.3)  # five errors of it


def test_a_difference_of_the_action_has_the_errors_of_both(rng):
    cold, hot = rng.normal(size=(2, 100)), rng.normal(2, 3, size=(1, 100))
    difference, zero, warm = action_difference(cold, hot), estimate(*cold), estimate(*hot)
    expected = zero.value - warm.value, math.hypot(zero.error, warm.error), 300
    assert (difference.value, difference.error, difference.samples) == pytest.approx(expected)


def test_without_a_scale_there_is_the_pressure_alone():
    for state in equation_of_state(*differences(), EXTENT, None):
        assert state.pressure is not None
        for name in ("anomaly", "energy", "entropy", "ratio", "length", "beta_function"):
            assert getattr(state, name) is None


def test_a_scale_that_is_known_at_some_couplings_only():
    points = [MeasuredLength(b, math.exp(logarithm(b)), 1e-3) for b in (5.9, 6.0, 6.1)]
    states = equation_of_state(*differences(), EXTENT, measured_scale("l", "", points, BETA))
    known = [one.beta for one in states if one.anomaly]
    assert (min(known), max(known)) == pytest.approx((5.9, 6.1))
    assert all(one.pressure for one in states)


def test_a_pressure_that_does_not_begin_at_zero_is_said():
    beta = BETA[12:]
    (sentence,) = cautions_of(equation_of_state(*differences(beta=beta), EXTENT, None))
    assert "add smaller couplings" in sentence
    coarse = cautions_of(equation_of_state(*differences(beta=BETA[::8]), EXTENT, None))
    assert any("straight lines" in one for one in coarse)


@pytest.mark.parametrize("smooth", [True, False])
def test_weights_integrate_what_they_can_exactly(smooth):
    x = np.array([0.0, 0.4, 0.5, 1.1, 1.3, 2.0])
    order = 3 if smooth else 1
    weights = integration_weights(x, smooth)
    np.testing.assert_allclose(weights @ x**order, x ** (order + 1) / (order + 1), atol=1e-13)
    assert not np.allclose(weights @ x ** (order + 1), x ** (order + 2) / (order + 2), atol=1e-4)
    np.testing.assert_allclose(integration_weights(np.array([1.0, 3.0]), smooth)[1], [1, 1])


def test_a_measured_scale_has_the_errors_of_repeated_measurements():
    rng, at, beta = np.random.default_rng(1), np.linspace(5.6, 6.4, 6), np.array([5.7, 6.0, 6.3])

    def made():
        lengths = np.exp(logarithm(at) + 0.01 * rng.normal(size=at.size))
        points = [MeasuredLength(b, v, 0.01 * v) for b, v in zip(at, lengths, strict=True)]
        return measured_scale("l", "", points, beta)

    found = [made() for _ in range(400)]
    slopes = np.array([one.slope for one in found])
    np.testing.assert_allclose(slopes.std(axis=0, ddof=1), found[0].slope_error, rtol=0.2)
    errors = slopes.std(axis=0, ddof=1) / math.sqrt(len(slopes))
    assert np.all(abs(slopes.mean(axis=0) - rate(beta)) < 4.5 * errors)
    assert measured_scale("l", "", [MeasuredLength(6.0, 1.0, 0.1)] * 3, beta) is None


def test_the_scale_of_the_literature_is_that_which_covers_most():
    beta = np.array([5.6, 5.8, 6.0, 6.2])
    found = known_scale(Wilson(), GROUPS["su3"], beta)
    assert found.name == "1/√σ"
    assert np.isfinite(found.slope).all()
    # Necco and Sommer have r0/a = 5.37 and 7.38 at 6.0 and 6.2, a ratio that sqrt(sigma) shares.
    assert found.length[3] / found.length[2] == pytest.approx(7.38 / 5.37, rel=0.02)
    assert found.slope_error[0] == 0
    assert 0 < found.slope_error[2] < 0.05 * found.slope[2]
    high = known_scale(Wilson(), GROUPS["su3"], np.array([6.0, 6.6, 6.9]))
    assert high.name == "r₀"
    assert np.isnan(known_scale(Wilson(), GROUPS["su3"], np.array([5.65, 5.0])).slope[1])
    assert known_scale(Wilson(), GROUPS["su2"], beta) is None


@pytest.mark.slow
def test_the_ideal_gas_on_the_lattice():
    """Against the sum over momenta of a finite lattice, and the expansion in 1/N_t."""
    assert ideal_pressure(8) == pytest.approx(8 * math.pi**2 / 45)
    k = 2 * math.pi * np.arange(1, 96) / 96
    zero = np.concatenate([[0.0], k])
    sines = np.sin(zero / 2) ** 2
    squared = (sines[:, None, None] + sines[:, None] + sines).ravel()[1:]
    for extent in (4, 6):
        frequencies = np.sin(math.pi * np.arange(extent) / extent) ** 2
        hot = np.log(4 * (squared[:, None] + frequencies)).sum(axis=1)
        cold = extent * 2 * np.arcsinh(np.sqrt(squared))  # N_t times the integral over k_4
        summed = -0.5 * np.sum(hot - cold) * 2 * extent**3 / 96**3
        # The mode k = 0 is missing and those near it are few: an effect of (N_t / N_s)^3.
        expected = ideal_pressure_on_lattice(1, extent)
        assert summed == pytest.approx(expected, abs=6 * (extent / 96) ** 3)
    for extent in (16, 32):
        ratio = ideal_pressure_on_lattice(3, extent) / ideal_pressure(3)
        assert (ratio - 1) * (extent / math.pi) ** 2 == pytest.approx(8 / 21, rel=6 / extent**2 * 4)


B0, B1 = 11 / (4 * math.pi) ** 2, 102 / (4 * math.pi) ** 4


def rational(beta, a, b, c, d):
    """The form of arXiv:1503.05652 for the logarithm of a length."""
    two_loops = beta / (12 * B0) + B1 / (2 * B0**2) * math.log(6 * B0 / beta)
    ratio = (1 + a / beta + b / beta**2) / (1 + c / beta + d / beta**2)
    return math.exp(two_loops * ratio)


@pytest.mark.parametrize("beta", [5.7, 5.8, 6.0, 6.2, 6.5, 6.9])
def test_r0_is_that_of_a_later_fit(beta):
    """arXiv:1709.07612 includes finer lattices; 0.7 % is the error of r0."""
    length = next(one for one in SCALES if one.source == "hep-lat/0108008")
    later = rational(beta, -8.9664, 19.21, -5.25217, 0.606828)
    assert length.length(beta) == pytest.approx(later, rel=0.0075)


def test_lengths_agree_with_each_other():
    """r0^2 F = 1.65 with the force sigma + pi / (12 r^2) of a string; sqrt(t0) is 0.334 r0."""
    tension, r0, t0 = SCALES
    string = math.sqrt(1.65 - math.pi / 12)
    for beta in (6.0, 6.2, 6.4):
        assert r0.length(beta) / tension.length(beta) == pytest.approx(string, rel=0.012)
        assert t0.length(beta) / r0.length(beta) == pytest.approx(0.334, rel=0.01)
