import math
import sys

import numpy as np
import pytest

from gauge_mc.analysis.timeseries import (
    Estimate,
    autocovariance,
    bin_length,
    caution_series,
    caution_short,
    caution_slow,
    caution_transient,
    estimate,
    growth,
    jackknife,
    kurtosis,
    phase_of_mean,
    susceptibility,
    transient,
    with_error,
)
from gauge_mc.errors import GaugeError
from tests.analysis.synthetic_loops import autoregressive
from tests.quantities.transition.synthetic import correlated


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8, 0.9])
def test_tau_int_and_coverage_on_ar1(rho):
    chains = autoregressive(np.random.default_rng(7), 4000, 200, rho)
    results = [estimate(chain) for chain in chains.T]
    exact = 0.5 * (1 + rho) / (1 - rho)
    tau = np.array([r.tau_int for r in results])
    pulls = np.array([r.value / r.error for r in results])
    assert abs(tau.mean() / exact - 1) < 0.03
    assert np.mean([r.tau_int_error for r in results]) == pytest.approx(tau.std(), rel=0.4)
    assert 0.85 < pulls.std() < 1.15  # 200 pulls: the error of their spread is 0.05
    assert 0.58 < np.mean(np.abs(pulls) < 1) < 0.78


def test_error_equals_pyerrors(pyerrors):
    for chain in autoregressive(np.random.default_rng(3), 500, 5, 0.7).T:
        obs = pyerrors.Obs([chain], ["chain"])
        obs.gamma_method(S=1.5)
        ours = estimate(chain)
        assert ours.value == pytest.approx(obs.value, rel=1e-12)
        assert ours.error == pytest.approx(obs.dvalue, rel=1e-10)
        assert ours.tau_int == pytest.approx(obs.e_tauint["chain"], rel=0.03)


def test_several_chains_equal_pyerrors(pyerrors):
    chains = list(autoregressive(np.random.default_rng(4), 400, 3, 0.7).T)
    chains = [chain - chain.mean() + 0.5 for chain in chains]  # else it takes several means
    obs = pyerrors.Obs(chains, ["chain|1", "chain|2", "chain|3"])
    obs.gamma_method(S=1.5)
    ours = estimate(*chains)
    assert (ours.value, ours.error) == pytest.approx((obs.value, obs.dvalue), rel=1e-10)
    assert ours.samples == 1200


def test_autocovariance_of_chains_of_several_lengths():
    dice = np.random.default_rng(6)
    chains = [dice.normal(size=samples) for samples in (40, 7, 1)]
    mean = sum(chain.sum() for chain in chains) / 48
    for lag, found in enumerate(autocovariance(*chains)):
        pairs = [
            (chain[i] - mean) * (chain[i + lag] - mean)
            for chain in chains
            for i in range(chain.size - lag)
        ]
        assert found == pytest.approx(np.mean(pairs), abs=1e-13)
    assert lag == 20


def test_chains_that_disagree_have_a_larger_error():
    dice = np.random.default_rng(7)
    together = [dice.normal(size=500) for _ in range(2)]
    apart = [together[0], together[1] + 1.0]
    assert estimate(*apart).error > 3 * estimate(*together).error
    assert estimate([1.0], [2.0]).error > 0


def test_anticorrelation_does_not_shrink_the_error():
    x = np.tile([1.0, -1.0], 50)
    assert estimate(x).error >= x.std() / math.sqrt(x.size)


@pytest.mark.filterwarnings("error")
def test_degenerate_series():
    constant = estimate([0.1] * 7)
    assert (constant.value, constant.error, constant.tau_int) == (0.1, 0.0, 0.5)
    assert math.isnan(estimate([]).value)
    assert math.isnan(estimate([1.0, math.nan, 2.0]).value)
    assert math.isnan(estimate([1.0, math.inf]).error)
    single = estimate([0.25])
    assert single.value == 0.25
    assert math.isnan(single.error)
    assert (single.format_tau(), repr(single)) == ("", "<0.25>")
    assert constant.format_tau(4) == "2"
    for samples in range(2, 12):
        short = estimate(np.random.default_rng(samples).normal(size=samples))
        assert short.error > 0
        assert 0.5 <= short.tau_int < samples


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_errors_of_susceptibilities(rho):
    """The susceptibilities are variances of AR(1) chains with a mean far from 0, in two parts."""
    volume, pulls = 1000, []
    for chain in 0.7 + 0.01 * autoregressive(np.random.default_rng(2), 4000, 150, rho).T:
        value, error = susceptibility(chain[:1500], chain[1500:], volume=volume)
        pulls.append((value - volume * 1e-4) / error)
    assert abs(np.mean(pulls)) < 0.35
    assert 0.85 < np.std(pulls) < 1.25


