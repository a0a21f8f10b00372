"""Energy counters of AMD GPUs, with a library in place of ROCm SMI that the tests compile."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gauge_mc.devices.hip import rsmi
from gauge_mc.errors import GaugeError

SOURCE = Path(__file__).with_name("fake_rsmi.c")
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("rsmi") / "librocm_smi64.so"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", path, SOURCE], check=True)
    return path


@pytest.fixture
def fake(library, monkeypatch):
    """Use the library in this process."""
    monkeypatch.setattr(rsmi, "NAMES", ("librocm_smi64.so.none", str(library)))
    rsmi._load.cache_clear()
    yield monkeypatch
    rsmi._load.cache_clear()


@pytest.mark.parametrize(
    ("address", "joules"), [("0000:3b:00.0", 1250.0), ("0001:C1:02.1", 2500.0)]
)
def test_the_counter_of_a_gpu_is_read_in_joules(fake, address, joules):
    one = rsmi.gpu_counter(address)
    assert (one.name, one.source) == (address, "ROCm SMI")
    before = one.read()
    assert one.difference(before, one.read()) == joules


@pytest.mark.parametrize(
    ("variable", "result", "sentence"),
    [
        ("FAKE_RSMI_ENERGY", 2, "this GPU has no energy counter"),
        ("FAKE_RSMI_ENERGY", 4, "ROCm SMI fails: Permission denied"),
        ("FAKE_RSMI_INIT", 8, "ROCm SMI fails: Another error"),
    ],
)
def test_what_the_library_refuses_is_said(fake, variable, result, sentence):
    fake.setenv(variable, str(result))
    with pytest.raises(GaugeError) as refusal:
        rsmi.gpu_counter("0000:3b:00.0")
    assert str(refusal.value) == sentence


def test_a_gpu_that_the_library_does_not_know(fake):
    with pytest.raises(GaugeError, match=r"ROCm SMI does not know the GPU at 0000:ff:00\.0"):
        rsmi.gpu_counter("0000:ff:00.0")


def test_a_machine_without_the_library(fake, tmp_path):
    fake.setattr(rsmi, "NAMES", (str(tmp_path / "none.so"),))
    with pytest.raises(GaugeError, match=r"none\.so of ROCm does not load"):
        rsmi.gpu_counter("0000:3b:00.0")
