"""``--json``: one JSON object with what the summary says, and nothing else on stdout."""

import dataclasses
import json
import shutil
from collections import ChainMap
from pathlib import Path
from typing import get_args, get_origin, get_type_hints

import numpy as np
import pytest

import gauge_mc
from gauge_mc.analysis.timeseries import estimate, with_error
from gauge_mc.benchmarks.end_to_end import EndToEnd
from gauge_mc.benchmarks.hmc import HmcTime
from gauge_mc.benchmarks.kernels import Benchmark, ObservablesTime
from gauge_mc.benchmarks.over import BenchSeries
from gauge_mc.cli import COMMANDS
from gauge_mc.cli.document import VOCABULARY, documents, keys_of, vocabulary
from gauge_mc.devices.base import Finding
from gauge_mc.errors import INTERRUPTED
from gauge_mc.files.table import read_table
from gauge_mc.fits import FITS
from gauge_mc.observables import OBSERVABLES
from gauge_mc.run.needs import MemoryForecast
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.averages import ScanAverages
from gauge_mc.scans.scan import Scan
from tests.calls import call, call_apart, make_run
from tests.fits.tables import has_table, write_tables
from tests.samples import all_of

TINY = ("--lattice", "4x4x4x4", "--backend", "cpu", "--threads", 1)
DETERMINED = ("--beta", 2.2, "--lattice", "6x6x6x6", "--target", 0.05, *TINY[2:])
SHORT = (*TINY, "--thermalize", 2, "--configs", 4, "--separation", 3)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(Path(gauge_mc.__file__).parent.parent))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(*words):
    """Call a command with ``--json``; return what it prints on stdout and stderr, and its code."""
    return call_apart(*words, "--json")


def found(*words, code=0):
    """Call a command with ``--json``; return the object that it prints, without its heading."""
    shown, progress, ended = printed(*words)
    assert ended == code, progress
    result = json.loads(shown, parse_constant=pytest.fail)  # NaN is not JSON
    assert list(result)[:3] == ["command", "version", "vocabulary"]
    heading = [result.pop(name) for name in list(result)[:3]]
    assert heading == [words[0], gauge_mc.__version__, VOCABULARY]
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
        every = one["updates"]
        assert with_error(every * one["tau_int"], every * one["tau_int_error"]) in row
        assert one["text"] == with_error(one["value"], one["error"])
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
    assert (result["scan"], result["complete"]) == ("s", 4)
    assert [one["sweep"] for one in result["runs"]] == [one["sweeps"] for one in result["runs"]]
    assert len(result["runs"]) == 4
    assert (result["stopped"], result["failures"]) == (None, {})
    table = read_table("s/scan.csv", text=("lattice",))
    assert len(result["rows"]) == len(table) == 2
    for row, values in enumerate(result["rows"]):
        assert values.keys() == table.columns.keys()
        for name, value in values.items():
            exact = table[name][row].item()
            assert value == exact or (value is None and np.isnan(exact))
            assert type(value) in (type(exact), type(None))
    assert found("scan", "--output", "s", "--collect")["rows"] == result["rows"]
    shown = said("scan", *words)
    for row in result["rows"]:
        assert with_error(row["plaquette"], row["plaquette_error"]) in shown


def test_a_scan_that_was_stopped_before_anything_was_complete():
    words = ("--beta", "2.3", "--lattice", 8, "--backend", "cpu", "--output", "s")
    result = found("scan", *words, "--time-limit", "0:0:3", code=INTERRUPTED)
    assert (result["stopped"], result["complete"]) == ("the time limit", 0)
    assert result["rows"] == []


@pytest.mark.slow
def test_measure():
    make_run(Path("run"), lattice="4x4x4x4", measure="none")
    result = found("measure", "polyakov", "run", "--backend", "cpu")
    assert (result["file"], result["records"]) == ("run/polyakov.csv", 3)
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
    assert (loops["file"], loops["averages"]) == ("run/wilson_loops.csv", {})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run, a scan with one complete run, tables for fits, and what calls of extensions read."""
    path = tmp_path_factory.mktemp("made")
    measure = "plaquette,polyakov,wilson-loops:4:r-max=2"
    make_run(path / "run", lattice="4x4x4x4", configs=20, measure=measure)
    scan = Scan(path / "s", Parameters(lattice="4x4x4x4", thermalize=2, configs=3, separation=3))
    scan = scan.enlarged((2.3, 2.4))
    (path / "s").mkdir()
    scan.write()
    first = scan.members()[0]
    make_run(first.run.path, **first.parameters.values())
    ScanAverages(scan).write()
    (path / "tables").mkdir()
    write_tables(path / "tables")
    for write in all_of("write_inputs"):
        write(path)
    return path


CALLS = {
    "generate": [
        (*SHORT, "--output", "a"),
        (*SHORT, "--output", "a", "--chains", 2),
        (*SHORT, "--output", "b", "--dry-run"),
    ],
    "scan": [
        ("--output", "s", "--collect"),
        ("--output", "s", "--dry-run", "--backend", "cpu"),
        ("--output", "s", "--submit", "slurm", "--submit-option", "time=5", "--dry-run"),
    ],
    "determine": [("t0", *DETERMINED, "--error", "90%")],
    "status": [("run",), ("s",)],
    "watch": [("run",), ("s",), ("tables", "--wait")],
    "measure": [
        ("plaquette", "run", *TINY[2:]),
        ("plaquette", "run", "s", *TINY[2:]),
        ("wilson-loops", "run", "--r-max", 1, "--t-max", 1, *TINY[2:], "--output", "w.csv"),
    ],
    "fit": [("creutz", "tables", "tables")],
    "plot": [
        ("history", "run", "--output", "h.png"),
        ("averages", "run", "--output", "a.png"),
        ("scan", "s", "--output", "s.png"),
    ],
    "export": [("run", "out.h5"), ("run", "out.json.gz")],
    "info": [("run",), ("s",), ("run/configs/0000005.lime",)],
    "verify": [("run",), ("s",)],
    "card": [("run/run.toml",)],
    "regenerate": [("run", "--at", 5, "--dry-run")],
    "report": [("run",)],
    "thin": [("run", "--keep", 2, "--dry-run")],
    "convert": [
        ("run/configs/0000005.lime", "five.nersc", "--to", "nersc"),
        ("run", "--output", "new", "--to", "nersc"),
    ],
    "bench": [(), ("--observables",), ("--end-to-end",), ("--over", "threads=1")],
    "doctor": [(), ("--clear-cache",), ("--install", "cpu")],
}
"""Calls of every command that print each of its documents, but for those of the fits.