@pytest.mark.filterwarnings("error")
def test_susceptibilities_of_few_measurements():
    assert all(map(math.isnan, susceptibility([], volume=8)))
    value, error = susceptibility([0.5], volume=8)
    assert (value, math.isnan(error)) == (0.0, True)
    assert susceptibility([1.0], [2.0], volume=8)[0] == 2.0
    assert susceptibility([0.25] * 9, [], volume=8) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (0.652151, 0.00008, "0.65215(8)"),
        (0.652151, 0.000123, "0.65215(12)"),
        (0.5, 0.000953, "0.5000(10)"),
        (-0.262, 0.004, "-0.262(4)"),
        (12.345, 0.96, "12.3(1.0)"),
        (123456.0, 123.0, "123460(120)"),
        (0.5, 3.2, "0.5(3.2)"),
        (1.23456e-9, 1.2e-11, "1.235(12)e-09"),
        (5.0, 0.0, "5"),
        (0.25, math.nan, "0.25"),
        (math.nan, 1.0, "nan"),
    ],
)
def test_format(value, error, text):
    assert with_error(value, error) == text


@pytest.mark.parametrize(
    ("value", "error", "systematic", "text"),
    [
        (0.26, 0.01, 0.005, "0.260(10)(5)"),
        (174.3, 16.1, 0.9, "174(16)(1)"),
        (0.95, 0.08, 1.2, "0.95(0.08)(1.20)"),
        (12.0, 1.5, 0.3, "12.0(1.5)(0.3)"),
        (3.12e-9, 1.2e-10, 2e-10, "3.12(12)(20)e-09"),
        (2.803, 0.019, 0.0001, "2.803(19)"),
        (2.803, 0.019, math.nan, "2.803(19)"),
        (2.803, math.nan, 0.1, "2.803"),
        (2.803, 0.019, 0.0, "2.803(19)"),
    ],
)
def test_format_with_a_systematic_error(value, error, systematic, text):
    assert with_error(value, error, systematic) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("samples", "tau"), [(100, 5.0), (50, 2.5), (400, 20.0), (200, 5.0), (2000, 5.0)]
)
def test_one_standard_deviation_covers_two_thirds(samples, tau):
    """Nearly so for chains of ten independent samples, which have a caution."""
    rho = (2 * tau - 1) / (2 * tau + 1)
    chains = autoregressive(np.random.default_rng(11), samples, 600, rho).T
    found = [estimate(one) for one in chains]
    pulls = np.array([one.value / one.error for one in found])
    few = samples < 20 * 2 * tau
    least = 0.60 if few else 0.64
    assert least < np.mean(np.abs(pulls) < 1) < 0.74  # 0.683 +- 0.019
    assert np.sqrt(np.mean(pulls**2)) < (1.3 if few else 1.15)
    assert not few or np.mean([bool(one.length_cautions) for one in found]) > 0.95
    assert all(one.reliable == (not one.length_cautions) for one in found)


def test_cautions_of_short_series():
    chain = autoregressive(np.random.default_rng(1), 2000, 1, 0.8)[:, 0]
    assert estimate(chain).cautions == []
    assert "errors are increased by the error of τ_int" in estimate(chain[:100]).cautions[0]
    assert "no error can be relied on" in estimate(chain[:20]).cautions[0]
    assert "τ_int of Q long" in caution_short(100, 10.0, "Q")[0]
    assert estimate([]).cautions == estimate([1.0]).cautions == []


