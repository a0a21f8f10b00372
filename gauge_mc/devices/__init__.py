"""Devices: where fields live and kernels run."""

from __future__ import annotations

from gauge_mc.devices.base import Buffer, Device, Kernel
from gauge_mc.errors import GaugeError, UsageError

__all__ = ["BACKENDS", "Buffer", "Device", "Kernel", "open_device"]

BACKENDS = ("auto", "cuda", "cpu")


def open_device(backend: str = "auto", threads: int | None = None) -> Device:
    """Open a device.

    Parameters
    ----------
    backend : str
        ``cuda``, ``cpu``, or ``auto``: a GPU if one works here, else the CPU.
    threads : int, optional
        Threads on a CPU; by default all that this process may use.

    Raises
    ------
    UsageError
        If there is no such backend.
    GaugeError
        If the device cannot be used: no GPU, no PyCUDA, no compiler.
    """
    from gauge_mc.devices.cpu import CpuDevice

    if backend not in BACKENDS:
        raise UsageError(f"The backend '{backend}' is unknown; there are {', '.join(BACKENDS)}.")
    if backend == "cpu":
        return CpuDevice(threads)
    from gauge_mc.devices.cuda import CudaDevice

    try:
        return CudaDevice()
    except GaugeError:
        if backend == "cuda":
            raise
        return CpuDevice(threads)
