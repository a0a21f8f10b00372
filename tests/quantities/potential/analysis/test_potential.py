"""V(R) of loops that are known, and how often its errors contain the truth."""

import math
from dataclasses import replace

import numpy as np
import pytest

from docs.studies.potential_coverage import TRUTH, cover, study
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential.forms import StaticGluons
from gauge_mc.quantities.potential.loop_tables import PathLoops
from tests.analysis.synthetic_loops import (
    SIGMA,
    A,
    B,
    fitted_series,
    potential,
    static_potential,
    synthetic_loops,
)


def steady(samples=100, size=6, seed=0, **options):
    return synthetic_loops(np.random.default_rng(seed), samples, size, **options)


def exact_loops(energy, size=10, path="100"):
    """Return loops of a potential, a function of the number of steps, with almost no noise."""
    steps, t = np.arange(1, size + 1), np.arange(1, 6)
    mean = np.exp(-np.outer([energy(int(n)) for n in steps], t))
    noise = 1e-7 * np.random.default_rng(1).normal(size=(50, size, 5))
    return PathLoops(path, 25, 10 * np.arange(1, 51), steps, t, mean * (1 + noise))


def within(results, ensembles, least):
    """Assert that errors are neither too small, beyond three deviations of chance, nor too large.

    Systematic errors may be larger than what one sees of them, with a variational analysis by 1.7.
    """
    one, two, size = cover(results)
    chance = [3 * math.sqrt(p * (1 - p) / ensembles) for p in (0.683, 0.954)]
    assert 0.683 - chance[0] < one < 0.97
    assert two > 0.954 - chance[1]
    assert len(results) > least * ensembles
    assert size < 1.8


@pytest.mark.slow
@pytest.mark.parametrize("single", [True, False])
def test_errors_contain_the_truth(single):
    """Loops of a string with excited states, with noise that is correlated in R, T and time."""
    results = study(40, 100, 2.0, single)
    for name, least in (("V", 6), *((name, 0.9) for name in TRUTH)):
        within(results[name], 40, least)


def test_errors_of_a_few_ensembles_contain_the_truth():
    """The same within seconds, of loops with one state and no artefacts: V(R) and sqrt(sigma)."""
    rng, deviations = np.random.default_rng(3), []
    for _ in range(40):
        for point in fitted_series([synthetic_loops(rng, 60, 3)]).points:
            truth = potential(point.distance)
            deviations.append((point.potential.value - truth, point.error))
    within(np.array(deviations), 40, 2.9)


def test_a_potential_with_artefacts_is_exact():
    gluons = StaticGluons()
    loops = exact_loops(lambda n: float(A + B / gluons.potential_distance("100", n) + SIGMA * n))
    result = static_potential([loops])
    truth = {"sigma": SIGMA, "root_sigma": math.sqrt(SIGMA)}
    truth["spacing"] = math.sqrt(SIGMA) * 197.3269804 / 440
    truth |= {n: math.sqrt((f + B) / SIGMA) for n, f in (("r0", 1.65), ("r1", 1), ("rc", 0.65))}
    assert result.scales.keys() == truth.keys()
    for name, value in truth.items():
        assert result.scales[name].value.value == pytest.approx(value, rel=1e-4)
    smooth = potential(result.distances)
    np.testing.assert_allclose(result.continuum, smooth, atol=1e-5)
    assert [point.steps for point in result.force] == list(range(2, 11))
    for point in result.force:
        assert point.force.value == pytest.approx(SIGMA - B / point.distance**2, rel=1e-5)
        assert point.scaled.value == pytest.approx(point.distance**2 * point.force.value)
    assert not [caution for caution in result.cautions if "poor" in caution or "r₀" in caution]


def test_paths_are_fitted_together_and_have_forces_of_their_own():
    length = {"100": 1.0, "110": math.sqrt(2), "111": math.sqrt(3)}
    sizes = {"100": 7, "110": 5, "111": 4}
    gluons = StaticGluons()

    def level(path, n):
        return float(A + B / gluons.potential_distance(path, n) + SIGMA * n * length[path])

    loops = [
        exact_loops(lambda n, path=path: level(path, n), size, path) for path, size in sizes.items()
    ]
    result = static_potential(loops)
    assert len(result.points) == 16
    assert result.distances.tolist() == sorted(result.distances)
    assert result.best.points > 7
    assert result.scales["sigma"].value.value == pytest.approx(SIGMA, rel=1e-3)
    for point in result.force:
        change = level(point.path, point.steps) - level(point.path, point.steps - 1)
        assert point.force.value == pytest.approx(change / length[point.path], rel=1e-4)


