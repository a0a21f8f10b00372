"""``--json``: one JSON object with what the summary says, and nothing else on stdout."""

import json
from pathlib import Path

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import estimate, with_error
from gauge_mc.errors import INTERRUPTED
from gauge_mc.files.table import read_table
from tests.analysis.synthetic_loops import synthetic_loops, write_loops
from tests.calls import call, make_run

TINY = ("--lattice", "4x4x4x4", "--backend", "cpu", "--threads", 1)
SHORT = (*TINY, "--thermalize", 2, "--configs", 4, "--separation", 3)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder to work in."""
    monkeypatch.setenv("PYTHONPATH", str(Path(gauge_mc.__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(*words, code=0):
    """Call a command with ``--json``; return the object that it prints."""
    shown, ended = call(*words, "--json")
    assert ended == code, shown
    result = json.loads(shown, parse_constant=pytest.fail)  # NaN is not JSON
    assert isinstance(result, dict)
    return result


def said(*words):
    """Call a command; return what it prints."""
    shown, code = call(*words)
    assert code == 0, shown
    return shown


def test_generate():
    begun = found("generate", *SHORT, "--output", "run")
    assert (begun["run"], begun["stopped"]) == ("run", None)
    assert (begun["sweep"], begun["sweeps"], begun["configurations"]) == (14, 14, 4)
    assert begun["parameters"]["lattice"] == "4x4x4x4"
    assert begun.keys() >= {"seconds", "links_per_s"}
    complete = found("generate", "--output", "run", "--backend", "cpu")
    assert complete["averages"] == begun["averages"]
    rows = [line for line in said("generate", "--output", "run").splitlines() if "(" in line]
    labels = {"plaquette", "spatial plaquette", "temporal plaquette", "Polyakov loop, modulus"}
    assert labels <= complete["averages"].keys()
    for label, one in complete["averages"].items():
        (row,) = [row for row in rows if row.startswith(f"{label} ")]
        assert with_error(one["value"], one["error"]) in row
        assert with_error(one["tau_int"], one["tau_int_error"]) in row
        assert row.endswith(f" {one['samples']}")


def test_numbers_that_are_not_known_are_null():
    alone = (*TINY, "--thermalize", 0, "--configs", 1, "--separation", 1, "--output", "run")
    result = found("generate", *alone)
    assert 0 < result["averages"]["plaquette"]["value"] < 1
    assert result["averages"]["plaquette"]["error"] is None
    assert found("measure", "plaquette", "run")["averages"]["plaquette"]["error"] is None


def test_a_run_that_was_stopped():
    long = ("--lattice", 4, "--backend", "cpu", "--configs", 10**6, "--output", "run")
    result = found("generate", *long, "--time-limit", "0:0:1", code=INTERRUPTED)
    assert result["stopped"] == "the time limit"
    assert result["sweep"] < result["sweeps"]


@pytest.mark.slow
def test_scan():
    words = ("--beta", "2.2:2.3:0.1,2.3", *SHORT, "--chains", 2, "--output", "s")
    result = found("scan", *words)
    assert (result["path"], result["runs"], result["complete"]) == ("s", 4, 4)
    assert (result["stopped"], result["failures"]) == (None, {})
    table = read_table("s/scan.csv", text=("lattice",))
    assert len(result["points"]) == len(table) == 2
    for row, point in enumerate(result["points"]):
        assert point.keys() == table.columns.keys()
        for name, value in point.items():
            exact = table[name][row].item()
            assert value == exact or (value is None and np.isnan(exact))
            assert type(value) in (type(exact), type(None))
    assert found("scan", "--output", "s", "--collect")["points"] == result["points"]
    shown = said("scan", *words)
    for point in result["points"]:
        assert with_error(point["plaquette"], point["plaquette_error"]) in shown
    refusal, code = call("scan", *words, "--json", "--submit", "slurm")
    assert (code, "--json cannot be combined with --submit" in refusal) == (2, True)


def test_a_scan_that_was_stopped_before_anything_was_complete():
    words = ("--beta", "2.3", "--lattice", 8, "--backend", "cpu", "--output", "s")
    result = found("scan", *words, "--time-limit", "0:0:3", code=INTERRUPTED)
    assert (result["stopped"], result["complete"]) == ("the time limit", 0)
    assert result["points"] == []


def test_measure():
    make_run(Path("run"), lattice="4x4x4x4", measure="none")
    result = found("measure", "polyakov", "run", "--backend", "cpu")
    assert (result["table"], result["rows"]) == ("run/polyakov.csv", 3)
    table = read_table("run/polyakov.csv")
    assert result["header"] == table.header
    shown = said("measure", "polyakov", "run", "--backend", "cpu")
    assert shown.endswith("\nrun/polyakov.csv\n")
    assert result["averages"].keys() == {"re", "im", "abs"}
    for name, one in result["averages"].items():
        expected = estimate(table[name])
        assert (one["value"], one["error"]) == (expected.value, expected.error)
        assert f"{name:<10} {one['text']}\n" in shown
    loops = found("measure", "wilson-loops", "run", "--r-max", 1, "--t-max", 1, "--backend", "cpu")
    assert (loops["table"], loops["averages"]) == ("run/wilson_loops.csv", {})


@pytest.mark.parametrize("what", ["creutz", "potential"])
def test_fit(folder, what):
    for name, seed in (("one", 1), ("two", 2)):
        (folder / name).mkdir()
        loops = synthetic_loops(np.random.default_rng(seed), 60)
        write_loops(folder / name / "wilson_loops.csv", loops)
    result = found("fit", what, "one")
    assert result.pop("file") == f"one/{what}.json"
    assert result == json.loads((folder / "one" / f"{what}.json").read_text())
    both = found("fit", what, "one", "two")
    assert [one["file"] for one in both["fits"]] == [f"one/{what}.json", f"two/{what}.json"]
    assert {key: both["fits"][0][key] for key in result} == result
