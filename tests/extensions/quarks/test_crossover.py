"""``fit crossover`` and ``plot crossover`` on synthetic runs with known susceptibilities."""

import json

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.condensate import COLUMNS
from gauge_mc.extensions.quarks.crossover import CrossoverPoint, crossover_of, peaks_of
from gauge_mc.files.table import Table

SAMPLES, SOURCES = 600, 3
LATTICE, SPACE, SITES = "8x8x8x4", 8**3, 8**3 * 4
NAN = float("nan")


def chi(kappa, centre=0.15, width=0.004, height=2.0):
    return height / (1 + ((kappa - centre) / width) ** 2)


def write_run(folder, name, rng, kappa, header=None, imaginary_mu=0.0, traces=True):
    """Write the tables of a run whose susceptibilities are `chi`."""
    run = folder / name
    run.mkdir(parents=True)
    words = f"wilson:kappa={kappa!r}" + (f":imaginary_mu={imaginary_mu!r}" if imaginary_mu else "")
    common = {"lattice": LATTICE, "group": "su3", "beta": "5.3", "action": "wilson"}
    common |= {"quarks": words, **(header or {})}
    sizes = 0.3 + np.sqrt(chi(kappa) / SPACE) * rng.normal(size=SAMPLES)
    names, phase = ("sweep", "re", "im", "abs"), np.exp(0.25j * np.pi)
    with Table(run / "polyakov.csv", {"observable": "polyakov", **common}, names) as table:
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
    assert found.ensemble == {"group": "su3", "action": "wilson", "beta": "5.3"}
    assert [one.x for one in found.points] == [*KAPPAS]
    for one in found.points:
        assert abs(one.loop_susceptibility.value - chi(one.x)) < 4 * one.loop_susceptibility.error
        chiral = one.chiral_susceptibility
        assert abs(chiral.value - chi(one.x)) < 4 * chiral.error
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


def points(x, y, errors=0.02, lattice=LATTICE):
    """Points with a susceptibility of the Polyakov loop."""
    given = zip(x, y, np.broadcast_to(errors, len(x)).tolist(), strict=True)
    known = ((at, Estimate(value, error, NAN, NAN, 100)) for at, value, error in given)
    return [CrossoverPoint(lattice, None, at, None, None, one, None, None) for at, one in known]


SHAPES = {
    "parabola": lambda u: np.maximum(1 - u**2 / 2, 0.05),
    "Gaussian": lambda u: np.exp(-np.log(2) * u**2),
    "Lorentzian": lambda u: 1 / (1 + u**2),
    "1/cosh^2": lambda u: np.cosh(0.88137 * u) ** -2,
    "derivative of exp(-exp(-x))": lambda u: np.exp(1 - 1.2 * u - np.exp(-1.2 * u)),
    "width grows with x": lambda u: 1 / (1 + (u * (1 + np.exp(-0.5 * u)) / 2) ** 2),
}
"""Peaks at 0 of height 1, with the half width 1 or so."""


def drawn_peak(rng, shape, count, relative):
    """Return points at a random offset from a peak, with errors relative to the values."""
    spacing = rng.uniform(1.5, 3.5 if count < 7 else 5) / (count - 1)
    places = np.arange(count) - count // 2 + rng.integers(2 - count % 2)
    x = (places + rng.uniform(-0.5, 0.5)) * spacing
    errors = relative * SHAPES[shape](x)
    return x, SHAPES[shape](x) + errors * rng.normal(size=count), errors


@pytest.mark.parametrize("relative", [0.01, 0.05])
@pytest.mark.parametrize("count", [3, 5, pytest.param(9, marks=pytest.mark.slow)])
def test_total_errors_of_peaks_of_any_form_cover_the_truth(count, relative):
    """Positions of skewed peaks are within an error less often than those of symmetric ones.

    The average over both is that of a normal distribution or above. A parabola over all points
    above half height has 9 to 23 % within one error if the values have errors of 1 %.
    """
    pulls = {shape: [] for shape in SHAPES}
    for shape in SHAPES:
        rng = np.random.default_rng(1)
        for _ in range(25):
            peaks, _ = peaks_of(points(*drawn_peak(rng, shape, count, relative)))
            pulls[shape] += [
                [
                    one.position.value / np.hypot(one.position.error, one.position_systematic),
                    (one.height.value - 1) / np.hypot(one.height.error, one.height_systematic),
                ]
                for one in peaks
            ]
    every = np.abs(np.concatenate([*pulls.values()]))
    assert len(every) > 0.9 * 25 * len(SHAPES)
    assert (every < 1).mean(axis=0).min() > 0.64
    assert (every < 2).mean(axis=0).min() > 0.92
    for several in pulls.values():
        assert np.mean(np.abs(several) < 2) > 0.75


