import math

import numpy as np
import pytest
from matplotlib.image import imread
from synthetic_loops import autoregressive

from gauge_mc.analysis.plots import COLOURS
from gauge_mc.analysis.scan import NOTES, average, draw_scan, susceptibility, write_scan
from gauge_mc.analysis.timeseries import estimate
from gauge_mc.errors import GaugeError
from gauge_mc.formats.table import Table, read_table, write_table
from gauge_mc.lattice import Lattice

LATTICE = Lattice(4, 6, 2, 8)


def polyakov_table(path, re, im):
    columns = ("sweep", "re", "im", "abs")
    with Table(path, {"observable": "polyakov"}, columns) as table:
        rows = zip(7 * np.arange(1, len(re) + 1), re, im, np.hypot(re, im), strict=True)
        table.append(rows)
    return path


def test_averages_of_two_chains(tmp_path):
    dice = np.random.default_rng(1)
    chains = [autoregressive(dice, samples, 2, 0.6) for samples in (300, 120)]
    paths = [polyakov_table(tmp_path / f"{i}.csv", *one.T) for i, one in enumerate(chains)]
    found = average("polyakov", ("re", "im", "abs"), paths, 7, LATTICE)
    moduli = [np.hypot(*one.T) for one in chains]
    for name, parts in (("re", [one[:, 0] for one in chains]), ("abs", moduli)):
        expected = estimate(*parts)
        assert found[f"polyakov_{name}"] == np.concatenate(parts).mean()
        assert found[f"polyakov_{name}_error"] == expected.error
        assert found[f"polyakov_{name}_tau_int"] == 7 * expected.tau_int
    pooled = np.concatenate(moduli)
    volume = 4 * 6 * 2
    expected = volume * (np.mean(pooled**2) - pooled.mean() ** 2)
    assert found["polyakov_susceptibility"] == pytest.approx(expected, rel=1e-12)
    assert found["polyakov_susceptibility_error"] == susceptibility(*moduli, volume=volume)[1]
    assert len(found) == 3 * 3 + 2


def test_a_plaquette_is_named_as_such(tmp_path):
    path = tmp_path / "plaquette.csv"
    write_table(path, {}, ("sweep", "plaquette", "spatial"), [(1, 0.5, 0.25), (2, 0.75, 0.25)])
    columns = ("plaquette", "spatial")
    found = average("plaquette", columns, [path], 1, LATTICE)
    assert (found["plaquette"], found["plaquette_spatial"]) == (0.625, 0.25)
    assert (found["plaquette_spatial_error"], found["plaquette_spatial_tau_int"]) == (0.0, 0.5)
    other = tmp_path / "other.csv"
    write_table(other, {}, ("sweep", "plaquette"), [(1, 0.5)])
    with pytest.raises(GaugeError, match="no numbers for spatial"):
        average("plaquette", columns, [path, other], 1, LATTICE)


@pytest.mark.parametrize("rho", [0.0, 0.8])
def test_errors_of_susceptibilities(rho):
    """Variances of AR(1) chains with a mean far from 0, in two unequal parts."""
    volume, pulls = 1000, []
    for chain in 0.7 + 0.01 * autoregressive(np.random.default_rng(2), 4000, 150, rho).T:
        value, error = susceptibility(chain[:1500], chain[1500:], volume=volume)
        pulls.append((value - volume * 1e-4) / error)
    assert abs(np.mean(pulls)) < 0.35
    assert 0.85 < np.std(pulls) < 1.25


@pytest.mark.filterwarnings("error")
def test_susceptibilities_of_few_measurements():
    assert all(map(math.isnan, susceptibility([], volume=8)))
    value, error = susceptibility([0.5], volume=8)
    assert (value, math.isnan(error)) == (0.0, True)
    assert susceptibility([1.0], [2.0], volume=8)[0] == 2.0
    assert susceptibility([0.25] * 9, [], volume=8) == (0.0, 0.0)


def rows():
    numbers = {"plaquette": 0.6, "plaquette_error": 0.01, "plaquette_tau_int": 0.5}
    loops = {"polyakov_abs": 0.2, "polyakov_abs_error": 0.01}
    return [
        {"beta": beta, "lattice": lattice, "chains": 1, "sweeps": 9, **numbers, **loops}
        for lattice in ("8x8x8x4", "8x8x8x6")
        for beta in (2.4, 2.2, 2.3)
    ]


@pytest.mark.parametrize("ending", ["pdf", "png", "svg"])
def test_drawing_a_table(tmp_path, ending):
    table, figure = tmp_path / "scan.csv", tmp_path / f"scan.{ending}"
    write_scan(table, {"group": "su3"}, rows())
    assert read_table(table, text=("lattice",)).header == {"group": "su3", **NOTES}
    draw_scan(table, figure)
    assert figure.stat().st_size > 5000
    if ending == "png":
        image = imread(figure)[..., :3]
        for code in COLOURS[:2]:  # a curve a lattice
            colour = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
            assert (np.abs(image - colour).max(axis=-1) < 0.02).sum() > 200
    elif ending == "svg":
        assert figure.read_text().count('id="axes_') == 2  # plaquette, Polyakov loop


def test_tables_that_cannot_be_drawn(tmp_path):
    table, figure = tmp_path / "scan.csv", tmp_path / "scan.pdf"
    with pytest.raises(GaugeError, match="Cannot read"):
        draw_scan(table, figure)
    write_scan(table, {}, [])
    with pytest.raises(GaugeError, match="nothing to draw yet"):
        draw_scan(table, figure)
    write_table(table, {}, ("sweep", "plaquette"), [(1, 0.5)])
    with pytest.raises(GaugeError, match="no table of a scan"):
        draw_scan(table, figure)
    assert not figure.exists()
