"""``gauge-mc doctor --install cuda``: what is called in which order, with a stand-in for pip."""

import json
import os
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from shlex import quote

import pytest

from gauge_mc.devices.cpu.compiler import find_compiler
from gauge_mc.devices.cuda import install as installation
from gauge_mc.devices.cuda.install import HEADERS, find_toolkit, install, requirements
from gauge_mc.errors import GaugeError
from tests.calls import call
from tests.children import only_tools

PIP = """#!{python}
import json, os, shutil, sys, tarfile
from pathlib import Path
from shlex import quote

home = Path({home!r})
words = sys.argv[1:]
calls = [*json.loads((home / "calls.json").read_text()), words]
(home / "calls.json").write_text(json.dumps(calls))
print("pip says", len(calls))
if len(calls) == json.loads((home / "fails_at.json").read_text()):
    print("error: no luck")
    sys.exit(1)
assert words[:3] == ["-m", "pip", "--disable-pip-version-check"]
command, target = words[3], words[-1]
if command == "download":
    source = home / "source" / "pycuda-2026.1"
    source.mkdir(parents=True)
    (source / "setup.py").write_text("")
    folder = Path(words[words.index("--dest") + 1])
    with tarfile.open(folder / "pycuda-2026.1.tar.gz", "w:gz") as archive:
        archive.add(source, source.name)
elif os.path.isdir(target):
    assert Path(target, "setup.py").exists()
    shutil.copy(Path(target, "siteconf.py"), home)
    shutil.copytree(Path(target).parent / "stubs", home / "stubs")
else:
    shutil.copytree(home / "wheels", home / "site", dirs_exist_ok=True)
"""
"""A Python that only knows ``-m pip``: wheels, the source of PyCUDA, and what is built of it."""


def make_toolkit(root, headers=HEADERS):
    """Make a folder with nvcc and headers, as a toolkit and as NVIDIA's wheels have them."""
    for path in (root / "bin" / "nvcc", *(root / "include" / name for name in headers)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    (root / "bin" / "nvcc").chmod(0o755)
    return root


class Machine:
    """A machine without CUDA, on which pip is the stand-in."""

    def __init__(self, home):
        self.home = home
        for name in ("site", "wheels", "temporary"):
            (home / name).mkdir()
        self.toolkit = home / "site" / "nvidia" / "cu13"
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
        """Return what pip was called with, without what is common to all calls."""
        return [words[3:] for words in json.loads((self.home / "calls.json").read_text())]

    def left_behind(self):
        return sorted((self.home / "temporary").iterdir())

    def configuration(self):
        """Return the choices in ``siteconf.py``."""
        values = {}
        exec((self.home / "siteconf.py").read_text(), values)
        return {name: value for name, value in values.items() if name.isupper()}


@pytest.fixture
def machine(tmp_path, monkeypatch):
    made = Machine(tmp_path)
    for name, value in only_tools(tmp_path / "programs").items():
        monkeypatch.setenv(name, value)
    foreign = [folder for folder in sys.path if not Path(folder, "nvidia").exists()]
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), *foreign])
    monkeypatch.setattr(sys, "executable", str(made.python))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    make_toolkit(tmp_path / "wheels" / "nvidia" / "cu13")
    return made


def test_what_is_installed_is_what_the_package_asks_for():
    pycuda, toolkit = requirements()
    assert pycuda.startswith("pycuda>=")
    assert toolkit.startswith("cuda-toolkit[")
    for part in ("cudart", "nvcc", "nvvm", "profiler"):  # headers of the last
        assert part in toolkit


@pytest.mark.slow
def test_wheels_come_first_and_pycuda_is_built_against_them(machine):
    assert find_toolkit() is None
    machine.install()
    pycuda, toolkit = requirements()
    wheels, download, build = machine.calls()
    assert wheels == ["install", toolkit]
    assert download[:4] == ["download", "--no-deps", "--no-binary", "pycuda"]
    assert download[-1] == pycuda
    assert build[0] == "install"
    assert Path(build[1]) == Path(download[-2]) / "pycuda-2026.1"
    assert find_toolkit() == machine.toolkit
    assert [toolkit in line for line in machine.lines] == [True, False]
    assert str(machine.toolkit) in machine.lines[1]
    assert machine.left_behind() == []


