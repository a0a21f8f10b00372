"""The driver of NVIDIA GPUs, by PyCUDA if it is installed, else by NVIDIA's own bindings."""

from __future__ import annotations

import ctypes
import functools
import os
import warnings
from importlib.util import find_spec
from typing import Any

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.quoting import shortened
from gauge_mc.registry import in_words

INSTALL = "gauge-mc doctor --install cuda"
"""The command that installs bindings of the driver and a compiler."""

MISMATCHES = {
    803: "restart the machine",
    804: "restart the machine, or remove a cuda-compat library from LD_LIBRARY_PATH",
}
"""Remedies by result of cuInit: SYSTEM_DRIVER_MISMATCH and COMPAT_NOT_SUPPORTED_ON_DEVICE."""

LEAST_DRIVER = 12
"""Oldest release of CUDA that the driver must support for NVIDIA's wheels."""

LEAST_CAPABILITY = (7, 0)
"""Least compute capability of GPUs for which kernels are written: Volta, of 2017."""

CAPABILITY = (75, 76)
"""Numbers of its parts as attributes of a GPU (CUDA driver API, CUdevice_attribute)."""


ASKED = "GAUGE_MC_CUDA_DRIVER"
"""Environment variable that names the package that calls the driver, a key of `PACKAGES`."""

PACKAGES = {"pycuda": "pycuda.driver", "cuda-bindings": "cuda.bindings.driver"}
"""Packages that call the driver, with their modules. The first one that is installed is taken."""


def installed_bindings() -> str:
    """Return the name of the package that calls the driver, or nothing if there is none."""
    package = os.environ.get(ASKED, "")
    if package and package not in PACKAGES:
        raise UsageError(f"{ASKED} is '{shortened(package)}'; choose {in_words(PACKAGES, 'or')}.")
    names = [package] if package else [*PACKAGES]
    return next((name for name in names if _is_there(PACKAGES[name])), "")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module.rpartition(".")[0]) is not None
    except ModuleNotFoundError:  # nor is the package that would have it
        return False


def load_driver() -> Any:
    """Import and initialise ``pycuda.driver``, or what has its form, and return it."""
    name = installed_bindings()
    if not name:
        lacking = os.environ.get(ASKED) or "cuda-bindings"
        command = "pip install 'gauge-mc[pycuda]'" if lacking == "pycuda" else INSTALL
        raise GaugeError(f"{lacking} is not installed: run `{command}`, or use the CPU.")
    try:
        with warnings.catch_warnings(action="ignore"):
            if name == "pycuda":
                import pycuda.driver as driver
            else:
                from gauge_mc.devices.cuda import bindings as driver
    except ImportError as error:
        raise GaugeError(
            f"The package {name} does not load ({error}): check with `nvidia-smi` that the NVIDIA "
            f"driver is installed, then install it again, `{INSTALL}`, or use the CPU."
        ) from error
    try:
        driver.init()
    except driver.Error as error:
        if reason := driver_mismatch():
            raise GaugeError(f"The GPU cannot be used: {reason}") from error
        raise GaugeError(
            f"CUDA finds no usable GPU ({error}): check the output of `nvidia-smi`, or use the CPU."
        ) from error
    return driver


@functools.cache
def _load_driver() -> tuple[ctypes.CDLL | None, int]:
    """Load and initialise the driver's library; also return the result of cuInit, 0 on success."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        return library, library.cuInit(0)
    except (OSError, AttributeError):
        return None, 0


def driver_library() -> ctypes.CDLL | None:
    """Return the driver's library, initialised, or None without a driver or a GPU."""
    library, result = _load_driver()
    return library if result == 0 else None


def driver_mismatch() -> str | None:
    """Explain why the driver's library does not work with its kernel module, or return None."""
    result = _load_driver()[1]
    if result not in MISMATCHES:
        return None
    return (
        f"the library of the NVIDIA driver does not match its kernel module (CUDA error {result}), "
        f"as after an update of the driver; {MISMATCHES[result]}."
    )


def gpus_of_driver() -> int:
    """Return the number of GPUs that the driver sees, usable or not."""
    library, count = driver_library(), ctypes.c_int(0)
    if library is None or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def driver_release() -> tuple[int, int] | None:
    """Return the latest release of CUDA that the driver supports, or None without a driver."""
    library, version = driver_library(), ctypes.c_int(0)
    if library is None or library.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def capabilities() -> list[tuple[int, int]]:
    """Return the compute capability of every GPU that the driver sees."""
    library = driver_library()
    if library is None:
        return []
    versions = [(ctypes.c_int(0), ctypes.c_int(0)) for _ in range(gpus_of_driver())]
    for ordinal, numbers in enumerate(versions):
        for attribute, number in zip(CAPABILITY, numbers, strict=True):
            library.cuDeviceGetAttribute(ctypes.byref(number), attribute, ordinal)
    return [(major.value, minor.value) for major, minor in versions]
