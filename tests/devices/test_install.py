"""``gauge-mc doctor --install cuda``: what is called in which order, with a stand-in for pip."""

import json
import os
import stat
import sys
import tempfile
from types import SimpleNamespace

import pytest

from gauge_mc.devices.cuda import compiler
from gauge_mc.devices.cuda.compiler import (
    MEGABYTES,
    extra_for,
    find_cuda_compiler,
    install,
    requirements,
)
from gauge_mc.errors import GaugeError
from tests.calls import call
from tests.children import only_tools

PIP = """#!{python}
import json, shutil, sys
from pathlib import Path

home = Path({home!r})
words = sys.argv[1:]
if words[0] == "-I":  # the program that compiles by NVRTC
    print("release 12.0" if words[-1] == "--version" else "sm_70 sm_90")
    sys.exit()
calls = [*json.loads((home / "calls.json").read_text()), words]
(home / "calls.json").write_text(json.dumps(calls))
print("pip says", len(calls))
if len(calls) == json.loads((home / "fails_at.json").read_text()):
    print("error: no luck")
    sys.exit(1)
assert words[:5] == ["-P", "-m", "pip", "--disable-pip-version-check", "install"]
if any(word.startswith("nvidia-cuda-nvrtc") for word in words):
    shutil.copytree(home / "wheels", home / "site", dirs_exist_ok=True)
"""
"""A Python that only knows ``-m pip install``, of wheels, and questions to NVRTC."""


def make_toolkit(root):
    """Make a folder with nvcc, as a toolkit has it."""
    path = root / "bin" / "nvcc"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    path.chmod(0o755)
    return root


class Machine:
    """A machine without CUDA, on which pip is the stand-in."""

    def __init__(self, home):
        self.home = home
        for name in ("site", "wheels", "temporary"):
            (home / name).mkdir()
        (home / "calls.json").write_text("[]")
        self.fail_at(0)
        self.python = home / "python"
        self.python.write_text(PIP.format(python=sys.executable, home=str(home)))
        self.python.chmod(self.python.stat().st_mode | stat.S_IXUSR)
        self.lines = []

    def fail_at(self, number):
        """Let a call of pip fail, the first of which has the number 1."""
        (self.home / "fails_at.json").write_text(json.dumps(number))

    def install(self):
        install(self.lines.append)

    def calls(self):
        """Return what pip was told to install in each call."""
        return [words[5:] for words in json.loads((self.home / "calls.json").read_text())]

    def left_behind(self):
        return sorted((self.home / "temporary").iterdir())


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = Machine(tmp_path)
    for name, value in only_tools(tmp_path / "programs").items():
        monkeypatch.setenv(name, value)
    wheels = SimpleNamespace(submodule_search_locations=[str(tmp_path / "site" / "nvidia")])
    monkeypatch.setattr(compiler, "find_spec", {"nvidia": wheels}.get)
    monkeypatch.setattr(sys, "executable", str(made.python))
    monkeypatch.setattr("gauge_mc.devices.cuda.compiler.PYTHON", (str(made.python), "-P"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    monkeypatch.setattr(compiler, "driver_release", lambda: (13, 0))
    monkeypatch.setattr(compiler, "capabilities", lambda: [(9, 0)])
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    library = tmp_path / "wheels" / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13"
    library.parent.mkdir(parents=True)
    library.touch()
    return made


def test_wheels_are_installed_and_their_size_is_said(machine):
    assert find_cuda_compiler() is None
    machine.install()
    assert machine.calls() == [requirements("cuda")]
    assert find_cuda_compiler().is_library
    (line,) = machine.lines
    assert f"about {sum(MEGABYTES.values())} MB are downloaded" in line
    assert machine.left_behind() == []


@pytest.mark.parametrize("release", [(13, 0), (12, 8)])
@pytest.mark.parametrize("place", ["PATH", "CUDA_HOME"])
def test_a_toolkit_that_is_here_needs_the_bindings_alone(
    machine, monkeypatch, tmp_path, place, release
):
    toolkit = make_toolkit(tmp_path / "cuda")
    if place == "PATH":
        monkeypatch.setenv("PATH", f"{toolkit / 'bin'}{os.pathsep}{os.environ['PATH']}")
    else:
        monkeypatch.setenv("CUDA_HOME", str(toolkit))
    monkeypatch.setattr(compiler, "driver_release", lambda: release)
    machine.install()
    extra = "cuda" if release[0] > 12 else "cuda12"
    assert machine.calls() == [requirements(extra)[:1]]


@pytest.mark.parametrize(
    ("release", "capability", "extra"),
    [
        ((13, 0), (9, 0), "cuda"),
        ((13, 0), (7, 0), "cuda12"),
        ((12, 8), (9, 0), "cuda12"),
        (None, (9, 0), "cuda"),
    ],
)
def test_wheels_are_those_that_driver_and_gpus_understand(
    machine, monkeypatch, release, capability, extra
):
    monkeypatch.setattr(compiler, "driver_release", lambda: release)
    monkeypatch.setattr(compiler, "capabilities", lambda: [(9, 0), capability])
    assert extra_for(release) == extra
    machine.install()
    assert machine.calls() == [requirements(extra)]


def test_a_toolkit_that_the_gpu_is_too_old_for_is_not_enough(machine, monkeypatch, tmp_path):
    nvcc = make_toolkit(tmp_path / "cuda") / "bin" / "nvcc"
    nvcc.write_text("#!/bin/sh\necho release 13.0 sm_75 sm_90\n")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "cuda"))
    monkeypatch.setattr(compiler, "capabilities", lambda: [(7, 0)])
    with pytest.raises(GaugeError, match="NVRTC was not found in them"):
        machine.install()
    assert machine.calls() == [requirements("cuda12")]


def test_wheels_that_the_driver_cannot_serve_are_not_downloaded(machine, monkeypatch):
    monkeypatch.setattr(compiler, "driver_release", lambda: (11, 4))
    with pytest.raises(GaugeError, match=r"supports CUDA 11\.4, but NVIDIA's wheels need 12\.0"):
        machine.install()
    assert machine.calls() == []


def test_wheels_without_a_compiler_are_an_error(machine):
    (machine.home / "wheels" / "nvidia" / "cu13" / "lib" / "libnvrtc.so.13").unlink()
    with pytest.raises(GaugeError, match="NVRTC was not found in them"):
        machine.install()
    assert machine.left_behind() == []


def test_when_pip_fails_only_its_log_is_left_and_named(machine):
    machine.fail_at(1)
    with pytest.raises(GaugeError, match=r"-m pip .* failed") as caught:
        machine.install()
    (log,) = machine.left_behind()
    assert str(log) in str(caught.value)
    assert log.read_text() == "pip says 1\nerror: no luck\n"


def test_the_command_installs_and_says_what_it_does(machine):
    shown, code = call("doctor", "--install", "cuda")
    assert code == 0
    assert requirements("cuda")[0] in shown
    machine.fail_at(2)
    shown, code = call("doctor", "--install", "cuda")
    assert (code, len(machine.calls())) == (1, 2)
    (log,) = machine.left_behind()
    assert str(log) in shown


def test_the_command_installs_nothing_for_other_backends(machine):
    shown, code = call("doctor", "--install", "cpu")
    assert code == 0
    assert "cpu" in shown
    shown, code = call("doctor", "--install", "abacus")
    assert code == 2
    assert "no backend 'abacus'" in shown
    assert machine.calls() == []
