"""Devices, which hold fields in their memory and run kernels.

Each backend is a folder with the same files: ``__init__`` declares the backend, ``device``
implements a device, and the other files compile and launch kernels. Backends are registered in
`BACKENDS`.
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
    """Join the names of devices with plus signs; a repeated name gets a count, ``2 x NAME``."""
    counts = Counter(names)
    return " + ".join(f"{n} x {name}" if n > 1 else name for name, n in counts.items())
