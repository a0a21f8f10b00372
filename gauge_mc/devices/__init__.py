"""Devices: where fields live and kernels run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from gauge_mc.devices.base import Buffer, Device, Kernel
from gauge_mc.devices.choice import BACKENDS, DeviceChoice, choose_devices

__all__ = [
    "BACKENDS",
    "Buffer",
    "Device",
    "DeviceChoice",
    "Kernel",
    "choose_devices",
    "in_words",
    "open_device",
]


def in_words(names: Iterable[str]) -> str:
    """Names of devices as a sum, each once."""
    counts = Counter(names)
    return " + ".join(f"{n} x {name}" if n > 1 else name for name, n in counts.items())


def open_device(backend: str = "auto", threads: int | None = None) -> Device:
    """Open one device: a GPU if one works here and the backend is not ``cpu``, else the CPU.

    Parameters and errors as for `choose_devices` and `DeviceChoice.open`.
    """
    return choose_devices(None, backend, threads)[0].open()