def test_thermalisation_is_found():
    dice = np.random.default_rng(12)
    false = found = 0
    for chain in autoregressive(dice, 500, 200, 9 / 11).T:
        false += transient(chain) > 0
        count = transient(chain + 20 * np.exp(-np.arange(500) / 20))
        found += 20 < count < 200
    assert false <= 4
    assert found >= 195
    assert transient(np.ones(100)) == transient([]) == transient([1.0, 2.0]) == 0
    early = np.arange(100) < 10
    noise = dice.normal(size=100)
    (sentence,) = caution_transient(10 * np.arange(1, 101), noise, noise + 20 * early)
    assert "--skip 100" in sentence
    assert caution_transient(np.arange(100), noise) == []


def test_jackknife_gives_the_error_of_the_gamma_method():
    chain = autoregressive(np.random.default_rng(13), 4000, 2, 0.6)
    means = jackknife(chain, bin_length(4000, 2.0))
    assert means.shape == (200, 2)
    np.testing.assert_allclose(means.mean(axis=0), chain.mean(axis=0), rtol=1e-9)
    errors = np.sqrt((len(means) - 1) * means.var(axis=0))
    np.testing.assert_allclose(errors, [estimate(one).error for one in chain.T], rtol=0.2)


def weak_slow_mode(rng, samples, chains):
    """Return white noise with 10 % of a mode with tau_int = 20."""
    slow = autoregressive(rng, samples, chains, 39 / 41)
    return math.sqrt(0.9) * rng.normal(size=(samples, chains)) + math.sqrt(0.1) * slow


def test_a_tail_covers_a_slow_mode_that_the_window_misses():
    """tau_int is 0.9/2 + 0.1 * 20 = 2.45, of which the automatic window finds a half."""
    series = weak_slow_mode(np.random.default_rng(1), 2000, 200).T
    plain, tail = ([estimate(one, tau_exp=t) for one in series] for t in (None, 20.0))
    covered = [np.mean([abs(one.value) < one.error for one in some]) for some in (plain, tail)]
    assert covered[0] < 0.57
    assert 0.59 < covered[1] < 0.75
    assert all(b.tau_int >= a.tau_int for a, b in zip(plain, tail, strict=True))
    assert 1.8 < np.mean([one.tau_int for one in tail]) < 2.9
    assert estimate(series[0], tau_exp=0.1).tau_int == pytest.approx(plain[0].tau_int, rel=0.1)
    with pytest.raises(ValueError, match="must be positive"):
        estimate(series[0], tau_exp=0.0)


@pytest.mark.slow
def test_errors_that_grow_with_the_length_of_bins_are_named():
    rng = np.random.default_rng(2)
    slow = [growth(one) for one in weak_slow_mode(rng, 8000, 40).T]
    assert np.mean(np.array(slow) > 1) > 0.5
    assert max(slow) < 2.2  # the square root of 2.45 / 0.5
    for rho in (0.0, 0.8):
        assert sum(growth(one) > 1 for one in autoregressive(rng, 2000, 200, rho).T) <= 2
    assert growth(np.zeros(500)) == 1
    assert growth(rng.normal(size=150)) == 1
    named = weak_slow_mode(rng, 8000, 12).T
    (sentence,) = caution_series(np.arange(8000), *named)
    assert "slow modes that τ_int misses" in sentence
    assert caution_series(np.arange(2000), *rng.normal(size=(5, 2000))) == []


@pytest.mark.slow
def test_an_estimate_cautions_of_slow_modes_as_commands_do():
    """Before, none of such series did in Python, though half of their errors were too small."""
    rng = np.random.default_rng(2)
    series = weak_slow_mode(rng, 8000, 40).T
    found = [estimate(one).cautions for one in series]
    assert found == [caution_series(np.arange(8000), one) for one in series]
    assert np.mean([bool(one) for one in found]) > 0.5
    tails = [estimate(one, tau_exp=20.0) for one in series]
    assert np.mean([bool(one.cautions) for one in tails]) < 0.1
    two = estimate(series[0], series[1])
    assert two.cautions == caution_slow(series[0], series[1])
    assert sum(bool(estimate(one).cautions) for one in rng.normal(size=(100, 2000))) <= 1


MEASURED = Estimate(0.60193, 0.0007, 0.5, 0.1, 100)


