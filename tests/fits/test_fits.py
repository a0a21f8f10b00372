"""Fits in general: finding the run and its table."""

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import Replicas
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import read_heading, read_table, write_table
from gauge_mc.fits import FITS, fit_all
from gauge_mc.fits.files import KEPT_FILE, find_table_by_columns, is_of_other_tables, kept_skip
from gauge_mc.plots import PLOTS
from gauge_mc.plots.drawing import options_to_draw
from gauge_mc.quantities.flow.curves import FlowCurve
from gauge_mc.quantities.potential.loop_tables import LOOP_COLUMNS
from gauge_mc.run.thermalisation import AUTO
from tests.analysis.synthetic_flow import HEADER, synthetic_flow, write_flow
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import call, make_run
from tests.fits.tables import has_table, write_tables, write_target

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
    with pytest.raises(
        GaugeError, match=f"make one with `gauge-mc measure wilson-loops {tmp_path}`"
    ):
        find_table_by_columns(tmp_path, LOOP_COLUMNS)
    with pytest.raises(
        GaugeError, match=r"no table of hmc in .*, as runs have that were made with"
    ):
        find_table_by_columns(tmp_path, ("delta_h", "accepted"))
    with pytest.raises(GaugeError, match="no table with the columns mass in"):
        find_table_by_columns(tmp_path, ("mass",))


def test_unknown_fits_and_missing_runs(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="no fit 'xyz'; --help lists all"):
        gauge_mc.fit("xyz", tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="no runs and no scans in runs"):
        gauge_mc.fit("potential")


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
    assert gauge_mc.fit(name, table).cautions == []
    header, content = read_heading(table)[0], read_table(table, text=("path", "source"))
    sweeps = content["sweep"]
    kept = sweeps != np.unique(sweeps)[3]
    columns = content.columns
    rows = list(zip(*(columns[one][kept].tolist() for one in columns), strict=True))
    table.unlink()
    write_table(table, header, tuple(columns), rows)
    found = gauge_mc.fit(name, table)
    assert "not equally spaced in the Markov chain" in found.cautions[0].sentence
    (last,) = found.cautions
    assert found.whole_report()[-1] == found.document()["cautions"][-1]["sentence"] == last.sentence
    assert (last.run, last.column) == (str(tmp_path), table.name)