@pytest.mark.parametrize("form", ["parabola", "Gaussian", "Lorentzian"])
def test_a_form_is_told_apart_by_many_points(form):
    """The error is at most 1.5 times that of a fit of this form with its skewness free."""
    x = np.linspace(-1.2, 1.1, 24)
    (peak,), _ = peaks_of(points(x, SHAPES[form](x), 0.01))
    assert peak.form == form
    assert peak.points == 24
    assert abs(peak.position.value) < 0.003
    assert peak.height.value == pytest.approx(1, abs=0.004)
    step = 1e-4

    def skewed(position=0.0, height=1.0, width=1.0, skewness=0.0):
        u = (x - position) / width
        return height * SHAPES[form](np.sqrt(u**2 * (1 + skewness * u)))

    derivatives = [
        (skewed(**{name: at + step}) - skewed()) / step / 0.01
        for name, at in {"position": 0, "height": 1, "width": 1, "skewness": 0}.items()
    ]
    error = np.sqrt(np.linalg.inv(derivatives @ np.transpose(derivatives))[0, 0])
    total = np.hypot(peak.position.error, peak.position_systematic)
    assert 0.8 * error < total < 1.5 * error


def test_points_far_below_the_peak_are_left_out():
    x, y = [0, 1, 2, 3, 4, 5, 6], [0.1, 0.1, 0.7, 1.0, 0.75, 0.1, 5e-3]
    (peak,), cautions = peaks_of(points(x, y, 0.01))
    assert peak.points == 3
    assert abs(peak.position.value - 3) < 0.2
    assert not cautions


def test_three_points_do_not_tell_the_position_better_than_the_form_is_known():
    (peak,), _ = peaks_of(points([-1, 0, 1], [0.6, 1.0, 0.4], 1e-5))
    low, high = peak.position_range
    vertices = [
        (left - right) / (2 * (left + right - 2 * top))
        for left, top, right in ((0.6, 1, 0.4), (np.log(0.6), 0, np.log(0.4)), (-1 / 0.6, -1, -2.5))
    ]  # of parabola, Gaussian and Lorentzian through the points
    assert low < min(vertices) < max(vertices) < high
    assert high - low < 1


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
    peaks, (caution,) = peaks_of(points(x, y))
    assert not peaks
    assert sentence in caution


def test_every_lattice_has_its_peak():
    x, y = [1, 2, 3], [1, 2, 1]
    peaks, _ = peaks_of([*points(x, y), *points(x, y, lattice="16x16x16x4")])
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
        ([(0.15, {})], "have the same parameters; add runs with another coupling, mass or"),
        (
            [(0.15, {}), (0.14, {"group": "su2"})],
            "has group su2, but other runs beside it have su3",
        ),
    ],
)
def test_what_is_refused(runs, sentence, tmp_path, rng):
    for n, (kappa, header) in enumerate(runs):
        write_run(tmp_path, str(n), rng, kappa, header, traces=False)
    with pytest.raises(GaugeError, match=sentence):
        crossover_of(tmp_path, {})


def test_several_temporal_extents_can_be_told_apart(tmp_path, rng):
    for kappa in (0.14, 0.15):
        write_run(tmp_path, f"a{kappa}", rng, kappa, traces=False)
        write_run(tmp_path, f"b{kappa}", rng, kappa, {"lattice": "8x8x8x6"}, traces=False)
    assert {one.lattice for one in crossover_of(tmp_path, {}).points} == {LATTICE, "8x8x8x6"}
    assert {one.lattice for one in crossover_of(tmp_path, {"nt": 6}).points} == {"8x8x8x6"}
