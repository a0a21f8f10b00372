"""Multi-histogram reweighting against exact results, and zeros of curves with errors."""

import math

import numpy as np
import pytest

from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError
from gauge_mc.quantities.transition import reweighting
from gauge_mc.quantities.transition.reweighting import (
    MarkovChain,
    MultiHistogram,
    bootstrapped,
    curve_zero,
    root_of,
)
from tests.quantities.transition.synthetic import correlated


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
