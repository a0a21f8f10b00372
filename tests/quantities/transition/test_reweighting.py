"""Multi-histogram reweighting against exact results, and pseudo-critical couplings of ensembles."""

import math
import warnings
from functools import cache

import numpy as np
import pytest

from gauge_mc.actions import Coupling
from gauge_mc.analysis.timeseries import centre_sector, estimate
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS
from gauge_mc.quantities.transition import results as infinite
from gauge_mc.quantities.transition import reweighting
from gauge_mc.quantities.transition.reweighting import (
    CurveZero,
    MarkovChain,
    MultiHistogram,
    ThermalChain,
    ThermalVolume,
    bootstrapped,
    curve_zero,
    near_axis,
    peak_of,
    root_of,
    two_peaks,
)
from tests.quantities.transition.synthetic import (
    CENTRE,
    COLOURS,
    JUMP,
    LATTICES,
    MODULUS,
    SPREAD,
    correlated,
    deconfined,
    two_phase_chain,
    two_phase_volume,
)


def chain(beta, action, tau=0.5):
    action = np.asarray(action, dtype=float)
    return MarkovChain(beta, action, np.array([action**2]), tau)


def test_exact_histograms_give_exact_averages():
    """Two levels, whose histograms at beta = 0 and ln 3 are 1 : 1 and 3 : 1 exactly."""
    even, odd = chain(0.0, [0, 1] * 60), chain(math.log(3), [0, 0, 0, 1] * 45)
    found = MultiHistogram([odd, even], 2)
    expected = math.log(2) - math.log(4 / 3)  # f = -ln Z about the mean of S
    shift = found.offset * math.log(3)
    assert found.free_energies[0, 1] == pytest.approx(expected - shift, abs=1e-8)
    likely = 135 / (135 + 60), 45 / (45 + 60)  # of the second run, given S = 0 and 1
    assert found.overlap.tolist() == [pytest.approx(sum(likely) / 2, rel=1e-8)]
    beta = np.array([-1.0, 0.3, 2.0])
    averages = found.averages(beta)[0, 0]
    np.testing.assert_allclose(averages, 1 / (1 + np.exp(beta)), rtol=1e-8)


def gamma_chains(rng, shape=40, size=3000):
    """Chains of the density of states S^(shape - 1), where S beta has a Gamma distribution."""
    betas = (1.0, 1.1, 1.25, 1.4)
    return shape, betas, [chain(b, rng.gamma(shape, 1 / b, size)) for b in betas]


def test_free_energies_and_averages_of_a_known_density_of_states():
    shape, betas, chains = gamma_chains(np.random.default_rng(7))
    found = MultiHistogram(chains, 60)
    free = found.free_energies + found.offset * (found.beta - found.beta[0])
    exact = shape * np.log(np.array(betas) / betas[0])
    error = free[1:].std(axis=0, ddof=1)
    assert (np.abs(free[0] - exact)[1:] < 4 * error[1:]).all()
    assert error[-1] < 0.03
    between = np.array([1.05, 1.17, 1.33])
    values = found.averages(between)[:, 0]
    errors = values[1:].std(axis=0, ddof=1)
    assert (np.abs(values[0] - shape * (shape + 1) / between**2) < 4 * errors).all()
    assert (errors / values[0] < 0.01).all()


def test_free_energies_and_overlap_agree_with_pymbar():
    pymbar = pytest.importorskip("pymbar")
    _, betas, chains = gamma_chains(np.random.default_rng(3), size=400)
    found = MultiHistogram(chains, 2)
    reduced = np.outer(betas, found.measured)
    other = pymbar.MBAR(reduced, [one.action.size for one in chains], relative_tolerance=1e-12)
    np.testing.assert_allclose(found.free_energies[0], other.f_k, atol=1e-4)
    matrix = other.compute_overlap()["matrix"]
    np.testing.assert_allclose(found.overlap, np.diag(matrix, 1), atol=1e-4)


