"""What a reader must see in a figure: all points, what symbols mean, and the chosen size."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.image import imread

from gauge_mc.errors import GaugeError
from gauge_mc.files.table import Table, write_table
from gauge_mc.plots import PLOTS
from gauge_mc.plots.drawing import find_plot
from gauge_mc.plots.figures.files import MOST_PIXELS, FigureFormat, drawn_as
from gauge_mc.plots.runs import labels_of
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from tests.analysis.synthetic_loops import static_potential, synthetic_loops
from tests.calls import call
from tests.plots.shown import kept_figures, texts

COLUMNS = ("sweep", "plaquette", "spatial", "temporal")
LOOPS = synthetic_loops(np.random.default_rng(8), 60, 8, excited=0.01)


@pytest.fixture
def figures(monkeypatch):
    return kept_figures(monkeypatch)


def points(axes):
    """The points of all error bars of a frame."""
    drawn = [box.lines[0].get_xydata() for box in axes.containers if hasattr(box, "lines")]
    return np.concatenate([one for one in drawn if len(one)])


@pytest.fixture(scope="module")
def potential():
    return static_potential([LOOPS])


def changed(result, **forces):
    """A potential whose forces with some numbers have other values, errors or paths."""
    new = list(result.force)
    for name, change in forces.items():
        n = int(name[1:])
        new[n] = change(new[n])
    return replace(result, force=tuple(new))


@pytest.mark.slow
def test_forces_that_are_left_out_are_counted_and_errors_explained(potential, tmp_path, figures):
    def noisy(one):
        return replace(one, scaled=replace(one.scaled, error=one.scaled.value))

    PLOTS["static-force"].picture([("run", potential)]).draw(tmp_path / "force.png")
    explained = "errors of the scales: statistical, and the scatter of forms and windows"
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
