"""Energy counters of GPUs, with libraries in place of NVML and ROCm SMI that the tests compile."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gauge_mc.devices.cuda import nvml
from gauge_mc.devices.hip import rsmi
from gauge_mc.errors import GaugeError
from tests import emulator

FILES = {nvml: "libnvidia-ml.so.1", rsmi: "librocm_smi64.so"}
WATTS = 300
"""Power of each GPU of NVIDIA's library."""

TICK = 0.025
"""Time in seconds between two states of its counters, with what rounding adds."""

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A folder with both libraries."""
    folder = tmp_path_factory.mktemp("libraries")
    for source, file in zip(("fake_nvml.c", "fake_rsmi.c"), FILES.values(), strict=True):
        command = [
            COMPILER,
            "-shared",
            "-fPIC",
            "-o",
            folder / file,
            Path(__file__).parent / source,
        ]
        subprocess.run(command, check=True)
    return folder


@pytest.fixture
def use(libraries, monkeypatch):
    """Use a library in this process, or a file that there is not."""

    def chosen(module, file=None):
        path = str(libraries / (file or FILES[module]))
        if module is nvml:
            monkeypatch.setattr(nvml, "LIBRARY", path)
        else:
            names = (path,) if file else ("librocm_smi64.so.none", path)
            monkeypatch.setattr(rsmi, "NAMES", names)
        module._load.cache_clear()

    yield chosen
    for module in FILES:
        module._load.cache_clear()


def test_a_counter_of_nvml_advances_with_time(use):
    use(nvml)
    one = nvml.gpu_counter("0000:02:00.0")
    assert (one.name, one.source) == ("0000:02:00.0", "NVML")
    early, before, begun = time.monotonic(), one.read(), time.monotonic()
    time.sleep(0.3)
    ends, spent, late = time.monotonic(), one.difference(before, one.read()), time.monotonic()
    assert ends - begun - TICK <= spent / WATTS <= late - early + TICK
    assert one.difference(5.0, 3.0) == 0.0  # a counter without a limit never starts again


@pytest.mark.parametrize(
    ("address", "joules"), [("0000:3b:00.0", 1250.0), ("0001:C1:02.1", 2500.0)]
)
def test_a_counter_of_rocm_is_read_in_joules(use, address, joules):
    use(rsmi)
    one = rsmi.gpu_counter(address)
    assert (one.name, one.source) == (address, "ROCm SMI")
    before = one.read()
    assert one.difference(before, one.read()) == joules


OLD = "this GPU has no energy counter"


@pytest.mark.parametrize(
    ("module", "variable", "result", "address", "sentence"),
    [
        (nvml, "FAKE_NVML_ENERGY", 3, "0000:01:00.0", f"{OLD}; those since Volta have one"),
        (nvml, "FAKE_NVML_ENERGY", 4, "0000:01:00.0", "NVML fails: No Permission"),
        (nvml, "FAKE_NVML_INIT", 9, "0000:01:00.0", "NVML fails: Another Error"),
        (nvml, "FAKE_NVML_INIT", 0, "0000:ff:00.0", "NVML fails: Another Error"),
        (rsmi, "FAKE_RSMI_ENERGY", 2, "0000:3b:00.0", OLD),
        (rsmi, "FAKE_RSMI_ENERGY", 4, "0000:3b:00.0", "ROCm SMI fails: Permission denied"),
        (rsmi, "FAKE_RSMI_INIT", 8, "0000:3b:00.0", "ROCm SMI fails: Another error"),
        (rsmi, "FAKE_RSMI_INIT", 0, "0000:ff:00.0", "ROCm SMI does not know the GPU at"),
    ],
)
def test_what_a_library_refuses_is_said(
    use, monkeypatch, module, variable, result, address, sentence
):
    use(module)
    monkeypatch.setenv(variable, str(result))
    with pytest.raises(GaugeError) as refusal:
        module.gpu_counter(address)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("module", "words"),
    [(nvml, "of the NVIDIA driver does not load"), (rsmi, r"none\.so of ROCm does not load")],
)
def test_a_machine_without_the_library(use, module, words):
    use(module, "none.so")
    with pytest.raises(GaugeError, match=words):
        module.gpu_counter("0000:01:00.0")


def gauge_mc(libraries, *words, **variables):
    """Run a command on emulated GPUs of NVIDIA."""
    found = {"LD_LIBRARY_PATH": str(libraries), **emulator.environment(), **variables}
    command = [sys.executable, "-m", "gauge_mc", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **found})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("gpus", [1, 2])
def test_the_gpus_of_a_run_are_counted(libraries, tmp_path, gpus):
    words = ("--lattice", "4x4x4x6", "--configs", 4, "--separation", 1, "--format", "none")
    words = (*words, "--devices", gpus, "--output", tmp_path / "run", "--json")
    found = json.loads(gauge_mc(libraries, "generate", *words))
    assert found["energy_source"] == "NVML"
    watts = found["joules"] / found["seconds"]
    assert (gpus - 0.5) * WATTS < watts <= 1.05 * gpus * WATTS


@pytest.mark.slow
def test_doctor_says_whether_the_energy_can_be_read(libraries):
    two = {"GAUGE_EMULATOR_GPUS": "2"}
    assert "works   energy of the GPUs: NVML\n" in gauge_mc(libraries, "doctor", **two)
    shown = gauge_mc(libraries, "doctor", **two, FAKE_NVML_ENERGY="3")
    assert f"missing energy of the GPUs: not available: {OLD}" in shown