def test_bins_in_the_action_change_averages_by_less_than_their_bound(monkeypatch):
    _, _, chains = gamma_chains(np.random.default_rng(5), size=2000)
    beta = np.array([1.05, 1.2])
    rough = MultiHistogram(chains, 2).averages(beta)
    monkeypatch.setattr(reweighting, "RESOLUTION", 1e-9)
    exact = MultiHistogram(chains, 2)
    assert exact.bins[0].size == 8000 > MultiHistogram(chains, 2).measured.size / 2
    np.testing.assert_allclose(rough, exact.averages(beta), rtol=0.02**2 / 24)


def test_chains_at_one_coupling_are_one_state():
    _, _, chains = gamma_chains(np.random.default_rng(9), size=1000)
    halves = [
        MarkovChain(one.beta, one.action[part], one.values[:, part], one.tau_int)
        for one in chains
        for part in (slice(0, 300), slice(300, None))
    ]
    whole, parts = MultiHistogram(chains, 2), MultiHistogram(halves, 2)
    assert parts.beta.tolist() == whole.beta.tolist()
    np.testing.assert_allclose(parts.free_energies[0], whole.free_energies[0], atol=1e-7)


def test_a_chain_that_stays_in_a_phase_does_not_count_more():
    """Half of the measurements are in each phase, and tau_int of one chain does not see that."""
    rng = np.random.default_rng(2)
    stuck = chain(1.0, rng.gamma(40, 1.0, 500))
    slow = MarkovChain(1.0, stuck.action, stuck.values, 50.0)
    halves = np.array([[0.0] * 500 + [1.0] * 500])
    both = MultiHistogram([stuck, slow], 2)
    assert (stuck.tau_int, both.weight) == (0.5, 0.01)
    assert both.averages(np.array([1.0]), halves)[0, 0, 0] == pytest.approx(0.5)


def test_runs_that_do_not_overlap_are_named():
    rng = np.random.default_rng(4)
    found = MultiHistogram([chain(b, rng.normal(-b * 400, 20, 500)) for b in (1.0, 1.05, 1.5)], 2)
    assert [(a, b) for a, b, _ in found.gaps] == [(1.05, 1.5)]
    assert found.overlap[0] > 0.1 > 1e-6 > found.overlap[1]


def test_steps_that_do_not_converge_end_in_a_sentence(monkeypatch):
    monkeypatch.setattr(reweighting, "MOST_STEPS", 1)
    _, _, chains = gamma_chains(np.random.default_rng(1), size=300)
    with pytest.raises(GaugeError, match=r"beta = 1 to 1\.4 do not overlap"):
        MultiHistogram(chains, 2).free_energies  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("count", [15, pytest.param(100, marks=pytest.mark.slow)])
def test_errors_cover_the_exact_average_of_correlated_chains(count):
    """S is normal with the variance 400, mean -400 beta, and tau_int of about 5."""
    rng, tau = np.random.default_rng(count), 5.0
    at, pulls = np.array([1.03]), []
    for number in range(count):
        chains = [
            chain(b, 20 * correlated(rng, 2000, tau) - 400 * b, tau) for b in (1.0, 1.02, 1.06)
        ]
        rows = MultiHistogram(chains, 40, number).averages(at, measured(chains))[:, 0, 0]
        pulls.append((rows[0] + 400 * at[0]) / rows[1:].std(ddof=1))
    spread = float(np.sqrt(np.mean(np.square(pulls))))
    # The error of an error is 1/sqrt(2 (replicas - 1)), and bins of 10 tau_int make it 5 % small.
    assert spread == pytest.approx(1.08, abs=4 / math.sqrt(2 * count) + 0.05)


def ladder_chains(rng, size=4000, ladders=(1, 2)):
    """Chains at two couplings, two of each, whose fluctuations a ladder shares."""
    found = []
    for number in ladders:
        shared = 20 * correlated(rng, size, 5.0)
        found += [(b, shared - 400 * b, number) for b in (1.0, 1.02)]
    return found


