"""``status``, ``info`` and ``verify`` of scans, of runs within them, and of damaged runs."""

import json
import os
import re
import shutil
import time
from contextlib import closing
from pathlib import Path

import pytest

from gauge_mc import scan
from gauge_mc.inspection.verify import checks_of, verify
from gauge_mc.run.lock import RunLock
from gauge_mc.run.log import LogTail
from gauge_mc.scans.scan import Scan
from tests.calls import call, make_run

UNCHECKED = ("lock", "run.log")
FIRST, SECOND = "b2.2_4x4x4x4_chain1", "b2.3_4x4x4x4_chain1"


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    path = tmp_path_factory.mktemp("scans") / "of" / "su2"
    values = {"beta": "2.2,2.3", "lattice": "4x4x4x4", "thermalize": 2, "configs": 3}
    values |= {"separation": 3, "backend": "cpu", "threads": 1}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
        scan(values, output=path, progress=False)
    return path


@pytest.fixture
def there(good, tmp_path, monkeypatch):
    shutil.copytree(good, tmp_path / "deep" / "down" / "s")
    monkeypatch.chdir(tmp_path / "deep")
    return Path("down/s")


def said(*words, code=0):
    """Call a command; return what it printed."""
    shown, found = call(*words)
    assert found == code, shown
    return shown


def bad(path):
    shown, code = call("verify", path)
    damaged = [line.removeprefix("BAD   ") for line in shown.splitlines() if "BAD   " in line]
    assert code == bool(damaged)
    return damaged


def touch(path, age):
    for item in path.rglob("*"):
        os.utime(item, (time.time() - age,) * 2)


@pytest.mark.slow
@pytest.mark.parametrize("newest", ["run", "scan"])
def test_the_newest_run_or_scan_is_the_default(good, tmp_path, monkeypatch, newest):
    """The newest scan is the one that runs, or was generated last; a figure makes none newer."""
    monkeypatch.chdir(tmp_path)
    for command in ("status", "info", "verify"):
        assert "There are no runs and no scans in runs; name one." in said(command, code=2)
    shutil.copytree(good, "runs/scan")
    make_run(Path("runs/run"))
    for name in ("run", "scan"):
        touch(Path("runs", name), 10 if name == newest else 1000)
        Path("runs", name, "plot.pdf").touch()
    os.utime(Path("runs", newest, "plot.pdf"), (1, 1))
    for command in ("status", "info"):
        assert re.match(rf"{newest} +runs/{newest}\n", said(command))
    assert f"taken, the newest: runs/{newest}\ngood  runs/{newest}/{newest}.toml" in said("verify")
    assert verify()[0].path == Path(f"runs/{newest}/{newest}.toml")
    (other,) = {"run", "scan"} - {newest}
    with closing(RunLock(Path("runs", other, "lock"))):
        assert f"runs/{other}" in said("status")


@pytest.mark.slow
def test_a_complete_scan(there):
    shown = said("status", there)
    facts = dict(line.split(maxsplit=1) for line in shown.splitlines()[:4])
    assert facts == {
        "scan": str(there),
        "state": "complete",
        "runs": "2 of 2 complete",
        "done": "100% of the work",
    }
    facts = json.loads(said("info", there, "--json"))
    assert [Path(one["run"]).name for one in facts["runs"]] == [FIRST, SECOND]
    assert {(one["sweep"], one["sweeps"], one["damage"]) for one in facts["runs"]} == {
        (11, 11, None)
    }
    assert facts["grids"] == [{"beta": [2.2, 2.3], "lattice": ["4x4x4x4"], "chains": 1}]
    assert "beta" not in facts["parameters"]
    names = {str(check.path.relative_to(there)) for check in checks_of(there)}
    files = {path for path in there.rglob("*") if path.is_file()}
    own = {f"{folder}{name}" for folder in ("", f"{FIRST}/", f"{SECOND}/") for name in UNCHECKED}
    unchecked = own | {"scan.pdf"}
    assert names == {str(path.relative_to(there)) for path in files} - unchecked
    assert f"All {len(names)} files are good." in said("verify", there)


def test_a_scan_and_its_runs_have_logs(there):
    first, *warnings, last = LogTail(there).new()
    assert (first.event, first.fields["runs"]) == ("session", 2)
    assert {one.event for one in warnings} <= {"warning"}
    assert (last.event, last.fields["ended"], last.fields["complete"]) == ("end", "complete", 2)
    for name in (FIRST, SECOND):
        own = LogTail(there / name).new()
        assert own[0].fields["command"] == "gauge-mc scan"
        events = [one.event for one in own if one.event != "warning"]
        assert events == ["session", "checkpoint", "checkpoint", "end"]
    shown = said("status", there, "--follow")
    assert f" {FIRST}: " not in shown.partition("session")[0]
    assert len(re.findall(rf"^{FIRST}: .* end ended=complete", shown, re.MULTILINE)) == 1
    assert len(re.findall(r"^20.* end ended=complete", shown, re.MULTILINE)) == 1