Extensions have further calls, and further commands.
"""

FINDINGS = [Finding("Python", True, "3.11"), Finding("CPU", True, "a processor")]
"""What the doctor finds; the first of them is not a device."""


def sample(kind):
    """An object of a class with numbers and texts of the right types."""
    if dataclasses.is_dataclass(kind):
        return kind(**{name: sample(hint) for name, hint in get_type_hints(kind).items()})
    origin, parts = get_origin(kind), get_args(kind)
    if origin is list:
        return [sample(parts[0])]
    if origin is dict:
        return {"any name": sample(parts[1])}
    return sample(parts[0]) if parts else kind(1)


BENCHMARKS = {
    "gauge_mc.benchmarks.kernels.benchmark": Benchmark,
    "gauge_mc.benchmarks.kernels.observables_time": ObservablesTime,
    "gauge_mc.benchmarks.end_to_end.end_to_end": EndToEnd,
    "gauge_mc.benchmarks.hmc.hmc_time": HmcTime,
    "gauge_mc.benchmarks.over.bench_over": BenchSeries,
}


def keys_in(document, words, named=False):
    """Yield the keys of a document that are neither in the vocabulary nor names."""
    if isinstance(document, list):
        for one in document:
            yield from keys_in(one, words, named)
    elif isinstance(document, dict):
        for key, value in document.items():
            if not named and key not in words:
                yield key
            yield from keys_in(value, words, not named and key in words and words[key].named)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_prints_one_document_with_keys_of_the_vocabulary(
    command, made, folder, monkeypatch, sketched
):
    shutil.copytree(made, folder, dirs_exist_ok=True)
    monkeypatch.setenv("GAUGE_MC_CACHE", str(folder / "cache")) if command == "doctor" else None
    monkeypatch.setattr("gauge_mc.inspection.doctor.examine", lambda: iter(FINDINGS))
    for name, kind in ChainMap(BENCHMARKS, *all_of("BENCHMARKS")).items():
        monkeypatch.setattr(name, lambda *a, kind=kind, **k: sample(kind))
    kinds, seen = documents(command), set()
    words = vocabulary(kinds)
    calls = [call for one in (CALLS, *all_of("CALLS")) for call in one.get(command, ())]
    if command == "fit":
        fitted = [name for name in FITS if has_table(name, folder / "tables")]
        calls = [*calls, *((name, "tables") for name in fitted)]
        seen |= {kind for name in {*FITS} - {*fitted} for kind in FITS[name].content}
    if not any(one.takes_memory for one in OBSERVABLES.values()):
        seen |= {MemoryForecast} & {*kinds}  # which `measure` prints for such observables alone
    for call_words in calls:
        document = found(command, *call_words)
        assert not set(keys_in(document, words)), call_words
        seen |= {kind for kind in kinds if keys_of(kind).keys() & document.keys()}
    assert seen == set(kinds)  # every document that is declared has been printed


def test_every_key_has_a_meaning():
    words = vocabulary([kind for name in COMMANDS for kind in documents(name)])
    assert [name for name, word in words.items() if "" in word.meanings] == []
    assert len(words) > 200


@pytest.mark.slow
def test_progress_goes_to_standard_error(folder):
    out, err, code = printed("generate", *SHORT, "--output", "run")
    assert (code, out[0], out[-2:]) == (0, "{", "}\n")
    assert err.startswith("run begins\n")
    assert "plaquette" in err
    out, err, code = printed("generate", *SHORT, "--output", "quiet", "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out)["sweep"] == 14
    assert printed("info", "none")[0] == ""


@pytest.mark.slow
def test_verify_and_doctor_print_what_they_found_and_fail(made, folder, monkeypatch):
    shutil.copytree(made / "run", folder / "run")
    (folder / "run" / "plaquette.csv").write_text("sweep\n")
    out, err, code = printed("verify", "run")
    assert (code, json.loads(out)["damaged"]) == (1, 1)
    (bad,) = [one for one in json.loads(out)["files"] if not one["sound"]]
    assert bad["file"] == "run/plaquette.csv"
    assert "run/plaquette.csv is damaged" in bad["result"]
    assert err.startswith("gauge-mc: Damaged or missing: 1 of ")
    monkeypatch.setattr("gauge_mc.inspection.doctor.examine", lambda: iter(FINDINGS[:1]))
    out, err, code = printed("doctor")
    assert (code, json.loads(out)["works"], err) == (1, False, "")
