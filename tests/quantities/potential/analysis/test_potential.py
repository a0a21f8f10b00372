import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

from gauge_mc.analysis.fitting.model_averages import akaike_weights, scatter
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quantities.potential.analysis.cornell import fit_window
from gauge_mc.quantities.potential.analysis.derived import FORCES
from gauge_mc.quantities.potential.analysis.fit import potential_plateaus
from gauge_mc.quantities.potential.analysis.forces import ForceScale, force_scales, forces
from gauge_mc.quantities.potential.analysis.lattice_coulomb import (
    force_distance,
    improved_distance,
    propagator,
)
from gauge_mc.quantities.potential.analysis.loops import PathLoops
from gauge_mc.quantities.potential.analysis.nambu_goto import fit_nambu_goto
from gauge_mc.quantities.potential.analysis.plateau_search import find_plateaus
from gauge_mc.quantities.potential.analysis.strings import LUSCHER
from gauge_mc.quantities.potential.analysis.window_choice import choose_window
from gauge_mc.quantities.potential.analysis.window_fits import CONTINUUM, LATTICE
from tests.analysis.synthetic_loops import SIGMA, A, B, potential, static_potential, synthetic_loops

R0, R1 = (brentq(lambda r, f=force: r * r * (SIGMA - B / r**2) - f, 1, 20) for force in (1.65, 1))


def steady(samples=100, size=5, seed=0, **options):
    return synthetic_loops(np.random.default_rng(seed), samples, size, **options)


def pulls(fit):
    """Return the deviations from the truth in standard errors."""
    spacing = math.sqrt(SIGMA) * 197.3269804 / 440
    truth = {"A": A, "B": B, "sigma": SIGMA, "r0": R0, "r1": R1, "spacing": spacing}
    found = {name: getattr(fit, name) for name in truth}
    return [(found[name].value - value) / found[name].error for name, value in truth.items()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("trials", "samples", "window"),
    [
        pytest.param(50, 600, {"t_min": 1, "r_min": 1, "r_max": 8}, marks=pytest.mark.slow),
        pytest.param(50, 250, {"t_min": 2, "r_min": 2, "r_max": 8}, marks=pytest.mark.slow),
        (20, 250, {"t_min": 2, "r_min": 2, "r_max": 8}),
    ],
)
def test_known_potential_is_recovered_with_honest_errors(trials, samples, window):
    rng = np.random.default_rng(11)
    fits, chi2 = [], []
    for _ in range(trials):
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


@pytest.mark.slow
@pytest.mark.parametrize("trials", [12, pytest.param(25, marks=pytest.mark.slow)])
def test_automatic_plateaus_and_window_stay_near_the_truth(trials):
    rng = np.random.default_rng(12)
    found, t_min = [], []
    for _ in range(trials):
        loops = synthetic_loops(rng, 300, 12, excited=0.1)
        plateaus = find_plateaus([loops])
        found.append(pulls(fit_window(plateaus, True, *choose_window(plateaus))))
        t_min.append([one.t_min for one in plateaus.points])
    t_mean = np.mean(np.concatenate(t_min))
    assert t_mean > 5  # at t = 1 the excited state shows clearly
    assert (np.sqrt(np.mean(np.square(found), axis=0)) < 1.6).all()
    clean = find_plateaus([synthetic_loops(rng, 300, 12)])
    assert np.mean([one.t_min for one in clean.points]) < t_mean


@pytest.mark.parametrize(("short", "start"), [(0.0, 3), (0.3, 4)])
def test_window_begins_where_precise_data_have_the_form(short, start):
    loops = steady(600, 10, noise=0.0003)
    further = np.exp(-short / loops.r[:, None] ** 6.0 * loops.t)
    plateaus = find_plateaus([replace(loops, values=loops.values * further)], t_min=1)
    low, high = choose_window(plateaus)
    assert high == 10
    assert low == start


@pytest.mark.slow
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


def test_fit_equals_that_of_pyerrors(pyerrors):
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


@pytest.mark.slow
@pytest.mark.parametrize("trials", [10, pytest.param(30, marks=pytest.mark.slow)])
def test_only_forms_that_are_wrong_are_called_poor(trials):
    """The points are so correlated that chi2 of 0.1 is nothing unusual if 0.03 is expected."""
    rng, fits = np.random.default_rng(9), []
    for _ in range(trials):
        loops = synthetic_loops(rng, 60, 10)
        fits.append(static_potential([loops], t_min=1, t_max=2, r_min=1))
    assert not any(one.free.fit.correlated for one in fits)
    assert any(one.free.fit.chi2 > 2 * one.free.fit.chi2_expected for one in fits)
    assert sum("The fit is poor" in " ".join(one.cautions) for one in fits) <= 2


