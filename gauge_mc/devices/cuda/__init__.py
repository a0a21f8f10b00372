"""The CUDA backend: NVIDIA GPUs by PyCUDA, with kernels compiled by nvcc."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from itertools import permutations
from typing import TYPE_CHECKING, Any

from gauge_mc.devices import BACKENDS
from gauge_mc.devices.base import Backend, Finding
from gauge_mc.errors import GaugeError

if TYPE_CHECKING:
    from gauge_mc.devices.cuda.device import CudaDevice

INSTALL = "pip install 'gauge-mc[cuda]'"
UPDATE = "nvidia-smi   # shows the driver; update it, or install an older CUDA compiler"


class Cuda(Backend):
    """The NVIDIA GPUs that CUDA sees."""

    name = "cuda"
    label = "GPU"
    numbered = True
    preference = 1
    bench_extent = 48
    remedy = INSTALL

    def count(self) -> int:
        """Return how many GPUs there are; see `Backend.count`."""
        from gauge_mc.devices.cuda.nvcc import find_nvcc

        count = int(load_driver().Device.count())
        if find_nvcc() is None:
            raise GaugeError(
                "nvcc, which compiles the GPU kernels, is not here: "
                f"`{INSTALL}` brings it, or put the bin folder of a CUDA toolkit on PATH."
            )
        return count

    def hint(self) -> str | None:
        """Return what a GPU that the driver sees still lacks; see `Backend.hint`."""
        from gauge_mc.devices.cuda.nvcc import driver_release, find_nvcc, gpus_of_driver, release

        if not gpus_of_driver():
            return None
        lacking = [] if find_spec("pycuda") else ["PyCUDA"]
        nvcc = find_nvcc()
        if nvcc is None:
            lacking.append("nvcc")
        if lacking:
            lacks = " and ".join(lacking)
            return f"A GPU is here, but it cannot be used without {lacks}: `{INSTALL}`."
        driver, needed = driver_release(), release(nvcc or "")
        if driver and needed and driver[0] < needed[0]:
            return (
                "A GPU is here, but its driver is too old: it supports CUDA "
                f"{driver[0]}.{driver[1]} and nvcc is of {needed[0]}.{needed[1]}; update the "
                "driver, or install a CUDA compiler that it supports."
            )
        try:
            load_driver()
        except GaugeError as error:
            return f"A GPU is here, but it cannot be used: {error}"
        return None

    def open(
        self, ordinal: int = 0, threads: int | None = None, worker: bool = False
    ) -> CudaDevice:
        """Open a GPU; see `Backend.open`."""
        from gauge_mc.devices.cuda.device import CudaDevice

        return CudaDevice(ordinal)

    def identity(self, ordinal: int) -> str:
        """Return the PCI bus address of a GPU."""
        return str(load_driver().Device(ordinal).pci_bus_id())

    def findings(self) -> Iterator[Finding]:
        """Yield PyCUDA, nvcc, the driver, and whether GPUs can copy to each other directly."""
        from gauge_mc.devices.cuda.nvcc import describe, driver_release, find_nvcc

        pycuda = find_spec("pycuda") is not None
        detail = "installed" if pycuda else "not installed"
        yield Finding("pycuda (NVIDIA GPUs)", pycuda, detail, INSTALL)
        nvcc = find_nvcc()
        yield Finding("nvcc", nvcc is not None, describe(nvcc) if nvcc else "not found", INSTALL)
        driver = driver_release()
        if driver:
            yield Finding("NVIDIA driver", True, f"supports CUDA {driver[0]}.{driver[1]}")
        hint = self.hint()
        if hint:
            yield Finding("GPU", False, hint, UPDATE if "driver" in hint else INSTALL)
        elif pycuda and nvcc and driver:
            count = int(load_driver().Device.count())
            if count > 1:
                yield _peers(load_driver(), count)


def load_driver() -> Any:
    """Return ``pycuda.driver``, initialised.

    Raises
    ------
    GaugeError
        If PyCUDA is missing, or finds no GPU that works.
    """
    try:
        import pycuda.driver as driver
    except ImportError as error:
        raise GaugeError(
            f"PyCUDA is not installed or does not load ({error}): `{INSTALL}`, or compute on the "
            "CPU."
        ) from error
    try:
        driver.init()
    except driver.Error as error:
        raise GaugeError(
            f"CUDA finds no GPU that works here ({error}): check `nvidia-smi`, or compute on the "
            "CPU."
        ) from error
    return driver


def _peers(driver: Any, count: int) -> Finding:
    """Find out which GPUs can copy to which directly."""
    gpus = [driver.Device(ordinal) for ordinal in range(count)]
    pairs = list(permutations(range(count), 2))
    through_host = [f"{a}→{b}" for a, b in pairs if not gpus[a].can_access_peer(gpus[b])]
    detail = "all copy to each other directly"
    if through_host:
        detail = f"copies go through the host's memory for {', '.join(through_host)}"
    return Finding("between GPUs", True, detail)


BACKENDS.register(Cuda())
