import sys
from functools import cache

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.curves import History
from gauge_mc.plots.figures.pictures import COLOURS, MARKERS, SHADE
from gauge_mc.plots.standard import MOST_MEANS, draw_scan, plot_history
from gauge_mc.quantities.polyakov.fits import plot_polyakov
from gauge_mc.quantities.potential.loop_tables import effective_energies
from gauge_mc.quantities.potential.plots import RESIDUAL, plot_effective_potential
from tests.analysis.synthetic_loops import autoregressive, static_potential, synthetic_loops

MAGIC = {"pdf": b"%PDF-", "png": b"\x89PNG", "svg": b"<?xml"}
LOOPS = synthetic_loops(np.random.default_rng(8), 60, 8, excited=0.01)
ENERGIES = effective_energies(LOOPS)
SWEEPS = 10 * np.arange(1, 301)


@cache
def potential(**window):
    return static_potential([LOOPS], **window)


def histories(offset=0.0):
    chains = autoregressive(np.random.default_rng(9), 300, 2, 0.8).T
    return [
        History(f"run_{i} $5", SWEEPS[: 300 - 100 * i], offset + chain[: 300 - 100 * i])
        for i, chain in enumerate(chains)
    ]


def draw_potential(path, runs=2):
    results = [("run_0", potential()), ("run_1 $5", potential(t_min=2))]
    PLOTS["potential"].picture(results[:runs]).draw(path)


def draw_effective_potential(path):
    plot_effective_potential(ENERGIES, path, potential())


def draw_history(path):
    plot_history([("plaquette", histories(0.6)), ("$|L|$", histories()[:1])], path)


def draw_polyakov(path):
    real, imaginary = (one.values[:200] for one in histories())
    plot_polyakov([History("", SWEEPS[:200], real + 1j * imaginary)], path)


def draw_force(path):
    PLOTS["static-force"].picture([("run_0", potential())]).draw(path)


def draw_scaling(path):
    results = [("run_0", potential()), ("run_1 $5", potential(t_min=2))]
    PLOTS["scaling"].picture(results).draw(path)


DRAW = [
    draw_potential,
    draw_effective_potential,
    draw_history,
    draw_polyakov,
    draw_force,
    draw_scaling,
]


def pixels_near(path, colour):
    """Count the pixels of a PNG that have a given colour."""
    image = imread(path)[..., :3]
    return int((np.abs(image - to_rgb(colour)).max(axis=-1) < 0.02).sum())


def drawn_texts(monkeypatch, save=False):
    """Return a list to which the texts in every figure that would be written are appended."""
    texts, usual = [], Figure.savefig

    def savefig(figure, *words, **options):
        texts.extend(one.get_text() for one in figure.findobj(Text) if one.get_text())
        if save:
            usual(figure, *words, **options)

    monkeypatch.setattr(Figure, "savefig", savefig)
    return texts


@pytest.mark.slow
@pytest.mark.parametrize(
    "ending", ["png", *(pytest.param(one, marks=pytest.mark.slow) for one in ("pdf", "svg"))]
)
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


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_smallest_series_can_be_plotted(tmp_path):
    one = History("one", np.array([5]), np.array([0.5]))
    same = History("same", np.arange(4), np.full(4, 0.5))
    plot_history([("plaquette", [one, same])], tmp_path / "history.png")
    plot_polyakov([one], tmp_path / "polyakov.png")
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.slow
def test_a_potential_without_a_fit_is_plotted_with_its_points(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch)
    loops = synthetic_loops(np.random.default_rng(8), 60, 3)
    hot, path = ("hot", static_potential([loops])), tmp_path / "potential.png"
    assert hot[1].best is None
    PLOTS["potential"].picture([hot]).draw(path)
    assert any("too few distances for a fit" in text for text in texts)
    assert not {RESIDUAL, "$R$ (fm)"}.intersection(texts)
    PLOTS["potential"].picture([hot, ("cold", potential())]).draw(path)
    assert RESIDUAL in texts


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
        lambda: PLOTS["potential"].picture([]).draw(path),
        lambda: PLOTS["static-force"].picture([]).draw(path),
        lambda: PLOTS["scaling"].picture([]).draw(path),
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
    with pytest.raises(UsageError, match="There is no folder"):
        draw_polyakov(tmp_path / "missing" / "plot.png")


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(GaugeError, match=r"pip install 'gauge-mc\[analysis\]'"):
        draw_polyakov(tmp_path / "plot.png")