def test_a_wrong_form_is_called_poor():
    loops = steady(60, 10)
    bent = replace(loops, values=loops.values * np.exp(-0.05 * np.outer(loops.r == 4, loops.t)))
    fit = static_potential([bent], t_min=1, t_max=2, r_min=1)
    assert fit.free.fit.p_value < 1e-3
    assert any(one.startswith("The fit is poor (p = ") for one in fit.cautions)


def test_fixed_string_term():
    rng = np.random.default_rng(5)
    result = static_potential([synthetic_loops(rng, 300)], t_min=1, r_min=1, r_max=8)
    fit = result.string.fit
    assert (fit.B.value, fit.B.error) == (LUSCHER, 0.0)
    assert fit.dof == result.free.fit.dof + 1
    assert fit.sigma.error < result.free.fit.sigma.error
    assert fit.r0.value == pytest.approx(math.sqrt((1.65 - math.pi / 12) / fit.sigma.value))
    assert np.array(fit.covariance)[1].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.slow
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
    changed = max(abs(one - sigma) for one in near)
    other = static_potential([loops], t_min=2, t_max=4, r_min=2, r_max=7, coulomb=LATTICE)
    form = abs(other.free.fit.sigma.value - sigma) / math.sqrt(3)
    assert 0 < result.free.window["sigma"] <= max(changed, form)
    default = static_potential([loops], t_min=2).free.fit
    assert (default.r_min, default.r_max) == (3, 8)  # r0/3 = 2.1


def test_gaps_between_configurations_are_allowed():
    loops = steady(120)
    kept = np.delete(np.arange(120), [5, 6, 77])
    gappy = replace(loops, sweeps=loops.sweeps[kept], values=loops.values[kept])
    whole, fit = (static_potential([one], t_min=1, r_min=1).free.fit for one in (loops, gappy))
    assert fit.sigma.samples == 117
    assert fit.sigma.error == pytest.approx(whole.sigma.error, rel=0.3)


def test_no_scale_without_confinement():
    loops = steady(200, 8, sigma=-0.02)
    result = static_potential([loops], t_min=1, r_min=1)
    assert result.free.fit.sigma.value < 0
    assert static_potential([loops], t_min=1).fits == {}  # no window was asked for
    for quantity in (result.free.fit.spacing, result.free.fit.r0, result.free.fit.r1):
        assert math.isnan(quantity.value)
        assert math.isnan(quantity.error)


