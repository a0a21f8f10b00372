"""The anisotropy from synthetic loops, whose anisotropy is known, and from an isotropic chain."""

import json

import numpy as np
import pytest

from gauge_mc import fit, generate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import write_table

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
