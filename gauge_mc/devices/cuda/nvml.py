"""Energy counters of GPUs: NVML, the management library that comes with NVIDIA's driver."""

from __future__ import annotations

import ctypes
import functools

from gauge_mc.devices.host import EnergyCounter
from gauge_mc.errors import GaugeError

LIBRARY = "libnvidia-ml.so.1"
"""File name of the library."""

NOT_SUPPORTED = 3
"""Error code of a GPU that lacks what was asked for."""

JOULE = 1e3
"""Number of the counters' units, millijoules, in a joule."""

INSTALL = "export NVIDIA_DRIVER_CAPABILITIES=compute,utility   # when the container is started"


def gpu_counter(address: str) -> EnergyCounter:
    """Return the counter of the GPU at a PCI bus address, which is the same for all processes."""
    library, handle = _load(LIBRARY), ctypes.c_void_p()
    find = library.nvmlDeviceGetHandleByPciBusId_v2
    _check(library, find(address.encode(), ctypes.byref(handle)))

    def read() -> float:
        energy = ctypes.c_ulonglong()
        _check(library, library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(energy)))
        return energy.value / JOULE

    read()
    return EnergyCounter(address, "NVML", read)


@functools.cache
def _load(name: str) -> ctypes.CDLL:
    """Load and initialise the library."""
    try:
        library = ctypes.CDLL(name)
        library.nvmlErrorString.restype = ctypes.c_char_p
        result = library.nvmlInit_v2()
    except (OSError, AttributeError) as error:
        raise GaugeError(f"the library {name} of the NVIDIA driver does not load") from error
    _check(library, result)
    return library


def _check(library: ctypes.CDLL, result: int) -> None:
    """Raise GaugeError for an error code."""
    if result == NOT_SUPPORTED:
        raise GaugeError("this GPU has no energy counter; those since Volta have one")
    if result:
        raise GaugeError(f"NVML fails: {library.nvmlErrorString(result).decode()}")