def test_too_little_or_unfit_data_end_in_one_sentence():
    loops = steady()
    few = replace(loops, sweeps=loops.sweeps[:9], values=loops.values[:9])
    other = replace(steady(path="110"), sweeps=loops.sweeps + 1)
    still = replace(loops, values=np.repeat(loops.values[:1], 100, axis=0))
    short = PathLoops("100", 25, loops.sweeps, loops.r, loops.t[:1], loops.values[:, :, :1])
    noisy = replace(loops, values=loops.values + np.random.default_rng(1).normal(size=(100, 5, 5)))
    cases = [
        ([few], {}, "at least 10 configurations; measure more than these 9"),
        ([loops, other], {}, "different configurations"),
        ([loops, replace(loops, smearing=3)], {}, "different smearing levels"),
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


def test_missing_scipy_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    propagator.cache_clear()
    with pytest.raises(GaugeError, match=r"pip install 'gauge-mc\[analysis\]'"):
        static_potential([steady()], t_min=1)


def exact_loops(potential, size=10, path="100"):
    """Return loops of a potential, a function of the number of steps, with almost no noise."""
    steps = np.arange(1, size + 1)
    levels = np.array([potential(int(one)) for one in steps])
    mean = np.exp(-levels[:, None] * np.arange(1, 6))
    noise = 1e-7 * np.random.default_rng(1).normal(size=(50, size, 5))
    return PathLoops(path, 25, 10 * np.arange(1, 51), steps, np.arange(1, 6), mean * (1 + noise))


@pytest.mark.slow
def test_plateaus_of_one_t_are_left_out_unless_asked_for():
    rng = np.random.default_rng(22)
    loops = synthetic_loops(rng, 300, 6, excited=0.05)
    usual, single = find_plateaus([loops]), find_plateaus([loops], single=True)
    assert usual.left_out
    assert all(one.t_max > one.t_min for one in usual.points)
    assert any(one.t_max == one.t_min for one in single.points)
    assert len(single.points) + len(single.left_out) == 6
    result = static_potential([synthetic_loops(rng, 300)], t_min=3, t_max=3)
    assert any("Plateaus of a single t" in one for one in result.cautions)
    assert not result.left_out
    shorter = synthetic_loops(rng, 300, 8)
    shorter.values[:, 5:, 3] *= -1  # no t but 1 and 2 at large R
    result = static_potential([shorter], t_min=2)
    assert result.left_out == ("100 R = 6", "100 R = 7", "100 R = 8")
    assert any("100 R = 6, 100 R = 7" in one and "--single" in one for one in result.cautions)


@pytest.mark.slow
def test_all_plateaus_have_the_same_weights():
    """Whether the covariance can be estimated is decided once, by the longest range."""
    rng = np.random.default_rng(22)
    short, long = (
        synthetic_loops(rng, 60, size, path, rho=0.0) for size, path in ((4, "110"), (9, "100"))
    )
    assert find_plateaus([short], t_min=1).correlated  # 3 t take 40 configurations
    both = find_plateaus([short, long], t_min=1)  # 8 t take 90
    assert not both.correlated
    result = static_potential([short, long], t_min=1)
    assert not result.correlated_plateaus
    assert any("for all R alike" in one for one in result.cautions)
    several = [one for one in both.points if one.t_max - one.t_min > 1]
    assert all(abs(one.chi2_expected - (one.t_max - one.t_min)) > 1e-6 for one in several)


STEEP = {"size": 6, "times": 12, "noise": 0.001, "growth": 0.7}
"""Loops that are precise at small t and lost in noise at large t, as on a lattice."""

CONTAMINATED = {
    "none": {"further": ()},
    "one state": {"further": ((0.5, 0.8),)},
    "two states": {"further": ((0.3, 0.6), (0.3, 1.5))},
    "a weak and a strong one": {"further": ((0.1, 0.6), (0.5, 1.2))},
}
"""Weights and gaps of excited states in synthetic loops."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("states", "trials"),
    [("two states", 20), *(pytest.param(one, 60, marks=pytest.mark.slow) for one in CONTAMINATED)],
)
def test_plateaus_begin_where_excited_states_no_longer_matter(states, trials):
    """A rule that compares each V(t) with the later ones only begins too early.

    Its mean deviation was 0.2 to 0.6 standard deviations with excited states, and one standard
    deviation covered 59 to 66 % of the true values.
    """
    rng, pulls = np.random.default_rng(1), []
    for _ in range(trials):
        found = find_plateaus([synthetic_loops(rng, 300, **STEEP, **CONTAMINATED[states])])
        pulls += total_pulls(found.points)
        assert all(math.isnan(one.shift) or one.shift > 0 for one in found.points)
    assert len(pulls) > 0.7 * 6 * trials
    assert abs(np.mean(pulls)) < 0.5
    assert 0.64 < np.mean(np.abs(pulls) < 1) < 0.82


@pytest.mark.slow
def test_the_noise_of_one_distance_does_not_move_the_others():
    """Where noise lets V(1, t) fall up to t = 4, by its error at each t, R = 1 often begins later.

    Every plateau began at least as late as at smaller R, so that the others did as well.
    """
    rng, first, others = np.random.default_rng(4), [], []
    for _ in range(15):
        loops = synthetic_loops(rng, 200, 6, times=8, noise=0.001)
        noisy = (loops.r == 1)[:, None]
        noise = 1 + 0.02 * rng.normal(size=(200, 1, 8)) * noisy
        falling = np.exp(-0.005 * np.minimum(loops.t, 4) * noisy)
        found = find_plateaus([replace(loops, values=loops.values * noise * falling)]).points
        first.append(found[0].t_min)
        others += [one.t_min for one in found[1:]]
    assert np.mean(np.array(first) > 3) > 0.4
    assert np.mean(np.array(others) <= 3) > 0.75


@pytest.mark.slow
def test_few_distances_begin_earlier_and_large_r_take_a_single_t():
    """The start is common, so that other R show where V(R, t) is level."""
    rng, alone, earlier = np.random.default_rng(14), 0, 0
    for _ in range(12):
        loops = synthetic_loops(rng, 120, 6, times=8, noise=0.002, growth=1.5, excited=0.03)
        usual, found = find_plateaus([loops]), potential_plateaus([loops])
        alone += sum(one.t_min == one.t_max for one in found.points)
        earlier += len(found.points) > len(usual.points)
        assert len(found.points) >= len(usual.points)
        assert ("at most its error" in found.rule) == (found.rule != usual.rule)
    assert alone
    assert earlier


@pytest.mark.slow
def test_nothing_is_quoted_that_cannot_be_trusted():
    """V(R) is shown, and a sentence says what is missing and what helps."""
    few = static_potential([steady()], t_min=1)  # R = 2, 3, 4, 5
    assert len(few.points) == 5
    assert few.fits == {}
    assert few.cautions[0].startswith(
        "No string tension: V(R) is known at 4 distances from R = 2 on, but a fit of "
        "A + B/R + σR needs 5; measure more configurations, "
    )
    with pytest.raises(GaugeError, match="known at 4 distances"):
        few.trusted()
    bent = steady(100, 8)
    bent = replace(bent, values=bent.values * np.exp(-0.3 * np.outer(bent.r == 5, bent.t)))
    poor = static_potential([bent], t_min=1, t_max=2)
    assert poor.fits == {}
    assert all("does not fit from R = " in one for one in poor.refused)
    assert len(poor.refused) == 2
    vague = static_potential([steady(60, 7, noise=0.1)], t_min=1, t_max=2)
    assert vague.free is None
    assert "exceed a third" in vague.refused[0]
    asked = static_potential([steady()], t_min=1, r_min=2)
    assert asked.free.fit.dof == 1
    assert any("single degree of freedom" in one for one in asked.cautions)


@pytest.mark.slow
def test_default_windows_leave_two_degrees_of_freedom_from_two_on():
    for size in range(4, 10):
        found = static_potential([steady(200, size)], t_min=1)
        if size < 6:
            assert found.fits == {}
        else:
            assert found.free.fit.r_min >= 2
            assert found.free.fit.dof >= 2


@pytest.mark.slow
def test_later_starts_and_windows_are_systematic_errors():
    """They are the changes that the statistical errors of the changes do not explain."""
    loops = synthetic_loops(np.random.default_rng(7), 250, 8, excited=0.05)
    found = static_potential([loops], t_min=1, r_min=2)
    later = static_potential([loops], t_min=2, r_min=2)
    for name, scan in found.fits.items():
        other = later.fits[name].fit
        for quantity in ("sigma", "root_sigma", "r0", "A"):
            one = getattr(scan.fit, quantity)
            change = abs(getattr(other, quantity).value - one.value)
            assert 0 <= scan.fit.systematic[quantity] <= change
            assert scan.error(quantity) == pytest.approx(
                math.hypot(one.error, scan.fit.systematic[quantity], scan.window[quantity])
            )
    assert found.free.fit.systematic["A"] > 2 * found.free.fit.A.error  # t = 1 is contaminated
    for one, other in zip(found.points, later.points, strict=True):
        assert 0 <= one.systematic <= abs(other.potential.value - one.potential.value)
    assert all(math.isfinite(one.ranges) for one in found.force_scales.values())


@pytest.mark.slow
def test_errors_of_scales_hold_where_noise_decides_between_which_forces_they_are():
    force = [0.2, 0.15, 0.12, 0.11, 0.115, 0.11, 0.1]

    def scales(rng, noise):
        loops = synthetic_loops(rng, 100, 7, noise=noise, times=3)
        change = A + np.cumsum(force) - potential(loops.r.astype(float))
        values = loops.values * np.exp(-np.outer(change, loops.t))
        plateaus = find_plateaus([replace(loops, values=values)], t_min=1, t_max=2)
        return {name: one.value for name, one in force_scales(forces(plateaus), plateaus).items()}

    truth = {name: one.value for name, one in scales(np.random.default_rng(1), 1e-9).items()}
    found = [scales(np.random.default_rng(seed), 0.3) for seed in range(60)]
    pulls = [(one.value - truth[name]) / one.error for some in found for name, one in some.items()]
    # Errors from the slope of the force between two points alone are such that it is 56 and 79 %.
    assert len(pulls) > 100
    assert np.mean(np.abs(pulls) < 1) > 0.65
    assert np.mean(np.abs(pulls) < 2) > 0.92
    assert scales(np.random.default_rng(2), 0.8) == {}  # the distances cannot be limited


def test_excited_states_that_remain_are_named():
    """Six t are too few to lose a state 0.8 above the ground state in noise of this size."""
    rng = np.random.default_rng(5)
    loops = synthetic_loops(rng, 60, 6, excited=0.06)
    result = static_potential([loops], r_min=1)
    shifted = [one for one in result.points if one.contaminated]
    assert shifted
    assert all(one.t_min == 4 and one.t_max == 5 for one in shifted)  # the last two
    assert all(0.5 < one.shift / one.potential.error < 1.01 for one in shifted)
    (sentence,) = [one for one in result.cautions if "Excited states may shift" in one]
    assert f"100 R = {shifted[0].distance:.4g}" in sentence
    early = static_potential([loops], t_min=1, r_min=1)
    assert all(one.contaminated for one in early.points)


@pytest.mark.parametrize(
    "trials", [pytest.param(15, marks=pytest.mark.slow), pytest.param(30, marks=pytest.mark.every)]
)
def test_errors_of_averages_over_ranges_cover_two_thirds(trials):
    """The choice among ranges is propagated into the fits, for all kinds of contamination alike."""
    rng, points, fits, alone = np.random.default_rng(3), [], [], []
    for further in ((), ((0.1, 0.8),), ((0.5, 0.8),), ((0.3, 0.6), (0.3, 1.5))):
        for _ in range(trials):
            loops = synthetic_loops(rng, 300, **{**STEEP, "size": 8}, further=further)
            found = find_plateaus([loops], average=True)
            pairs = zip(found.points, pulls_of(found.points), strict=True)
            points += [
                pull / math.hypot(1, one.systematic / one.potential.error) for one, pull in pairs
            ]
            if len(found.points) < 5:
                continue
            fit = fit_window(found, True, 1, found.points[-1].distance)
            for name, truth in {"sigma": SIGMA, "B": B, "r0": R0, "r1": R1}.items():
                one = getattr(fit, name)
                if math.isfinite(one.value):
                    alone.append((one.value - truth) / one.error)
                    fits.append((one.value - truth) / math.hypot(one.error, fit.systematic[name]))
    assert len(points) > 25 * trials
    assert len(fits) > 13 * trials
    ensembles = 4 * trials  # what is determined from one of them is correlated
    for some in (points, fits):
        assert abs(np.mean(np.abs(some) < 1) - 0.683) < 3 * math.sqrt(0.683 * 0.317 / ensembles)
        assert abs(np.mean(some)) < 3 / math.sqrt(ensembles)
    assert np.mean(np.abs(alone) < 1) < np.mean(np.abs(fits) < 1)


def test_systematic_errors_of_linear_quantities():
    """The error of V(R) itself, and what the choice of ranges does to a common constant."""
    rng = np.random.default_rng(7)
    loops = synthetic_loops(rng, 250, 6, excited=0.02)
    found = find_plateaus([loops], average=True, t_min=1)
    for i, one in enumerate(found.points):
        unit = np.eye(len(found.points))[i]
        assert one.systematic == found.systematic_error(unit)
    assert np.array_equal(found.systematic, found.systematic.T)
    fit = fit_window(found, True, 1, 6)
    total = found.systematic + found.covariance
    assert fit.systematic["sigma"] > 0
    assert fit.systematic["root_sigma"] == pytest.approx(
        fit.systematic["sigma"] / (2 * math.sqrt(fit.sigma.value))
    )
    assert np.linalg.eigvalsh(total)[-1] > np.linalg.eigvalsh(found.covariance)[-1]
    plain = find_plateaus([loops], t_min=1)
    assert not plain.systematic.any()
    assert fit_window(plain, True, 1, 6).systematic == {}  # only the scan looks one step later


@pytest.mark.slow
@pytest.mark.parametrize("trials", [25, pytest.param(40, marks=pytest.mark.slow)])
def test_averages_over_ranges_and_windows(trials):
    assert akaike_weights([1.0, 1.0], [3.0, 2.0]) == pytest.approx([0.7311, 0.2689], abs=1e-4)
    assert scatter(np.array([0.5, 0.5]), np.array([1.0, 3.0])) == 1.0
    rng, pulls = np.random.default_rng(23), []
    for _ in range(trials):
        found = find_plateaus([synthetic_loops(rng, 250, 6)], average=True)
        assert all(one.systematic >= 0 for one in found.points)
        for one in found.points:
            deviation = one.potential.value - (A + B / one.distance + SIGMA * one.distance)
            pulls.append(deviation / math.hypot(one.potential.error, one.systematic))
    assert 0.6 < np.mean(np.abs(pulls) < 1) < 0.8
    result = static_potential([synthetic_loops(rng, 250, 10)], average=True, r_min=1)
    for name, truth in {"sigma": SIGMA, "B": B, "r0": R0, "r1": R1}.items():
        one = result.averaged[name]
        assert one.systematic > 0
        assert abs(one.value.value - truth) < 4 * math.hypot(one.value.error, one.systematic)
    assert static_potential([steady(size=8)], t_min=1).averaged == {}


def test_the_string_is_fitted_exactly():
    sigma = 0.04

    def energy(r):
        return 0.6 + math.sqrt((sigma * r) ** 2 - math.pi * sigma / 6)

    plateaus = find_plateaus([exact_loops(lambda n: energy(n + 4))], t_min=1)
    points = tuple(replace(one, distance=one.distance + 4) for one in plateaus.points)
    fit, _ = fit_nambu_goto(replace(plateaus, points=points), 5, 14)
    assert fit.sigma.value == pytest.approx(sigma, rel=1e-4)
    assert fit.A.value == pytest.approx(0.6, rel=1e-4)
    assert fit.form == "nambu-goto"
    r = np.array([6.0, 9.0])
    assert fit.potential(r)[0] == pytest.approx([energy(one) for one in r], rel=1e-5)
    slope = (energy(fit.r0.value + 1e-5) - energy(fit.r0.value - 1e-5)) / 2e-5
    assert fit.r0.value**2 * slope == pytest.approx(1.65, rel=1e-4)
    assert math.isnan(fit.r1.value)  # the force of the string never falls so far
    with pytest.raises(GaugeError, match="unstable"):
        fit_nambu_goto(find_plateaus([steady(size=8)], t_min=1), 1, 8)


def test_scales_from_the_force_are_exact_at_tree_level():
    def level(n):
        return A + B / improved_distance("100", n) + SIGMA * n

    plateaus = find_plateaus([exact_loops(level)], t_min=1)
    force = forces(plateaus)
    assert [one.steps for one, _ in force] == list(range(2, 11))
    for one, _ in force:
        assert one.force.value == pytest.approx(SIGMA - B / one.distance**2, rel=1e-5)
        assert one.scaled.value == pytest.approx(one.distance**2 * one.force.value)
    found = force_scales(force, plateaus)
    for name, target in FORCES.items():
        assert found[name].value.value == pytest.approx(math.sqrt((target + B) / SIGMA), rel=1e-4)
        assert found[name].r_low < found[name].value.value < found[name].r_high
        assert found[name].systematic < 1e-2
    fit = fit_window(plateaus, True, 1, 10, LATTICE)
    assert (fit.B.value, fit.sigma.value) == pytest.approx((B, SIGMA), rel=1e-4)
    truth = [A + B / one.distance + SIGMA * one.distance for one in plateaus.points]
    assert fit.continuum(plateaus.points) == pytest.approx(truth, rel=1e-5)
    other = fit_window(plateaus, True, 1, 10, CONTINUUM)
    assert abs(other.B.value - B) > 0.01
    assert force_scales(force[:2], plateaus) == {}


@pytest.mark.slow
@pytest.mark.parametrize("noise", [1e-5, 3e-4, 3e-3])
@pytest.mark.parametrize("trials", [25, pytest.param(40, marks=pytest.mark.slow)])
def test_systematic_errors_of_interpolations_cover_other_forms(noise, trials):
    """The force has terms 1/r^4 and log(r), whatever dominates: interpolation or statistics."""

    def force(r):
        return 0.06 + 0.25 / r**2 - 0.1 / r**4 - 0.02 * np.log(r) / r**2

    level = A + np.cumsum([force(force_distance("100", n + 1)) for n in range(8)])
    truth = {
        name: brentq(lambda r, f=value: r * r * force(r) - f, 1, 20)
        for name, value in FORCES.items()
    }
    rng, total, alone = np.random.default_rng(31), [], []
    for _ in range(trials):
        loops = synthetic_loops(rng, 100, 8, noise=noise, times=3)
        change = np.exp(-np.outer(level - potential(loops.r.astype(float)), loops.t))
        plateaus = find_plateaus([replace(loops, values=loops.values * change)], t_min=1, t_max=2)
        for name, one in force_scales(forces(plateaus), plateaus).items():
            deviation = abs(one.value.value - truth[name])
            alone.append(deviation / one.value.error)
            total.append(deviation / math.hypot(one.value.error, one.systematic))
            assert one.ranges >= 0
    assert len(total) == 3 * trials or noise > 1e-3
    assert len(total) > 1.5 * trials
    within = [[np.mean(np.array(some) < limit) for limit in (1, 2)] for some in (total, alone)]
    assert within[0][0] > 0.6
    assert within[0][1] > 0.9
    assert within[1][1] < 0.5 or noise > 1e-5


def test_scales_are_shown_with_both_errors():
    def shown(value, error, systematic, ranges=math.nan):
        return str(ForceScale(Estimate(value, error, 0.5, 0.1, 60), systematic, 1, 2, ranges))

    assert shown(2.93168, 0.0032, 0.0017) == "2.9317(32)(17)"
    assert shown(2.93168, 0.0032, 0.0, 0.03) == "2.9317(32)(300)"
    assert shown(2.93168, 0.0032, math.nan) == "2.9317(32)"
    assert shown(16.5, 2.1, 0.3, 0.4) == "16.5(2.1)(0.5)"


@pytest.mark.slow
def test_ranges_of_t_are_propagated_into_scales_from_the_force():
    loops = synthetic_loops(np.random.default_rng(8), 250, 8, excited=0.05)
    plateaus = find_plateaus([loops], average=True, t_min=1)

    def scales(shift=0.0):
        moved = replace(plateaus, series=plateaus.series + shift)
        return force_scales(forces(moved), moved)

    for name, one in scales().items():
        steps = 1e-6 * np.eye(len(plateaus.points))
        gradient = [(scales(step)[name].value.value - one.value.value) / 1e-6 for step in steps]
        expected = math.sqrt(max(0.0, gradient @ plateaus.systematic @ gradient))
        assert one.ranges == pytest.approx(expected, rel=1e-3, abs=1e-6)
    assert max(one.ranges for one in scales().values()) > 0


def test_forces_off_axis():
    loops = [exact_loops(lambda n: A + SIGMA * n * math.sqrt(2), 4, "110")]
    plateaus = find_plateaus(loops, t_min=1)
    found = forces(plateaus)
    assert [one.force.value for one, _ in found] == pytest.approx([SIGMA] * 3, rel=1e-4)
    assert force_scales(found, plateaus) == {}  # scales are from the force on axis


@pytest.mark.slow
@pytest.mark.parametrize(
    ("samples", "trials"),
    [
        (20, 12),
        pytest.param(100, 30, marks=pytest.mark.slow),
        *(pytest.param(one, 60, marks=pytest.mark.every) for one in (20, 100)),
    ],
)
def test_one_standard_deviation_covers_two_thirds(samples, trials):
    rng, pulls, scales = np.random.default_rng(24), [], []
    for _ in range(trials):
        found = static_potential([synthetic_loops(rng, samples, 10)], t_min=2)
        pulls.append(pulls_of(found.points))
        if found.free:
            scales.append(pulls_of_scales(found.free))
    assert len(scales) > trials / 2
    for some in (pulls, scales):
        assert (0.53 if samples < 50 else 0.58) < np.mean(np.abs(some) < 1) < 0.85
        assert np.sqrt(np.mean(np.square(some))) < (1.45 if samples < 50 else 1.25)


def pulls_of(points):
    true = [A + B / one.distance + SIGMA * one.distance for one in points]
    pairs = zip(points, true, strict=True)
    return [(one.potential.value - value) / one.potential.error for one, value in pairs]


def total_pulls(points):
    return [
        pull / math.hypot(1, np.nan_to_num(one.systematic) / one.potential.error)
        for pull, one in zip(pulls_of(points), points, strict=True)
    ]


def pulls_of_scales(scan):
    truth = {name: math.sqrt((target + B) / SIGMA) for name, target in FORCES.items()}
    truth["root_sigma"] = math.sqrt(SIGMA)
    return [
        (getattr(scan.fit, name).value - value)
        / math.hypot(getattr(scan.fit, name).error, scan.fit.systematic.get(name, 0))
        for name, value in truth.items()
    ]
