"""Free energies, screening masses and the potential from synthetic Polyakov loops."""

import math
from itertools import product

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import Table, write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.plots import PLOTS
from gauge_mc.plots.figures.pictures import Stroke
from gauge_mc.quantities.polyakov.fits import ScreeningPlot
from gauge_mc.quantities.polyakov.observables import (
    CORRELATOR_COLUMNS,
    PLANE_COLUMNS,
    correlator_potential,
    read_correlators,
)
from gauge_mc.quantities.polyakov.screening import _ScreenedFit
from gauge_mc.quantities.potential.fit import read_result
from tests.analysis.synthetic_loops import (
    SIGMA,
    autoregressive,
    potential,
    synthetic_loops,
    write_loops,
)
from tests.quantities.shown import shown

EXTENTS, NT = (8, 12, 24), 4
EVEN, ODD = 0.45, 0.8
LOOP = 0.1


def gaussian_planes(rng, mass, planes, size):
    """Return periodic series of planes whose correlator is exactly the sum of two exponentials."""
    r = np.arange(planes)
    exact = np.exp(-mass * r) + np.exp(-mass * (planes - r))
    spectrum = np.fft.fft(exact).real
    noise = rng.normal(size=(size, planes))
    return np.fft.ifft(np.fft.fft(noise, axis=1) * np.sqrt(spectrum), axis=1).real


