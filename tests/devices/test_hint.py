"""A GPU that is here but cannot be used: one line says what it lacks, and the CPU computes.

The driver's library is one that the tests make. PyCUDA and nvcc, where they are there, are those of
the emulator.
"""

import json
import os
import re
import subprocess

import pytest

from gauge_mc.devices.cpu.compiler import find_compiler
from gauge_mc.devices.cuda import INSTALL
from tests import emulator
from tests.calls import make_run
from tests.children import only_tools, run, without_modules

DRIVER = """
extern "C" {
    int cuInit(unsigned) { return RESULT; }
    int cuDeviceGetCount(int* count) { *count = GPUS; return 0; }
    int cuDriverGetVersion(int* version) { *version = VERSION; return 0; }
}
"""

SLOW = pytest.mark.slow

WHAT = ("--lattice", "4x4x4x4", "--thermalize", 1, "--configs", 1, "--separation", 1)
COMMANDS = {
    "generate": ("generate", *WHAT),
    "scan": ("scan", "--beta", 2.3, *WHAT, "--threads", 1),
    "bench": ("bench", "--lattice", "4x4x4x4", "--seconds", 0.05),
    "measure": ("measure", "plaquette", "run"),
}


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    """Make folders with the library of a driver."""
    folder = tmp_path_factory.mktemp("drivers")
    source = folder / "driver.cpp"
    source.write_text(DRIVER)

    def make(gpus=1, version=13000, result=0):
        home = folder / f"{gpus}-{version}-{result}"
        if not home.exists():
            home.mkdir()
            values = {"GPUS": gpus, "VERSION": version, "RESULT": result}
            words = [*find_compiler().command.split(), "-shared", "-fPIC", str(source)]
            words += [f"-D{name}={value}" for name, value in values.items()]
            subprocess.run([*words, "-o", str(home / "libcuda.so.1")], check=True)
        return home

    return make


@pytest.fixture
def machine(drivers, tmp_path, monkeypatch):
    """Make the environment of a child on a machine with a GPU, perhaps without some of the rest."""
    monkeypatch.chdir(tmp_path)

    def make(pycuda=True, nvcc=emulator.NVCC, **driver):
        hidden = ["ziglang", *(["pycuda"] if not pycuda else []), *(["nvidia"] if not nvcc else [])]
        search = [emulator.FOLDER] if pycuda else []
        programs = only_tools(tmp_path / "programs", *([nvcc] if nvcc else []))
        modules = without_modules(tmp_path / "modules", *hidden, search=search)
        found = {**programs, **modules, "CUDA_VISIBLE_DEVICES": "0"}
        return found | {"LD_LIBRARY_PATH": str(drivers(**driver)), "CXX": "", "TERM": "dumb"}

    return make


def nvcc_of(folder, release):
    """Write a CUDA compiler of a release, which can do nothing else than say so."""
    path = folder / "nvcc"
    path.write_text(f"#!/bin/sh\necho 'Cuda compilation tools, release {release}, V{release}.1'\n")
    path.chmod(0o755)
    return path


def hints(shown):
    return [line for line in shown.splitlines() if "There is a GPU" in line]


LACKING = {
    "cuda-bindings": {"pycuda": False},
    "NVRTC": {"nvcc": None},
    "cuda-bindings and NVRTC": {"pycuda": False, "nvcc": None},
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "lacking", ["cuda-bindings", *(pytest.param(one, marks=SLOW) for one in [*LACKING][1:])]
)
def test_what_is_missing_is_said_at_the_start_and_the_cpu_computes(machine, tmp_path, lacking):
    done = run(*COMMANDS["generate"], "--output", "run", **machine(**LACKING[lacking]))
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = hints(done.stdout)
    assert line == f"There is a GPU, but it cannot be used without {lacking}: run `{INSTALL}`."
    assert done.stdout.splitlines().index(line) <= 2  # after what begins, before what is done
    assert re.search(r", on .+, \d+ threads?$", done.stdout.splitlines()[1])
    assert (tmp_path / "run" / "configs" / "0000002.lime").exists()