@pytest.mark.slow
def test_a_fit_of_an_unfinished_measurement_says_so(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = make_run(Path("run"))
    measuring = ("measure", "wilson-loops", run, "--r-max", 2, "--t-max", 2, "--backend", "cpu")
    assert call(*measuring)[1] == 0
    assert gauge_mc.fit("creutz", run).cautions == []
    assert call("generate", "--output", run, "--configs", 4, "--quiet")[1] == 0
    (caution,) = gauge_mc.fit("creutz", run).cautions
    sentence = caution.sentence
    assert sentence.startswith("wilson_loops.csv has 3 of 4 configurations of the run; repeat the")
    assert call(*measuring)[1] == 0
    assert gauge_mc.fit("creutz", run).cautions == []


def test_options_that_are_kept_hold_for_fits_plots_and_reports(tmp_path):
    write_loops(tmp_path / "wilson_loops.csv", LOOPS)
    skip = int(LOOPS.sweeps[1])
    first = gauge_mc.fit("potential", tmp_path, skip=skip, t_min=2, keep=True)
    assert first.kept == []
    again = gauge_mc.fit("potential", tmp_path)
    assert again.options == first.options == {"skip": skip, "t_min": 2}
    assert again.potential == first.potential
    said = f"As kept with {tmp_path}: --skip {skip}"
    assert again.whole_report()[-1] == f"{said} --t-min 2."
    assert gauge_mc.fit("potential", tmp_path, t_min=1).options == {"skip": skip, "t_min": 1}
    assert gauge_mc.fit("creutz", tmp_path).options == {"skip": skip}
    run = tmp_path / "run"  # of this folder
    run.mkdir()
    for target, otherwise in (([tmp_path], 0), ([run], 0), ([run, tmp_path], AUTO)):
        assert kept_skip(target, otherwise) == skip
    assert options_to_draw(PLOTS["wilson-loops"], [run], {}) == (
        {"skip": skip},
        [f"As kept with {run}: --skip {skip}."],
    )
    assert options_to_draw(PLOTS["wilson-loops"], [run], {"skip": 0}) == ({"skip": 0}, [])
    assert gauge_mc.fit("potential", tmp_path, skip=0, t_min=1, keep=True).options["skip"] == 0
    call("fit", "potential", tmp_path, "--keep")
    assert gauge_mc.fit("potential", tmp_path).options == {}
    (tmp_path / KEPT_FILE).write_text("[")
    with pytest.raises(GaugeError, match=r"kept\.json is damaged; remove it"):
        gauge_mc.fit("potential", tmp_path)


def write_chain(folder, seed, facts=()):
    """Write the table of a flow, as a chain with a seed has it, and return the flow."""
    folder.mkdir(parents=True, exist_ok=True)
    flow = synthetic_flow(np.random.default_rng(seed), 60, every=10 * seed)
    header = {**HEADER, "start": "cold", "seed": f"{seed}", **dict(facts)}
    write_flow(folder / "flow.csv", flow, header=header)
    return flow


def test_chains_of_one_ensemble_are_fitted_together(tmp_path):
    flows = [write_chain(tmp_path / f"chain{seed}", seed) for seed in (1, 2)]
    result = gauge_mc.fit("scale", tmp_path)
    replicas = Replicas((60, 60), (10, 20))
    series = np.concatenate([FlowCurve.of(flow, "clover").samples for flow in flows])
    both = dataclasses.replace(FlowCurve.of(flows[0], "clover"), samples=series, replicas=replicas)
    assert str(result.scales.t0) == str(both.t0(0.3).estimate)
    assert "2 chains of one ensemble are joined." in result.whole_report()
    document = json.loads((tmp_path / "scale.json").read_text())
    files = ["chain1/flow.csv", "chain2/flow.csv"]
    assert [one["file"] for one in document["tables"]] == files
    assert not is_of_other_tables(tmp_path / "scale.json")
    with pytest.raises(UsageError, match="consists of 2 runs or ensembles; fit them one by one"):
        gauge_mc.fit("scale", tmp_path, separate=True)
    results = list(fit_all("scale", [tmp_path], {}, separate=True))
    assert [path for _, path in results] == [tmp_path / f"chain{n}/scale.json" for n in (1, 2)]
    assert results[0][0].scales.t0 == FlowCurve.of(flows[0], "clover").t0(0.3).estimate
    assert results[0][0].scales.t0.error > result.scales.t0.error


def test_only_chains_of_equal_parameters_are_joined(tmp_path):
    for name, seed, facts in (
        ("a1", 1, {}),
        ("a2", 2, {"version": "1"}),
        ("b1", 1, {"beta": "6.2"}),
        ("copy", 2, {}),
    ):
        write_chain(tmp_path / name, seed, facts)
    targets = [tmp_path / name for name in ("a1", "a2", "b1", "copy")]
    paths = [path.relative_to(tmp_path) for _, path in fit_all("scale", targets, {})]
    assert paths == [Path("a1/scale_chains.json"), Path("b1/scale.json"), Path("copy/scale.json")]
    assert not is_of_other_tables(tmp_path / "a1" / "scale_chains.json")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] * (name == "screening"))
        for name, one in FITS.items()
        if one.joins
    ],
)
def test_every_fit_joins_chains(name, tmp_path):
    """Two chains with the same rows have the results of one, with errors smaller by sqrt(2)."""
    fit = FITS[name]
    if fit.of_scans:
        pytest.skip("a fit of scans")
    (tmp_path / "both").mkdir()
    folders = [write_target(name, tmp_path / "both" / f"chain{n}") for n in (1, 2)]
    alone, _ = [one for one, _ in fit_all(name, folders, {}, separate=True)]
    both = gauge_mc.fit(name, tmp_path / "both")
    assert "2 chains of one ensemble are joined." in both.whole_report()
    assert len(both.tables) == 2 * len(alone.tables)
    assert (tmp_path / "both" / fit.file).is_file()
    assert len(alone.result) == len(both.result)
    for single, joint in zip(alone.result, both.result, strict=True):
        if joint.name == single.name:  # not where another sector or loop is known best
            totals = [math.hypot(one.error, one.systematic or 0.0) for one in (single, joint)]
            assert joint.value == pytest.approx(single.value, abs=0.5 * totals[0])
            if single.systematic:  # for which other fits may have the largest weights
                assert totals[1] < 1.2 * totals[0]
            else:
                assert joint.error == pytest.approx(single.error / math.sqrt(2), rel=0.15)
