"""The command line as a whole: its help, its exit codes, and what it imports."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gauge_mc as package
from gauge_mc.cli import load_command
from tests.calls import call
from tests.patience import PATIENCE

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)}


def imported_by(*words, **variables):
    command = [sys.executable, "-X", "importtime", "-m", "gauge_mc", *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=ENVIRONMENT | variables, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    lines = (line for line in done.stderr.splitlines() if line.startswith("import time:"))
    return {line.rpartition("|")[2].strip() for line in lines}


@pytest.mark.slow
def test_help_imports_nothing_that_takes_time():
    """Neither NumPy nor any module of the package but those of the command line itself."""
    found = imported_by("--help")
    ours = {name for name in found if name.partition(".")[0] == "gauge_mc"}
    own = {"cli", "cli.help", "console", "errors", "process", "quoting", "registry"}
    assert ours == {"gauge_mc", "gauge_mc.defaults", *(f"gauge_mc.{name}" for name in own)}
    assert "numpy" not in found


@pytest.mark.parametrize("name", ["regenerate", "report", "thin"])
def test_commands_that_are_functions_have_their_parameters(name):
    """Options are those of the docstring, and their values are passed by name."""
    function = inspect.signature(getattr(package, name)).parameters.values()
    needed = {"quiet" if x.name == "progress" else x.name: x.default is x.empty for x in function}
    options = {x.name: x.required for x in load_command(name).params if x.name != "help"}
    assert options == {**needed, "json": False}


def test_version():
    assert call("--version") == (f"gauge-mc {package.__version__}\n", 0)
