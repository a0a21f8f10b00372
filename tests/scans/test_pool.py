"""Slots: how devices are divided among the runs of a scan."""

import json
import os
import subprocess
import sys

import pytest

from gauge_mc.devices import DeviceChoice
from gauge_mc.errors import INTERRUPTED
from gauge_mc.scans.pool import PARENT, make_slots
from tests.calls import call
from tests.patience import PATIENCE


def test_slots():
    cores = len(os.sched_getaffinity(0))
    assert len(make_slots([DeviceChoice("cpu")])) == cores
    half = make_slots([DeviceChoice("cpu", threads=2)], 3)
    assert [slot.name for slot in half] == ["CPU (1)", "CPU (2)", "CPU (3)"]
    assert {slot.values for slot in half} == {(("backend", "cpu"), ("threads", 2))}
    (all_cores,) = make_slots([DeviceChoice("cpu")], 1)
    assert all_cores.values[-1] == ("threads", cores)
    shown = " ".join(call("scan", "--help")[0].replace("│", " ").split())
    assert "[default: 1; with --per-device K, 1/K of the cores; with --submit" in shown
    gpus = make_slots([DeviceChoice("cuda", 0), DeviceChoice("cuda", 3)], 2)
    assert [slot.name for slot in gpus] == ["GPU 0 (1)", "GPU 3 (1)", "GPU 0 (2)", "GPU 3 (2)"]
    assert [slot.values for slot in gpus[:2]] == [(("devices", "0,"),), (("devices", "3,"),)]


@pytest.mark.slow
def test_a_child_whose_parent_is_dead_does_not_begin(tmp_path):
    """The parent may be killed before the child can ask for the signal of its death."""
    code = "from gauge_mc.cli.child import child; child()"
    words, runs = [sys.executable, "-c", code], [{"output": f"{tmp_path}/run", "lattice": "4"}]
    options = {"env": {**os.environ, PARENT: "1"}, "capture_output": True, "timeout": PATIENCE}
    done = subprocess.run(words, input=json.dumps(runs).encode(), check=False, **options)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, b"", b"")
    assert not (tmp_path / "run").exists()