@pytest.mark.slow
def test_the_configuration_names_the_toolkit_and_an_empty_driver(machine):
    machine.install()
    found = machine.configuration()
    assert found["CUDA_ROOT"] == str(machine.toolkit)
    assert found["CUDA_ENABLE_CURAND"] is False
    (stubs,) = found["CUDADRV_LIB_DIR"]
    assert Path(stubs).parent == Path(machine.calls()[1][-2])
    flags = found["LDFLAGS"]
    assert flags[0] == f"-L{stubs}"
    assert flags.index("-Wl,--no-as-needed") < flags.index("-lcuda")
    library = machine.home / "stubs" / "libcuda.so"
    assert b"libcuda.so.1\0" in library.read_bytes()  # by which PyCUDA finds the driver's own


@pytest.mark.slow
@pytest.mark.parametrize("place", ["PATH", "CUDA_HOME"])
def test_a_toolkit_that_is_here_needs_no_wheels(machine, monkeypatch, tmp_path, place):
    toolkit = make_toolkit(tmp_path / "cuda-13")
    if place == "PATH":
        monkeypatch.setenv("PATH", f"{toolkit / 'bin'}{os.pathsep}{os.environ['PATH']}")
    else:
        monkeypatch.setenv("CUDA_HOME", str(toolkit))
    machine.install()
    assert [words[0] for words in machine.calls()] == ["download", "install"]
    assert machine.configuration()["CUDA_ROOT"] == str(toolkit)
    assert len(machine.lines) == 1


@pytest.mark.slow
def test_a_toolkit_without_headers_is_passed_over(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("CUDA_HOME", str(make_toolkit(tmp_path / "cuda-13", HEADERS[:1])))
    machine.install()
    assert machine.configuration()["CUDA_ROOT"] == str(machine.toolkit)


def test_wheels_without_headers_are_an_error(machine):
    shutil.rmtree(machine.home / "wheels" / "nvidia" / "cu13" / "include")
    with pytest.raises(GaugeError, match="headers"):
        machine.install()
    assert len(machine.calls()) == 1
    assert machine.left_behind() == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
def test_when_pip_fails_only_its_log_is_left_and_named(machine, number):
    machine.fail_at(number)
    with pytest.raises(GaugeError, match=r"-m pip .* failed") as caught:
        machine.install()
    assert len(machine.calls()) == number
    (log,) = machine.left_behind()
    assert str(log) in str(caught.value)
    assert log.read_text() == f"pip says {number}\nerror: no luck\n"


def test_when_the_compiler_fails_only_its_log_is_left_and_named(machine, monkeypatch):
    broken = machine.home / "a broken one"
    broken.write_text("#!/bin/sh\necho no shared libraries here; exit 1\n")
    broken.chmod(0o755)
    compiler = find_compiler().__class__(quote(str(broken)), "1.0")
    monkeypatch.setattr(installation, "find_compiler", lambda: compiler)
    with pytest.raises(GaugeError, match="broken") as caught:
        machine.install()
    assert [words[0] for words in machine.calls()] == ["install", "download"]
    (log,) = machine.left_behind()
    assert str(log) in str(caught.value)
    assert log.read_text() == "no shared libraries here\n"


@pytest.mark.slow
def test_the_command_installs_and_says_what_it_does(machine):
    shown, code = call("doctor", "--install", "cuda")
    assert code == 0
    assert len(machine.calls()) == 3
    assert str(machine.toolkit) in shown
    machine.fail_at(4)  # the download: the wheels are there now
    shown, code = call("doctor", "--install", "cuda")
    assert (code, len(machine.calls())) == (1, 4)
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
