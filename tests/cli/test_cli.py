"""The command line as a whole: its help, its exit codes, and what it imports."""

import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gauge_mc as package
from gauge_mc.cli import COMMANDS, load_command
from tests.calls import call
from tests.patience import PATIENCE

ENVIRONMENT = os.environ | {"PYTHONPATH": str(Path(package.__file__).parent.parent)}


def imported_by(*words, **variables):
    """Return the modules that a command imports."""
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
    own = {"cli", "cli.help", "console", "errors", "interruption", "plugins", "quoting", "registry"}
    assert ours - {"gauge_mc.defaults"} == {"gauge_mc", *(f"gauge_mc.{name}" for name in own)}
    assert "numpy" not in found


@pytest.mark.slow
@pytest.mark.parametrize("command", ["generate", "status"])
def test_what_few_need_is_imported_when_it_is_needed(command):
    libraries = {name.partition(".")[0] for name in imported_by(command, "--help")}
    assert not libraries & {"scipy", "matplotlib", "pyerrors", "h5py", "mpi4py", "pycuda"}


@pytest.mark.slow
def test_completion_imports_neither_what_converts_values_nor_what_computes():
    asked = {"COMP_WORDS": "gauge-mc measure flow --flow ", "COMP_CWORD": "4"}
    found = imported_by(_GAUGE_MC_COMPLETE="complete_bash", **asked)
    assert "gauge_mc.fields.gradient_flow" in found
    assert not {name.partition(".")[0] for name in found} & {"pydantic", "scipy", "matplotlib"}


def test_help_names_all_commands():
    shown, code = call("--help")
    assert code == 0
    assert all(command.help in " ".join(shown.split()) for command in COMMANDS.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name):
    shown, code = call(name, "--help")
    assert code == 0
    assert all(option.help for option in load_command(name).params)
    assert f"gauge-mc {name} [OPTIONS]" in shown


@pytest.mark.parametrize("name", ["regenerate", "report", "thin"])
def test_commands_that_are_functions_have_their_parameters(name):
    """Options are those of the docstring, and their values are passed by name."""
    function = inspect.signature(getattr(package, name)).parameters.values()
    needed = {"quiet" if x.name == "progress" else x.name: x.default is x.empty for x in function}
    options = {x.name: x.required for x in load_command(name).params if x.name != "help"}
    assert options == {**needed, "json": False}


def test_version():
    assert call("--version") == (f"gauge-mc {package.__version__}\n", 0)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["generat"], "There is no command 'generat'; did you mean 'generate'?"),
        (["status", "--nope"], "--nope is not an option of gauge-mc status; choose --tau-exp"),
        (["generate", "--bata", "2"], "--beta"),
    ],
)
def test_unknown_words_are_refused(words, sentence):
    shown, code = call(*words)
    assert sentence in shown
    assert code == 2
