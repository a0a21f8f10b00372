"""The CUDA backend: NVIDIA GPUs, with kernels compiled by nvcc or NVRTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

from gauge_mc.devices import BACKENDS
from gauge_mc.devices.base import Backend, Finding
from gauge_mc.devices.cuda.driver import (
    INSTALL,
    LEAST_DRIVER,
    driver_mismatch,
    driver_release,
    gpus_of_driver,
    installed_bindings,
    load_driver,
)
from gauge_mc.devices.cuda.install import findings_of_gpus
from gauge_mc.errors import GaugeError

if TYPE_CHECKING:
    from gauge_mc.devices.cuda.compiler import CudaCompiler
    from gauge_mc.devices.cuda.device import CudaDevice

UPDATE = "apt install nvidia-driver   # or a newer driver from NVIDIA"


class Cuda(Backend):
    """The NVIDIA GPUs that are visible to CUDA."""

    name = "cuda"
    label = "GPU"
    numbered = True
    preference = 2
    bench_extent = 48
    busy_sites = 2**20
    remedy = INSTALL

    def count(self) -> int:
        """Return the number of GPUs; see `Backend.count`."""
        from gauge_mc.devices.cuda.compiler import usable_compiler

        count = int(load_driver().Device.count())
        if reason := _mismatch(usable_compiler()):
            raise GaugeError(f"The GPU cannot be used: {reason}")
        return count

    def hint(self) -> str | None:
        """Explain why a GPU that the driver sees cannot be used; see `Backend.hint`."""
        from gauge_mc.devices.cuda.compiler import find_cuda_compiler

        if reason := driver_mismatch():
            return f"There is a GPU, but it cannot be used: {reason}"
        if not gpus_of_driver():
            return None
        compiler = find_cuda_compiler()
        lacking = [] if installed_bindings() else ["cuda-bindings"]
        lacking += [] if compiler else ["NVRTC"]
        if lacking:
            lacks = " and ".join(lacking)
            return f"There is a GPU, but it cannot be used without {lacks}: run `{INSTALL}`."
        if compiler and (reason := _mismatch(compiler)):
            return f"There is a GPU, but it cannot be used: {reason}"
        try:
            load_driver()
        except GaugeError as error:
            return f"There is a GPU, but it cannot be used: {error}"
        return None

    def open(
        self, ordinal: int = 0, threads: int | None = None, worker: bool = False
    ) -> CudaDevice:
        """Open a GPU; see `Backend.open`."""
        from gauge_mc.devices.cuda.device import CudaDevice

        return CudaDevice(ordinal)

    def install(self, say: Callable[[str], None]) -> None:
        """Install bindings of the driver and, if needed, a compiler; see `Backend.install`."""
        from gauge_mc.devices.cuda.install import install

        install(say)

    def identity(self, ordinal: int) -> str:
        """Return the PCI bus address of a GPU."""
        return str(load_driver().Device(ordinal).pci_bus_id())

    def findings(self) -> Iterator[Finding]:
        """Check bindings, the compiler, the driver, energy counters, and copies between GPUs."""
        from gauge_mc.devices.cuda import nvml
        from gauge_mc.devices.cuda.compiler import find_cuda_compiler

        name = installed_bindings()
        detail = "installed" if name else "not installed"
        yield Finding(f"{name or 'cuda-bindings'} (NVIDIA GPUs)", bool(name), detail, INSTALL)
        compiler = find_cuda_compiler()
        yield Finding("CUDA compiler", compiler is not None, str(compiler or "not found"), INSTALL)
        driver = driver_release()
        reason = _mismatch(compiler) if compiler else None
        if driver:
            detail = reason or f"supports CUDA {driver[0]}.{driver[1]}"
            yield Finding("NVIDIA driver", reason is None, detail, UPDATE)
        with suppress(GaugeError):  # reported when the GPUs are tested
            yield from findings_of_gpus(self, load_driver(), nvml.gpu_counter, nvml.INSTALL)


def _mismatch(compiler: CudaCompiler) -> str | None:
    """Explain why the driver cannot run a compiler's output, and what to do; None if it can."""
    driver, release = driver_release(), compiler.release
    if driver is None or release is None or driver[0] >= release[0]:
        return None
    supported = driver[0] >= LEAST_DRIVER
    remedy = f", or run `{INSTALL}`, which installs one of CUDA {driver[0]}" if supported else ""
    return (
        f"the driver supports CUDA {driver[0]}.{driver[1]}, but the compiler {compiler.path} "
        f"belongs to CUDA {release[0]}.{release[1]}: update the driver (`apt install "
        f"nvidia-driver`){remedy}."
    )


BACKENDS.register(Cuda())
