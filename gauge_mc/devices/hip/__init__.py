"""The HIP backend: AMD GPUs, with kernels compiled by hipcc. It has never run on hardware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gauge_mc.devices import BACKENDS
from gauge_mc.devices.base import Finding
from gauge_mc.devices.cuda import GpuBackend
from gauge_mc.devices.energy import INSTALL_ROCM_SMI, amd_counter
from gauge_mc.devices.hip import bindings, compiler
from gauge_mc.devices.hip.driver import INSTALL, gpus_of_system, load_driver, refusal
from gauge_mc.errors import GaugeError

if TYPE_CHECKING:
    from gauge_mc.devices.hip.device import HipDevice

JOIN = "sudo usermod -aG render,video $USER   # and log in again"


class Hip(GpuBackend):
    """The AMD GPUs that are visible to HIP."""

    name = "hip"
    preference = 1
    remedy = INSTALL

    def driver(self) -> Any:
        """Return HIP's library in the form of a driver, initialised."""
        return load_driver()

    def count(self) -> int:
        """Return the number of GPUs; see `Backend.count`."""
        count = int(load_driver().Device.count())
        compiler.usable_compiler()
        return count

    def hint(self) -> str | None:
        """Explain why a GPU that HIP could use cannot be used; see `Backend.hint`."""
        if not gpus_of_system() or bindings.hip_library() is None:
            return None
        try:
            self.count()
        except GaugeError as error:
            return f"There is a GPU, but it cannot be used: {error}"
        return None

    def is_here(self) -> bool:
        """Return whether there is an AMD GPU; see `Backend.is_here`."""
        return gpus_of_system() > 0

    def open(self, ordinal: int = 0, threads: int | None = None, worker: bool = False) -> HipDevice:
        """Open a GPU; see `Backend.open`."""
        from gauge_mc.devices.hip.device import HipDevice

        return HipDevice(ordinal)

    def findings(self) -> Iterator[Finding]:
        """Check HIP, the compiler, permissions, energy counters, and copies between GPUs."""
        if not self.is_here():
            return
        installed = bindings.hip_library() is not None
        detail = "installed" if installed else "not installed"
        yield Finding("HIP (AMD GPUs)", installed, detail, INSTALL)
        hipcc = compiler.find_hip_compiler()
        yield Finding("HIP compiler", hipcc is not None, str(hipcc or "not found"), INSTALL)
        if reason := refusal():
            yield Finding("AMD driver", False, reason, JOIN)
        yield from self.findings_of_gpus(amd_counter, INSTALL_ROCM_SMI)


BACKENDS.register(Hip())