def write_planes(
    folder, loop=LOOP, size=2000, masses=(EVEN, ODD), group="su3", seed=5, excited=0.0, lost=0
):
    """Write the table of independent configurations; the shorter axes have other masses.

    `excited` is the amplitude of a state of mass 2, and `lost` the number of rows left out.
    """
    rng = np.random.default_rng(seed)
    lattice = "x".join(map(str, (*EXTENTS, NT)))
    head = {"observable": "polyakov-planes", "group": group, "beta": "6", "lattice": lattice}
    parts = {}
    for axis, extent in zip("xyz", EXTENTS, strict=True):
        other = 1.0 if extent == max(EXTENTS) else 2.0
        re, im = (0.01 * gaussian_planes(rng, other * m, extent, size) for m in masses)
        parts[axis] = (loop + re, im * (group != "su2"))
    rows = []
    for sweep in range(size):
        for axis, extent in zip("xyz", EXTENTS, strict=True):
            for r in range(extent // 2 + 1):
                values = [float((p[sweep] * np.roll(p[sweep], -r)).mean()) for p in parts[axis]]
                values[0] += excited * math.exp(-2.0 * r)
                rows.append((sweep + 1, axis, r, *values))
    folder.mkdir(exist_ok=True)
    write_table(folder / "polyakov_planes.csv", head, PLANE_COLUMNS, rows[: len(rows) - lost])
    return folder


@pytest.mark.slow
def test_the_masses_of_both_parts_are_found(tmp_path):
    run = write_planes(tmp_path / "run")
    result = gauge_mc.fit("screening", run)
    found = result.found
    assert found.phase == "deconfined"
    assert [one.part for one in found.masses] == ["Re L", "Im L"]
    for one, mass in zip(found.masses, (EVEN, ODD), strict=True):
        assert abs(one.mass.value - NT * mass) < 4 * one.mass.error < 0.25 * NT * mass
        assert abs(one.amplitude.value - 1e-4) < 4 * one.amplitude.error
        assert 0.01 < one.p_value < 0.9999
        assert str(one.mass) in shown(result)
    even, odd = found.masses
    assert abs(even.constant.value - LOOP**2) < 4 * even.constant.error
    assert odd.constant is None
    assert (even.r_min, even.r_max) == (1, 12)  # of the longest axis
    first = next(one for one in found.points if one.part == "Im L" and one.r == 2)
    assert abs(first.effective_mass.value - NT * ODD) < 4 * first.effective_mass.error
    assert read_fit(run / "screening.json")["masses"][1]["mass"].value == odd.mass.value


@pytest.mark.slow
def test_both_parts_have_the_same_states_in_the_confined_phase(tmp_path):
    run = write_planes(tmp_path / "run", loop=0.0, masses=(EVEN, EVEN))
    result = gauge_mc.fit("screening", run)
    (one,) = result.found.masses
    assert (result.found.phase, one.part, one.constant) == ("confined", "L", None)
    assert abs(one.mass.value - NT * EVEN) < 4 * one.mass.error < 0.15 * NT * EVEN
    assert "σ(T)/T²" in shown(result)


@pytest.mark.slow
def test_the_confined_form_is_fitted_where_that_with_a_constant_does_not_converge(
    tmp_path, monkeypatch
):
    run = write_planes(tmp_path / "run", loop=0.0, masses=(EVEN, EVEN))
    fit = _ScreenedFit._fit

    def without_constant(self, values, first, constant):
        return None if constant else fit(self, values, first, constant)

    monkeypatch.setattr(_ScreenedFit, "_fit", without_constant)
    found = gauge_mc.fit("screening", run).found
    assert (found.phase, [one.part for one in found.masses]) == ("confined", ["L"])
    with pytest.raises(GaugeError, match="The decrease of the correlator of Re L cannot be fitted"):
        gauge_mc.fit("screening", run, phase="deconfined")


@pytest.mark.slow
def test_su2_has_a_real_part_only(tmp_path):
    found = gauge_mc.fit("screening", write_planes(tmp_path / "run", group="su2")).found
    assert [one.part for one in found.masses] == ["Re L"]


@pytest.mark.slow
def test_the_range_leaves_out_distances_that_do_not_fit(tmp_path):
    """A second state decays within a few steps."""
    run = write_planes(tmp_path / "run", masses=(EVEN, EVEN), loop=0.0, excited=4e-4)
    (one,) = gauge_mc.fit("screening", run).found.masses
    assert one.r_min > 1
    assert abs(one.mass.value - NT * EVEN) < 4 * one.mass.error
    (short,) = gauge_mc.fit("screening", run, r_min=0, r_max=4, phase="confined").found.masses
    assert (short.r_min, short.r_max) == (0, 4)
    assert short.p_value < 0.01
    assert "The form does not fit" in shown(
        gauge_mc.fit("screening", run, r_min=0, r_max=4, phase="confined")
    )
    options = {"r_min": 0, "r_max": 4, "phase": "confined"}
    marks = ScreeningPlot().picture(run / "polyakov_planes.csv", options).frames[0].marks
    (curve,) = (one for one in marks if isinstance(one, Stroke))
    assert (curve.x[0], curve.x[-1]) == (0, 4)


@pytest.mark.slow
def test_the_errors_of_masses_are_those_of_repeated_ensembles(tmp_path):
    fits = []
    for seed in range(20):
        run = write_planes(tmp_path / str(seed), size=150, seed=seed)
        fits.append(gauge_mc.fit("screening", run, r_min=1, phase="deconfined").found.masses)
    for masses in zip(*fits, strict=True):
        values, errors = zip(*((one.mass.value, one.mass.error) for one in masses), strict=True)
        # the spread of twenty is known to 16 %
        assert np.std(values, ddof=1) == pytest.approx(np.mean(errors), rel=0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "kind", "sentence"),
    [
        ({"r_min": 5, "r_max": 4}, UsageError, "from 5 to 4; choose --r-min below --r-max"),
        ({"r_min": 10}, GaugeError, "The fit needs 4 distances, and there are 3 from r = 10 to 12"),
        ({"phase": "x"}, UsageError, "--phase is 'x'; choose deconfined or confined"),
        ({"skip": 1999}, GaugeError, "has 1 configuration, and"),
    ],
)
def test_what_cannot_be_fitted(tmp_path_factory, options, kind, sentence):
    run = tmp_path_factory.getbasetemp() / "planes"
    if not run.exists():
        write_planes(run)
    with pytest.raises(kind, match=sentence):
        gauge_mc.fit("screening", run, **options)


def test_a_table_that_is_incomplete_is_refused(tmp_path):
    run = write_planes(tmp_path / "run", size=20, lost=1)
    with pytest.raises(GaugeError, match="configuration 20 does not have the same rows"):
        gauge_mc.fit("screening", run)


BOX, LINKS = (16, 20, 24), 4
MASS, AMPLITUDE, CONSTANT = 0.7, 0.02, 0.04
DISTANCES = [("100", r) for r in range(1, 9)] + [("110", r) for r in range(1, 9)]


def exact(path, steps, constant):
    """C(R) with all images that matter."""
    vector = np.array([steps * int(one) for one in path])
    images = [vector + np.multiply(n, BOX) for n in product(range(-2, 3), repeat=3)]
    r = np.linalg.norm(images, axis=1)
    return constant + AMPLITUDE * float((np.exp(-MASS * r) / r).sum())


