"""``fit crossover`` and ``plot crossover`` on synthetic runs with known susceptibilities."""

import json

import numpy as np
import pytest
from matplotlib.figure import Figure

import gauge_mc
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import Table
from gauge_mc.quantities.condensate.analysis.records import COLUMNS
from gauge_mc.quantities.transition.analysis.peaks import CrossoverPoint, peaks_of
from gauge_mc.quantities.transition.fits.crossover import crossover_of
from gauge_mc.quantities.transition.plots.crossover import crossover_picture

SAMPLES, SOURCES = 600, 3
LATTICE, SPACE, SITES = "8x8x8x4", 8**3, 8**3 * 4
NAN = float("nan")


def chi(kappa, centre=0.15, width=0.004, height=2.0):
    """A susceptibility with a peak."""
    return height / (1 + ((kappa - centre) / width) ** 2)


def write_run(folder, name, rng, kappa, header=None, imaginary_mu=0.0, loops=True, traces=True):
    """Write the tables of a run whose susceptibilities are `chi`."""
    run = folder / name
    run.mkdir(parents=True)
    words = f"wilson:kappa={kappa!r}" + (f":imaginary_mu={imaginary_mu!r}" if imaginary_mu else "")
    common = {
        "lattice": LATTICE,
        "group": "su3",
        "beta": "5.3",
        "action": "wilson",
        "quarks": words,
        **(header or {}),
    }
    sizes = 0.3 + np.sqrt(chi(kappa) / SPACE) * rng.normal(size=SAMPLES)
    if loops:
        with Table(
            run / "polyakov.csv",
            {"observable": "polyakov", **common},
            ("sweep", "re", "im", "abs"),
        ) as table:
            phase = np.exp(0.25j * np.pi)
            table.append(
                (n + 1, size * phase.real, size * phase.imag, abs(size))
                for n, size in enumerate(sizes.tolist())
            )
    if not traces:
        return
    scalar = 3.0 + np.sqrt(chi(kappa) / SITES) * rng.normal(size=SAMPLES)
    names = ("sweep", *COLUMNS.names)
    with Table(run / "condensate.csv", {"observable": "condensate", **common}, names) as table:
        table.append(
            (n + 1, one, 0.0, s, float(scalar[n] + 0.01 * rng.normal() + other), *[0.0] * 5)
            for n in range(SAMPLES)
            for one, other in ((0.1, 5.0), (kappa, 0.0))
            for s in range(SOURCES)
        )


