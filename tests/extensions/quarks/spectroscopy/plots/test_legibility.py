"""What a reader must see in figures of hadrons."""

from dataclasses import fields

import numpy as np
import pytest

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.extensions.quarks.spectroscopy.plots import (
    MOST_SHIFT,
    chiral_picture,
    chosen_hadrons,
    correlators_picture,
    effective_masses_picture,
    fitted,
    picture_of_frames,
)
from gauge_mc.extensions.quarks.spectroscopy.spectrum import ChiralFit, LinePoint
from tests.extensions.quarks.synthetic_hadrons import write_baryons, write_mesons
from tests.plots.shown import kept_figures, texts


@pytest.fixture
def figures(monkeypatch):
    return kept_figures(monkeypatch)


@pytest.fixture(scope="module")
def fits(tmp_path_factory):
    """Fitted correlators of mesons and baryons."""
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


@pytest.mark.first_quick
@pytest.mark.parametrize(
    ("number", "rows", "columns"), [(1, 1, 1), (3, 3, 1), (5, 3, 2), (9, 3, 3)]
)
def test_many_hadrons_stand_in_columns(fits, tmp_path, figures, number, rows, columns):
    """The lowest frame of each column has the times, and no place is left with an empty frame."""
    pion = (fits[0], next(iter(fits[0].correlators)))
    names = {str(n): [pion] for n in range(number)}
    with pytest.raises(GaugeError, match="too noisy"):
        picture_of_frames({}, lambda *_: []).draw(tmp_path / "plot.png")
    picture_of_frames(names, lambda *_: []).draw(tmp_path / "plot.png")
    axes = figures[0].axes
    assert [one.get_ylabel() for one in axes] == [*names]
    grid = axes[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == (rows, columns)
    assert [bool(one.get_xlabel()) for one in axes] == [
        n >= number - columns for n in range(number)
    ]
    width, height = figures[0].get_size_inches()
    assert height <= 1.2 * width


@pytest.mark.slow
@pytest.mark.parametrize("draw", [draw_correlators, draw_effective_masses])
def test_times_are_integers_and_symbols_are_shifted(fits, tmp_path, figures, draw):
    draw(fits, tmp_path / "plot.png", ["pion"])
    (axes,) = figures[0].axes
    ticks = axes.get_xticks()
    assert np.array_equal(ticks, np.round(ticks))
    assert len(axes.get_xticks(minor=True)) == 0
    assert axes.get_xlabel() == "$t/a$ (points are shifted sideways for clarity)"
    first = [box.lines[0].get_xdata()[0] for box in axes.containers]
    assert len(set(first)) == len(first) == 3
    assert max(abs(np.array(first) - 1)) <= MOST_SHIFT / 2
    correlators = draw is draw_correlators
    explained = "its continuation" if correlators else "fitted mass, at the t of the fit"
    assert explained in texts(figures[0])


@pytest.mark.slow
def test_extrapolations_name_what_they_draw(tmp_path, figures):
    points = (LinePoint(6.5, 0.1, 0.01), LinePoint(6.6, 0.2, 0.01))
    numbers = [Estimate(one, 0.01, 0.5, 0.1, 50) for one in (-6.4, 1.0, 0.156)]
    line = {"intercept": numbers[0], "slope": numbers[1], "kappa_c": numbers[2]}
    found = {"quantity": "pion^2", "source": "point", "mu": 0.0, "points": points, **line}
    others = dict.fromkeys({one.name for one in fields(ChiralFit)} - found.keys(), 0)
    chiral_picture([ChiralFit(**found, **others)]).draw(tmp_path / "chiral.png")
    assert figures[0].axes[0].get_ylabel() == r"$(a\,m_\pi)^2$"
    assert "hollow: chiral limit" in texts(figures[0])