@pytest.mark.slow
def test_a_driver_that_is_too_old(machine, tmp_path):
    there = machine(nvcc=nvcc_of(tmp_path, "13.0"), version=11040)
    done = run(*COMMANDS["generate"], "--output", "run", **there)
    assert (done.returncode, done.stderr) == (0, "")
    assert hints(done.stdout) == [
        "There is a GPU, but it cannot be used: the driver supports CUDA 11.4, but the compiler "
        f"{there['PATH'].split(os.pathsep)[0]}/nvcc belongs to CUDA 13.0: update the driver "
        "(`apt install nvidia-driver`)."
    ]
    for words in (("--backend", "cuda"), ("--devices", 1)):
        refused = run(*COMMANDS["generate"], "--output", "other", *words, **there)
        assert refused.returncode == 1
        assert "the driver supports CUDA 11.4, but the compiler" in refused.stderr
        assert refused.stderr.count("\n") == 1
    doctor = run("doctor", **there).stdout
    assert "missing NVIDIA driver: the driver supports CUDA 11.4" in doctor
    assert "\n          apt install nvidia-driver" in doctor


@pytest.mark.slow
@pytest.mark.parametrize("error", [803, pytest.param(804, marks=SLOW)])
def test_a_driver_updated_without_a_restart(machine, tmp_path, error):
    there = machine(pycuda=False, result=error)
    pycuda = tmp_path / "failing" / "pycuda"
    pycuda.mkdir(parents=True)
    (pycuda / "__init__.py").touch()
    (pycuda / "driver.py").write_text(
        "class Error(Exception): pass\ndef init(): raise Error('cuInit failed')\n"
    )
    there["PYTHONPATH"] = f"{pycuda.parent}{os.pathsep}{emulator.FOLDER.parent.parent}"
    done = run(*COMMANDS["generate"], "--output", "run", **there)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = hints(done.stdout)
    assert line.startswith(
        "There is a GPU, but it cannot be used: the library of the NVIDIA driver does not match "
        f"its kernel module (CUDA error {error}), as after an update of the driver; restart the "
        "machine"
    )
    refused = run(*COMMANDS["generate"], "--output", "other", "--backend", "cuda", **there)
    assert refused.returncode == 1
    assert refused.stderr == line.replace("There is a GPU, but it", "gauge-mc: The GPU") + "\n"


@pytest.mark.slow
def test_pycuda_that_does_not_load(machine, tmp_path):
    there = machine(pycuda=False)
    broken = tmp_path / "broken" / "pycuda"
    broken.mkdir(parents=True)
    (broken / "__init__.py").touch()
    (broken / "driver.py").write_text("raise ImportError('undefined symbol: cuNew')\n")
    there["PYTHONPATH"] = f"{broken.parent}{os.pathsep}{emulator.FOLDER.parent.parent}"
    done = run(*COMMANDS["generate"], "--output", "run", **there)
    assert (done.returncode, done.stderr) == (0, "")
    (line,) = hints(done.stdout)
    assert "The package pycuda does not load (undefined symbol: cuNew)" in line
    assert INSTALL in line


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_chooses_devices_says_so_once(machine, tmp_path, command):
    if command == "measure":
        make_run(tmp_path / "run", lattice="4x4x4x4")
    there = machine(pycuda=False)
    done = run(*COMMANDS[command], **there)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(hints(done.stdout)) == 1
    # Nobody who has chosen is told. With --json it is said on standard error.
    chosen = run(*COMMANDS[command], "--backend", "cpu", **there)
    assert (chosen.returncode, hints(chosen.stdout)) == (0, [])
    result = json.loads(run(*COMMANDS[command], "--json", **there).stdout)
    assert isinstance(result, dict)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [("--devices", "cpu"), pytest.param(("--threads", 1, "--quiet"), marks=SLOW)]
)
def test_nothing_is_said_to_who_has_chosen_or_wants_quiet(machine, words):
    done = run(*COMMANDS["generate"], *words, **machine(pycuda=False))
    assert (done.returncode, hints(done.stdout)) == (0, [])


@pytest.mark.slow
@pytest.mark.parametrize("driver", [{"gpus": 0}, pytest.param({"result": 100}, marks=SLOW)])
def test_without_a_gpu_nothing_is_said(machine, driver):
    done = run(*COMMANDS["generate"], "--output", "run", **machine(pycuda=False, **driver))
    assert done.returncode == 0
    assert hints(done.stdout) == []


@pytest.mark.slow
def test_a_gpu_that_lacks_nothing_computes(machine):
    done = run(*COMMANDS["generate"], "--output", "run", **machine())
    assert (done.returncode, done.stderr) == (0, "")
    assert hints(done.stdout) == []
    assert "on Emulated GPU (GPU 0)" in done.stdout