KAPPAS = (0.142, 0.145, 0.148, 0.150, 0.152, 0.155, 0.158)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Runs at several hopping parameters, one of them with two chains."""
    folder, rng = tmp_path_factory.mktemp("study"), np.random.default_rng(5)
    for kappa in KAPPAS:
        write_run(folder, f"kappa{kappa}", rng, kappa)
    write_run(folder, "again", rng, KAPPAS[3])
    (folder / "notes").mkdir()
    return folder


def test_susceptibilities_and_their_peaks(study):
    found = gauge_mc.fit("crossover", study).found
    assert found.over == "kappa"
    assert found.ensemble == {
        "group": "su3",
        "action": "wilson",
        "beta": "5.3",
    }
    assert [one.x for one in found.points] == [*KAPPAS]
    for one in found.points:
        assert abs(one.loop_susceptibility.value - chi(one.x)) < 4 * one.loop_susceptibility.error
        assert abs(one.chiral_susceptibility.value - chi(one.x)) < (
            4 * one.chiral_susceptibility.error
        )
        assert one.chiral_condensate.value == pytest.approx(3, abs=0.02)  # not that of kappa = 0.1
        assert one.phase.value == pytest.approx(0.25, abs=0.001)
    assert found.points[3].loop.samples == 2 * SAMPLES
    assert [one.susceptibility for one in found.peaks] == ["χ_L", "χ_disc"]
    for one in found.peaks:
        assert abs(one.position.value - 0.15) < 4 * one.position.error < 0.003
        assert one.height.value == pytest.approx(2, rel=0.25)
    values = json.loads((study / "crossover.json").read_text())
    assert values["over"] == "kappa"
    assert values["result"][0]["name"] == f"kappa at the peak of χ_L ({LATTICE})"


def test_the_figure_has_all_quantities(study, tmp_path, monkeypatch):
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    crossover_picture(crossover_of(study, {})).draw(tmp_path / "figure.png")
    labels = [one.get_ylabel() for one in figures[0].axes]
    assert len(labels) == 5
    assert {one.get_xlabel() for one in figures[0].axes} == {"κ"}


def points(x, y, errors=0.02, lattice=LATTICE):
    """Points with a susceptibility of the Polyakov loop."""
    return [
        CrossoverPoint(
            lattice, None, at, None, None, Estimate(value, error, NAN, NAN, 100), None, None
        )
        for at, value, error in zip(x, y, np.broadcast_to(errors, len(x)).tolist(), strict=True)
    ]


def test_errors_of_peaks_cover_the_truth():
    x, pulls = np.linspace(-1, 1, 7), []
    errors = np.array([0.01, 0.05, 0.01, 0.06, 0.02, 0.01, 0.05])
    widths = []
    for seed in range(200):
        y = 1 - 0.2 * (x - 0.2) ** 2 + errors * np.random.default_rng(seed).normal(size=7)
        (peak,), _ = peaks_of(points(x, y, errors), 200)
        pulls.append(
            [
                (peak.position.value - 0.2) / peak.position.error,
                (peak.height.value - 1) / peak.height.error,
            ]
        )
        assert peak.points == 7
        widths.append(peak.position.error)
    assert np.mean(widths) < 0.04  # more if noisy points counted as much as others
    assert np.abs(np.mean(pulls, axis=0)).max() < 0.3
    assert np.std(pulls, axis=0) == pytest.approx([1, 1], abs=0.25)


def test_the_parabola_takes_points_above_half_of_the_peak():
    x, y = [0, 1, 2, 3, 4, 5, 6], [0.1, 0.2, 0.8, 1.0, 0.85, 0.3, 5e-3]
    (peak,), cautions = peaks_of(points(x, y), 50)
    assert peak.points == 3
    assert peak.chi2 is None
    assert peak.position.value == pytest.approx(3 + 0.05 / 0.7)  # of the three values
    assert not cautions
    (peak,), cautions = peaks_of(points(x, [0.6, 0.52, 0.9, 1.0, 0.9, 0.55, 0.6]), 50)
    assert peak.points == 7
    assert "do not lie on a parabola" in cautions[0]


@pytest.mark.parametrize(
    ("x", "y", "sentence"),
    [
        ([1, 2], [1, 2], "χ_L is known at 2 values, and a peak needs three: add runs."),
        ([1, 2, 3], [3, 2, 1], "add runs beyond x = 1, smaller ones."),
        ([1, 2, 3.5], [1, 2, 3], "add runs beyond x = 3.5, larger ones."),
        ([1, 2, 3, 4], [0.95, 1.0, 0.9, 0.99], "has no peak beyond its errors"),
    ],
)
def test_what_has_no_peak(x, y, sentence):
    peaks, (caution,) = peaks_of(points(x, y), 50)
    assert not peaks
    assert sentence in caution


def test_every_lattice_has_its_peak():
    x, y = [1, 2, 3], [1, 2, 1]
    peaks, _ = peaks_of([*points(x, y), *points(x, y, lattice="16x16x16x4")], 50)
    assert [one.lattice for one in peaks] == [LATTICE, "16x16x16x4"]


def test_chemical_potentials(tmp_path, rng):
    for mu in (0.2, 1 / 3, 0.4):
        write_run(tmp_path, f"mu{mu}", rng, 0.15, imaginary_mu=mu, traces=False)
    found = gauge_mc.fit("crossover", tmp_path).found
    assert found.over == "imaginary_mu"
    assert [one.x for one in found.points] == [0.2, 1 / 3, 0.4]
    assert all(one.chiral_condensate is None for one in found.points)


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        ([], "There is no run with Polyakov loops or condensates in"),
        ([(0.15, "5.3")], "have the same parameters; add runs with another coupling, mass or"),
        ([(0.15, "5.3"), (0.14, "5.4")], "differ in beta and kappa; say with --over beta which"),
    ],
)
def test_what_is_refused(runs, sentence, tmp_path, rng):
    for n, (kappa, beta) in enumerate(runs):
        write_run(tmp_path, str(n), rng, kappa, {"beta": beta}, traces=False)
    with pytest.raises(GaugeError, match=sentence):
        crossover_of(tmp_path, {})


def test_runs_of_different_groups_do_not_belong_together(tmp_path, rng):
    write_run(tmp_path, "a", rng, 0.15, traces=False)
    write_run(tmp_path, "b", rng, 0.14, {"group": "su2"}, traces=False)
    with pytest.raises(GaugeError, match="has group su2, but other runs beside it have su3"):
        crossover_of(tmp_path, {})


def test_several_temporal_extents_can_be_told_apart(tmp_path, rng):
    for kappa in (0.14, 0.15):
        write_run(tmp_path, f"a{kappa}", rng, kappa, traces=False)
        write_run(tmp_path, f"b{kappa}", rng, kappa, {"lattice": "8x8x8x6"}, traces=False)
    assert {one.lattice for one in crossover_of(tmp_path, {}).points} == {LATTICE, "8x8x8x6"}
    assert {one.lattice for one in crossover_of(tmp_path, {"nt": 6}).points} == {"8x8x8x6"}
