"""Correlators of fields: synthetic ones in all sectors of the centre, and leading order."""

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_table, write_table
from gauge_mc.fits.files import read_fit
from gauge_mc.flows import FLOWS
from gauge_mc.quantities.thermodynamics.field_correlators import (
    continuum,
    field_correlators,
    on_lattice,
    read_field_series,
)
from gauge_mc.quantities.thermodynamics.observables import FIELD_COLUMNS
from tests.calls import make_run
from tests.quantities.shown import shown
from tests.reference.free_gluons import field_strength

EXTENT, TIMES, LOOP = 12, (0.0, 0.2, 0.4), 0.3
RATIO = {"electric": 3.1, "magnetic": 2.2}


def write_correlators(folder, colours=3, size=60, noise=0.02, loop=LOOP, **header):
    """Write correlators that are RATIO times G_norm, with a noise that the loop shares."""
    rng = np.random.default_rng(5)
    norms = on_lattice(EXTENT, np.array(TIMES), 0.0, FLOWS["wilson"])
    head = {"observable": "field-correlators", "group": f"su{colours}", "beta": "6.5"}
    head |= {"action": "wilson", "lattice": f"8x8x8x{EXTENT}", "flow": "wilson", **header}
    rows = []
    for sweep in range(1, size + 1):
        turn = np.exp(2j * np.pi * rng.integers(colours) / colours)
        own = loop * turn * (1 + 0.1 * rng.normal() + (0.05j if colours > 2 else 0))
        for k, t in enumerate(TIMES):
            for tau in range(1, EXTENT // 2 + 1):
                both = [
                    3 * own * a * norm[k, tau - 1]
                    for a, norm in zip(RATIO.values(), norms, strict=True)
                ]
                both[1] = -both[1]
                both = [one * (1 + noise * rng.normal()) for one in both]
                values = [x for one in (*both, own) for x in (float(one.real), float(one.imag))]
                rows.append((sweep, t, tau, *values))
    folder.mkdir(exist_ok=True)
    write_table(folder / "field_correlators.csv", head, FIELD_COLUMNS, rows)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("colours", [2, 3])
def test_the_known_ratios_are_found_in_all_sectors(tmp_path, colours, sketched):
    run = write_correlators(tmp_path / "run", colours)
    result = gauge_mc.fit("field-correlators", run)
    points = result.found.points
    assert [(one.tau, one.t) for one in points[:4]] == [(1, 0.0), (1, 0.2), (1, 0.4), (2, 0.0)]
    for one in points:
        assert one.scaled == one.tau / EXTENT
        assert one.inside == (1 <= one.radius <= one.tau / 3)
        for name, value in RATIO.items():
            ratio, correlator = getattr(one, f"{name}_ratio"), getattr(one, name)
            if ratio is None:
                assert correlator.value < 0  # the clovers overlap
                continue
            assert abs(ratio.value - value) < 5 * ratio.error < 0.1
            if one.t == 0.2 and one.tau == 4:
                norms = on_lattice(EXTENT, np.array([0.2]), 0.0, FLOWS["wilson"])
                norm = norms[name == "magnetic"][0, 3] * EXTENT**4
                assert correlator.value == pytest.approx(ratio.value * norm, rel=1e-12)
    assert abs(result.found.loops[1].value - LOOP) < 5 * result.found.loops[1].error
    assert not result.found.cautions
    row = next(one for one in points if one.inside)
    assert str(row.electric_ratio) in shown(result)
    content = read_fit(run / "field-correlators.json")
    assert content["points"][0]["tau"] == 1
    gauge_mc.plot("field-correlators", run, output=tmp_path / "figure.svg")
    assert (tmp_path / "figure.svg").exists()


@pytest.mark.slow
def test_cautions(tmp_path):
    found = gauge_mc.fit("field-correlators", write_correlators(tmp_path / "a", loop=1e-9)).found
    assert found.cautions == []  # a small loop is well known, too
    run = write_correlators(tmp_path / "b", action="another")
    result = gauge_mc.fit("field-correlators", run)
    assert any("G_norm is not known for this action" in one for one in result.found.cautions)
    assert all(one.electric_ratio is None for one in result.found.points)
    assert "G_E/G_norm" not in shown(result)
    with pytest.raises(GaugeError, match="leading order is known"):
        gauge_mc.plot("field-correlators", run, output=tmp_path / "figure.svg")


@pytest.mark.slow
def test_a_loop_of_the_confined_phase_is_named(tmp_path):
    run = write_correlators(tmp_path / "run", colours=2)
    table = run / "field_correlators.csv"
    data = read_table(table)
    rows = [list(one) for one in zip(*(data[name].tolist() for name in FIELD_COLUMNS), strict=True)]
    rng = np.random.default_rng(1)
    for row in rows:  # the turn is to the nearest sector, so that only imaginary noise is left
        row[-2:] = [1e-3 * abs(rng.normal()) * (1 if row[0] % 20 else 1000), 0.0]
    write_table(table, data.header, FIELD_COLUMNS, rows)
    found = gauge_mc.fit("field-correlators", run).found
    assert any("errors above 0" in one for one in found.cautions)


@pytest.mark.slow
def test_too_little_and_incomplete_data(tmp_path):
    with pytest.raises(GaugeError, match="configurations, and"):
        gauge_mc.fit("field-correlators", write_correlators(tmp_path / "few", size=2))
    run = write_correlators(tmp_path / "cut")
    table = run / "field_correlators.csv"
    table.write_text("\n".join(table.read_text().splitlines()[:-4]) + "\n")
    with pytest.raises(GaugeError, match="is incomplete"):
        gauge_mc.fit("field-correlators", run)
    with pytest.raises((GaugeError, UsageError)):
        gauge_mc.fit("field-correlators", tmp_path / "nothing")


ELECTRIC, MAGNETIC = ((0, 3), (1, 3), (2, 3)), ((1, 2), (2, 0), (0, 1))


@pytest.mark.slow
def test_the_limit_of_fine_lattices_is_the_continuum():
    """At tau T = 1/2 artefacts decrease as 1/tau^2, up to the next order."""
    deviations = []
    for extent in (16, 32):
        found = on_lattice(extent, np.array([0.0]), 0.0, FLOWS["wilson"])
        deviations.append([one[0, -1] / continuum(extent)[-1] - 1 for one in found])
    coarse, fine = np.array(deviations)
    assert np.abs(fine).max() < 0.04
    np.testing.assert_allclose(coarse / fine, 4, rtol=0.2)


def of_paths(extents, planes, t):
    """Return the sum over the momenta of a finite lattice, with clovers as sums over paths."""
    axes = [2 * np.pi * np.arange(n) / n for n in extents]
    p = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 4)[1:]
    square = (4 * np.sin(p / 2) ** 2).sum(axis=1)
    found = np.zeros(extents[3] // 2)
    for mu, nu in planes:
        sides = [(mu, 1), (nu, 1), (mu, -1), (nu, -1)]
        loops = [[sides[(one + turn) % 4] for turn in range(4)] for one in range(4)]
        clover = sum(field_strength(p, path) for path in loops) / 4
        weight = (np.abs(clover) ** 2).sum(axis=1) / square * np.exp(-2 * t * square)
        waves = np.cos(np.outer(p[:, 3], np.arange(1, found.size + 1)))
        found += weight @ waves / np.prod(extents) / 3
    return found


@pytest.mark.slow
@pytest.mark.parametrize("t", [0.0, 0.4])
def test_sums_over_paths_on_a_finite_lattice(t):
    """Without the momentum 0, which is missed there, they differ by a multiple of 1/V."""
    signs = zip((-1, 1), (ELECTRIC, MAGNETIC), strict=True)
    exact = np.array(on_lattice(4, np.array([t]), 0.0, FLOWS["wilson"]))[:, 0]
    finite = [sign * of_paths((16, 16, 16, 4), planes, t) for sign, planes in signs]
    assert np.abs(exact).min() > 1e-4
    np.testing.assert_allclose(finite, exact, atol=1 / (4 * 16**3))


@pytest.mark.slow
def test_weak_coupling_is_leading_order(tmp_path):
    """At beta = 200, g^2 is 0.02, and so are corrections; the volume counts for as much."""
    how = {"group": "su2", "beta": 200.0, "lattice": "8x8x8x6", "thermalize": 50, "configs": 60}
    how |= {"separation": 5, "format": "none", "precision": "double"}
    run = make_run(tmp_path / "run", **how, measure="field-correlators:5:to=0.3:every=0.3")
    found = field_correlators(read_field_series(run / "field_correlators.csv"))
    coupling = 4 / 200 * 3 / 4
    for one in found.points:
        if one.t and one.tau != 2:  # at 2 the electric one is next to 0
            for ratio in (one.electric_ratio, one.magnetic_ratio):
                if ratio is not None:
                    assert ratio.value / coupling == pytest.approx(1, abs=0.06)
                    assert ratio.error / coupling < 0.05
