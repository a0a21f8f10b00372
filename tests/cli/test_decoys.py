"""Python files in the current folder are not executed, whatever command is started there."""

import shlex
import subprocess
import sys

import pytest

from gauge_mc.cli import COMMANDS
from gauge_mc.devices.cpu import compiler, zig
from gauge_mc.libraries import PYTHON
from gauge_mc.run.settings import Execution
from gauge_mc.scans.batch_systems import BATCH_SYSTEMS, COMMAND, ArrayPlan, JobRequest

DECOYS = ("typer", "numpy", "pip", "rich", "ziglang", "shlex")
TINY = "--beta 2.2 --lattice 4x4x4x4 --thermalize 1 --configs 2 --separation 1 --backend cpu"


@pytest.fixture
def decoys(tmp_path):
    """A folder whose modules leave a file there when they are imported."""
    folder = tmp_path / "decoys"
    (folder / "gauge_mc").mkdir(parents=True)
    for path in (*(folder / f"{name}.py" for name in DECOYS), folder / "gauge_mc" / "__init__.py"):
        path.write_text(f"open({str(folder / 'executed')!r}, 'a').write(__name__)\n")
    return folder


def start(folder, *words):
    """Run a command in the folder; return its exit code, and what was executed there."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    executed = folder / "executed"
    return done.returncode, executed.read_text() if executed.exists() else ""


def gauge_mc(folder, *words):
    """Run ``gauge-mc`` as its console script does, without the current folder on the path."""
    program = "from gauge_mc.cli import main; main()"
    return start(folder, sys.executable, "-P", "-c", program, *words)


def test_decoys_are_executed_where_the_folder_is_on_the_path(decoys):
    assert start(decoys, sys.executable, "-c", "import typer") == (0, "typer")


def test_children_of_scans_execute_none(decoys):
    words = ["scan", *shlex.split(TINY.replace("2.2", "2.2:2.3:0.1")), "--per-device", "2"]
    assert gauge_mc(decoys, *words, "--threads", "2", "--format", "none") == (0, "")
    assert len(list((decoys / "runs").glob("scan_su2_*/*/plaquette.csv"))) == 2


@pytest.mark.parametrize("name", BATCH_SYSTEMS)
def test_job_scripts_execute_none(decoys, name):
    """The words that begin the command of a job, in place of the run card its help."""
    words = [*COMMAND[:-1], "--help"]
    assert start(decoys, *words) == (0, "")
    request = JobRequest(BATCH_SYSTEMS[name], 10)
    assert "-P -u -m gauge_mc" in ArrayPlan(request, decoys, [None] * 2, Execution()).text()


def test_installations_and_compilers_execute_none(decoys):
    assert start(decoys, *PYTHON, "-m", "pip", "--version") == (0, "")
    for command in compiler.candidates():
        assert start(decoys, *shlex.split(command), "--version")[1] == ""
    assert start(decoys, *zig.COMPILE, "--version")[1] == ""


@pytest.mark.slow
def test_benchmarks_execute_none(decoys):
    words = ("bench", "--end-to-end", "--lattice", "4x4x4x4", "--seconds", "0.1")
    assert gauge_mc(decoys, *words, "--backend", "cpu") == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_commands_execute_none(decoys, name):
    assert gauge_mc(decoys, name, "--help") == (0, "")
