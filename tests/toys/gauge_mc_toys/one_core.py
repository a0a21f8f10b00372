"""A backend: one core of the CPU, for any requested number of threads."""

from gauge_mc.devices.base import Backend, Device
from gauge_mc.devices.cpu.device import CpuDevice


class OneCoreDevice(CpuDevice):
    """A device with one thread."""

    backend = "one-core"


class OneCore(Backend):
    """The backend for one core of the CPU."""

    name = "one-core"
    label = "one core"
    numbered = False
    preference = -1
    bench_extent = 8
    busy_sites = 2**14
    remedy = "nothing"

    def count(self) -> int:
        """Return the number of devices, 1."""
        return 1

    def open(self, ordinal: int = 0, threads: int | None = None, worker: bool = False) -> Device:
        """Open the device; `threads` is ignored."""
        return OneCoreDevice(1, worker=worker)


ONE_CORE = OneCore()