def test_an_estimate_is_a_number_and_formats_with_its_error():
    assert float(MEASURED) == 0.60193
    assert f"{MEASURED}" == str(MEASURED) == "0.6019(7)"
    assert f"{MEASURED:.3f}" == "0.602(1)"
    assert f"{MEASURED:>10}|{MEASURED:<9.3f}|{MEASURED:^11}|" == " 0.6019(7)|0.602(1) | 0.6019(7) |"
    assert f"{MEASURED:.4e}" == "6.0193(70)e-01"
    assert f"{Estimate(-3.12e-9, 1.2e-10, 0.5, 0, 9):.2e}" == "-3.12(12)e-09"
    assert f"{Estimate(9.9996, 0.01, 0.5, 0, 9):.3e}" == "1.000(1)e+01"


@pytest.mark.parametrize(
    ("value", "error", "form", "text"),
    [
        (3.0, 1.5, ".2f", "3.00(1.50)"),
        (3.0, 1.5, ".0f", "3(2)"),
        (3.0, 0.999, ".1f", "3.0(1.0)"),
        (3.0, 0.0, ".2f", "3.00"),
        (3.0, math.nan, ".2f", "3.00"),
        (math.nan, math.nan, ".2e", "nan"),
    ],
)
def test_decimals_of_an_estimate(value, error, form, text):
    assert format(Estimate(value, error, 0.5, 0, 9), form) == text


@pytest.mark.parametrize("form", ["g", ".3", ".f", ".3g", "+.3f", "x"])
def test_other_formats_of_an_estimate_are_refused(form):
    with pytest.raises(ValueError, match=r"An estimate has no format .* as in .3f"):
        format(MEASURED, form)


def test_an_estimate_becomes_an_observable_of_pyerrors(pyerrors):
    one, other = MEASURED.to_pyerrors("one"), MEASURED.to_pyerrors("other")
    assert (one.value, one.dvalue) == pytest.approx((0.60193, 0.0007))
    sums = [one + one, one + other]
    for each in sums:
        each.gamma_method()
    assert [each.dvalue for each in sums] == pytest.approx([0.0014, 0.0007 * math.sqrt(2)])
    with pytest.raises(GaugeError, match=r"error of 0\.5 is unknown"):
        Estimate(0.5, math.nan, math.nan, math.nan, 1).to_pyerrors("one")


@pytest.mark.slow
def test_an_estimate_becomes_a_number_of_gvar():
    gvar = pytest.importorskip("gvar")
    found = MEASURED.to_gvar()
    assert (gvar.mean(found), gvar.sdev(found)) == (0.60193, 0.0007)


def test_a_library_that_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gvar", None)
    with pytest.raises(GaugeError, match=r"needs the Python package gvar.*gauge-mc\[notebook\]"):
        MEASURED.to_gvar()


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.0, 8.0])
def test_kurtosis_of_normally_distributed_numbers(tau):
    """It is 3 for a real number; the error covers it for correlated chains as well."""
    pulls = []
    for seed in range(24):
        rng = np.random.default_rng(seed)
        chains = [correlated(rng, 3000, tau) for _ in range(2)]
        value, error = kurtosis(*chains)
        pulls.append((value - 3) / error)
    assert np.sqrt(np.mean(np.square(pulls))) == pytest.approx(1.1, abs=0.55)


def test_kurtosis_of_few_numbers():
    assert kurtosis([2.0, -2.0, 2.0])[0] == 1.0
    assert np.isnan(kurtosis([], [])).all()
    assert np.isnan(kurtosis([0.0, 0.0])).all()
    assert np.isnan(kurtosis([2.0])[1])


@pytest.mark.parametrize("phase", [0.2, 1.0])
def test_phases_of_means(phase):
    """Also where the phase jumps from 1 to -1, which makes no error large."""
    pulls, errors = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        noise = 0.5 * (rng.normal(size=400) + 1j * rng.normal(size=400))
        value, error = phase_of_mean(*np.split(0.3 * np.exp(1j * np.pi * phase) + noise, [150]))
        errors.append(error)
        pulls.append(((value - phase + 1) % 2 - 1) / error)
    assert np.mean(errors) == pytest.approx(0.5 / 0.3 / np.pi / 20, rel=0.15)
    assert np.std(pulls) == pytest.approx(1, abs=0.35)


def test_phases_of_few_numbers():
    assert phase_of_mean([-1.0])[0] == 1.0
    assert np.isnan(phase_of_mean([])).all()
    assert np.isnan(phase_of_mean([1j, -1j])).all()