@pytest.mark.slow
def test_chains_of_a_ladder_are_drawn_together():
    given = ladder_chains(np.random.default_rng(3))
    errors = []
    for tempered in (False, True):
        chains = [MarkovChain(b, s, s[None], 9.0, n if tempered else None) for b, s, n in given]
        one = MultiHistogram(chains, 400)
        rows = one.averages(np.array([1.01]), measured(chains))[:, 0, 0]
        errors.append(rows[1:].std(ddof=1))
        assert rows[0] == pytest.approx(-404, abs=5)
    assert errors[1] / errors[0] == pytest.approx(math.sqrt(2), rel=4 / math.sqrt(2 * 400))
    drawn = one.multiplicity[1:].reshape(400, 2, 2, -1)  # ladder, coupling, block
    np.testing.assert_array_equal(drawn[:, :, 0], drawn[:, :, 1])
    assert np.ptp(drawn[:, 0, 0].sum(axis=1)) > 0  # ladders with the same couplings are a group
    assert (drawn[:, :, 0].sum(axis=(1, 2)) == drawn.shape[1] * drawn.shape[3]).all()


def test_blocks_of_a_ladder_are_as_long_as_its_longest():
    rng = np.random.default_rng(1)
    series = rng.normal(size=1000)
    chains = [MarkovChain(b, series, series[None], tau, 7) for b, tau in ((1.0, 2.0), (1.1, 10.0))]
    alone = MarkovChain(1.2, series, series[None], 2.0)
    one = MultiHistogram([*chains, alone], 5)
    blocks = one.blocks[0].reshape(3, -1)
    counts = [np.unique(row).size for row in blocks]
    assert counts[0] == counts[1] == 20
    assert counts[2] == 50
    units, groups = one.units
    assert units[:20].tolist() == units[20:40].tolist() == list(range(20))
    assert units[40:].tolist() == list(range(20, 70))
    assert groups.tolist() == [3] * 20 + [2] * 50


@pytest.mark.slow
def test_exchanges_hide_no_autocorrelation():
    """What relaxes slowly in every replica moves from coupling to coupling, but not faster away."""
    values, errors, own = [], [], []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        rungs = np.argsort(rng.random((1000, 12)), axis=1)
        slow = np.array([correlated(rng, 1000, 10.0) for _ in range(12)]).T
        series = np.take_along_axis(slow, rungs, axis=1).T
        action = rng.normal(size=series.shape)
        tau = max(estimate(one).tau_int for one in series)
        own.append(tau)
        chains = [
            MarkovChain(n / 100, a - n / 100, v[None], tau, 1)
            for n, (a, v) in enumerate(zip(action, series, strict=True))
        ]
        rows = MultiHistogram(chains, 100, seed).averages(
            np.array([0.05]), np.concatenate([one.values for one in chains], axis=1)
        )[:, 0, 0]
        values.append(rows[0])
        errors.append(rows[1:].std(ddof=1))
    assert np.mean(own) < 3  # of one coupling, where each replica has 10
    assert np.std(values, ddof=1) == pytest.approx(np.mean(errors), rel=0.28)  # 100: to 7 %


def measured(chains):
    return np.concatenate([one.action for one in chains])[None]


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


BETAS = (5.68, 5.69, 5.70, 5.71)


@pytest.fixture(scope="module")
def volumes():
    rng = np.random.default_rng(11)
    return [two_phase_volume(rng, lattice, BETAS, 6000) for lattice in LATTICES]


@cache
def moments(lattice):
    """<|L|> and <|L|^2> of the confined and the deconfined phase, by integration over L."""
    spread = SPREAD / math.sqrt(lattice.slice_sites)
    re, im = np.meshgrid(*[np.linspace(-0.7, 0.7, 701)] * 2)
    modulus, found = np.hypot(re, im), []
    for centre in (0.0, MODULUS):
        density = np.exp(-((re - centre) ** 2 + im**2) / (2 * spread**2))
        found.append([(density * modulus**n).sum() / density.sum() for n in (1, 2)])
    return np.array(found)


def exact_susceptibility(beta, lattice):
    """V (<|L|^2> - <|L|>^2) of the model."""
    p = deconfined(beta, lattice)
    mean, square = np.array([1 - p, p]) @ moments(lattice)
    return lattice.slice_sites * (square - mean**2)


