"""What a reader must see in a figure: all points, what symbols mean, and the chosen size."""

from dataclasses import fields, replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import Table, write_table
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.files import MOST_PIXELS, FigureFormat, drawn_as
from gauge_mc.plots.figures.series import History
from gauge_mc.plots.history import plot_history
from gauge_mc.plots.runs.drawing import find_plot
from gauge_mc.plots.runs.labels import labels_of
from gauge_mc.quantities.hadrons.analysis.results import ChiralFit, ChiralPoint
from gauge_mc.quantities.hadrons.plots.chiral import chiral_picture
from gauge_mc.quantities.hadrons.plots.effective_mass import effective_masses_picture, fitted
from gauge_mc.quantities.hadrons.plots.mesons import (
    MOST_SHIFT,
    chosen_hadrons,
    correlators_picture,
    picture_of_frames,
)
from gauge_mc.quantities.potential.plots.static_force import LARGEST_ERROR
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from tests.analysis.synthetic_hadrons import write_baryons, write_mesons
from tests.analysis.synthetic_loops import static_potential, synthetic_loops
from tests.calls import call

COLUMNS = ("sweep", "plaquette", "spatial", "temporal")
LOOPS = synthetic_loops(np.random.default_rng(8), 60, 6, excited=0.01)


@pytest.fixture
def figures(monkeypatch):
    """The figures that would be written: what is in them can be seen before they are drawn."""
    found = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: found.append(figure))
    return found


def texts(figure):
    """All texts in a figure."""
    return [one.get_text() for one in figure.findobj(Text) if one.get_text()]


def points(axes):
    """The points of all error bars of a frame."""
    drawn = [box.lines[0].get_xydata() for box in axes.containers if hasattr(box, "lines")]
    return np.concatenate([one for one in drawn if len(one)])


@pytest.fixture(scope="module")
def potential():
    return static_potential([LOOPS], r_min=1)


def changed(result, **forces):
    """A potential whose forces with some numbers have other values, errors or paths."""
    new = list(result.force)
    for name, change in forces.items():
        n = int(name[1:])
        new[n] = change(new[n])
    return replace(result, force=tuple(new))


@pytest.mark.slow
def test_all_forces_lie_within_the_frame(potential, tmp_path, figures):
    def moved(one):
        return replace(one, scaled=replace(one.scaled, value=9.0, error=0.1), distance=30.0)

    far = changed(potential, n3=moved)
    PLOTS["static-force"].picture([("run", far)]).draw(tmp_path / "force.png")
    axes = figures[0].axes[0]
    drawn = points(axes)
    assert [30.0, 9.0] in drawn.tolist()
    assert drawn[:, 0].max() < axes.get_xlim()[1]
    assert 9.1 < axes.get_ylim()[1] < 12
    known = [one for one in far.force if one.scaled.error < LARGEST_ERROR * one.scaled.value]
    assert len(drawn) == len(known)


@pytest.mark.slow
def test_forces_that_are_left_out_are_counted_and_errors_explained(potential, tmp_path, figures):
    def noisy(one):
        return replace(one, scaled=replace(one.scaled, error=one.scaled.value))

    PLOTS["static-force"].picture([("run", potential)]).draw(tmp_path / "force.png")
    explained = "errors of the scales: statistical, and of the interpolation"
    assert explained in texts(figures[0])
    usual = len(potential.force) - len(points(figures[0].axes[0]))
    PLOTS["static-force"].picture([("run", changed(potential, n0=noisy))]).draw(
        tmp_path / "force.png"
    )
    (said,) = [one for one in texts(figures[1]) if one.startswith("not drawn: ")]
    assert said.endswith("with errors of more than 25%")
    assert ("one point" if usual == 0 else f"{usual + 1} points") in said
    hopeless = replace(potential, force=tuple(map(noisy, potential.force)))
    with pytest.raises(GaugeError, match="All forces have errors of more than 25%"):
        PLOTS["static-force"].picture([("run", hopeless)]).draw(tmp_path / "force.png")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["static-force", "scaling"])
def test_hollow_points_are_explained(potential, tmp_path, figures, name):
    draw = PLOTS[name].picture
    draw([("run", potential)]).draw(tmp_path / "plot.png")
    assert "hollow: off axis" not in texts(figures[0])
    off_axis = replace(
        potential,
        points=(*potential.points[:-1], replace(potential.points[-1], path="110")),
        force=(*potential.force[:-1], replace(potential.force[-1], path="110")),
    )
    draw([("run", off_axis)]).draw(tmp_path / "plot.png")
    assert "hollow: off axis" in texts(figures[1])


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
    points = (ChiralPoint(6.5, 0.1, 0.01), ChiralPoint(6.6, 0.2, 0.01))
    numbers = [Estimate(one, 0.01, 0.5, 0.1, 50) for one in (-6.4, 1.0, 0.156)]
    line = {"intercept": numbers[0], "slope": numbers[1], "kappa_c": numbers[2]}
    found = {"quantity": "pion^2", "source": "point", "mu": 0.0, "points": points, **line}
    others = dict.fromkeys({one.name for one in fields(ChiralFit)} - found.keys(), 0)
    chiral_picture([ChiralFit(**found, **others)]).draw(tmp_path / "chiral.png")
    assert figures[0].axes[0].get_ylabel() == r"$(a\,m_\pi)^2$"
    assert "hollow: chiral limit" in texts(figures[0])


