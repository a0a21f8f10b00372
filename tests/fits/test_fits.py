"""Fits in general: finding the run and its table."""

from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_heading, read_table, write_table
from gauge_mc.fits import FITS
from gauge_mc.fits.shared.tables import find_table_by_columns
from gauge_mc.quantities.flow.analysis.records import FLOW_COLUMNS
from gauge_mc.quantities.hadrons.analysis.correlators import BARYON_COLUMNS, MESON_COLUMNS
from gauge_mc.quantities.potential.analysis.loop_tables import LOOP_COLUMNS
from gauge_mc.registry import in_words
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import call, make_run
from tests.fits.tables import has_table, write_tables

LOOPS = synthetic_loops(np.random.default_rng(1), 12, 5)


def test_the_table_that_bears_its_name_is_taken(tmp_path):
    write_table(tmp_path / "plaquette.csv", {}, ("sweep", "plaquette"), [(1, 0.5)])
    off_axis = write_loops(tmp_path / "off_axis.csv", LOOPS)
    assert find_table_by_columns(tmp_path, LOOP_COLUMNS) == off_axis
    proper = write_loops(tmp_path / "wilson_loops.csv", LOOPS)
    assert find_table_by_columns(tmp_path, LOOP_COLUMNS) == proper
    proper.rename(tmp_path / "more.csv")
    with pytest.raises(
        GaugeError, match=r"Several tables .*: more\.csv, off_axis\.csv; name one of them"
    ):
        find_table_by_columns(tmp_path, LOOP_COLUMNS)


def test_other_tables_may_be_damaged(tmp_path):
    (tmp_path / "notes.csv").write_bytes(b"\xff\xfe\n")
    (tmp_path / "plaquette.csv").write_text("sweep,plaquette\n1,0.5\n2\n")
    with pytest.raises(GaugeError, match=r"notes\.csv is not a table"):
        find_table_by_columns(tmp_path, LOOP_COLUMNS)
    expected = write_loops(tmp_path / "wilson_loops.csv", LOOPS)
    assert find_table_by_columns(tmp_path, LOOP_COLUMNS) == expected
    gauge_mc.fit("creutz", tmp_path)
    expected.write_bytes(expected.read_bytes().replace(b",0.", b",1.", 1))
    with pytest.raises(GaugeError, match="checksum"):
        gauge_mc.fit("creutz", tmp_path)


def test_a_missing_table_is_named(tmp_path):
    with pytest.raises(GaugeError, match=f"There is no run in {tmp_path}: it has no run.toml"):
        find_table_by_columns(tmp_path, LOOP_COLUMNS)
    (tmp_path / "plaquette.csv").write_text("sweep,plaquette\n")
    with pytest.raises(GaugeError, match=f"make one with gauge-mc measure wilson-loops {tmp_path}"):
        find_table_by_columns(tmp_path, LOOP_COLUMNS)
    with pytest.raises(
        GaugeError, match=r"no table of hmc in .*, as runs have that were made with"
    ):
        find_table_by_columns(tmp_path, ("delta_h", "accepted"))
    with pytest.raises(GaugeError, match="no table with the columns mass in"):
        find_table_by_columns(tmp_path, ("mass",))


def test_unknown_fits_and_missing_runs(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match=f"no fit 'xyz'; choose {in_words(list(FITS), 'or')}"):
        gauge_mc.fit("xyz", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no runs and no scans in runs"):
        gauge_mc.fit("potential")


def test_every_fit_states_its_file_and_columns():
    assert all(one.file and one.columns for one in FITS.values())
    of_this_package = {
        "anisotropy": ("anisotropy.json", ("plane", "r", "t", "loop")),
        "baryons": ("baryons.json", BARYON_COLUMNS),
        "creutz": ("creutz.json", tuple(LOOP_COLUMNS)),
        "mesons": ("mesons.json", MESON_COLUMNS),
        "potential": ("potential.json", tuple(LOOP_COLUMNS)),
        "scale": ("scale.json", FLOW_COLUMNS),
        "topology": ("topology.json", FLOW_COLUMNS),
    }
    for name, expected in of_this_package.items():
        assert (FITS[name].file, FITS[name].columns) == expected


def test_a_result_shows_itself_in_a_notebook(tmp_path):
    write_loops(tmp_path / "wilson_loops.csv", LOOPS)
    shown = gauge_mc.fit("potential", tmp_path)._repr_html_()
    assert shown.startswith("<p>result: ")
    assert "<table>" in shown
    assert "Plateaus in t" in shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=() if one == "creutz" else pytest.mark.slow) for one in FITS]
)
def test_every_fit_cautions_of_configurations_that_are_not_equally_spaced(name, tmp_path):
    """Before, only fits of the flow did, though one standard deviation then covered 60 %."""
    write_tables(tmp_path)
    if not has_table(name, tmp_path):
        pytest.skip("a fit of another table")
    table = FITS[name].find_table(tmp_path, {})
    assert gauge_mc.fit(name, table).sampling == []
    header, content = read_heading(table)[0], read_table(table, text=("path", "source"))
    sweeps = content["sweep"]
    kept = sweeps != np.unique(sweeps)[3]
    columns = content.columns
    rows = list(zip(*(columns[one][kept].tolist() for one in columns), strict=True))
    table.unlink()
    write_table(table, header, tuple(columns), rows)
    found = gauge_mc.fit(name, table)
    assert "not equally spaced in the Markov chain" in found.sampling[0]
    assert found.whole_report()[-1] == found.document()["sampling"][-1] == found.sampling[-1]


@pytest.mark.slow
def test_a_fit_of_an_unfinished_measurement_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(Path("run"))
    measuring = ("measure", "wilson-loops", run, "--r-max", 2, "--t-max", 2, "--backend", "cpu")
    assert call(*measuring)[1] == 0
    assert gauge_mc.fit("creutz", run).sampling == []
    assert call("generate", "--output", run, "--configs", 4, "--quiet")[1] == 0
    (sentence,) = gauge_mc.fit("creutz", run).sampling
    assert sentence.startswith("wilson_loops.csv has 3 of 4 configurations of the run; measure the")
    command = sentence.partition("gauge-mc ")[2].rstrip(".").split()
    assert call(*command, *measuring[3:])[1] == 0
    assert gauge_mc.fit("creutz", run).sampling == []