@pytest.mark.slow
def test_curves_are_those_of_the_model(volumes):
    for volume in volumes:
        curve = volume.susceptibility
        for beta in (5.685, 5.695, 5.705):
            at = int(np.argmin(np.abs(curve.beta - beta)))
            exact = exact_susceptibility(float(curve.beta[at]), volume.lattice)
            assert abs(curve.value[at] - exact) < 4.5 * curve.error[at]
        fine = np.linspace(5.67, 5.72, 501)
        exact_peak = fine[np.argmax([exact_susceptibility(b, volume.lattice) for b in fine])]
        found = bootstrapped(volume.peak[0])
        assert abs(found.value - exact_peak) < 4.5 * found.error + 1e-4


def test_equal_weights_and_the_jump_of_the_action(volumes):
    """For the largest lattice the phases are separate; L of the confined phase is random."""
    volume = volumes[-1]
    found = bootstrapped(volume.equal_weights)
    wide = SPREAD / math.sqrt(volume.space)
    beyond = math.erfc(MODULUS * math.sin(math.pi / 9) / wide / math.sqrt(2))
    p = (3 * (1 - beyond) - 1) / 2 * deconfined(CENTRE, volume.lattice)
    shift = (COLOURS / (COLOURS + 1) - p) / (3 / 16 * JUMP * volume.lattice.sites)
    assert abs(found.value - CENTRE - shift) < 4 * found.error + abs(shift)
    assert found.error < 0.002
    assert volume.phases is not None
    low, middle, high, depth = volume.phases
    assert low < middle < high < 1.5 * MODULUS
    assert depth < 0.3
    jump = bootstrapped(volume.jump)
    assert abs(jump.value - JUMP) < 4 * jump.error + 0.02 * JUMP


def test_the_jump_of_the_action_from_its_variance(volumes):
    """In a phase the variance is 0.3 per site, and the mixture adds p (1 - p) JUMP^2."""
    for volume in volumes:
        p = deconfined(float(volume.peak[0][0]), volume.lattice)
        exact = 0.3 / volume.lattice.sites + p * (1 - p) * JUMP**2
        found = bootstrapped(volume.variance)
        assert abs(found.value - exact) < 4.5 * found.error < 0.1 * exact
    line = infinite.jump_of_variances(volumes)
    jump = bootstrapped(2 * np.sqrt(line.parameters[:, 0]))
    assert abs(jump.value - JUMP) < 4 * jump.error < 0.05 * JUMP


def test_su2_has_no_jump(volumes):
    alike = [ThermalVolume(one.lattice, 2, one.chains, 5) for one in volumes]
    assert infinite.jump_of_variances(alike) is None


def test_beta_c_in_an_infinite_volume(volumes):
    lines = infinite.extrapolations(volumes)
    assert list(lines) == ["peak of χ", "equal weights"]
    for line in lines.values():
        found = bootstrapped(line.parameters[:, 0])
        assert abs(found.value - CENTRE) < 4 * found.error
        assert found.error < 0.004
        assert line.dof == 1
        assert 0.001 < line.p_value <= 1


def test_the_same_seed_gives_the_same_errors():
    def peak():
        return two_phase_volume(np.random.default_rng(1), LATTICES[0], BETAS, 500, 5).peak[0]

    np.testing.assert_array_equal(peak(), peak())


def test_a_volume_without_a_peak_is_not_extrapolated():
    rng = np.random.default_rng(2)
    below = two_phase_volume(rng, LATTICES[2], (5.66, 5.67), 800, 5)
    other = two_phase_volume(rng, LATTICES[1], BETAS, 800, 5)
    assert math.isnan(below.peak[0][0])
    assert infinite.line_of([1.0, 2.0], [below.peak[0], other.peak[0]]) is None
    assert infinite.exponent([below, other]) is None