def write_correlators(folder, constant, noise=1e-4, common=2e-3, size=200):
    """Write correlators with independent noise, and noise that all distances share."""
    rng = np.random.default_rng(7)
    lattice = "x".join(map(str, (*BOX, LINKS)))
    head = {"observable": "polyakov-correlators", "group": "su2", "beta": "2.4"}
    head |= {"action": "wilson", "lattice": lattice}
    rows = []
    for sweep in range(1, size + 1):
        shared = 1 + common * rng.normal()
        for path, steps in DISTANCES:
            value = exact(path, steps, constant) * shared + noise * rng.normal()
            rows.append((sweep, path, steps, float(value)))
    folder.mkdir(exist_ok=True)
    write_table(folder / "polyakov_correlators.csv", head, CORRELATOR_COLUMNS, rows)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(("phase", "constant"), [("deconfined", CONSTANT), ("confined", 0.0)])
def test_the_known_mass_is_found(tmp_path, phase, constant):
    run = write_correlators(tmp_path / "run", constant, noise=2e-5)
    result = gauge_mc.fit("free-energy", run)
    found, text = result.found, shown(result)
    assert found.phase == phase
    assert abs(found.mass.value - LINKS * MASS) < 4.5 * found.mass.error < 0.6
    assert abs(found.amplitude.value - AMPLITUDE) < 4.5 * found.amplitude.error
    assert 0.001 < found.p_value < 0.999
    assert str(found.mass) in text
    assert read_fit(run / "free-energy.json")["mass"].value == found.mass.value
    if phase == "deconfined":
        assert abs(found.limit.value + math.log(CONSTANT)) < 4.5 * found.limit.error < 0.02
        assert "Screening mass m/T" in text
    else:
        assert found.limit is None
        assert "String tension σ(T)/T²" in text
    first = found.points[0]
    assert (first.path, first.distance, first.scaled, first.fitted) == ("100", 1, 1 / LINKS, False)
    expected = -math.log(exact("100", 1, constant))
    assert abs(first.free_energy.value - expected) < 4.5 * first.free_energy.error
    second = found.points[1]
    assert second.distance == pytest.approx(math.sqrt(2))
    assert [one.distance for one in found.points] == sorted(one.distance for one in found.points)


@pytest.mark.slow
def test_the_error_of_the_mass_is_that_of_repeated_ensembles(tmp_path):
    rng_noise = []
    errors = []
    run = write_correlators(tmp_path / "run", CONSTANT, noise=2e-5, size=1200)
    for first in range(0, 1200, 100):
        part = gauge_mc.fit("free-energy", _part(run, tmp_path / str(first), first), r_min=1.5)
        rng_noise.append(part.found.mass.value)
        errors.append(part.found.mass.error)
    assert np.std(rng_noise, ddof=1) == pytest.approx(np.mean(errors), rel=0.6)


def _part(run, folder, first):
    """Write a hundred configurations of a table as a table of its own."""
    lines = (run / "polyakov_correlators.csv").read_text().splitlines()
    head = dict(one[2:].split(": ", 1) for one in lines if one.startswith("# ") and ": " in one)
    rows = [one.split(",") for one in lines if one[0].isdigit()]
    count = len(DISTANCES)
    chosen = rows[first * count : (first + 100) * count]
    folder.mkdir()
    values = [(int(a), b, int(c), float(d)) for a, b, c, d in chosen]
    write_table(folder / "polyakov_correlators.csv", head, CORRELATOR_COLUMNS, values)
    return folder


@pytest.mark.slow
def test_the_form_and_the_range_can_be_chosen(tmp_path):
    run = write_correlators(tmp_path / "run", CONSTANT, noise=2e-5)
    wrong = gauge_mc.fit("free-energy", run, phase="confined")
    assert wrong.found.p_value < 0.01
    assert "The form does not fit" in shown(wrong)
    part = gauge_mc.fit("free-energy", run, r_min=3.0, r_max=6.0).found
    distances = [one.distance for one in part.points if one.fitted]
    root = math.sqrt(2)
    assert distances == pytest.approx([3, 4, 3 * root, 5, 4 * root, 6])
    with pytest.raises(GaugeError, match="needs three distances, and there are 2 from R = 7"):
        gauge_mc.fit("free-energy", run, r_min=7.0, r_max=7.5)
    with pytest.raises(UsageError, match="--phase is 'x'; choose deconfined or confined"):
        gauge_mc.fit("free-energy", run, phase="x")
    with pytest.raises(UsageError, match="from 5 to 4"):
        gauge_mc.fit("free-energy", run, r_min=5.0, r_max=4.0)


