"""The CPU backend: SIMD lanes and threads, with kernels compiled by a C++ compiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gauge_mc.devices import BACKENDS, energy
from gauge_mc.devices.base import Backend, Finding
from gauge_mc.devices.cpu import compiler, topology
from gauge_mc.errors import GaugeError
from gauge_mc.quoting import shortened

if TYPE_CHECKING:
    from gauge_mc.devices.cpu.device import CpuDevice

INSTALL = "apt install g++   # or another C++ compiler"


class Cpu(Backend):
    """The cores that this process may run on."""

    name = "cpu"
    label = "CPU"
    numbered = False
    preference = 0
    bench_extent = 16
    busy_sites = 2**14
    remedy = INSTALL

    def count(self) -> int:
        """Return 1."""
        return 1

    def open(self, ordinal: int = 0, threads: int | None = None, worker: bool = False) -> CpuDevice:
        """Open the CPU with the given number of threads; see `Backend.open`."""
        from gauge_mc.devices.cpu.device import CpuDevice

        return CpuDevice(threads, worker=worker)

    def available_threads(self) -> int:
        """Return the number of cores that this process may use."""
        return topology.usable_cores()

    def findings(self) -> Iterator[Finding]:
        """Check the processor, its energy counters and the C++ compilers."""
        yield Finding("processor", True, compiler.processor()[0])
        yield self._energy()
        for command in compiler.candidates():
            shown, text = f"C++ compiler {shortened(command)}", compiler.version(command)
            if text is None:
                yield Finding(shown, False, "does not run, or does not end", INSTALL)
                continue
            try:
                bits = 8 * compiler.Compiler(command, text).register_bytes
            except GaugeError as error:
                yield Finding(shown, False, str(error), INSTALL)
                continue
            stated = next(iter(text.splitlines()), "states no version")
            yield Finding(shown, True, f"{stated}, registers of {bits} bits")
        if not compiler.candidates():
            yield Finding("C++ compiler", False, "none found", INSTALL)

    def _energy(self) -> Finding:
        """Check whether the energy of the processor can be read."""
        subject = f"energy of the {self.label}"
        try:
            names = ", ".join(c.name for c in energy.package_counters())
        except GaugeError as error:
            absent = "" if compiler.ARM else energy.LOAD
            remedy = energy.ALLOW if any(energy.POWERCAP.glob("intel-rapl:*")) else absent
            return Finding(subject, False, f"not available: {error}", remedy)
        return Finding(subject, True, f"RAPL, {names}")


BACKENDS.register(Cpu())