def test_crossing_of_known_cumulants():
    """|L| is c sqrt(2) or 0 with probability p: U = 1 - 1 / (3 p), here with p that grows."""

    def volume(lattice, slope):
        rng = np.random.default_rng(int(slope))
        chains = []
        for beta in (1.96, 2.0, 2.04):
            p = 0.5 / (0.5 + 0.5 * math.exp(-slope * (beta - 2.01)))
            high = rng.random(4000) < p
            action = rng.normal(size=4000) * 30 - beta * 900 - np.where(high, slope, 0)
            chains.append(ThermalChain(beta, np.arange(4000), action, high.astype(complex)))
        return ThermalVolume(Lattice.parse(lattice), 2, chains, 60)

    small, large = volume("4x4x4x2", 20.0), volume("8x8x8x2", 60.0)
    found = bootstrapped(infinite.crossing(small, large).samples)
    assert abs(found.value - 2.01) < 4 * found.error
    assert 0 < found.error < 0.005


@pytest.mark.parametrize("omitted", [0, 3])
def test_a_line_through_points(omitted):
    rng = np.random.default_rng(3)
    x, error = np.array([0.1, 0.2, 0.5, 1.0]), np.array([0.1, 0.2, 0.1, 0.3])
    exact = 2.0 - 0.7 * x
    values = exact + error * rng.normal(size=(4001, 4))
    values[0] = exact
    values[1 : 1 + omitted] = np.nan
    line = infinite.line_of(x.tolist(), list(values.T))
    np.testing.assert_allclose(line.parameters[0], [2.0, -0.7, 0.0], atol=1e-12)
    assert line.systematic == 0
    np.testing.assert_allclose(line.errors, error, rtol=0.05)
    weights = np.linalg.inv((design := np.stack([np.ones(4), x], 1) / error[:, None]).T @ design)
    spread = np.nanstd(line.parameters[1:, :2], axis=0)
    np.testing.assert_allclose(spread, np.sqrt(np.diag(weights)), rtol=0.06)
    assert (line.chi2, line.p_value) == (pytest.approx(0, abs=1e-20), 1.0)


def scaling_line(rng, sizes, error, correction, slope=0.1):
    """Return the line through beta_c + slope x (1 + correction next) with errors, for SU(2)."""
    ratio = 1 / np.array(sizes, dtype=float)
    x, terms = ratio ** (1 / infinite.ISING_NU), ratio**infinite.ISING_OMEGA
    samples = 1.88 + slope * x * (1 + correction * terms) + error * rng.normal(size=(1, len(sizes)))
    samples = samples + np.vstack([0 * x, error * rng.normal(size=(200, len(sizes)))])
    return infinite.line_of(x.tolist(), list(samples.T), terms.tolist())


def test_the_error_of_an_extrapolation_is_that_of_a_fit_with_a_next_term():
    """It is that of generalised least squares where the next term is part of the covariance."""
    line = scaling_line(np.random.default_rng(4), (3, 4, 6, 8), 0.0005, 0.4)
    unit = line.slope * line.x * line.next
    inverse = np.linalg.inv(np.diag(line.errors**2) + np.outer(unit, unit))
    design = np.stack([np.ones(4), line.x], axis=1)
    covariance = np.linalg.inv(design.T @ inverse @ design)
    first = covariance @ design.T @ inverse @ line.values[0]
    np.testing.assert_allclose(line.parameters[0, :2], first, rtol=1e-8)
    rest = line.values[0] - design @ first
    assert line.chi2 == pytest.approx(rest @ inverse @ rest)
    weights = (covariance @ design.T @ inverse)[0]
    statistical = weights**2 @ line.errors**2
    assert line.systematic == pytest.approx(math.sqrt(covariance[0, 0] - statistical), rel=1e-6)


@pytest.mark.parametrize("sizes", [(4, 6), (4, 6, 8)])
@pytest.mark.parametrize("error", [0.002, 0.0005, 0.0001])
def test_errors_of_extrapolations_contain_the_form(sizes, error):
    """Without the next term 14, 10 % are within one and 28, 20 % within two of the last errors."""
    rng, pulls = np.random.default_rng(5), []
    for _ in range(300):
        line = scaling_line(rng, sizes, error, rng.normal(), rng.choice([-0.1, 0.1]))
        beta = bootstrapped(line.parameters[:, 0])
        pulls.append((beta.value - 1.88) / math.hypot(beta.error, line.systematic))
    assert np.mean(np.abs(pulls) < 1) > 0.55
    assert np.mean(np.abs(pulls) < 2) > 0.8


