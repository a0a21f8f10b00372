"""Options of ``gauge-mc measure``: threads, devices that share a configuration, and files."""

import shutil
from types import SimpleNamespace

import pytest

from gauge_mc.files.table import read_table
from tests.calls import call, make_run

FORMATS = ("ildg", "nersc")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A run of three configurations that measures nothing."""
    return make_run(tmp_path_factory.mktemp("run") / "run", lattice="4x4x4x4", measure="none")


@pytest.fixture
def run(good, tmp_path, monkeypatch):
    """A copy of it, in a folder to work in."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize("threads", [0, -3, 1025])
@pytest.mark.parametrize("split", [(), ("--split",), ("--devices", "cpu:2")])
def test_threads_have_the_same_bounds_as_in_other_commands(run, threads, split):
    sentence = f"gauge-mc: --threads is {threads}; give a whole number from 1 to 1024.\n"
    words = ("--backend", "cpu", "--threads", threads)
    assert call("measure", "plaquette", "run", *words, *split) == (sentence, 2)
    if not split:
        for command in ("generate", "bench", ("scan", "--beta", "2.3")):
            first = (command,) if isinstance(command, str) else command
            assert call(*first, *words) == (sentence, 2)
    assert not (run / "plaquette.csv").exists()


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
    monkeypatch.setattr("gauge_mc.domain.mpi.find_processes", lambda: SimpleNamespace(size=2))
    sentence, code = call("measure", "plaquette", "run")
    assert sentence.startswith("gauge-mc: measure works in one process: start it without mpirun")
    assert code == 2


@pytest.mark.slow
def test_files_whose_numbers_coincide_are_named_with_what_to_do(run):
    one, two = run / "configs" / "0000005.lime", run.parent / "other_6.lime"
    shutil.copy(one, two)  # the number in its header counts
    files = (run / "configs" / "0000008.lime", one)
    shown, code = call("measure", "plaquette", *files, two, "--backend", "cpu")
    assert code == 2
    assert shown.startswith(f"gauge-mc: {one} and {two} both have the number 5")
    assert "measure on them separately, with another --output." in shown
    assert not (run.parent / "plaquette.csv").exists()
    assert call("measure", "plaquette", *files, "--backend", "cpu")[1] == 0
    assert read_table("plaquette.csv")["sweep"].tolist() == [5, 8]
    # The same file twice, and files without numbers.
    shown, code = call("measure", "plaquette", one, one, "--output", "again.csv")
    assert (code, f"{one} and {one} both" in shown) == (2, True)
    values = {"lattice": "4x4x4x4", "configs": 1}
    make_run(run.parent / "su3", group="su3", precision="double", measure="none", **values)
    for name in ("a.cnfg", "b.cnfg"):
        stored = run.parent / "su3" / "configs" / "0000005.lime"
        assert call("convert", stored, name, "--to", "openqcd")[1] == 0
    shown, code = call("measure", "plaquette", "a.cnfg", "b.cnfg", "--output", "again.csv")
    assert (code, "a.cnfg and b.cnfg both have the number 0" in shown) == (2, True)
