"""Energy counters: processors in folders of the tests, GPUs with libraries that they compile."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gauge_mc.devices import energy, open_device
from gauge_mc.errors import GaugeError
from tests import emulator
from tests.calls import call


def domain(folder, name, joules, limit=262143.32885):
    """Write the files of a power domain, and return that of its counter."""
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "max_energy_range_uj").write_text(f"{round(1e6 * limit)}\n")
    (folder / "energy_uj").write_text(f"{round(1e6 * joules)}\n")
    return folder / "energy_uj"


@pytest.fixture
def powercap(tmp_path, monkeypatch):
    """The counters of a machine with two packages, on both of which this process may run."""
    folder, processors = tmp_path / "powercap", tmp_path / "cpu"
    domain(folder / "intel-rapl:0", "package-0", 100)
    domain(folder / "intel-rapl:0:0", "core", 60)
    domain(folder / "intel-rapl:0:1", "dram", 20)
    domain(folder / "intel-rapl:1", "package-1", 7.5)
    domain(folder / "intel-rapl:2", "psys", 300)
    domain(folder / "intel-rapl-mmio:0", "package-0", 100)
    (folder / "intel-rapl").mkdir()
    for n, core in enumerate(sorted(os.sched_getaffinity(0))):
        (processors / f"cpu{core}" / "topology").mkdir(parents=True)
        (processors / f"cpu{core}" / "topology" / "physical_package_id").write_text(f"{n % 2}\n")
    monkeypatch.setattr(energy, "POWERCAP", folder)
    monkeypatch.setattr(energy, "PROCESSORS", processors)
    return folder


def test_packages_and_nothing_else_are_counted(powercap, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {5, 6})
    for core, package in ((5, 0), (6, 1)):
        folder = energy.PROCESSORS / f"cpu{core}" / "topology"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "physical_package_id").write_text(str(package))
    found = {one.name: one.read() for one in open_device("cpu", 1).energy_counters()}
    assert found == {"package-0": 100, "package-1": 7.5}
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {6})
    (one,) = energy.package_counters()
    assert (one.name, one.source, one.limit) == ("package-1", "RAPL", 262143.32885)


def test_all_packages_are_counted_if_those_of_the_cores_are_not_known(powercap, tmp_path):
    found = energy.package_counters(processors=tmp_path / "none")
    assert [one.name for one in found] == ["package-0", "package-1"]


def test_packages_of_several_dies(powercap, tmp_path):
    (powercap / "intel-rapl:0" / "name").write_text("package-0-die-0\n")
    (powercap / "intel-rapl:1" / "name").write_text("package-0-die-1\n")
    found = energy.package_counters(processors=tmp_path / "none")
    assert [one.name for one in found] == ["package-0-die-0", "package-0-die-1"]


def test_a_counter_that_starts_again_from_zero(powercap, tmp_path):
    one = energy.package_counters(processors=tmp_path / "none")[0]
    (powercap / "intel-rapl:0" / "energy_uj").write_text("262143000000\n")
    before = one.read()
    (powercap / "intel-rapl:0" / "energy_uj").write_text("1000000\n")
    assert one.difference(before, one.read()) == pytest.approx(1.32885)
    assert one.difference(3.0, 5.0) == 2.0


def refuse(path, monkeypatch):
    """Let only root read a file, even if this process is root."""
    read = type(path).read_text

    def guarded(self, *words, **options):
        if self.name == path.name:
            raise PermissionError(13, "Permission denied")
        return read(self, *words, **options)

    monkeypatch.setattr(type(path), "read_text", guarded)


def test_counters_that_only_root_can_read(powercap, monkeypatch):
    refuse(powercap / "intel-rapl:0" / "energy_uj", monkeypatch)
    with pytest.raises(GaugeError, match=r"^only root can read the energy counters \(RAPL\)$"):
        energy.package_counters()
    shown = call("doctor")[0]
    reason = "energy of the CPU: not available: only root can read the energy counters (RAPL)\n"
    assert f"missing {reason}          {energy.ALLOW}\n" in shown


def test_a_machine_without_counters(tmp_path, monkeypatch):
    monkeypatch.setattr(energy, "POWERCAP", tmp_path / "none")
    with pytest.raises(GaugeError, match="shows no energy counter"):
        open_device("cpu", 1).energy_counters()
    shown = call("doctor")[0]
    assert "missing energy of the CPU: not available: this system shows no energy" in shown
    assert f"\n          {energy.LOAD}\n" in shown


def test_doctor_names_the_counters(powercap):
    assert "works   energy of the CPU: RAPL, package-0" in call("doctor")[0]


@pytest.mark.parametrize("spoil", ["empty", "gone"])
def test_damaged_counters(powercap, spoil):
    path = powercap / "intel-rapl:0" / "energy_uj"
    path.write_text("") if spoil == "empty" else path.unlink()
    with pytest.raises(GaugeError, match=r"energy_uj (contains no number|cannot be read)"):
        energy.package_counters()


FILES = {"NVML": "libnvidia-ml.so.1", "ROCM_SMI": "librocm_smi64.so"}
COUNTERS = {"NVML": energy.nvidia_counter, "ROCM_SMI": energy.amd_counter}
WATTS = 300
"""Power of each GPU of NVIDIA's library."""