@pytest.mark.slow
def test_errors_of_a_first_order_transition_contain_the_form():
    """Statistical errors contain the truth in 75 and 97 % (peak), 43 and 82 % (weights)."""
    lattices = [LATTICES[0], LATTICES[2]]
    coupling = Coupling.of_metadata({"group": "su3", "beta": "5.7", "action": "wilson"})
    pulls = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        volumes = [two_phase_volume(rng, one, (*BETAS, 5.72), 4000) for one in lattices]
        found = infinite.transition(volumes, GROUPS["su3"], coupling, {}).critical
        errors = {one.method: math.hypot(one.beta.error, one.systematic) for one in found}
        assert [*errors.values()] == sorted(errors.values())
        deviations = {one.method: one.beta.value - CENTRE for one in found}
        pulls.append([deviations[one] / errors[one] for one in ("peak of χ", "equal weights")])
    assert np.mean(np.abs(pulls) < 1, axis=0).min() > 0.62
    assert np.mean(np.abs(pulls) < 2, axis=0).min() > 0.9


def test_the_exponent_of_known_peaks():
    class Peaks:
        def __init__(self, size):
            self.size, self.peak = size, (None, np.array([size**1.96, size**2.0, size**1.9]))

    found = infinite.exponent([Peaks(8.0), Peaks(12.0), Peaks(16.0)])
    assert found[0] == pytest.approx(1.96)


def test_shifts():
    def volume(text, colours):
        return ThermalVolume(Lattice.parse(text), colours, [])

    assert infinite.shift(volume("8x8x8x4", 3)) == pytest.approx(1 / 8)
    assert infinite.shift(volume("8x8x8x4", 2)) == pytest.approx(0.5 ** (1 / 0.629971))
    pair = volume("8x8x8x4", 2), volume("16x16x16x4", 2)
    w, n = 0.82968, 1 / 0.629971
    expected = (2**-w - 4**-w) / (4**n - 2**n)
    assert infinite.crossing_shift(*pair) == pytest.approx(expected)


def test_sectors_of_the_centre():
    phases = np.exp(2j * np.pi * np.array([0.0, 0.15, 0.19, 1 / 3, 0.5, 0.7, -0.05]))
    assert centre_sector(phases, 3).tolist() == [0, 0, 1, 1, 2, 2, 0]
    assert near_axis(phases, 3).tolist() == [True, False, False, True, False, True, True]
    assert centre_sector(np.array([0.1, -0.1 + 0j]), 2).tolist() == [0, 1]
    random = np.exp(2j * np.pi * np.random.default_rng(1).random(20000))
    assert near_axis(random, 3).mean() == pytest.approx(1 / 3, abs=0.015)
    assert near_axis(random, 4).mean() == pytest.approx(1 / 3, abs=0.015)


def test_peaks_roots_and_minima_of_curves():
    x = np.linspace(0, 1, 41)
    where, height = peak_of(x, 3 - (x - 0.4321) ** 2 + 0.1 * (x - 0.4321) ** 3)
    assert (where, height) == (pytest.approx(0.4321, abs=1e-9), pytest.approx(3.0))
    assert math.isnan(peak_of(x, x)[0])
    assert root_of(x, (x - 0.2) * (x - 0.7), 0.9) == pytest.approx(0.7, abs=1e-3)
    assert root_of(x, (x - 0.2) * (x - 0.7), 0.0) == pytest.approx(0.2, abs=1e-3)
    assert math.isnan(root_of(x, x + 1, 0.5))
    bumps = np.exp(-((x - 0.2) ** 2) / 0.01) + 0.5 * np.exp(-((x - 0.7) ** 2) / 0.01)
    low, middle, high, depth = two_peaks(x, bumps)
    assert (low, high) == (pytest.approx(0.2), pytest.approx(0.7))
    assert 0.35 < middle < 0.55
    assert depth < 0.1
    assert two_peaks(x, np.exp(-((x - 0.5) ** 2))) is None


