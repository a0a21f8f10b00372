"""Energy counters of GPUs, with a library in place of NVML that the tests compile."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gauge_mc.devices.cuda import nvml
from gauge_mc.errors import GaugeError
from tests import emulator

SOURCE = Path(__file__).with_name("fake_nvml.c")
WATTS = 300
"""Power of each GPU of the library."""

TICK = 0.025
"""Time in seconds between two states of the counters, with what rounding adds."""

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", path, SOURCE], check=True)
    return path


@pytest.fixture
def fake(library, monkeypatch):
    """Use the library in this process."""
    monkeypatch.setattr(nvml, "LIBRARY", str(library))
    nvml._load.cache_clear()
    yield monkeypatch
    nvml._load.cache_clear()


def test_a_counter_advances_with_time(fake):
    one = nvml.gpu_counter("0000:02:00.0")
    assert (one.name, one.source) == ("0000:02:00.0", "NVML")
    early, before, begun = time.monotonic(), one.read(), time.monotonic()
    time.sleep(0.3)
    ends, spent, late = time.monotonic(), one.difference(before, one.read()), time.monotonic()
    assert ends - begun - TICK <= spent / WATTS <= late - early + TICK
    assert one.difference(5.0, 3.0) == 0.0  # a counter without a limit never starts again


@pytest.mark.parametrize(
    ("variable", "result", "sentence"),
    [
        ("FAKE_NVML_ENERGY", 3, "this GPU has no energy counter; those since Volta have one"),
        ("FAKE_NVML_ENERGY", 4, "NVML fails: No Permission"),
        ("FAKE_NVML_INIT", 9, "NVML fails: Another Error"),
    ],
)
def test_what_nvml_refuses_is_said(fake, variable, result, sentence):
    fake.setenv(variable, str(result))
    with pytest.raises(GaugeError) as refusal:
        nvml.gpu_counter("0000:01:00.0")
    assert str(refusal.value) == sentence


def test_a_gpu_that_nvml_does_not_know(fake):
    with pytest.raises(GaugeError, match="NVML fails: Another Error"):
        nvml.gpu_counter("0000:ff:00.0")


def test_a_machine_without_nvml(tmp_path, fake):
    fake.setattr(nvml, "LIBRARY", str(tmp_path / "none.so"))
    with pytest.raises(GaugeError, match="of the NVIDIA driver does not load"):
        nvml.gpu_counter("0000:01:00.0")


def gauge_mc(library, *words, **variables):
    """Run a command on emulated GPUs."""
    found = {"LD_LIBRARY_PATH": str(library.parent), **emulator.environment(), **variables}
    command = [sys.executable, "-m", "gauge_mc", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **found})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [1, 2])
def test_the_gpus_of_a_run_are_counted(library, tmp_path, gpus):
    words = ("--lattice", "4x4x4x6", "--configs", 4, "--separation", 1, "--format", "none")
    words = (*words, "--devices", gpus, "--output", tmp_path / "run", "--json")
    found = json.loads(gauge_mc(library, "generate", *words))
    assert found["energy_source"] == "NVML"
    watts = found["joules"] / found["seconds"]
    assert (gpus - 0.5) * WATTS < watts <= 1.05 * gpus * WATTS


@pytest.mark.slow
def test_doctor_says_whether_the_energy_can_be_read(library):
    two = {"GAUGE_EMULATOR_GPUS": "2"}
    assert "works   energy of the GPUs: NVML\n" in gauge_mc(library, "doctor", **two)
    shown = gauge_mc(library, "doctor", **two, FAKE_NVML_ENERGY="3")
    assert "missing energy of the GPUs: not available: this GPU has no energy counter" in shown