@pytest.mark.slow
def test_a_run_within_a_scan_is_a_run_like_any_other(there, monkeypatch):
    for path in (there / FIRST, Path("..") / "deep" / there / FIRST, (there / FIRST).resolve()):
        assert re.search(r"state +complete", said("status", path))
        assert json.loads(said("info", path, "--json"))["run"] == str(path)
        assert "joules None" not in said("info", path)
        assert "All 7 files are good." in said("verify", path)
    config = there / FIRST / "configs" / "0000005.lime"
    assert json.loads(said("info", config, "--json"))["file"] == str(config)
    assert "The file is good." in said("verify", config)
    monkeypatch.chdir(there / FIRST)
    assert re.search(r"state +complete", said("status", "."))
    assert "There is no run in configs" in said("status", "configs", code=2)
    assert said("info", "configs") == said("info", ".")  # its folder stands for the run
    assert "All 7 files are good." in said("verify", "configs")
    for command in ("status", "info", "verify"):
        assert "none" in said(command, "none", code=2)


DAMAGE = {
    "record": (f"{FIRST}/run.toml", lambda path: path.write_text("beta = -1\n"), "is damaged"),
    "lost record": (f"{FIRST}/run.toml", Path.unlink, "it has no run.toml"),
    "lost checkpoint": (f"{FIRST}/checkpoint/latest", Path.unlink, "No such file"),
    "checkpoint": (
        f"{FIRST}/checkpoint/latest",
        lambda path: path.write_bytes(b"x" * path.stat().st_size),
        "is damaged",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_run_is_named_by_all_commands(there, kind):
    name, damage, words = DAMAGE[kind]
    damage(there / name)
    (sentence,) = bad(there)
    assert words in sentence
    shown = said("status", there)
    (line,) = [line for line in shown.splitlines() if line.startswith(FIRST)]
    assert str(there / FIRST) in line
    assert f"{SECOND}  " not in shown
    runs = json.loads(said("info", there, "--json"))["runs"]
    assert line.endswith(runs[0]["damage"])
    assert (runs[1]["sweep"], runs[1]["damage"]) == (11, None)


@pytest.mark.slow
def test_a_damaged_table_of_a_run_is_named(there):
    table = there / SECOND / "plaquette.csv"
    table.write_bytes(table.read_bytes()[:-80] + table.read_bytes()[-79:])
    (sentence,) = bad(there)
    assert sentence.startswith(f"The table {table} is damaged")
    shown = said("status", there)
    assert f"{SECOND}  {sentence}\n" in shown
    assert re.search(r"4x4x4x4 +2\.2 +0\.\d", shown)  # the average at the other point


def test_a_damaged_record_of_a_scan(there):
    (there / "scan.toml").write_text("grid = 3\n")
    (sentence,) = bad(there)
    assert "scan.toml is damaged" in sentence
    for command in ("status", "info"):
        assert "scan.toml is damaged" in said(command, there, code=1)


def test_runs_that_have_gone_are_missed(there):
    shutil.rmtree(there / SECOND)
    (sentence,) = bad(there)
    assert "averages over 9 updates at beta = 2.3 on 4x4x4x4, where the runs contain 0" in sentence
    assert "1 of 2 complete, 1 waiting" in said("status", there)


def test_runs_that_failed_are_shown_until_they_are_complete(there):
    shutil.rmtree(there / SECOND)
    scan = Scan.read(there)
    scan.record_failures({SECOND: "The disk is full.", FIRST: "It was complete all the same."})
    shown = said("status", there)
    assert "1 of 2 complete, 1 failed" in shown
    assert re.search(rf"{SECOND} +The disk is full\.", shown)
    assert "all the same" not in shown
    facts = json.loads(said("status", there, "--json"))
    assert facts["others"] == {"running": 0, "failed": 1, "stopped": 0, "waiting": 0}
    assert facts["failures"] == {SECOND: "The disk is full."}
    scan.failed.write_text("damaged")
    assert "1 of 2 complete, 1 waiting" in said("status", there)
    scan.record_failures({})
    assert not scan.failed.exists()


@pytest.mark.slow
def test_a_damaged_table_of_a_scan(there):
    table = Scan.read(there).table
    content = table.read_bytes()
    copy = Path("copy.csv")
    copy.write_bytes(content)
    for path in (table, copy):
        assert f"good  {path}  points: 2\n" in said("verify", path)
    copy.write_bytes(content.replace(b"2.3,4x4", b"2.4,4x4"))
    assert "its checksum is not that of its last line" in said("verify", copy, code=1)
    table.write_bytes(content.replace(b"2.3,4x4", b"2.4,4x4"))
    assert "its checksum is not that of its last line" in bad(there)[0]
    table.write_text("beta,lattice\nsome,words\n")
    assert "is not the table of a scan" in bad(there)[0]
    assert "is not the table of a scan" in said("verify", table, code=1)
    table.write_text("beta,lattice\n")  # nothing was complete when the scan was stopped
    assert bad(there) == []
