"""Devices: where fields live and kernels run.

A backend is a folder here, with the same files in each: ``__init__`` declares it, ``device`` is a
device, and the others compile and launch kernels. It is registered in `BACKENDS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gauge_mc.devices.base import Backend, Buffer, Device, LoadedKernel
from gauge_mc.devices.choice import BACKENDS, DeviceChoice, choose_devices, open_device

__all__ = [
    "BACKENDS",
    "Backend",
    "Buffer",
    "Device",
    "DeviceChoice",
    "LoadedKernel",
    "choose_devices",
    "describe_devices",
    "open_device",
]


def describe_devices(names: Iterable[str]) -> str:
    """Return the names of devices as a sum, in which each occurs once."""
    counts = Counter(names)
    return " + ".join(f"{n} x {name}" if n > 1 else name for name, n in counts.items())
