"""Creutz ratios and anisotropies of synthetic loops, and of an isotropic chain."""

import json
import math

import numpy as np
import pytest

import gauge_mc
from gauge_mc import fit, generate
from gauge_mc.analysis.timeseries import with_error
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table
from gauge_mc.plots.drawing import find_plot
from gauge_mc.quantities.potential.loop_tables import creutz_ratios
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.quantities.shown import shown

XI = 2.3


def potential(r):
    """Return V(r) in units of the spacing in space."""
    return 0.6 - 0.3 / r + 0.05 * r


def loop(x, y):
    """Return a loop with sides x and y in units of the spacing, symmetric as W is."""
    return np.exp(-(y * potential(x) + x * potential(y)) / 2 - 0.05 * x * y)


def synthetic(path, noise, configurations=200, xi=lambda r: XI, seed=1, most=5):
    """Write a table of loops with independent noise, whose anisotropy may depend on r."""
    rng = np.random.default_rng(seed)
    rows = []
    for sweep in range(configurations):
        for r in range(1, most + 1):
            for plane, longest in (("space", most), ("time", 12)):
                for t in range(1, longest + 1):
                    value = loop(r, t if plane == "space" else t / xi(r))
                    rows.append((sweep, plane, r, t, value * (1 + noise * rng.normal())))
    columns = ["sweep", "plane", "r", "t", "loop"]
    header = {"observable": "planar-loops", "group": "su3", "beta": "5.8", "anisotropy": "2.0"}
    write_table(path, header, columns, [list(row) for row in rows])
    return path


@pytest.mark.slow
def test_the_anisotropy_is_found(tmp_path):
    result = fit("anisotropy", synthetic(tmp_path / "planar_loops.csv", 1e-3)).found
    assert result.xi.error < 0.005
    assert abs(result.xi.value - XI) < 4 * result.xi.error + result.interpolation
    for one in result.used:
        assert abs(one.xi.value - XI) < 4.5 * one.xi.error + 2 * one.interpolation
    values = json.loads((tmp_path / "anisotropy.json").read_text())
    assert values["xi"]["value"] == result.xi.value
    assert values["ensemble"]["anisotropy"] == "2.0"


@pytest.mark.slow
@pytest.mark.parametrize("tables", [8, pytest.param(16, marks=pytest.mark.slow)])
def test_errors_are_those_of_many_tables(tmp_path, tables):
    found = [
        fit("anisotropy", synthetic(tmp_path / f"{n}.csv", 0.01, 40, seed=n), least=2).found.xi
        for n in range(tables)
    ]
    scatter = np.std([one.value for one in found], ddof=1)
    assert 0.6 < scatter / np.mean([one.error for one in found]) < 1.5


def test_an_average_that_no_larger_loops_confirm_is_a_sentence(tmp_path):
    table = synthetic(tmp_path / "planar_loops.csv", 1e-3, 20, most=2)  # x = y = 1 alone is known
    with pytest.raises(GaugeError, match="none agrees with that of larger loops"):
        fit("anisotropy", table)
    shown = " ".join(map(str, fit("anisotropy", table, least=1).report()))
    assert "no larger loops are known well enough" in shown
    assert "nan" not in shown


def test_averages_that_change_with_the_extent_are_not_trusted(tmp_path):
    table = synthetic(tmp_path / "loops.csv", 1e-4, 20, xi=lambda r: XI * (1 + 0.3 * r))
    with pytest.raises(GaugeError, match="none agrees with that of larger loops"):
        fit("anisotropy", table)


def test_refusals(tmp_path):
    table = synthetic(tmp_path / "planar_loops.csv", 1e-3, 3)
    with pytest.raises(UsageError, match="--least is 9; choose it between 1 and 4"):
        fit("anisotropy", table, least=9)
    with pytest.raises(GaugeError, match="has 1 configuration, and at least 2 are needed"):
        fit("anisotropy", synthetic(tmp_path / "one.csv", 1e-3, 1))


@pytest.mark.slow
def test_an_isotropic_lattice(tmp_path):
    run = generate(
        output=tmp_path / "run",
        group="su2",
        beta=2.2,
        lattice="6x6x6x8",
        thermalize=40,
        configs=50,
        separation=3,
        measure="planar-loops:4:r-max=3:t-max=4",
        format="none",
        progress=False,
        threads=1,
    )
    xi = fit("anisotropy", run.path).found.xi
    assert xi.error < 0.04
    assert abs(xi.value - 1) < 4 * xi.error


def test_ratios_are_written_and_shown(tmp_path):
    on, off = (synthetic_loops(np.random.default_rng(1), 50, 6, path) for path in ("100", "110"))
    on.values[:, 5, 5] -= 0.1  # not positive: a loop without a logarithm
    table = write_loops(tmp_path / "wilson_loops.csv", off, on)
    result = gauge_mc.fit("creutz", tmp_path)
    expected = creutz_ratios(on)
    content = json.loads((tmp_path / "creutz.json").read_text())
    for key, array in (("chi", expected.value), ("error", expected.error)):
        assert content[key][5][5] is None
        content[key][5][5] = np.nan
        np.testing.assert_array_equal(content[key], array)
    assert (content["r"], content["t"]) == ([1, 2, 3, 4, 5, 6],) * 2
    assert (content["smearing"], content["configurations"]) == (25, 50)
    assert content["ensemble"] == {"group": "su2", "beta": "2.5", "lattice": "16x16x16x32"}
    text = shown(result)
    assert "T = R + 3" in text
    assert with_error(expected.value[1, 2], expected.error[1, 2]) in text
    assert "nan" not in text
    (tmp_path / "creutz.json").unlink()
    assert gauge_mc.fit("creutz", table, level=25).values()["smearing"] == 25
    assert (tmp_path / "creutz.json").exists()


def test_chains_are_joined(tmp_path):
    loops = synthetic_loops(np.random.default_rng(1), 400, 4)
    runs = [tmp_path / name for name in ("a", "b")]
    for run in runs:
        run.mkdir()
        write_loops(run / "wilson_loops.csv", loops)
    single, joint = (gauge_mc.fit("creutz", some).values() for some in (runs[0], tmp_path))
    np.testing.assert_allclose(joint["chi"], single["chi"], rtol=1e-12)
    ratio = np.array(joint["error"]) / single["error"]
    np.testing.assert_allclose(ratio, math.sqrt(0.5), rtol=0.15)


def test_other_options_are_refused(tmp_path):
    write_loops(tmp_path / "wilson_loops.csv", synthetic_loops(np.random.default_rng(1), 10, 4))
    with pytest.raises(UsageError, match="--r-min is not an option of fit creutz"):
        gauge_mc.fit("creutz", tmp_path, r_min=2.0)
    with pytest.raises(UsageError, match=r"--level is .*; give a whole number"):
        gauge_mc.fit("creutz", tmp_path, level="many")
    assert not (tmp_path / "creutz.json").exists()


@pytest.mark.slow
def test_ratios_are_drawn(tmp_path):
    synthetic(tmp_path / "planar_loops.csv", 1e-3, 20)
    drawn = []
    for n, options in enumerate(({}, {"least": 3})):
        file = tmp_path / f"{n}.svg"
        assert find_plot("anisotropy").draw([tmp_path], file, **options) == []
        drawn.append(file.read_text())
    assert drawn[0].count("<path") > 50
    assert drawn[0] != drawn[1]
