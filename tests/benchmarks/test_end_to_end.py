"""The benchmark of whole runs."""

import json
import re

import pytest

from gauge_mc.benchmarks import end_to_end, timing
from tests.calls import call

TINY = ("--backend", "cpu", "--threads", "1", "--lattice", "4x4x4x6", "--group", "su2")


@pytest.fixture(autouse=True)
def _short(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(timing, "COPY_EXTENT", 4)
    monkeypatch.setattr(end_to_end, "SECONDS", 0.1)
    monkeypatch.setattr(end_to_end, "MOST_UPDATES", 60)
    monkeypatch.setattr(end_to_end, "BATCHES", (("4x4x4x2", 3),))


@pytest.mark.slow
def test_whole_runs_are_timed_with_their_bounds(tmp_path):
    shown, code = call("bench", "--end-to-end", *TINY, "--json", "--save", "found.json")
    result = json.loads(shown)
    assert code == 0
    saved = json.loads((tmp_path / "found.json").read_text())
    assert result == {"command": "bench", "vocabulary": result["vocabulary"], **saved}
    lines = {line["name"]: line for line in result["lines"]}
    assert len(lines) == len(result["lines"]) > 14
    assert all(line["value"] > 0 for line in lines.values())
    sweeps, measured = lines["sweeps alone"], lines["run that measures every update"]
    assert measured["share"] == pytest.approx(measured["value"] / sweeps["value"])
    assert "4x4x4x2, 3 together, measured" in lines
    cold, warm = (lines[f"first progress, kernels {one}"] for one in ("to compile", "compiled"))
    assert cold["value"] > warm["value"]
    assert not [path for path in tmp_path.iterdir() if path.name != "found.json"]


@pytest.mark.slow
def test_the_table_names_the_bounds(monkeypatch):
    monkeypatch.setattr(end_to_end._EndToEndTimer, "starts", lambda self: iter(()))
    shown, code = call("bench", "--end-to-end", *TINY)
    assert code == 0
    rows = {line.split("│")[1].strip(): line for line in shown.splitlines() if "│" in line}
    assert re.search(r"\d+% │ sweeps", rows["run that measures every update"])
    assert re.search(r"\d+% │ disk", rows["its files, every 10 updates"])
