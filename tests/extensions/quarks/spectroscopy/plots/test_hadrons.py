"""Plots of correlators, effective masses and extrapolations."""

import shutil

import numpy as np
import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.spectroscopy.fits import MesonFit
from gauge_mc.plots.drawing import find_plot
from tests.extensions.quarks.synthetic_hadrons import (
    MESON_LABELS,
    cosh_correlator,
    write_baryons,
    write_correlators,
    write_mesons,
)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("made") / "mesons.csv"
    return write_mesons(path, np.random.default_rng(20100824), 20, (0.150, 0.154))


@pytest.fixture
def run(table, tmp_path):
    shutil.copy(table, tmp_path)
    return tmp_path


def drawn(name, run, **options):
    file = run / f"{name}.svg"
    assert find_plot(name).draw([run], file, **options) == []
    return file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["chiral", "mesons", "effective-mass"])
def test_plots_of_mesons_and_baryons(run, rng, name):
    if name != "chiral":
        (run / "mesons.csv").unlink()
        write_mesons(run / "mesons.csv", rng, 20, (0.150,))
    alone = drawn(name, run, t_min=5)
    write_baryons(run / "baryons.csv", rng, 20, (0.150, 0.154)[: 1 + (name == "chiral")])
    both = drawn(name, run, t_min=5)
    assert (both == alone) == (name == "mesons")
    if name != "mesons":
        assert both.count("<path") > alone.count("<path")
    assert drawn(name, run, t_min=6) != both


@pytest.mark.slow
def test_effective_masses_of_baryons_alone(run, rng):
    (run / "mesons.csv").unlink()
    with pytest.raises(GaugeError, match="There is no run in"):
        drawn("effective-mass", run)
    write_baryons(run / "baryons.csv", rng, 20, (0.150, 0.154))
    assert "<path" in drawn("effective-mass", run)


@pytest.mark.slow
def test_correlators_too_noisy_for_a_fit_are_drawn(run, rng):
    """Fits need errors below 10 %, and points below 100 % or, of effective masses, 25 %."""
    pion = (0.15, 0.15, 0.0, 0.0, "point@0;0;0;0", "g5", "g5", 0, 0, 0)
    (run / "mesons.csv").unlink()
    noisy = {pion: cosh_correlator(rng, 40, 0.8, size=1.3)}
    table = write_correlators(run / "mesons.csv", MESON_LABELS, noisy)
    with pytest.raises(GaugeError, match="too noisy for a fit"):
        MesonFit().carry_out([table])
    for name in ("mesons", "effective-mass"):
        assert "<path" in drawn(name, run)
    table.unlink()
    noise = {pion: 1e-3 * rng.standard_normal((40, 32))}
    write_correlators(table, MESON_LABELS, noise)
    with pytest.raises(GaugeError, match="too noisy to be drawn"):
        drawn("effective-mass", run)


@pytest.mark.slow
def test_what_is_refused(run, tmp_path, rng):
    with pytest.raises(UsageError, match="drawn for one run at a time; name only one, such as"):
        find_plot("mesons").draw([run, run], tmp_path / "a.svg")
    write_mesons(run / "one.csv", rng, 20, (0.150,))
    (run / "mesons.csv").unlink()
    with pytest.raises(
        GaugeError, match="at least two values of kappa, or of m; measure another one"
    ):
        drawn("chiral", run)
