"""The static potential from correlators of Polyakov loops."""

import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import Table
from gauge_mc.plots import PLOTS
from gauge_mc.quantities.polyakov.observables import correlator_potential, read_correlators
from gauge_mc.quantities.potential.fit import read_result
from tests.analysis.synthetic_loops import (
    SIGMA,
    autoregressive,
    potential,
    synthetic_loops,
    write_loops,
)
from tests.quantities.shown import shown

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
