"""Parameters of runs with quarks."""

import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from tests.calls import make_run


def test_the_default_precision_is_one_with_which_quarks_work():
    with_quarks = Parameters.from_values({"algorithm": "hmc", "quarks": "kappa=0.1"})
    assert with_quarks.precision == "double"
    assert "_double_" in with_quarks.name


def test_quarks_name_the_algorithm_that_they_need():
    with pytest.raises(UsageError, match="of the algorithm heatbath, but of hmc; add --alg"):
        Parameters.from_values({"quarks": "kappa=0.1"})


def test_runs_of_trajectories_state_that_they_have_no_quarks(tmp_path):
    run = Run(make_run(tmp_path / "run", algorithm="hmc", steps=2, configs=0))
    text = run.toml.read_text()
    assert run.read()[0].algorithm.values["quarks"] == ()
    run.toml.write_text(text.replace('quarks = ""\n', ""))
    with pytest.raises(GaugeError, match="no key quarks"):
        run.read()
