"""Plots of correlators, effective masses and extrapolations."""

import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.plots import find_plot
from tests.analysis.synthetic_hadrons import write_baryons, write_mesons


@pytest.fixture
def run(tmp_path, rng):
    write_mesons(tmp_path / "mesons.csv", rng, 40, (0.150, 0.154))
    return tmp_path


def drawn(name, run, **options):
    file = run / f"{name}.svg"
    assert find_plot(name).draw([run], file, **options) == []
    return file.read_text()


@pytest.mark.parametrize("name", ["mesons", "effective-mass", "chiral"])
def test_plots_of_mesons_and_baryons(run, rng, name):
    alone = drawn(name, run)
    write_baryons(run / "baryons.csv", rng, 40, (0.150, 0.154))
    both = drawn(name, run)
    assert (both == alone) == (name == "mesons")
    if name != "mesons":
        assert both.count("<path") > alone.count("<path")
    assert drawn(name, run, t_min=6) != both


def test_effective_masses_of_baryons_alone(run, rng):
    (run / "mesons.csv").unlink()
    with pytest.raises(GaugeError, match="There is no table"):
        drawn("effective-mass", run)
    write_baryons(run / "baryons.csv", rng, 40, (0.150, 0.154))
    assert "<path" in drawn("effective-mass", run)


def test_what_is_refused(run, tmp_path, rng):
    with pytest.raises(UsageError, match="drawn for one run at a time; name only one run"):
        find_plot("mesons").draw([run, run], tmp_path / "a.svg")
    write_mesons(run / "one.csv", rng, 20, (0.150,))
    (run / "mesons.csv").unlink()
    with pytest.raises(GaugeError, match="at least two values of kappa; measure another one"):
        drawn("chiral", run)