def test_bounds_of_t_and_r_are_those_of_all_fits():
    loops = steady(200, 8)
    result = static_potential([loops], r_min=2, r_max=7, t_min=2, t_max=4)
    assert {point.t_max for point in result.points} == {4}
    assert {point.t_min for point in result.points} <= {2, 3, 4}
    assert len(result.points) == 8
    assert all(2 <= fit.r_min < fit.r_max <= 7 for fit in result.fits)
    (single,) = {(p.t_min, p.t_max) for p in fitted_series([loops], 3, 3).points}
    assert single == (3, 3)
    value = fitted_series([loops], 3, 3).points[1].potential.value
    mean = loops.values.mean(axis=0)
    assert value == pytest.approx(math.log(mean[1, 2] / mean[1, 3]))


def test_distances_that_are_too_noisy_are_named():
    loops = steady(200, 8)
    loops.values[:, 5:, 0] *= np.random.default_rng(1).normal(size=(200, 3)) * 20
    result = static_potential([loops])
    assert result.left_out == ("(1,0,0) R = 6", "(1,0,0) R = 7", "(1,0,0) R = 8")
    assert f"Distances that are too noisy: {', '.join(result.left_out)}." in result.cautions


def test_a_wrong_form_is_called_poor():
    loops = steady(400, 9, noise=1e-4)
    bends = np.exp(-0.02 * np.outer((-1.0) ** loops.r, loops.t))
    result = static_potential([replace(loops, values=loops.values * bends)], r_min=2)
    assert result.best.p_value < 1e-3
    assert any(words.startswith("The most probable fit is poor (p = ") for words in result.cautions)
    assert not any("poor" in words for words in static_potential([loops], r_min=2).cautions)


def test_gaps_between_configurations_are_allowed():
    loops = steady(120, 7)
    rest = np.delete(np.arange(120), [5, 6, 77])
    gappy = replace(loops, sweeps=loops.sweeps[rest], values=loops.values[rest])
    whole, fewer = (static_potential([one]).scales["sigma"].value for one in (loops, gappy))
    assert fewer.samples == 117
    assert fewer.value == pytest.approx(whole.value, abs=whole.error)
    assert fewer.error == pytest.approx(whole.error, rel=0.3)


def test_too_little_or_unfit_data_end_in_one_sentence():
    loops = steady()
    few = replace(loops, sweeps=loops.sweeps[:9], values=loops.values[:9])
    still = replace(loops, values=np.repeat(loops.values[:1], 100, axis=0))
    short = replace(loops, t=loops.t[:1], values=loops.values[:, :, :1])
    noisy = replace(loops, values=loops.values + np.random.default_rng(1).normal(size=(100, 6, 6)))
    cases = [
        (few, {}, "at least 10 configurations; measure more than these 9"),
        (still, {}, "do not fluctuate"),
        (short, {}, "has a single t"),
        (noisy, {"t_min": 4}, "too noisy"),
    ]
    for data, options, message in cases:
        with pytest.raises(GaugeError, match=message):
            fitted_series([data], **options)
    for bounds in ({"t_min": 6}, {"t_max": 0}, {"t_min": 4, "t_max": 3}):
        with pytest.raises(UsageError, match="choose t_min <= t_max between 1 and 5"):
            fitted_series([loops], **bounds)


def test_larger_distances_expect_the_exponential_of_smaller_ones():
    """At R = 1 loops fall by 0.02, and at R = 2 and t > 1 they are noise."""
    loops = exact_loops(lambda n: 0.3 * n, 2)
    t, noise = loops.t, np.random.default_rng(2).normal(size=(50, 5)).cumsum(axis=1)
    values = loops.values * (1 + 0.05 * np.exp(-0.7 * t))
    values[:, 1] *= 1 + 0.03 * (noise - noise.mean(axis=0))
    points = fitted_series([replace(loops, values=values)]).points
    alone = replace(loops, r=loops.r[1:], values=values[:, 1:])
    (expected,) = fitted_series([alone]).points
    assert points[1].systematic > 1.15 * expected.systematic > 0
