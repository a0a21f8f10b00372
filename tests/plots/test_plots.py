import sys

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.image import imread

from gauge_mc.analysis.figures import COLOURS, History
from gauge_mc.analysis.potential import static_potential
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.plots.history import plot_history
from gauge_mc.plots.polyakov import plot_polyakov
from gauge_mc.plots.potential import plot_potential
from gauge_mc.plots.wilson_loops import plot_effective_potential
from tests.analysis.synthetic_loops import autoregressive, synthetic_loops

MAGIC = {"pdf": b"%PDF-", "png": b"\x89PNG", "svg": b"<?xml"}
LOOPS = synthetic_loops(np.random.default_rng(8), 60, 6, excited=0.05)
SWEEPS = 10 * np.arange(1, 301)


def histories(offset=0.0):
    chains = autoregressive(np.random.default_rng(9), 300, 2, 0.8).T
    return [
        History(f"run_{i} $5", SWEEPS[: 300 - 100 * i], offset + chain[: 300 - 100 * i])
        for i, chain in enumerate(chains)
    ]


def draw_potential(path, runs=2):
    results = [("run_0", static_potential([LOOPS], r_min=1)), ("run_1 $5", None)]
    results[1] = ("run_1 $5", static_potential([LOOPS], t_min=1, r_min=2))
    plot_potential(results[:runs], path)


def draw_effective_potential(path):
    plot_effective_potential(LOOPS, path, static_potential([LOOPS], r_min=1))


def draw_history(path):
    plot_history([("plaquette", histories(0.6)), ("$|L|$", histories()[:1])], path)


def draw_polyakov(path):
    real, imaginary = (one.values[:200] for one in histories())
    plot_polyakov([History("", SWEEPS[:200], real + 1j * imaginary)], path)


DRAW = [draw_potential, draw_effective_potential, draw_history, draw_polyakov]


def pixels_near(path, colour):
    """Count the pixels of a PNG that have a given colour."""
    image = imread(path)[..., :3]
    return int((np.abs(image - to_rgb(colour)).max(axis=-1) < 0.02).sum())


@pytest.mark.parametrize("ending", MAGIC)
@pytest.mark.parametrize("draw", DRAW)
def test_plots_are_written_in_all_formats(tmp_path, draw, ending):
    path = tmp_path / f"plot.{ending}"
    before = dict(matplotlib.rcParams)
    draw(path)
    content = path.read_bytes()
    assert content.startswith(MAGIC[ending])
    assert len(content) > 8000
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert dict(matplotlib.rcParams) == before
    if ending == "png":
        ink = (imread(path)[..., :3].min(axis=-1) < 0.9).mean()
        assert 0.01 < ink < 0.6
    else:
        draw(path)
        assert path.read_bytes() == content  # no date, no random names


def test_runs_differ_in_colour(tmp_path):
    path = tmp_path / "potential.png"
    draw_potential(path, 1)
    assert pixels_near(path, COLOURS[0]) > 500
    assert pixels_near(path, COLOURS[1]) == 0
    draw_potential(path, 2)
    assert pixels_near(path, COLOURS[1]) > 500


def test_polyakov_loops_of_su2_are_a_distribution(tmp_path):
    path = tmp_path / "polyakov.svg"
    loops = [History(one.label, one.sweeps, one.values + 0j) for one in histories()]
    plot_polyakov(loops, path)
    assert path.stat().st_size > 8000


@pytest.mark.filterwarnings("error")
def test_smallest_series_can_be_plotted(tmp_path):
    one = History("one", np.array([5]), np.array([0.5]))
    same = History("same", np.arange(4), np.full(4, 0.5))
    plot_history([("plaquette", [one, same])], tmp_path / "history.png")
    plot_polyakov([one], tmp_path / "polyakov.png")
    assert len(list(tmp_path.iterdir())) == 2


def test_a_run_without_scale_can_be_plotted(tmp_path):
    loops = synthetic_loops(np.random.default_rng(8), 60, 6, sigma=-0.02)
    plot_potential([("hot", static_potential([loops], t_min=1))], tmp_path / "potential.png")
    assert pixels_near(tmp_path / "potential.png", COLOURS[0]) > 500


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("name", ["plot.jpeg", "plot"])
def test_other_endings_are_refused(tmp_path, draw, name):
    with pytest.raises(UsageError, match=r"let its name end in \.pdf, \.png or \.svg"):
        draw(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_nothing_to_plot(tmp_path):
    path = tmp_path / "plot.png"
    empty = History("run", SWEEPS[:0], np.empty(0))
    broken = History("run", SWEEPS[:2], np.array([0.5, np.nan]))
    for draw in (
        lambda: plot_potential([], path),
        lambda: plot_history([], path),
        lambda: plot_history([("plaquette", [])], path),
        lambda: plot_polyakov([], path),
    ):
        with pytest.raises(GaugeError, match="nothing to plot"):
            draw()
    for bad in (empty, broken):
        with pytest.raises(GaugeError, match="series of run is empty or contains"):
            plot_history([("plaquette", [bad])], path)
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(GaugeError, match="could not be written"):
        draw_polyakov(tmp_path / "missing" / "plot.png")


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(GaugeError, match=r"pip install 'gauge-mc\[analysis\]'"):
        draw_polyakov(tmp_path / "plot.png")
