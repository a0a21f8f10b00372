"""Choosing and opening AMD GPUs, which are emulated."""

import os
from types import SimpleNamespace

import numpy as np
import pytest

from gauge_mc.devices import BACKENDS, DeviceChoice, choose_devices, cuda, energy
from gauge_mc.devices import hip as backend
from gauge_mc.devices.base import Copy
from gauge_mc.devices.choice import Place
from gauge_mc.devices.cpu.device import CpuDevice
from gauge_mc.devices.cuda import compiler as cuda_compiler
from gauge_mc.devices.hip import bindings as loader
from gauge_mc.devices.hip import compiler, driver
from gauge_mc.devices.hip.device import HIP_NAMES, HipDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.fields.field import Field
from gauge_mc.fields.random_field import Random
from gauge_mc.inspection.doctor import _devices
from gauge_mc.updates.heatbath import heatbath
from tests import emulator
from tests.emulator.hip import SIGNATURES, Library

HIP = BACKENDS["hip"]


def absent(*_):
    raise GaugeError("there is none.")


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Make this a machine with four AMD GPUs and without NVIDIA GPUs."""
    library = Library()
    monkeypatch.setattr(loader, "hip_library", lambda: library)
    monkeypatch.setattr(backend, "gpus_of_system", lambda: 4)
    monkeypatch.setattr(driver, "INTERFACE", tmp_path / "kfd")
    monkeypatch.setattr(compiler, "_paths", lambda: iter([str(emulator.HIPCC)]))
    monkeypatch.setattr(cuda, "load_driver", absent)
    monkeypatch.setattr(energy, "ROCM_SMI", (str(tmp_path / "none.so"),))
    energy._loaded.cache_clear()
    return library


def test_amd_gpus_are_chosen_where_there_are_no_others(machine, monkeypatch):
    assert HIP.count() == 4
    assert choose_devices() == (DeviceChoice("hip", 0),)
    assert choose_devices("2") == (DeviceChoice("hip", 0), DeviceChoice("hip", 1))
    assert choose_devices("3,", "hip")[0].name == "GPU 3"
    assert Place().hint() is None
    two = SimpleNamespace(Device=SimpleNamespace(count=lambda: 2))
    monkeypatch.setattr(cuda, "load_driver", lambda: two)
    one = cuda_compiler.CudaCompiler("nvcc")
    monkeypatch.setattr(cuda_compiler, "find_cuda_compiler", lambda: one)
    assert choose_devices() == (DeviceChoice("cuda", 0),)
    assert choose_devices("all", "hip")[-1] == DeviceChoice("hip", 3)


def test_what_an_amd_gpu_lacks_is_said(machine, monkeypatch):
    monkeypatch.setattr(compiler, "_paths", lambda: iter([]))
    assert (
        "GPU, but it cannot be used: No compiler of kernels for AMD GPUs was found"
        in Place().hint()
    )
    with pytest.raises(GaugeError, match=r"no usable|there is none"):
        choose_devices("1")
    assert choose_devices() == (DeviceChoice("cpu"),)
    monkeypatch.setattr(loader, "hip_library", lambda: None)
    assert Place().hint() is None  # who does not use HIP need not hear of it


@pytest.mark.parametrize("there", [False, True])
def test_the_diagnosis_mentions_amd_gpus_where_there_are_any(machine, monkeypatch, there):
    monkeypatch.setattr(backend, "gpus_of_system", lambda: int(there))
    monkeypatch.setattr(loader, "hip_library", lambda: None)
    found = list(HIP.findings())
    assert [one.subject for one in found] == (["HIP (AMD GPUs)", "HIP compiler"] if there else [])
    gpus = [*_devices(HIP)]
    assert ["libamdhip64.so was not found" in one.detail for one in gpus] == [True] * there


def test_findings_of_amd_gpus(machine, monkeypatch, tmp_path):
    found = {one.subject: one for one in HIP.findings()}
    assert found["HIP (AMD GPUs)"].works
    assert "HIP version: emulated" in found["HIP compiler"].detail
    assert found["energy of the GPUs"].detail.startswith("not available: the library")
    assert found["copies between GPUs"].detail == "all GPUs copy to each other directly"
    (tmp_path / "kfd").touch()
    monkeypatch.setattr(driver.os, "access", lambda *_: False)
    refused = {one.subject: one for one in HIP.findings()}["AMD driver"]
    assert not refused.works
    assert refused.remedy.startswith("sudo usermod -aG render,video")


def test_opening(machine):
    gpu = HIP.open(2)
    assert gpu.name == "Emulated GPU (GPU 2)"
    assert (gpu.architecture, gpu.warp) == ("gfx90a", 64)
    with pytest.raises(GaugeError, match="There is no GPU 4: HIP sees 4, numbered from 0"):
        HIP.open(4)
    with pytest.raises(GaugeError, match=r"none\.so of ROCm does not load"):
        gpu.energy_counters()
    assert HIP.identity(2) == "0000:03:00.0"
    gpu.close()
    machine.failing["hipStreamCreate"] = 719
    with pytest.raises(GaugeError, match=r"GPU 1 does not work .*: check the output of `rocm-smi`"):
        HIP.open(1)
    machine.failing["hipStreamCreate"] = 2
    with pytest.raises(GaugeError, match=r"memory of GPU 1 is full .* which `rocm-smi` shows"):
        HIP.open(1)


@pytest.fixture
def gpus(machine):
    """Two GPUs of the machine."""
    opened = [HipDevice(ordinal) for ordinal in (2, 3)]
    yield opened
    machine.failing = {}
    for one in opened:
        one.close()


@pytest.mark.parametrize("failing", [None, "an allocation", *HIP_NAMES])
def test_work_on_two_gpus_is_recorded_as_a_graph(machine, gpus, failing):
    """Every call does the same; work that cannot be recorded is issued anew."""
    assert gpus[0].reaches(gpus[1])
    here, there, back = (one.allocate(64) for one in (*gpus, gpus[0]))
    copies = [
        gpus[0].prepare_copies([Copy(here.address, gpus[1], there.address)], 64),
        gpus[1].prepare_copies([Copy(there.address, gpus[0], back.address)], 64),
    ]

    def issue():
        gpus[1].wait(copies[0]())
        copies[1]()
        if failing == "an allocation":  # which waits for the GPU
            gpus[0].allocate(64)

    call = gpus[0].recorded(issue, gpus[1:])
    machine.failing = {failing: 719}
    for n in range(4):
        gpus[0].write(here, 0, np.full(64, n, np.uint8))
        call()
        for one in gpus:
            one.synchronize()
        assert (gpus[0].read(back, 0, 64) == n).all()
    used = failing in (None, "hipGraphDestroy", "hipGraphExecDestroy")
    assert machine.calls.count("hipGraphLaunch") == (3 if used else failing == "hipGraphLaunch")
    assert machine.calls.count("hipStreamBeginCapture") == 1


def test_memory_and_events_are_offered_to_other_processes(gpus):
    """As processes with MPI do; the other one is this one, with another GPU."""
    owner, other = gpus
    assert other.reaches(owner)
    owned = owner.allocate(64)
    shared = owner.share(owned)
    foreign = other.foreign(shared.offer)
    for turn in range(3):
        source = other.allocate(64)
        other.write(source, 0, np.full(64, turn, np.uint8))
        shared.record(turn)
        other.wait(foreign.event(turn))
        other.prepare_copies([Copy(source.address, owner, foreign.address)], 64)()
        other.synchronize()
        assert (owner.read(owned, 0, 64) == turn).all()


@pytest.mark.parametrize("failing", [one for one in SIGNATURES if one.startswith("hipIpc")])
def test_what_cannot_be_shared_is_not_offered_or_not_opened(machine, gpus, failing):
    buffer = gpus[0].allocate(64)
    shared = gpus[0].share(buffer)
    machine.failing = {failing: 801}
    if "Get" in failing:
        assert gpus[0].share(buffer) is None
    elif "Open" in failing:
        assert gpus[1].foreign(shared.offer) is None
    else:
        assert gpus[1].foreign(shared.offer).address == buffer.address


@pytest.mark.slow
def test_updates_are_those_of_the_cpu_and_of_several_amd_gpus(machine, monkeypatch):
    for name, value in emulator.environment().items():
        monkeypatch.setenv(name, value)
    assert os.environ["GAUGE_MC_CACHE"].endswith(emulator.CACHE)

    def chain(*devices):
        group = DeviceGroup(devices)
        field = Field.hot(Lattice(4, 4, 4, 6), "su2", "double", group, seed=2)
        heatbath(field, 2.3, Random.for_field(field, seed=8), sweeps=2)
        links = field.to_numpy()
        del field
        group.close()
        return links

    one = chain(HipDevice(0))
    assert np.array_equal(one, chain(HipDevice(0), HipDevice(1)))
    assert np.abs(one - chain(CpuDevice(1))).max() < 1e-12
    assert {"hipModuleLaunchKernel", "hipEventRecord"} <= {*machine.calls}
