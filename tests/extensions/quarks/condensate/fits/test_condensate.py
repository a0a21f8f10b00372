"""``fit condensate`` and ``plot condensate`` on synthetic estimates with known answers."""

import json

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError
from gauge_mc.extensions.quarks.condensate import COLUMNS, disconnected, pairs_of_sources
from gauge_mc.files.table import Table, read_table, write_table
from gauge_mc.run.thermalisation import series_of
from tests.extensions.quarks.synthetic_hadrons import HEADER

VOLUME = 16**3 * 32
SAMPLES, SOURCES = 60, 5
MASSES = (0.02, 0.04, 0.06)
GAUGE, NOISE = 2e-3, 4e-3
"""Standard deviations of Tr S / V from one configuration to the next, and of one estimate."""


def scalar(mass):
    return 0.1 + 2.5 * mass


def write_condensates(path, rng, sources=SOURCES, noise=NOISE):
    """Write a table of three masses; the same links and sources belong to all of them."""
    with Table(path, {**HEADER, "operator": "overlap"}, ("sweep", *COLUMNS.complete().names)) as t:
        for n in range(SAMPLES):
            common, each = GAUGE * rng.normal(), noise * rng.normal(size=sources)
            t.append(
                (
                    *(10 * (n + 1), 0.2, 0.0, m, source, scalar(m) + common + each[source], 0.0),
                    *(0.01 * rng.normal(), 0.0, -2.5 + 0.01 * rng.normal(), scalar(m) / m),
                )
                for m in MASSES
                for source in range(sources)
            )
    return path


def test_averages_noise_and_lines(tmp_path, rng):
    found = gauge_mc.fit("condensate", write_condensates(tmp_path / "condensate.csv", rng)).found
    noise = NOISE / np.sqrt(SOURCES * SAMPLES)
    gauge = GAUGE / np.sqrt(SAMPLES)
    for one, chi in zip(found.quarks, found.susceptibilities, strict=True):
        assert abs(one.condensate.value - scalar(one.m)) < 4 * one.condensate.error
        assert one.noise_error == pytest.approx(noise, rel=0.25)
        assert one.link_error == pytest.approx(gauge, rel=0.6)
        both = np.hypot(one.noise_error, one.link_error)
        assert both == pytest.approx(one.condensate.error)
        assert abs(chi.disconnected.value - VOLUME * GAUGE**2) < 4 * chi.disconnected.error
        assert abs(chi.connected.value - 2.5) < 4 * chi.connected.error
        total = 4 * chi.disconnected.value + 2 * chi.connected.value
        assert chi.total.value == pytest.approx(total)
        assert chi.total.error >= 4 * chi.disconnected.error
    (line,) = found.lines
    assert abs(line.intercept.value - 0.1) < 4 * line.intercept.error
    assert line.slope.value == pytest.approx(2.5)


def test_products_of_different_sources_have_no_square_of_the_noise(rng):
    """On 4000 short series, of which each has a mean of its own; the plain variance is wrong."""
    found, plain = [], []
    for _ in range(4000):
        values = GAUGE * rng.normal(size=(12, 1)) + NOISE * rng.normal(size=(12, 3))
        values += 0.3
        found.append(disconnected(values[:5], values[5:], volume=1)[0].value)
        plain.append(values.mean(axis=1).var(ddof=1))
    error = np.std(found) / np.sqrt(len(found))
    # The error of the mean is estimated with its autocorrelation, which makes it a bit too large.
    assert abs(np.mean(found) - GAUGE**2) < 4 * error + 0.1 * GAUGE**2
    assert np.mean(plain) > 1.5 * GAUGE**2
    values = np.array([[1.0, 2.0, 4.0]])
    assert pairs_of_sources(values) == pytest.approx([(2 + 4 + 8) / 3])


def test_with_one_source_the_disconnected_part_is_unknown(tmp_path, rng):
    path = write_condensates(tmp_path / "condensate.csv", rng, sources=1)
    result = gauge_mc.fit("condensate", path)
    assert all(one.disconnected is one.total is None for one in result.found.susceptibilities)
    assert all(one.noise_error is None for one in result.found.quarks)
    assert "measure with more --sources" in result.found.cautions[-1]
    assert [one.name for one in result.result] == ["−⟨ψ̄ψ⟩ (m = 0.02)"]


def test_noise_that_dominates_is_cautioned_of(tmp_path, rng):
    path = write_condensates(tmp_path / "condensate.csv", rng, noise=0.05)
    assert (
        "or divide them by more with --dilute"
        in gauge_mc.fit("condensate", path).found.cautions[-1]
    )
    quiet = write_condensates(tmp_path / "other.csv", rng, noise=1e-4)
    assert not any("--dilute" in one for one in gauge_mc.fit("condensate", quiet).found.cautions)


def test_the_file_has_what_was_found(tmp_path, rng):
    result = gauge_mc.fit("condensate", write_condensates(tmp_path / "condensate.csv", rng))
    values = json.loads((tmp_path / "condensate.json").read_text())
    assert values["quarks"][0]["m"] == MASSES[0]
    assert values["quarks"][0]["mu"] is None
    assert values["sources"] == SOURCES
    assert values["lines"][0]["chi2"] is not None
    assert values["result"][0]["value"] == result.found.quarks[0].condensate.value


def test_hopping_parameters_have_lines_if_the_critical_one_is_known(tmp_path, rng):
    path = tmp_path / "condensate.csv"
    with Table(path, HEADER, ("sweep", *COLUMNS.names)) as table:
        for n in range(SAMPLES):
            common = GAUGE * rng.normal()
            table.append(
                (n + 1, kappa, 0.0, s, 2 - 0.5 * (0.5 / kappa - 3.0) + common, *[0.0] * 5)
                for kappa in (0.14, 0.15)
                for s in range(2)
            )
    found = gauge_mc.fit("condensate", path)
    assert not found.found.lines
    assert found.quoted()[0].name == "−⟨ψ̄ψ⟩ (κ = 0.15)"  # of the lightest quark
    (line,) = gauge_mc.fit("condensate", path, kappa_c=1 / 6).found.lines
    assert line.slope.value == pytest.approx(-0.5)
    assert abs(line.intercept.value - 2) < 4 * line.intercept.error
    assert line.chi2 is None


def test_incomplete_tables_are_refused(tmp_path, rng):
    path = write_condensates(tmp_path / "condensate.csv", rng)
    rows = [one for one in path.read_text().splitlines() if "sha256" not in one]
    path.write_text("\n".join(rows[:-1]) + "\n")
    with pytest.raises(GaugeError, match="does not have the same rows of condensates"):
        gauge_mc.fit("condensate", path)


def test_columns_of_rounding_do_not_count(tmp_path):
    """Those that are 0 in exact arithmetic have a transient as often as not."""
    rows = [(n, 0.1, 0.0, source, *[1.0] * 6) for n in range(5) for source in range(2)]
    names = ("sweep", *(one.name for one in COLUMNS if not one.optional))
    write_table(tmp_path / "condensate.csv", {"observable": "condensate"}, names, rows)
    found = series_of(read_table(tmp_path / "condensate.csv"))
    judged = {name.removeprefix("mean ").partition(",")[0] for name, *_ in found}
    assert judged == {"scalar", "pseudoscalar", "connected", "pion"}