def test_tunnelling_counts_passages_from_peak_to_peak(volumes, monkeypatch):
    volume = volumes[-1]
    low, middle, high, _ = volume.phases
    loop = np.array([low, middle, low, middle, high, middle, high, low / 2], dtype=complex)
    chain = ThermalChain(5.7, np.arange(8), np.zeros(8), loop)
    assert volume.tunnelling(chain) == 2


@pytest.mark.slow
@pytest.mark.parametrize("betas", [(5.69, 5.70, 5.71), (5.67, 5.693, 5.72)])
@pytest.mark.parametrize(("stay", "size"), [(0.9, 1000), (0.99, 1000), (0.99, 6000)])
def test_errors_of_chains_that_seldom_change_the_phase_cover_the_truth(stay, size, betas):
    pulls = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        chains = [two_phase_chain(rng, beta, LATTICES[-1], size, stay) for beta in betas]
        found = bootstrapped(ThermalVolume(LATTICES[-1], COLOURS, chains, 50).equal_weights)
        pulls.append(abs(found.value - CENTRE) / found.error)
    assert np.mean(np.array(pulls) < 1) > 0.5
    assert np.mean(np.array(pulls) < 2) > 0.82


def test_few_changes_of_the_phase_are_an_error():
    rng = np.random.default_rng(0)
    chains = [two_phase_chain(rng, beta, LATTICES[-1], 1000, 0.99) for beta in (5.69, 5.7, 5.71)]
    volume = ThermalVolume(LATTICES[-1], COLOURS, chains, 20)
    changes = sum(map(volume.tunnelling, chains))
    assert 3 < changes < 20
    expected = 2 / math.sqrt(changes) / (LATTICES[-1].sites * volume.jump[0])
    for samples in (volume.equal_weights, volume.peak[0]):
        assert bootstrapped(samples).error == pytest.approx(expected)


def test_the_interface_tension_is_that_of_the_histogram():
    """At one coupling reweighting changes nothing, and the histogram is that of the chain."""
    volume = two_phase_volume(np.random.default_rng(8), LATTICES[1], [CENTRE], 20_000, replicas=30)
    volume.__dict__["peak_zero"] = CurveZero(np.full(31, CENTRE), CENTRE, CENTRE, False)
    edges = volume.histogram[0]
    counts = np.histogram(np.abs(volume.chains[0].loop), edges)[0]
    smooth = np.convolve(np.pad(counts, 1, mode="edge"), [0.25, 0.5, 0.25], mode="valid")
    centres = (edges[1:] + edges[:-1]) / 2
    low, least, high = (smooth[np.argmin(np.abs(centres - one))] for one in volume.phases[:3])
    assert least == smooth[(centres > volume.phases[0]) & (centres < volume.phases[2])].min()
    expected = np.log(np.sqrt(low * high) / least) / 2 * (4 / 10) ** 2
    found = bootstrapped(volume.interface)
    assert found.value == pytest.approx(expected, rel=1e-9)
    assert 0 < 4 * found.error < found.value


def test_bootstrap_samples_without_one_of_the_phases_are_left_out():
    """One of 30 measurements is below the minimum, so that a third of the samples lacks it."""
    volume = two_phase_volume(np.random.default_rng(8), LATTICES[0], [CENTRE], 30, replicas=100)
    volume.__dict__["peak_zero"] = CurveZero(np.full(101, CENTRE), CENTRE, CENTRE, False)
    modulus = np.sort(np.abs(volume.chains[0].loop))
    volume.__dict__["phases"] = (*modulus[[0, 1, -1]], 0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jump, interface = volume.jump, volume.interface
    assert 5 < np.isnan(jump).sum() < 95
    assert math.isfinite(bootstrapped(jump).error)
    assert interface.size == 101
