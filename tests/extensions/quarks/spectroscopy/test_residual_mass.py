"""``fit residual-mass`` and ``plot residual-mass`` on synthetic sums with known answers."""

import json

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.spectroscopy.correlators import ratio_series
from gauge_mc.extensions.quarks.spectroscopy.spectrum import COLUMNS, read_residual_table
from gauge_mc.files.table import Table
from tests.extensions.quarks.synthetic_hadrons import HEADER

EXTENT, SAMPLES = 24, 40
MASSES = (0.02, 0.04)
EVERYTHING = COLUMNS.complete()
M_RES, Z_A = 0.003, 0.75
EXCITED = 0.5
"""Weight of the excited state in the midpoint's correlator, relative to the pion's."""


def energy(mass):
    return np.sqrt(4 * (mass + M_RES))


def sums(mass, rng, noise=0.01):
    m, t = energy(mass), np.arange(EXTENT)
    size = 1 + noise * rng.normal()

    def decay(at, sign):
        return np.exp(-m * at) + sign * np.exp(-m * (EXTENT - at))

    pion = size * decay(t, 1)
    ratio = M_RES * (1 + EXCITED * np.exp(-1.5 * np.minimum(t, EXTENT - t)))
    middle = pion * ratio * (1 + noise * rng.normal())
    local = size * decay(t, -1) * (1 + noise * rng.normal())
    links = Z_A * size * decay(t + 0.5, -1)
    contact = np.where(t == 0, (mass * pion + middle).sum(), 0)
    return pion, contact, middle, middle / pion, links, local, 0 * links + 0.1


def write_residual_masses(path, rng, columns=EVERYTHING, noise=0.01, places=(0, 6)):
    """Write a table of two masses, with sources at several places."""
    header = {**HEADER, "operator": "domain-wall:ls=16", "m_q = 2 M5 m": "0.072,0.144"}
    with Table(path, header, ("sweep", *columns.names)) as table:
        for n in range(SAMPLES):
            table.append(
                (10 * (n + 1), mass, f"point@0;0;0;{place}", t, *values)
                for place in places
                for mass in MASSES
                for t, values in enumerate(
                    zip(*sums(mass, rng, noise)[: len(columns.names) - 3], strict=True)
                )
            )
    return path


@pytest.fixture
def table(tmp_path, rng):
    return write_residual_masses(tmp_path / "residual_mass.csv", rng)


def test_plateaus(table):
    found = gauge_mc.fit("residual-mass", table).found
    assert [(one.m, one.source) for one in found.masses] == [(m, "point") for m in MASSES]
    for one in found.masses:
        assert abs(one.m_res.value - M_RES) < 4 * one.m_res.error < 0.02 * M_RES
        assert one.t_min > 1
        # cosh(m/2)/2 + 1/(2 cosh(m/2)) is 1 up to m^4 / 128
        assert abs(one.z_a.value - Z_A) < 4 * one.z_a.error + Z_A * energy(one.m) ** 4 / 100
        assert one.z_a.error < 0.01 * Z_A
        assert one.summed.value > M_RES
        assert abs(one.summed.value - M_RES) < 0.4 * M_RES
    assert not found.left_out


@pytest.mark.slow
def test_times_that_are_given(table):
    """The last one is part of the plateau, as long as the lattice has it."""
    for last in (7, EXTENT // 2):
        found = gauge_mc.fit("residual-mass", table, t_min=4, t_max=last).found
        for one in found.masses:
            assert (one.t_min, one.t_max) == (4, last)
            assert (one.z_a_t_min, one.z_a_t_max) == (4, min(last, EXTENT // 2 - 1))


def test_the_ratio_is_that_of_averages(table):
    """The fit averages both halves of the lattice and all places, and its errors contain both."""
    read = read_residual_table(table)
    for quark, values in read.values.items():
        middle, pion = (values[name].mean(axis=0) for name in ("midpoint", "pion"))
        t = np.arange(1, EXTENT // 2 + 1)
        expected = (middle[t] + middle[-t]) / (pion[t] + pion[-t])
        np.testing.assert_allclose(read.ratio(quark).mean(axis=0), expected, rtol=1e-12)
        links, local = (values[name].mean(axis=0) for name in ("axial", "local_axial"))
        links, local = (links - links[::-1]) / 2, (local - np.roll(local[::-1], 1)) / 2
        t = t[:-1]
        z_a = (links[t - 1] + links[t]) / (4 * local[t]) + links[t] / (local[t] + local[t + 1])
        np.testing.assert_allclose(read.renormalisation(quark).mean(axis=0), z_a, rtol=1e-12)


def test_ratios_fluctuate_less_than_their_parts(rng):
    """The series of a constant ratio is constant, however much both parts fluctuate."""
    below = 1 + 0.3 * rng.normal(size=(SAMPLES, 5))
    np.testing.assert_allclose(ratio_series(0.7 * below, below), 0.7, rtol=1e-12)
    above = below * (1 + 1e-4 * rng.normal(size=below.shape))
    left_out = [above.sum(0) - above, below.sum(0) - below]
    jackknife = SAMPLES * above.mean(0) / below.mean(0) - (SAMPLES - 1) * np.divide(*left_out)
    found = ratio_series(above, below)
    assert np.abs(found - jackknife).max() < 0.2 * np.std(jackknife)


def test_without_a_midpoint(tmp_path, rng):
    table = write_residual_masses(tmp_path / "residual_mass.csv", rng, COLUMNS)
    found = gauge_mc.fit("residual-mass", table).found
    assert all(one.m_res is None and one.z_a is None for one in found.masses)
    assert all(abs(one.summed.value - M_RES) < 0.4 * M_RES for one in found.masses)
    with pytest.raises(GaugeError, match="no correlators at the midpoint"):
        gauge_mc.plot("residual-mass", tmp_path, output=tmp_path / "figure.png")


def test_the_file_the_report_and_the_plot(table, sketched):
    result = gauge_mc.fit("residual-mass", table)
    written = json.loads((table.parent / "residual-mass.json").read_text())
    assert [one["m"] for one in written["masses"]] == [*MASSES]
    assert written["ensemble"]["m_q = 2 M5 m"] == "0.072,0.144"
    (report,) = result.report()
    assert "m_q = 2 M5 m = 0.072,0.144" in report.caption
    gauge_mc.plot("residual-mass", table.parent, output=table.parent / "figure.png")


def test_too_few_and_incomplete(tmp_path, rng):
    short = write_residual_masses(tmp_path / "short.csv", rng)
    lines = short.read_text().splitlines(keepends=True)
    begin = next(n for n, line in enumerate(lines) if line.startswith("sweep"))
    short.write_text("".join(lines[: begin + 1 + 5 * 2 * 2 * EXTENT]))
    with pytest.raises(GaugeError, match="has 5 configurations, and at least 10 are needed"):
        gauge_mc.fit("residual-mass", short)
    torn = tmp_path / "torn.csv"
    torn.write_text("".join(lines[:-3]))
    with pytest.raises(GaugeError, match="is incomplete"):
        gauge_mc.fit("residual-mass", torn)


def test_noise_leaves_plateaus_out(tmp_path, rng):
    noisy = write_residual_masses(tmp_path / "residual_mass.csv", rng, noise=20)
    assert gauge_mc.fit("residual-mass", noisy).found.left_out
