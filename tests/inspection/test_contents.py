"""``gauge-mc info``: the contents of configuration files, runs and scans."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from gauge_mc import status
from tests.calls import call, make_run
from tests.formats.format_params import SOURCES
from tests.formats.format_samples import (
    WITHOUT_CHECKSUM,
    averages,
    nersc_bytes,
    plaquettes,
    random_links,
    sample,
)
from tests.reports.pages import write_run

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("source", SOURCES, ids="-".join)
def test_info_of_a_file(tmp_path, source):
    links, data = sample(*source)
    path = tmp_path / "file"
    path.write_bytes(data)
    shown, code = call("info", path, "--json")
    assert code == 0
    facts = json.loads(shown)
    format, group, precision = source
    expected = {
        "file": str(path),
        "format": format,
        "bytes": len(data),
        "group": group,
        "lattice": "4x2x6x8",
        "precision": precision,
    }
    assert {name: facts[name] for name in expected} == expected
    planes = plaquettes(links)
    assert facts["recomputed"] == pytest.approx(
        {
            "mean": np.mean(planes),
            "spatial": np.mean(planes[:3]),
            "temporal": np.mean(planes[3:]),
            "link_trace": averages(links)[1],
        },
        abs=1e-14 if precision == "double" else 1e-7,  # computed in this precision
    )
    if source[0] in ("nersc", "hdf5", *WITHOUT_CHECKSUM):
        assert facts["stated"]["plaquette"] == pytest.approx(averages(links)[0], abs=1e-10)
    assert (facts["checksum"] is None) == (source[0] in WITHOUT_CHECKSUM)
    shown, code = call("info", path)
    assert code == 0
    for word in (source[0], source[1], "4x2x6x8", f"{facts['recomputed']['mean']}"):
        assert word in shown


def test_info_shows_the_header_of_a_damaged_file_and_no_tricks(tmp_path):
    tricks = "\x1b[2Jcleared \r\x07"
    data = nersc_bytes(random_links("su2"), REMARK=tricks)
    path = tmp_path / "file"
    path.write_bytes(data[:-1] + b"\x55")
    shown, code = call("info", path)
    assert (code, "4x2x6x8" in shown) == (1, True), shown
    assert "its links have the checksum" in shown
    assert not set(shown) & set("\x1b\r\x07")
    path.write_bytes(nersc_bytes(random_links("su2"), DATATYPE=tricks))
    shown, code = call("info", path)
    assert code == 69
    assert not set(shown) & set("\x1b\r\x07")


def test_info_of_a_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no runs and no scans in runs" in call("info")[0]
    make_run(tmp_path / "runs" / "a", seed=7)
    facts = json.loads(call("info", "--json")[0])
    assert facts["run"] == "runs/a"
    assert facts["parameters"]["seed"] == 7
    assert facts["configurations"] == 3
    assert facts["file"] == "runs/a/configs/0000011.lime"
    assert facts["provenance"]["sequence_number"] == "11"
    assert facts["tables"]["plaquette.csv"].startswith("9 rows: sweep, plaquette")
    assert len(facts["sessions"]) == 1
    shown, code = call("info", "runs/a")
    assert (code, "0000011.lime" in shown) == (0, True), shown
    shutil.rmtree("runs/a/configs")
    assert "file" not in json.loads(call("info", "--json")[0])
    assert call("info", tmp_path)[1] == 2
    assert "cannot be read" in call("info", "none")[0]


def test_info_of_a_scan(root):
    """The scan was made by version 0.1.0."""
    scan = root / "tests" / "pins" / "scan"
    facts = json.loads(call("info", scan, "--json")[0])
    assert facts["scan"] == str(scan)
    assert not {"beta", "lattice"} & facts["parameters"].keys()
    runs = sorted(path.parent.name for path in scan.glob("*/run.toml"))
    assert sorted(Path(one["run"]).name for one in facts["runs"]) == runs
    assert len(runs) == sum(len(grid["beta"]) for grid in facts["grids"]) == 2
    shown, code = call("info", scan)
    assert code == 0
    for one in facts["runs"]:
        progress = one["damage"] or f"{one['sweep']} of {one['sweeps']} updates"
        assert f"{Path(one['run']).name} {progress}" in shown


def test_a_run_without_a_checkpoint_begins_anew(tmp_path):
    run = write_run(tmp_path / "run")
    for one in run.glob("checkpoint*"):
        one.unlink()
    found = status(run)
    assert (found.sweep, found.checkpoint_sweep, found.state) == (0, None, "stopped")
    again = f"gauge-mc generate --output {run}"
    assert found.lines()["state"] == f"stopped before its first checkpoint; to begin anew: {again}"
