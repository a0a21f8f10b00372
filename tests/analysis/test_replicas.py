import numpy as np
import pytest

from gauge_mc.analysis.timeseries import Replicas, autocovariance, estimate
from tests.analysis.synthetic_loops import autoregressive

RHO = 0.9
"""Autocorrelation of the synthetic chains at a lag of one update."""


def exact_tau(step):
    return 0.5 * (1 + RHO**step) / (1 - RHO**step)


def test_rows_belong_to_chains():
    replicas = Replicas.of([10, 20, 30, 50, 60], [7], [4, 8, 12])
    assert (replicas.lengths, replicas.spacings) == ((5, 1, 3), (10, 10, 4))
    parts = replicas.split(np.arange(18).reshape(9, 2))
    assert [part[:, 0].tolist() for part in parts] == [[0, 2, 4, 6, 8], [10], [12, 14, 16]]
    with pytest.raises(ValueError, match="8 rows are not 9 configurations"):
        replicas.split(np.zeros(8))
    assert replicas.where(np.arange(9) % 2 == 0) == Replicas((3, 0, 2), replicas.spacings)


@pytest.mark.parametrize("spacing", [1, 20])
def test_equal_spacings_change_no_bit(spacing):
    parts = [np.random.default_rng(n).normal(size=n).cumsum() for n in (60, 41, 7)]
    replicas = Replicas((60, 41, 7), (spacing,) * 3)
    assert replicas.estimate(np.concatenate(parts)) == estimate(*parts)
    assert Replicas((60,), (spacing,)).estimate(parts[0]) == estimate(parts[0])


@pytest.mark.parametrize("spacings", [(1, 2, 6), (4, 6, 12)])
def test_autocovariance_is_the_mean_over_the_pairs_of_each_lag(spacings):
    dice = np.random.default_rng(3)
    chains = [dice.normal(size=samples) for samples in (20, 9, 30)]
    mean, unit = np.concatenate(chains).mean(), np.gcd.reduce(spacings)
    known = {}
    for chain, spacing in zip(chains, spacings, strict=True):
        for i, x in enumerate(chain - mean):
            for j, y in enumerate((chain - mean)[i:]):
                known.setdefault(j * spacing // unit, []).append(x * y)
    means = {lag: np.mean(known[lag]) for lag in sorted(known)}
    found = autocovariance(*chains, spacings=spacings)
    assert found.size == 15 * spacings[2] // unit + 1
    wanted = np.interp(range(found.size), list(means), list(means.values()))
    np.testing.assert_allclose(found, wanted, atol=1e-13)


def test_replicas_equal_pyerrors(pyerrors):
    chains = autoregressive(np.random.default_rng(4), 800, 2, RHO).T
    for spacings in ((4, 4), (1, 2)):
        parts = [chain[::step] for chain, step in zip(chains, spacings, strict=True)]
        parts = [part - part.mean() + 0.5 for part in parts]  # else it takes several means
        idl = [range(1, 801, step) for step in spacings]
        obs = pyerrors.Obs(parts, ["chain|1", "chain|2"], idl=idl)
        obs.gamma_method(S=1.5)
        gamma = autocovariance(*parts, spacings=spacings)[:50]
        np.testing.assert_allclose(gamma / gamma[0], obs.e_rho["chain"][:50], atol=1e-12)
        ours = Replicas(tuple(map(len, parts)), spacings).estimate(np.concatenate(parts))
        assert ours.value == pytest.approx(obs.value, rel=1e-12)
        rho = obs.e_rho["chain"][: obs.e_windowsize["chain"] + 1]
        shares = np.ones(rho.size)
        if spacings == (1, 2):  # pyerrors takes the odd lags for the samples of both chains
            shares[1::2] = 800 / 1200
        wanted = (shares @ rho - 0.5) / (rho.sum() - 0.5)
        assert (ours.error / obs.dvalue) ** 2 == pytest.approx(wanted, rel=0.02)  # besides the bias
        if spacings == (4, 4):
            assert ours.error == pytest.approx(obs.dvalue, rel=1e-10)


def test_tau_int_and_coverage_with_several_spacings():
    replicas, results = Replicas((800, 800), (1, 5)), []
    chains = autoregressive(np.random.default_rng(7), 4000, 400, RHO).T
    for first, second in zip(chains[::2], chains[1::2], strict=True):
        results.append(replicas.estimate(np.concatenate([first[:800], second[::5]])))
    tau = np.array([r.tau_int for r in results])
    pulls = np.array([r.value / r.error for r in results])
    assert tau.mean() == pytest.approx((exact_tau(1) + exact_tau(5)) / 2, rel=0.04)
    assert np.mean([r.tau_int_error for r in results]) == pytest.approx(tau.std(), rel=0.4)
    assert 0.85 < pulls.std() < 1.15  # 200 pulls: the error of their spread is 0.05
    with pytest.raises(ValueError, match="several spacings"):
        estimate([1.0], [2.0], tau_exp=3.0, spacings=(1, 2))


def test_cautions_of_several_chains_name_them():
    one, two = np.random.default_rng(1).normal(size=(2, 400))
    two[:80] += 5
    chains, sweeps = Replicas((400, 400), (1, 1), ("a", "b")), np.tile(np.arange(1, 401), 2)
    (sentence,) = chains.cautions(sweeps, np.concatenate([one, two]))
    assert sentence.startswith("b: The measurements up to update ")
