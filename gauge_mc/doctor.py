"""What works on this machine, and how to mend what does not."""

from __future__ import annotations

import os
import platform
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import permutations
from typing import Any

from gauge_mc.devices import Device
from gauge_mc.devices.cpu import CpuDevice, candidates, processor, register_bytes
from gauge_mc.devices.cuda import CudaDevice
from gauge_mc.devices.nvcc import find_nvcc, nvcc_release
from gauge_mc.devices.source import cache_folder, version_of
from gauge_mc.errors import GaugeError
from gauge_mc.field import Field
from gauge_mc.lattice import Lattice
from gauge_mc.observables.plaquette import plaquette

EXTRAS = {
    "matplotlib": ("plots", "analysis"),
    "scipy": ("fits", "analysis"),
    "pyerrors": ("fits with autocorrelation", "analysis"),
    "h5py": ("export to HDF5", "hdf5"),
    "mpi4py": ("several processes", "mpi"),
    "ziglang": ("a C++ compiler from a wheel", "zig"),
}
"""Optional packages: what for, and the extra that brings them."""


@dataclass(frozen=True)
class Finding:
    """One thing that works here, or does not.

    Attributes
    ----------
    subject : str
        What was tried.
    works : bool
        Whether it works.
    detail : str
        What was found.
    remedy : str
        The command that mends it, if it does not work.
    """

    subject: str
    works: bool
    detail: str
    remedy: str = ""


def examine() -> Iterator[Finding]:
    """Try devices, compilers, the cache and the optional packages, one after the other."""
    yield Finding("Python", True, platform.python_version())
    yield from _compilers()
    yield _cache()
    yield _device("CPU", lambda: CpuDevice(), "apt install g++   # or another C++ compiler")
    yield from _cuda()
    for package, (purpose, extra) in EXTRAS.items():
        yield _package(package, purpose, extra)


def _compilers() -> Iterator[Finding]:
    name, _ = processor()
    yield Finding("processor", True, f"{name}, registers of {8 * register_bytes()} bits")
    for command in candidates():
        text = version_of(command)
        detail = text.splitlines()[0] if text else "does not run"
        yield Finding(f"C++ compiler {command}", bool(text), detail, "apt install g++")
    if not candidates():
        yield Finding("C++ compiler", False, "none found", "apt install g++")


def _cache() -> Finding:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        return Finding(
            "kernel cache", False, f"{folder}: {error.strerror}", "export GAUGE_MC_CACHE=FOLDER"
        )
    return Finding("kernel cache", True, f"{folder}, {len(os.listdir(folder)) // 2} kernels")


def _device(subject: str, make: Callable[[], Device], remedy: str) -> Finding:
    """Compile a kernel and run it: nothing less shows that a device works."""
    try:
        device = make()
        value = plaquette(Field.cold(Lattice(4, 4, 4, 4), "su2", device=device)).mean
    except GaugeError as error:
        return Finding(subject, False, str(error), remedy)
    right = value == 1
    return Finding(subject, right, device.name if right else f"computes {value} for 1", remedy)


def _cuda() -> Iterator[Finding]:
    pycuda = _package("pycuda", "NVIDIA GPUs", "cuda")
    yield pycuda
    nvcc = find_nvcc()
    toolkit = "apt install nvidia-cuda-toolkit   # or NVIDIA's own; nvcc on PATH"
    release = nvcc_release(nvcc) if nvcc else "not found"
    yield Finding("nvcc", nvcc is not None, release, toolkit)
    if not pycuda.works or nvcc is None:
        yield Finding("GPU", False, "not tried without PyCUDA and nvcc", pycuda.remedy or toolkit)
        return
    import pycuda.driver as driver

    try:
        driver.init()
        count = driver.Device.count()
    except driver.Error as error:
        yield Finding("GPU", False, str(error), "nvidia-smi   # the driver must see a GPU")
        return
    for ordinal in range(count):
        make = partial(CudaDevice, ordinal)
        yield _device(f"GPU {ordinal}", make, "nvidia-smi   # the driver must see a GPU")
    if count > 1:
        yield _peers(driver, count)


def _peers(driver: Any, count: int) -> Finding:
    """Tell which GPUs can copy to which straight."""
    gpus = [driver.Device(ordinal) for ordinal in range(count)]
    pairs = list(permutations(range(count), 2))
    through_host = [f"{a}→{b}" for a, b in pairs if not gpus[a].can_access_peer(gpus[b])]
    detail = "all copy to each other straight"
    if through_host:
        detail = f"copies lead through the host's memory for {', '.join(through_host)}"
    return Finding("between GPUs", True, detail)


def _package(name: str, purpose: str, extra: str) -> Finding:
    remedy = f"pip install 'gauge-mc[{extra}]'"
    subject = f"{name} ({purpose})"
    try:
        found = version(name)
        import_module(name)
    except PackageNotFoundError:
        return Finding(subject, False, "not installed", remedy)
    except ImportError as error:
        return Finding(subject, False, f"does not load: {error}", remedy)
    return Finding(subject, True, found)
