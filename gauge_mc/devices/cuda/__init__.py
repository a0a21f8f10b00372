"""The CUDA backend: NVIDIA GPUs, with kernels compiled by nvcc or NVRTC."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import permutations
from typing import TYPE_CHECKING, Any

from gauge_mc.devices import BACKENDS
from gauge_mc.devices.base import Backend, Finding
from gauge_mc.devices.cuda import compiler
from gauge_mc.devices.cuda.driver import (
    INSTALL,
    LEAST_DRIVER,
    driver_mismatch,
    driver_release,
    gpus_of_driver,
    installed_bindings,
    load_driver,
)
from gauge_mc.devices.energy import INSTALL_NVML, EnergyCounter, nvidia_counter
from gauge_mc.errors import GaugeError

if TYPE_CHECKING:
    from gauge_mc.devices.cuda.device import CudaDevice

UPDATE = "apt install nvidia-driver   # or a newer driver from NVIDIA"


class GpuBackend(Backend):
    """GPUs, whose driver has the form of ``pycuda.driver``."""

    label = "GPU"
    numbered = True
    bench_extent = 48
    busy_sites = 2**20

    @abstractmethod
    def driver(self) -> Any:
        """Return the driver, initialised."""

    def identity(self, ordinal: int) -> str:
        """Return the PCI bus address of a GPU."""
        return str(self.driver().Device(ordinal).pci_bus_id())

    def findings_of_gpus(
        self, counter: Callable[[str], EnergyCounter], remedy: str
    ) -> Iterator[Finding]:
        """Check energy counters, and which pairs of GPUs can copy to each other directly."""
        with suppress(GaugeError):  # reported when the GPUs are tested
            driver, count = self.driver(), self.count()
            subject = f"energy of the {self.label}s"
            try:
                counters = [counter(self.identity(ordinal)) for ordinal in range(count)]
            except GaugeError as error:
                yield Finding(subject, False, f"not available: {error}", remedy)
            else:
                yield Finding(subject, True, ", ".join(sorted({c.source for c in counters})))
            gpus = [driver.Device(ordinal) for ordinal in range(count)]
            pairs = list(permutations(range(count), 2))
            through_host = [f"{a}→{b}" for a, b in pairs if not gpus[a].can_access_peer(gpus[b])]
            detail = "all GPUs copy to each other directly"
            if through_host:
                detail = f"copies go through host memory for {', '.join(through_host)}"
            if pairs:
                yield Finding("copies between GPUs", True, detail)


class Cuda(GpuBackend):
    """The NVIDIA GPUs that are visible to CUDA."""

    name = "cuda"
    preference = 2
    remedy = INSTALL

    def driver(self) -> Any:
        """Return CUDA's driver, initialised."""
        return load_driver()

    def count(self) -> int:
        """Return the number of GPUs; see `Backend.count`."""
        count = int(load_driver().Device.count())
        if reason := _mismatch(compiler.usable_compiler()):
            raise GaugeError(f"The GPU cannot be used: {reason}")
        return count

    def hint(self) -> str | None:
        """Explain why a GPU that the driver sees cannot be used; see `Backend.hint`."""
        if reason := driver_mismatch():
            return f"There is a GPU, but it cannot be used: {reason}"
        if not gpus_of_driver():
            return None
        cuda_compiler = compiler.find_cuda_compiler()
        lacking = [] if installed_bindings() else ["cuda-bindings"]
        lacking += [] if cuda_compiler else ["NVRTC"]
        if lacking:
            lacks = " and ".join(lacking)
            return f"There is a GPU, but it cannot be used without {lacks}: run `{INSTALL}`."
        if cuda_compiler and (reason := _mismatch(cuda_compiler)):
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
        compiler.install(say)

    def findings(self) -> Iterator[Finding]:
        """Check bindings, the compiler, the driver, energy counters, and copies between GPUs."""
        name = installed_bindings()
        detail = "installed" if name else "not installed"
        yield Finding(f"{name or 'cuda-bindings'} (NVIDIA GPUs)", bool(name), detail, INSTALL)
        cuda_compiler = compiler.find_cuda_compiler()
        shown = str(cuda_compiler or "not found")
        yield Finding("CUDA compiler", cuda_compiler is not None, shown, INSTALL)
        driver = driver_release()
        reason = _mismatch(cuda_compiler) if cuda_compiler else None
        if driver:
            detail = reason or f"supports CUDA {driver[0]}.{driver[1]}"
            yield Finding("NVIDIA driver", reason is None, detail, UPDATE)
        yield from self.findings_of_gpus(nvidia_counter, INSTALL_NVML)


def _mismatch(cuda_compiler: compiler.CudaCompiler) -> str | None:
    """Explain why the driver cannot run a compiler's output, and what to do; None if it can."""
    driver, release = driver_release(), cuda_compiler.release
    if driver is None or release is None or driver[0] >= release[0]:
        return None
    supported = driver[0] >= LEAST_DRIVER
    remedy = f", or run `{INSTALL}`, which installs one of CUDA {driver[0]}" if supported else ""
    return (
        f"the driver supports CUDA {driver[0]}.{driver[1]}, but the compiler {cuda_compiler.path} "
        f"belongs to CUDA {release[0]}.{release[1]}: update the driver (`apt install "
        f"nvidia-driver`){remedy}."
    )


BACKENDS.register(Cuda())
