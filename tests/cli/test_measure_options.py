"""Options of ``gauge-mc measure``: threads, devices that share a configuration, and files."""

import shutil
from types import SimpleNamespace

import pytest

from gauge_mc.files.table import read_table
from tests.calls import call, make_run


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("run") / "run", lattice="4x4x4x4", measure="none")


@pytest.fixture
def run(good, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(("devices", "said"), [("cpu", True), ("cpu:1", True), ("cpu:2", False)])
def test_configurations_shared_by_one_device_are_pointed_out(run, devices, said):
    words = ("measure", "plaquette", "run", "--devices", devices, "--threads", 2)
    shown, code = call(*words, "--split")
    assert code == 0
    sentence = "--split has no effect with one device; choose more devices with --devices"
    assert (sentence in shown) == said
    table = read_table(run / "plaquette.csv").columns
    (run / "plaquette.csv").unlink()
    assert "--split" not in call(*words)[0]
    alone = read_table(run / "plaquette.csv").columns
    assert {name: column.tolist() for name, column in alone.items()} == {
        name: column.tolist() for name, column in table.items()
    }


def test_processes_of_mpi_are_refused(monkeypatch):
    """Each of them would measure everything, and all but one would find the run in use."""
    monkeypatch.setattr("gauge_mc.cli.tables.find_processes", lambda: SimpleNamespace(size=2))
    sentence, code = call("measure", "plaquette", "run")
    assert sentence.startswith("gauge-mc: measure works in one process: start it without mpirun")
    assert code == 2
