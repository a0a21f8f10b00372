"""What a reader must see in figures of hadrons."""

import numpy as np
import pytest

from gauge_mc.errors import UsageError
from gauge_mc.extensions.quarks.spectroscopy.plots import (
    chosen_hadrons,
    correlators_picture,
    effective_masses_picture,
    fitted,
)
from tests.extensions.quarks.synthetic_hadrons import write_baryons, write_mesons
from tests.plots.shown import kept_figures


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