@pytest.mark.slow
def test_skipped_updates_are_not_averaged(tmp_path, monkeypatch):
    values = np.concatenate([np.linspace(9.0, 1.0, 20), np.tile([0.4, 0.6], 40)])
    run = History("run", np.arange(1, 101), values)
    texts = drawn_texts(monkeypatch, save=True)
    path = tmp_path / "history.png"
    plot_history([("plaquette", [run])], path, 20)
    assert any(text.startswith(r"$\mathrm{mean}=0.5") for text in texts)
    assert "not averaged" in texts
    shaded = pixels_near(path, SHADE)
    texts.clear()
    plot_history([("plaquette", [run])], path)
    assert any(text.startswith(r"$\mathrm{mean}=1.4") for text in texts)
    assert "not averaged" not in texts
    assert shaded > 2 * pixels_near(path, SHADE)
    loops = History("run", run.sweeps, values + 0.1j)
    plot_polyakov([loops], tmp_path / "polyakov.png", 20)
    assert any(r"\langle|L|\rangle=0.5" in text for text in texts)
    for draw, one in ((plot_history, [("plaquette", [run])]), (plot_polyakov, [loops])):
        with pytest.raises(UsageError, match="skip 100 leaves no measurements of run"):
            draw(one, tmp_path / "no.png", 100)
        with pytest.raises(UsageError, match="skip is -1; give 0 or a positive"):
            draw(one, tmp_path / "no.png", -1)
    assert not (tmp_path / "no.png").exists()


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 8])
def test_a_run_is_named_once_in_a_history(tmp_path, monkeypatch, number):
    labels = [f"name of run {i}" for i in range(number)]
    runs = [History(label, SWEEPS, histories()[0].values) for label in labels]
    texts = drawn_texts(monkeypatch)
    plot_history([("plaquette", runs), ("$|L|$", runs)], tmp_path / "history.png")
    for text in (*labels, "each measurement", "running mean"):
        assert texts.count(text) == 1, text
    means = sum(text.startswith(r"$\mathrm{mean}=") for text in texts)
    assert means == (2 * number if number <= MOST_MEANS else 0)


@pytest.mark.slow
def test_every_number_of_the_legends_has_its_error(tmp_path, monkeypatch):
    texts = drawn_texts(monkeypatch)
    result = potential()
    draw_force(tmp_path / "force.png")
    assert {"r0", "r1"} <= result.scales.keys()
    for name in ("r0", "r1"):
        assert any(f"/a={result.scales[name]}" in text for text in texts)
    texts.clear()
    draw_scaling(tmp_path / "scaling.png")
    assert any(f"r_0/a={result.scales['r0']}" in one for one in texts)
    texts.clear()
    draw_effective_potential(tmp_path / "effective.png")
    first = result.points[0]
    assert f"{first.distance:.4g}: {first.potential}" in texts


def test_what_has_no_scale_is_not_scaled(tmp_path):
    loops = synthetic_loops(np.random.default_rng(8), 60, 6, sigma=-0.02)
    with pytest.raises(GaugeError, match="r0 of hot is not known"):
        PLOTS["scaling"].picture([("hot", static_potential([loops]))]).draw(tmp_path / "plot.png")


@pytest.mark.slow
def test_polyakov_loops_of_su2_are_a_distribution(tmp_path):
    path = tmp_path / "polyakov.svg"
    loops = [History(one.label, one.sweeps, one.values + 0j) for one in histories()]
    plot_polyakov(loops, path)
    assert path.stat().st_size > 8000


def test_runs_stay_apart_for_the_colour_blind():
    """Colours differ without red-green contrast (red and green averaged), and so do markers."""
    rgb = np.array([to_rgb(colour) for colour in COLOURS])
    merged = np.stack([rgb[:, :2].mean(axis=1), rgb[:, 2]], axis=1)
    distance = np.abs(merged[:, None] - merged).max(axis=-1) + np.eye(len(rgb))
    assert distance.min() > 0.05
    assert len(set(MARKERS)) == len(MARKERS) > len(COLOURS)


def write_averages(path, header=None):
    """Write the table of a scan with three couplings on two lattices."""
    numbers = {"plaquette": 0.6, "plaquette_error": 0.01, "plaquette_tau_int": 0.5}
    loops = {"polyakov_abs": 0.2, "polyakov_abs_error": 0.01}
    rows = [
        {"beta": beta, "lattice": lattice, "chains": 1, "sweeps": 9, **numbers, **loops}
        for lattice in ("8x8x8x4", "8x8x8x6")
        for beta in (2.4, 2.2, 2.3)
    ]
    write_table(path, header or {}, list(rows[0]), [list(row.values()) for row in rows])


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["pdf", "png", "svg"])
def test_drawing_a_table(tmp_path, ending):
    table, figure = tmp_path / "scan.csv", tmp_path / f"scan.{ending}"
    write_averages(table, {"group": "su3"})
    draw_scan(table, figure)
    assert figure.stat().st_size > 5000
    if ending == "png":
        image = imread(figure)[..., :3]
        for code in COLOURS[:2]:  # one curve for each lattice
            colour = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            assert (np.abs(image - colour).max(axis=-1) < 0.02).sum() > 200
    elif ending == "svg":
        assert figure.read_text().count('id="axes_') == 2  # plaquette, Polyakov loop


def test_tables_that_cannot_be_drawn(tmp_path):
    table, figure = tmp_path / "scan.csv", tmp_path / "scan.pdf"
    with pytest.raises(GaugeError, match="cannot be read"):
        draw_scan(table, figure)
    write_table(table, {}, ("beta", "lattice"))
    with pytest.raises(GaugeError, match="no data to draw yet"):
        draw_scan(table, figure)
    write_table(table, {}, ("sweep", "plaquette"), [(1, 0.5)])
    with pytest.raises(GaugeError, match="not the table of a scan"):
        draw_scan(table, figure)
    assert not figure.exists()