@pytest.mark.slow
def test_correlators_that_are_noise_have_no_free_energy(tmp_path):
    run = write_correlators(tmp_path / "run", 0.0, noise=2e-2, common=0.0)
    with pytest.raises(GaugeError, match="cannot be fitted"):
        gauge_mc.fit("free-energy", run, phase="confined", r_min=6.0)


EXTENT = 12
HEADER = {
    "observable": "polyakov-correlators",
    "group": "su3",
    "beta": "5.7",
    "lattice": f"16x16x16x{EXTENT}",
}
ON_AXIS = [("100", r) for r in range(1, 9)]
EVERY = ON_AXIS + [("110", r) for r in range(1, 6)]


def distance(path, r):
    return r * math.sqrt(sum(int(digit) ** 2 for digit in path))


def correlators(samples, distances=EVERY, noise=0.02, seed=2):
    """Return C(R) = exp(-V N_t) / 9 with noise, shape (samples, distances)."""
    rng = np.random.default_rng(seed)
    r = np.array([distance(*one) for one in distances])
    mean = np.exp(-potential(r) * EXTENT) / 9
    return mean * (1 + noise * r * autoregressive(rng, samples, len(distances), 0.4))


def write(path, values, distances=EVERY, header=HEADER):
    with Table(path, header, ("sweep", "path", "r", "re")) as table:
        for n, row in enumerate(values):
            table.append(
                (10 * n + 10, *where, float(value))
                for where, value in zip(distances, row, strict=True)
            )
    return path


def test_the_potential_is_that_of_the_ground_state(tmp_path):
    """N^2 C(R) = exp(-V N_t), with the errors of ln C."""
    values = correlators(400)
    found, header = read_correlators(write(tmp_path / "p.csv", values))
    assert (found.extent, found.colours, found.distances) == (EXTENT, 3, tuple(EVERY))
    assert header.items() >= HEADER.items()
    np.testing.assert_array_equal(found.values, values)
    plateaus = correlator_potential(found)
    assert [one.distance for one in plateaus.points] == sorted(distance(*one) for one in EVERY)
    for one in plateaus.points:
        column = values[:, EVERY.index((one.path, one.steps))]
        expected = -math.log(9 * column.mean()) / EXTENT
        assert one.potential.value == pytest.approx(expected, abs=1e-14)
        error = estimate(column).error / column.mean() / EXTENT
        assert one.potential.error == pytest.approx(error)
        assert abs(one.potential.value - potential(one.distance)) < 4 * one.potential.error
        assert (one.t_min, one.t_max) == (EXTENT, EXTENT)


def test_negative_averages_are_left_out_and_named(tmp_path):
    values = correlators(100)
    values[:, 6] *= -1
    values[:, 7] *= 1 + 20 * np.random.default_rng(1).normal(size=100)
    write(tmp_path / "polyakov_correlators.csv", values)
    result = gauge_mc.fit("potential", tmp_path).potential
    assert result.left_out == ("(1,0,0) R = 7", "(1,0,0) R = 8")
    assert {one.distance for one in result.points} == {distance(*one) for one in EVERY} - {7, 8}
    assert "Distances that are too noisy: (1,0,0) R = 7, (1,0,0) R = 8." in result.cautions


@pytest.mark.slow
def test_distances_of_half_the_lattice_are_named(tmp_path):
    write(tmp_path / "polyakov_correlators.csv", correlators(100))
    first = gauge_mc.fit("potential", tmp_path).potential
    assert any("lower V(R): (1,0,0) R = 8;" in one for one in first.cautions)
    large = {**HEADER, "lattice": "18x18x18x12"}
    write(tmp_path / "large.csv", correlators(100), header=large)
    second = gauge_mc.fit("potential", tmp_path / "large.csv").potential
    assert not any("Half the lattice" in one for one in second.cautions)


