"""Forecasts of the needs of a run, made without beginning it."""

import json
import re
import shutil

import pytest

from gauge_mc import generate
from gauge_mc.devices.host import free_memory
from gauge_mc.domain.lattice import Lattice
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.forecast import forecast_run
from tests.calls import call

pytestmark = [pytest.mark.slow, pytest.mark.kernels]

SMALL = {
    "group": "su3",
    "lattice": "4x4x4x8",
    "precision": "double",
    "rng": "ranlux",
    "thermalize": 4,
    "configs": 5,
    "separation": 3,
    "measure": "plaquette,polyakov:3",
    "backend": "cpu",
}


def test_sizes_are_those_of_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = forecast_run({**SMALL, "output": "run"})
    assert not list(tmp_path.iterdir())
    run = generate(**SMALL, output="run", progress=False)
    sizes = {path.stat().st_size for path in run.configs.values()}
    assert (found.configurations_left, found.updates_left) == (len(run.configs), run.sweep)
    assert all(0 <= size - found.config_bytes < 4096 for size in sizes)
    checkpoint = (run.path / "checkpoint").rglob("*")
    written = sum(path.stat().st_size for path in checkpoint if path.is_file())
    assert 0 <= written - found.checkpoint_bytes < 8192
    assert found.host_bytes == 2 * found.config_bytes


def test_memory_and_time_are_those_of_this_machine(tmp_path):
    found = forecast_run({**SMALL, "output": str(tmp_path / "deep" / "run")})
    sites = Lattice.parse(SMALL["lattice"]).sites
    links, states = sites * 4 * 12 * 8, sites * 20 * 4
    assert links + states <= found.device_bytes < links + states + 2**20
    assert found.free_device_bytes == pytest.approx(free_memory(), rel=0.2)
    assert found.free_disk_bytes == pytest.approx(shutil.disk_usage(tmp_path).free, rel=0.1)
    each = found.update_seconds + found.measure_seconds + found.write_seconds
    assert min(found.update_seconds, found.measure_seconds, found.write_seconds) > 0
    assert found.seconds == pytest.approx(19 * each)


def test_what_a_run_has_done_is_subtracted(tmp_path):
    def stop(chain):
        return chain.sweep == 11

    path = str(tmp_path / "run")
    generate(**SMALL, output=path, progress=False, on_update=stop)
    before = {item: item.stat().st_mtime_ns for item in (tmp_path / "run").rglob("*")}
    found = forecast_run({"output": path, "backend": "cpu"})
    assert (found.updates_left, found.configurations_left) == (8, 3)
    assert before == {item: item.stat().st_mtime_ns for item in (tmp_path / "run").rglob("*")}


def test_the_command_prints_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = ["--lattice", "4", "--group", "su2", "--backend", "cpu", "--dry-run"]
    shown, code = call("generate", *options, "--format", "none")
    assert (code, "nothing was written" in shown) == (0, True), shown
    assert f"for {Parameters().updates} updates" in shown
    assert "configurations of" not in shown
    shown, code = call("generate", *options, "--json")
    assert (code, json.loads(shown)["updates_left"]) == (0, Parameters().updates)
    shown, code = call("generate", *options, "--start", "missing.lime")
    assert (code, shown.count("\n")) == (2, 1)
    assert not list(tmp_path.iterdir())


def test_a_complete_run_is_called_complete(tmp_path):
    generate(**{**SMALL, "configs": 1}, output=tmp_path / "run", progress=False)
    shown, code = call("generate", "--output", tmp_path / "run", "--backend", "cpu", "--dry-run")
    assert code == 0
    assert re.search("^time +the run is complete *$", shown, re.MULTILINE)