TICK = 0.025
"""Time in seconds between two states of its counters, with what rounding adds."""

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """A folder with both libraries."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    folder = tmp_path_factory.mktemp("libraries")
    for source, file in zip(("fake_nvml.c", "fake_rsmi.c"), FILES.values(), strict=True):
        words = [folder / file, Path(__file__).parent / source]
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", *words], check=True)
    return folder


@pytest.fixture
def use(libraries, monkeypatch):
    """Use a library in this process, or a file that there is not."""

    def chosen(name, file=None):
        path = str(libraries / (file or FILES[name]))
        monkeypatch.setattr(energy, name, (path,) if file else (f"{path}.none", path))
        energy._loaded.cache_clear()

    yield chosen
    energy._loaded.cache_clear()


def test_a_counter_of_nvml_advances_with_time(use):
    use("NVML")
    one = energy.nvidia_counter("0000:02:00.0")
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
    use("ROCM_SMI")
    one = energy.amd_counter(address)
    assert (one.name, one.source) == (address, "ROCm SMI")
    before = one.read()
    assert one.difference(before, one.read()) == joules


OLD = "this GPU has no energy counter"


@pytest.mark.parametrize(
    ("name", "variable", "result", "address", "sentence"),
    [
        ("NVML", "FAKE_NVML_ENERGY", 3, "0000:01:00.0", f"{OLD}; those since Volta have one"),
        ("NVML", "FAKE_NVML_ENERGY", 4, "0000:01:00.0", "NVML fails: No Permission"),
        ("NVML", "FAKE_NVML_INIT", 9, "0000:01:00.0", "NVML fails: Another Error"),
        ("NVML", "FAKE_NVML_INIT", 0, "0000:ff:00.0", "NVML fails: Another Error"),
        ("ROCM_SMI", "FAKE_RSMI_ENERGY", 2, "0000:3b:00.0", OLD),
        ("ROCM_SMI", "FAKE_RSMI_ENERGY", 4, "0000:3b:00.0", "ROCm SMI fails: Permission denied"),
        ("ROCM_SMI", "FAKE_RSMI_INIT", 8, "0000:3b:00.0", "ROCm SMI fails: Another error"),
        ("ROCM_SMI", "FAKE_RSMI_INIT", 0, "0000:ff:00.0", "ROCm SMI does not know the GPU at"),
    ],
)
def test_what_a_library_refuses_is_said(
    use, monkeypatch, name, variable, result, address, sentence
):
    use(name)
    monkeypatch.setenv(variable, str(result))
    with pytest.raises(GaugeError) as refusal:
        COUNTERS[name](address)
    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("NVML", "of the NVIDIA driver does not load"),
        ("ROCM_SMI", r"none\.so of ROCm does not load"),
    ],
)
def test_a_machine_without_the_library(use, name, words):
    use(name, "none.so")
    with pytest.raises(GaugeError, match=words):
        COUNTERS[name]("0000:01:00.0")


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