@pytest.mark.slow
def test_fits_files_and_plots_are_those_of_loops(tmp_path):
    h5py = pytest.importorskip("h5py")
    write(tmp_path / "polyakov_correlators.csv", correlators(500))
    result = gauge_mc.fit("potential", tmp_path, samples=True)
    sigma = result.potential.scales["sigma"]
    assert abs(sigma.value.value - SIGMA) < 3 * sigma.error < 0.1 * SIGMA
    assert (result.potential.levels, result.potential.excited) == ((), ())
    assert result.potential.source == "correlators"
    assert len(result.potential.force) == len(EVERY) - 2
    stored = read_result(tmp_path / "potential_correlators.json")
    assert stored.source == "correlators"
    with h5py.File(tmp_path / "potential_correlators.h5") as h5:
        errors = np.sqrt(np.diag(h5["covariance"]))
        np.testing.assert_allclose(errors, h5["error"])
        samples = h5["jackknife"][:]
        binned = np.sqrt((len(samples) - 1) * samples.var(axis=0))
        np.testing.assert_allclose(binned, errors, rtol=0.5)
        np.testing.assert_allclose(samples.mean(axis=0), h5["potential"], atol=1e-3)
        assert h5.attrs["source"] == "correlators"
    text = shown(result)
    assert "V(R) from correlators of Polyakov loops" in text
    assert "smearing" not in text
    for plot in ("potential", "static-force"):
        PLOTS[plot].draw([tmp_path], tmp_path / f"{plot}.pdf")
        assert (tmp_path / f"{plot}.pdf").stat().st_size > 1000


@pytest.mark.slow
def test_loops_and_correlators_of_one_run(tmp_path):
    """Loops are the default, and one may choose."""
    write(tmp_path / "polyakov_correlators.csv", correlators(60))
    write(tmp_path / "multilevel.csv", correlators(60, seed=3))  # the other has the usual name
    write_loops(tmp_path / "wilson_loops.csv", synthetic_loops(np.random.default_rng(0), 60, 5))
    for options, source in (({}, "loops"), ({"source": "correlators"}, "correlators")):
        assert gauge_mc.fit("potential", tmp_path, **options).potential.source == source
    assert (tmp_path / "potential.json").exists()
    assert (tmp_path / "potential_correlators.json").exists()
    assert gauge_mc.fit("potential", tmp_path / "multilevel.csv").potential.source == "correlators"
    with pytest.raises(UsageError, match="--source is 'flow'; choose loops or correlators"):
        gauge_mc.fit("potential", tmp_path, source="flow")
    with pytest.raises(GaugeError, match="it is not a table of Wilson loops"):
        gauge_mc.fit("potential", tmp_path / "multilevel.csv", source="loops")
    with pytest.raises(UsageError, match="--level is for Wilson loops; leave it out"):
        gauge_mc.fit("potential", tmp_path, source="correlators", level=0)
    (tmp_path / "empty").mkdir()
    with pytest.raises(GaugeError, match="There is no run in"):
        gauge_mc.fit("potential", tmp_path / "empty")


def test_unfit_tables_end_in_one_sentence(tmp_path):
    values = correlators(20)
    with pytest.raises(GaugeError, match="does not state the lattice and the group"):
        read_correlators(write(tmp_path / "a.csv", values, header={"observable": "x"}))
    with pytest.raises(GaugeError, match="at least 10 configurations"):
        correlator_potential(read_correlators(write(tmp_path / "b.csv", values[:9]))[0])
    with pytest.raises(GaugeError, match="No correlator is known to better than 10%"):
        correlator_potential(read_correlators(write(tmp_path / "c.csv", -values))[0])
    same = np.repeat(values[:1], 20, axis=0)
    with pytest.raises(GaugeError, match="do not fluctuate"):
        correlator_potential(read_correlators(write(tmp_path / "d.csv", same))[0])
    path = tmp_path / "e.csv"
    with Table(path, HEADER, ("sweep", "path", "r", "re")) as table:
        table.append([(1, "100", 1, 0.1), (1, "100", 2, 0.1), (2, "100", 1, 0.1)])
    with pytest.raises(GaugeError, match="configuration 2 does not have the same rows"):
        read_correlators(path)
    loops = write_loops(tmp_path / "f.csv", synthetic_loops(np.random.default_rng(0), 12, 3))
    with pytest.raises(GaugeError, match="has no column 're': it is not a table of correlators"):
        read_correlators(loops)
