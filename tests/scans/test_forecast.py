"""``gauge-mc scan --dry-run``: what a scan would do and need, made without beginning it."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gauge_mc.run import needs
from gauge_mc.run.lock import RunLock
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans import forecast as module
from gauge_mc.scans.forecast import forecast_scan
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Scan
from tests.calls import call_apart, make_run

pytestmark = pytest.mark.kernels

LENGTH = {"thermalize": 2, "configs": 4, "separation": 3, "measure": "plaquette"}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(needs, "TEST_SECONDS", 0.01)
    return tmp_path


@pytest.fixture
def begun(folder):
    scan = Scan(folder / "s", Parameters(lattice="4x4x4x4", **LENGTH)).enlarged(
        (2.3, 2.4), chains=2
    )
    (folder / "s").mkdir()
    scan.write()
    first = scan.members()[0]
    make_run(first.run.path, **first.parameters.values())
    return scan


def asked(**values):
    return ScanRequest.of({"output": "s", "backend": "cpu", "threads": 1, **values})


def state(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_new_scan(folder):
    found = forecast_scan(asked(beta="2.3,2.4", lattice="4x4x4x4,4x4x4x8", chains=3, **LENGTH), 2)
    assert list(folder.iterdir()) == []
    assert (found.complete, found.processes, found.refusals) == (0, 2, [])
    assert [(one.beta, one.lattice, one.chains) for one in found.points] == [
        (beta, lattice, 3) for lattice in ("4x4x4x4", "4x4x4x8") for beta in (2.3, 2.4)
    ]
    # The larger lattice comes first, and the runs of a lattice are divided among two processes.
    assert [len(one.runs) for one in found.batches] == [3, 3, 3, 3]
    assert all("4x4x4x8" in name for one in found.batches[:2] for name in one.runs)
    assert {one.updates_left for one in found.points} == {3 * 14}
    assert found.batches[0].device_bytes == pytest.approx(
        2 * found.batches[2].device_bytes, rel=0.1
    )
    assert found.device_bytes == 2 * found.batches[0].device_bytes
    assert sum(one.seconds for one in found.points) == pytest.approx(
        sum(one.seconds for one in found.batches)
    )
    halves = [found.batches[n].seconds + found.batches[n + 2].seconds for n in (0, 1)]
    assert found.seconds == pytest.approx(max(halves))


def test_the_disk_space_is_that_of_the_runs(begun, folder):
    before = state(folder)
    found = forecast_scan(asked())
    assert state(folder) == before
    assert found.complete == 1
    assert [one.updates_left for one in found.points] == [14, 28]
    assert [one.complete for one in found.points] == [1, 0]
    assert sum(len(one.runs) for one in found.batches) == 3
    files = [path for path in begun.members()[0].run.path.rglob("*") if path.is_file()]
    taken = sum(path.stat().st_size for path in files)
    checkpoint = begun.members()[0].run.checkpoint.stat().st_size
    # A checkpoint exists twice while it is replaced; headers and run.toml take some kB.
    assert 3 * (taken + checkpoint) == pytest.approx(found.disk_bytes, abs=3 * 20_000)
    assert found.disk_bytes == sum(one.disk_bytes for one in found.points)


def refused():
    """The reasons for which runs would be refused, by the command, which must change nothing."""
    before = state(Path())
    out, _, code = call_apart("scan", "--output", "s", "--backend", "cpu", "--dry-run", "--json")
    assert state(Path()) == before
    reasons = json.loads(out)["refusals"]
    assert code == bool(reasons)
    return reasons


def test_what_would_be_refused(begun):
    second, third = begun.members()[1].run, begun.members()[2].run
    second.path.mkdir()
    (second.path / "notes.txt").touch()
    third.path.write_text("a file")
    reasons = refused()
    assert [reason.partition(" ")[0].rpartition("/")[2] for reason in reasons] == [
        second.path.name,
        third.path.name,
    ]
    (second.path / "notes.txt").unlink()
    third.path.unlink()
    third.path.mkdir()
    third.toml.write_text("beta = 'much'")
    third.checkpoint.parent.mkdir()
    third.checkpoint.touch()
    (reason,) = refused()
    assert "run.toml is damaged" in reason


@pytest.mark.slow
def test_what_others_carry_out_would_be_refused(begun):
    with closing(RunLock(begun.lock)), closing(RunLock(begun.members()[0].run.lock)):
        (reason,) = refused()  # the run is complete, so that nothing is done with it
    assert reason.startswith("Another process is carrying out the scan s;")
    make_run(begun.members()[1].run.path, **begun.members()[1].parameters.values() | {"configs": 1})
    with closing(RunLock(begun.members()[1].run.lock)):
        (reason,) = refused()
    assert "in use by" in reason
    assert refused() == []


@pytest.mark.parametrize(
    ("what", "words"), [("free_disk", "on the disk of s"), ("try_out", "of its memory")]
)
def test_too_little_room_would_be_refused(begun, monkeypatch, what, words):
    usual = getattr(module, what)

    def little(*given):
        found = usual(*given)
        return 1000 if isinstance(found, int) else replace(found, free_device_bytes=1000)

    monkeypatch.setattr(module, what, little)
    (reason,) = refused()
    assert words in reason
    assert "1.0 kB are free" in reason
