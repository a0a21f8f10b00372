"""The compiler of kernels for AMD GPUs, hipcc: where it is, its command line and its reports."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass

from gauge_mc.devices.base import Registers
from gauge_mc.devices.cache import version_of
from gauge_mc.devices.cuda.kernel import Bounds
from gauge_mc.devices.hip.bindings import rocm_folders
from gauge_mc.devices.hip.driver import INSTALL
from gauge_mc.devices.kernels import Variant
from gauge_mc.errors import GaugeError

AMD = ("env", "HIP_PLATFORM=amd")
"""Program and variable that keep hipcc from calling nvcc where that is installed."""

HIPCC = ["-x", "hip", "-O3", "-std=c++17", "-c", "--cuda-device-only"]
"""Options of hipcc for an object with the code of one architecture."""

QUIET = [
    "-Wno-cuda-compat",  # of pragmas in brackets, which hipcc understands as nvcc does
    "-Wno-bitwise-instead-of-logical",  # of masks, which are joined as those of several lanes are
    "-Wno-pass-failed",  # of loops that are not unrolled, since their length is not known
    "-Wno-unused-command-line-argument",  # of libraries that hipcc itself names
]
"""Warnings that are not wanted."""

REMARKS = "-Rpass-analysis=kernel-resource-usage"
"""Option for reports of registers, spills, shared memory and occupancy (since LLVM 15)."""

RESOURCE = re.compile(r"remark: +([A-Z][\w ]*?)(?: \[[^]]*\])?: (\d+)")
"""Pattern of a number in such a report, with its name."""

# These affect only single precision, as those of nvcc do.
USUAL = ["-fgpu-flush-denormals-to-zero", "-fno-hip-fp32-correctly-rounded-divide-sqrt"]
"""Options for the arithmetic of kernels; products and sums are fused by default."""

STRICT = [
    "-fno-gpu-flush-denormals-to-zero",
    "-fhip-fp32-correctly-rounded-divide-sqrt",
    "-ffp-contract=off",
]
"""Options for that of IEEE 754, with fused operations only where the source says so."""


@dataclass(frozen=True)
class Resources:
    """Use of a compute unit by a kernel, as the compiler reports it."""

    vectors: int
    """Registers per thread, those for accumulation included."""
    spilled: int
    """Bytes per thread of memory, for spilled registers and arrays."""
    shared: int
    """Bytes per block of shared memory (LDS)."""
    waves: int
    """Waves that fit on a SIMD unit at a time."""


@dataclass(frozen=True)
class HipCompiler:
    """A compiler of kernels for AMD GPUs."""

    path: str
    """File of the program hipcc."""

    @property
    def identity(self) -> str:
        """Its own description of its version."""
        return version_of(*AMD, self.path) or ""

    def __str__(self) -> str:
        match = re.search(r"HIP version.*|clang version [\d.]+", self.identity)
        return f"{match[0] if match else 'HIP, unknown version'}, {self.path}"

    def compiles_for(self, architecture: str) -> bool:
        """Return True: hipcc does not say for which architectures it compiles."""
        return True

    def command(self, architecture: str, variant: Variant, bounds: Bounds) -> list[str]:
        """Return the command that compiles a kernel for an architecture."""
        return [
            *AMD,
            self.path,
            *HIPCC,
            *QUIET,
            REMARKS,
            f"--offload-arch={architecture}",
            *(STRICT if variant.strict else USUAL),
            f"-DMAX_THREADS={bounds.threads}",
            f"-DMIN_BLOCKS={bounds.blocks}",
            *variant.definitions,
        ]

    @staticmethod
    def registers_of(report: str, function: str) -> Registers | None:
        """Read the register usage of a function from a report, or return None."""
        resources = resources_of(report, function)
        return Registers(resources.vectors, resources.spilled) if resources else None


def wave_of(architecture: str) -> int:
    """Return the number of threads of a wave: 64 for GCN and CDNA, 32 for RDNA."""
    return 64 if architecture.startswith("gfx9") else 32


def resources_of(report: str, function: str) -> Resources | None:
    """Read what a function uses from a report, or return None."""
    lines = report.partition(f"Function Name: {function} ")[2].partition("Function Name:")[0]
    counts = {name: int(number) for name, number in RESOURCE.findall(lines)}
    try:
        vectors = counts["VGPRs"] + counts.get("AGPRs", 0)
        return Resources(vectors, counts["ScratchSize"], counts["LDS Size"], counts["Occupancy"])
    except KeyError:
        return None


def find_hip_compiler() -> HipCompiler | None:
    """Return the first compiler: hipcc on PATH, else that of ROCm (ROCM_PATH, HIP_PATH)."""
    return next(map(HipCompiler, _paths()), None)


def _paths() -> Iterator[str]:
    on_path = shutil.which("hipcc")
    yield from [on_path] if on_path else []
    programs = (str(folder / "bin" / "hipcc") for folder in rocm_folders())
    yield from (path for path in programs if os.access(path, os.X_OK))


def usable_compiler() -> HipCompiler:
    """Return the compiler that `find_hip_compiler` finds."""
    hip_compiler = find_hip_compiler()
    if hip_compiler is None:
        raise GaugeError(
            "No compiler of kernels for AMD GPUs was found: install hipcc "
            f"(`{INSTALL.partition('  ')[0]}`), or put the bin folder of ROCm on PATH."
        )
    return hip_compiler
