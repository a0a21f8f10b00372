"""Plots of correlators, effective masses and extrapolations."""

import shutil

import numpy as np
import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.spectroscopy.fits import MesonFit
from gauge_mc.extensions.quarks.spectroscopy.plots import (
    chosen_hadrons,
    correlators_picture,
    effective_masses_picture,
    fitted,
)
from gauge_mc.plots.drawing import find_plot
from tests.extensions.quarks.synthetic_hadrons import (
    MESON_LABELS,
    cosh_correlator,
    write_baryons,
    write_correlators,
    write_mesons,
)
from tests.plots.shown import kept_figures


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


@pytest.fixture
def figures(monkeypatch):
    return kept_figures(monkeypatch)


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    rng, path = np.random.default_rng(5), tmp_path_factory.mktemp("hadrons")
    write_mesons(path / "mesons.csv", rng, 12, (0.150, 0.154))
    write_baryons(path / "baryons.csv", rng, 12, (0.150,))
    return fitted(path, {})


def draw_correlators(fits, path, chosen):
    correlators_picture(fits[0], chosen).draw(path)


def draw_effective_masses(fits, path, chosen):
    effective_masses_picture(fits, chosen).draw(path)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [draw_correlators, draw_effective_masses])
def test_hadrons_can_be_chosen(fits, tmp_path, figures, draw):
    path = tmp_path / "plot.png"
    draw(fits, path, [])
    labels = [axes.get_ylabel() for axes in figures[0].axes]
    assert [r"\pi" in labels[0], r"\rho" in labels[1]] == [True, True]
    draw(fits, path, chosen_hadrons({"hadrons": " rho, pion"}))
    assert [axes.get_ylabel() for axes in figures[1].axes] == labels[1::-1]
    with pytest.raises(
        UsageError, match=r"there is no correlator of 'kaon' .*; choose from pion, "
    ):
        draw(fits, path, ["pion", "kaon"])


@pytest.mark.slow
def test_a_baryon_without_a_sign_has_both_parities(fits, tmp_path, figures):
    draw_effective_masses(fits, tmp_path / "plot.png", ["nucleon"])
    assert [axes.get_ylabel()[-4] for axes in figures[0].axes] == ["+", "-"]
    draw_effective_masses(fits, tmp_path / "plot.png", ["nucleon-"])
    assert len(figures[1].axes) == 1