def chain(path, seed, beta=2.3, **values):
    """A run directory with a table of plaquettes."""
    path.mkdir(parents=True)
    p = Parameters(beta=beta, seed=seed, lattice="4x4x4x4", **values)
    Run(path).write(p, [])
    rng = np.random.default_rng(seed)
    header = {"observable": "plaquette", "beta": str(beta), "group": "su2", "lattice": "4x4x4x4"}
    header |= {name: str(value) for name, value in values.items()}
    rows = [(n, *(0.2 * beta + 0.01 * rng.normal(size=3))) for n in range(1, 101)]
    write_table(path / "plaquette.csv", header, COLUMNS, rows)
    return path


def test_chains_are_named_by_their_numbers(tmp_path):
    runs = [chain(tmp_path / f"b2.3_4x4x4x4_chain{n}", n) for n in (1, 2)]
    assert [one.rpartition(", ")[2] for one in labels_of(runs)] == ["chain 1", "chain 2"]
    other = chain(tmp_path / "other" / "b2.3_4x4x4x4_chain1", 3)
    assert len(set(labels_of([*runs, other]))) == 3


def test_averages_are_over_the_chains_at_a_coupling(tmp_path, figures):
    runs = [chain(tmp_path / f"{beta}_{n}", n, beta) for beta in (2.3, 2.4) for n in (1, 2)]
    (shown,) = find_plot("plaquette-beta").draw(runs, tmp_path / "a.png")
    assert [(one.beta, one.average.samples) for one in shown.points] == [(2.3, 200), (2.4, 200)]
    assert len(points(figures[0].axes[0])) == 2
    runs.append(chain(tmp_path / "other", 5, 2.3, action="iwasaki"))
    (shown,) = find_plot("plaquette-beta").draw(runs, tmp_path / "a.png")
    assert sorted(one.average.samples for one in shown.points) == [100, 200, 200]
    assert sum("iwasaki" in one.ensemble for one in shown.points) == 1


def test_averages_of_one_run_have_one_tick_and_their_value(tmp_path, figures):
    run = chain(tmp_path / "run", 1, 2.35)
    (shown,) = find_plot("averages").draw([run], tmp_path / "a.png")
    axes = figures[0].axes[-1]
    assert [one.get_text() for one in axes.get_xticklabels()] == ["2.35"]
    assert f"${shown.points[0].average}$" in texts(figures[0])
    two = [run, chain(tmp_path / "two", 2, 2.4)]
    find_plot("averages").draw(two, tmp_path / "a.png")
    assert len(figures[1].axes[-1].get_xticks()) > 2


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 6])
def test_a_history_of_several_runs_has_a_flat_legend(tmp_path, figures, number):
    values = np.random.default_rng(1).normal(size=100)
    runs = [History(f"run {n}", np.arange(1, 101), values) for n in range(number)]
    plot_history([("plaquette", runs), ("$|L|$", runs)], tmp_path / "h.png")
    figure = figures[0]
    figure.draw_without_rendering()
    for axes in figure.axes[::2]:
        legend, frame = axes.get_legend(), axes.get_window_extent()
        box = legend.get_window_extent()
        assert box.width <= figure.bbox.width - frame.x0
        assert box.y0 >= frame.y1
        assert box.height < 0.8 * figure.dpi
        assert len(legend.get_texts()) == number
    # Frames that fill most of the figure, although the legends are above them.
    assert sum(one.get_position().height for one in figure.axes[::2]) > 0.45
    fills = [patch.get_fill() for patch in figure.axes[1].patches]
    assert any(fills) == (number == 2)


@pytest.mark.parametrize("name", ["history", "plaquette", "averages", "plaquette-beta"])
def test_an_empty_table_is_named(tmp_path, name):
    run = tmp_path / "run"
    run.mkdir()
    with Table(run / "plaquette.csv", {"observable": "plaquette"}, COLUMNS):
        pass
    shown, code = call("plot", name, run)
    assert code == 1
    assert f"The table of plaquette in {run} has no rows yet; continue the run" in shown


@pytest.mark.slow
def test_size_and_resolution_of_a_figure(tmp_path):
    run = chain(tmp_path / "run", 1)
    out = tmp_path / "h.png"
    assert call("plot", "history", run, "--output", out, "--size", "5x3", "--dpi", 60)[1] == 0
    assert imread(out).shape[:2] == (180, 300)
    assert call("plot", "history", run, "--output", out)[1] == 0
    assert imread(out).shape[1] == 1260
    with drawn_as(FigureFormat((2.0, 1.5), 100)):
        find_plot("plaquette-beta").draw([run], out)
    assert imread(out).shape[:2] == (150, 200)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--size", "5"), "--size is '5'; give width and height in inches, as in 6.3x4."),
        (("--size", "0.5x3"), "--size has a side of 0.5 inches; choose 1 to 60."),
        (("--size", "3x61"), "--size has a side of 61 inches; choose 1 to 60."),
        (("--dpi", "5"), "--dpi is 5; choose 20 to 2400."),
        (("--size", "60x60", "--dpi", "2400"), f"more than {MOST_PIXELS} pixels"),
    ],
)
def test_sizes_that_are_refused(tmp_path, words, sentence):
    run = chain(tmp_path / "run", 1)
    shown, code = call("plot", "history", run, "--output", tmp_path / "h.png", *words)
    assert code == 2
    assert sentence in shown
    assert not (tmp_path / "h.png").exists()
