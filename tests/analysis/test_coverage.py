"""How often errors contain the truth, on synthetic series; `docs/studies/coverage.py` does all."""

from itertools import chain

import numpy as np
import pytest

from docs.studies.coverage import KINDS, missed, percentages, synthetic
from gauge_mc.analysis.timeseries import susceptibility
from tests.samples import all_of

EXACT = ("mean", "mass", *chain(*all_of("EXACT", "coverage")))
"""Quantities whose errors are right from 20 independent measurements on."""

KNOWN = {"two time scales, 0.7 and 5"}
"""Series whose slow part is missed where it is a small part of the variance."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", [one for one in KINDS if one not in KNOWN])
def test_errors_of_averages_contain_the_truth_as_often_as_they_should(kind):
    """Within 1 and 2 errors 68 +- 3 % and 95 +- 2 % from 20 measurements on, beyond chance."""
    chains = 1000 if KINDS[kind][1] <= 1 else 300
    table = synthetic(chains, 0, [kind], (10, 20, 50))
    chosen = {key: found for key, found in table.items() if key[1] in EXACT}
    assert missed(chosen) == []
    assert len(chosen) == 3 * len(EXACT)
    assert percentages(table[kind, "mean", 10])[2] > 90  # ten measurements have a caution


@pytest.mark.slow
@pytest.mark.parametrize("tau", [0.5, 4.0])
def test_the_susceptibility_has_no_bias(tau):
    """Without the correction it would be 5 % too small for 20 independent measurements."""
    noise = KINDS["independent"][0]
    rng, rho = np.random.default_rng(8), (2 * tau - 1) / (2 * tau + 1)
    samples = round(40 * tau)
    x = noise(rng, samples, 4000)
    x[1:] *= np.sqrt(1 - rho**2)
    for n in range(1, samples):
        x[n] += rho * x[n - 1]
    values = np.array([susceptibility(one, volume=7)[0] for one in x.T[:1500]])
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - 7) < 7 * 0.02 + 3 * error
    plain = 7 * x[:, :1500].var(axis=0)
    assert plain.mean() < 7 * 0.96 + 3 * error


@pytest.mark.slow
def test_errors_of_small_susceptibilities_are_not_too_small():
    """Without `RAISED`, 68 and 91.5 % would be within one and two errors on these series."""
    rng, pulls = np.random.default_rng(9), []
    noise, tau = KINDS["one time scale, τ = 1"]
    for one in noise(rng, round(40 * tau), 2000).T:
        value, error = susceptibility(one, volume=1)
        pulls.append((value - 1) / error)
    within = [np.mean(np.abs(pulls) < sigma) for sigma in (1, 2)]
    assert 0.69 < within[0] < 0.75
    assert within[1] > 0.923
