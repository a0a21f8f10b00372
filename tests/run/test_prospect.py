"""Errors that are expected after a time, and how far a run comes."""

import math

import numpy as np
import pytest

from gauge_mc.files.table import write_table
from gauge_mc.run.directory import Run
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.forecast import prospect
from tests.analysis.synthetic_loops import autoregressive

RHO = 9 / 11
"""Correlation of neighbours for tau_int = 5."""

PARAMETERS = Parameters(thermalize=100, configs=10, separation=5, measure="plaquette,polyakov:2")
OBSERVABLES = dict.fromkeys((Measurement("plaquette"), Measurement("polyakov", 2)))


def written(tmp_path, seed, samples=1000):
    series = autoregressive(np.random.default_rng(seed), samples, 1, RHO)[:, 0]
    rows = [(n + 101, one, one, one) for n, one in enumerate(series.tolist())]
    names = ("sweep", "plaquette", "spatial", "temporal")
    write_table(tmp_path / "plaquette.csv", {"observable": "plaquette"}, names, rows)
    return Run(tmp_path)


def test_errors_are_those_that_longer_series_have(tmp_path):
    """Their own errors say how far they may be off."""
    pulls = []
    for seed in range(60):
        run = written(tmp_path, seed)
        found = prospect(20_000.0, run, PARAMETERS, OBSERVABLES, 1100, (1.0, 1.0, None))
        one = found.errors[0]
        assert (found.updates, found.last, one.measurements) == (10_000, 11_100, 11_000)
        assert (one.table, one.column, one.now.samples) == ("plaquette", "plaquette", 1000)
        truth = math.sqrt(2 * 5 / one.measurements)
        pulls.append((one.error - truth) / one.error_of_error)
    assert abs(np.mean(pulls)) < 0.6  # tau_int of a short series is too small more often than not
    assert np.std(pulls) == pytest.approx(1, abs=0.5)


def test_thermalisation_takes_its_time(tmp_path):
    found = prospect(100.0, Run(tmp_path), PARAMETERS, OBSERVABLES, 60, (0.5, 1.5, 0.05))
    assert found.updates == 40 + (100 - 20) / 2
    assert (found.last, found.configurations, found.errors) == (140, 8, [])
    assert found.updates_error == pytest.approx(80 * 0.05 / 2)
    short = prospect(5.0, Run(tmp_path), PARAMETERS, OBSERVABLES, 0, (0.5, 1.5, None))
    assert (short.updates, short.configurations, short.updates_error) == (10, 0, None)
    heading, words = [*short.lines()][-1]
    assert heading == "errors then"
    assert words.startswith("not known before the run has measured")


def test_a_line_says_what_is_expected(tmp_path):
    run = written(tmp_path, 1)
    (first, words), (second, error), *_ = prospect(
        3600.0, run, PARAMETERS, OBSERVABLES, 1100, (1.0, 0.0, 0.1)
    ).lines()
    assert (first, second) == ("in 1:00:00", "errors then")
    assert words == "3600 ± 360 updates, up to update 4700, 920 configurations"
    assert "plaquette, plaquette: ±0.0" in error
    assert "by 4600 measurements; now " in error
