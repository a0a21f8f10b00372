"""The CUDA compiler, nvcc or the library NVRTC: its place, command line, reports and installation.

What calls and compiles for NVIDIA GPUs is installed from wheels, so that nothing is built: the
bindings of the driver, ``cuda-bindings``, and the library NVRTC if there is no compiler.
"""

from __future__ import annotations

import functools
import importlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import requires
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from gauge_mc.devices.base import Registers
from gauge_mc.devices.cache import answer_of, version_of
from gauge_mc.devices.cuda.driver import INSTALL, LEAST_DRIVER, capabilities, driver_release
from gauge_mc.devices.cuda.kernel import Bounds
from gauge_mc.devices.cuda.nvrtc import NvrtcError, NvrtcLibrary
from gauge_mc.devices.kernels import Variant
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import PYTHON

NVCC = ["-O3", "-cubin", "-Wreorder", "-Wext-lambda-captures-this"]
"""Options of nvcc alone: what it makes, and further warnings."""

NVRTC = ["--device-as-default-execution-space", "--diag-suppress=549"]
"""Options of NVRTC alone: constant expressions may call functions of C++, and objects whose own
functions set them are not reported as used before.
"""

# These affect only single precision. Subnormal numbers do not matter for links, and less accurate
# divisions and roots (by 1 ulp) make the heatbath 10 % faster.
USUAL = ["-ftz=true", "-prec-div=false", "-prec-sqrt=false"]
"""Options for the arithmetic of kernels."""

STRICT = ["-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=false"]
"""Options for that of IEEE 754, with fused operations only where the source says so."""

USUAL_HOME = "/usr/local/cuda"
"""Default location of the CUDA toolkit, used if neither CUDA_HOME nor CUDA_PATH is set."""

LIBRARIES = ("lib", "lib64")
"""Folders of libraries in toolkits, wheels and environments."""

PROGRAM = Path(__file__).with_name("nvrtc.py")
"""The program that compiles by the library NVRTC."""

LIBRARY = "libnvrtc.so.[0-9]*"
"""Pattern of the name of this library, which ends with its release."""


class GpuCompiler(Protocol):
    """A compiler of kernels for GPUs."""

    @property
    def identity(self) -> str:
        """Its own description of its version."""

    def compiles_for(self, architecture: str) -> bool:
        """Return whether it knows an architecture; True if it does not say."""

    def command(self, architecture: str, variant: Variant, bounds: Bounds) -> list[str]:
        """Return the command that compiles a kernel for an architecture."""

    def registers_of(self, report: str, function: str) -> Registers | None:
        """Read the register usage of a function from a report of the compiler, or return None."""


@dataclass(frozen=True)
class CudaCompiler:
    """A compiler of kernels for NVIDIA GPUs, the program nvcc or the library NVRTC."""

    path: str
    """File of the program or library."""

    @property
    def is_library(self) -> bool:
        """Whether it is NVRTC, which needs no C++ compiler."""
        return Path(self.path).name.startswith("libnvrtc")

    @property
    def words(self) -> tuple[str, ...]:
        """The program, and what its options follow."""
        if self.is_library:
            return sys.executable, "-I", "-S", str(PROGRAM), self.path
        return (self.path,)

    @property
    def identity(self) -> str:
        """Its own description of its version."""
        return _version_of_library(self.path) if self.is_library else version_of(*self.words) or ""

    @property
    def release(self) -> tuple[int, int] | None:
        """Major and minor release of CUDA, or None if it is unknown."""
        match = re.search(r"release (\d+)\.(\d+)", self.identity)
        return (int(match[1]), int(match[2])) if match else None

    def __str__(self) -> str:
        lines = self.identity.splitlines()
        line = next((line for line in lines if "release" in line), "unknown release")
        return f"{line}, {self.path}"

    def compiles_for(self, architecture: str) -> bool:
        """Return whether it knows an architecture, such as ``sm_90``; True if it does not say."""
        code, printed = answer_of(*self.words, "--list-gpu-code")
        return code != 0 or architecture in printed.split()

    def command(self, architecture: str, variant: Variant, bounds: Bounds) -> list[str]:
        """Return the command that compiles a kernel for an architecture."""
        return [
            *self.words,
            *(NVRTC if self.is_library else NVCC),
            "-std=c++17",
            f"-arch={architecture}",
            "--ptxas-options=-v",
            *(STRICT if variant.strict else USUAL),
            f"-DMAX_THREADS={bounds.threads}",
            f"-DMIN_BLOCKS={bounds.blocks}",
            *variant.definitions,
        ]

    @staticmethod
    def registers_of(report: str, function: str) -> Registers | None:
        """Read the register usage of a function from the report of ``ptxas -v``, or return None."""
        report = report.partition(f"entry function '{function}'")[2].partition("entry function")[0]
        used = re.search(r"Used (\d+) registers", report)
        spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
        if not used or not spilled:
            return None
        return Registers(int(used[1]), int(spilled[1]) + int(spilled[2]))


@functools.cache
def _version_of_library(path: str) -> str:
    """Return what NVRTC says of its version, or nothing if it does not load.

    It is asked in this process: another one, which compiles, takes 0.1 s to begin.
    """
    try:
        return NvrtcLibrary(path).version()
    except (OSError, AttributeError, NvrtcError):
        return ""


def find_cuda_compiler() -> CudaCompiler | None:
    """Return the first compiler whose output the driver can run; the first one if there is none.

    Preferred are nvcc on PATH, then in the toolkit at CUDA_HOME or CUDA_PATH (if neither is set, at
    `USUAL_HOME`), then the library in NVIDIA's wheels or beside Python, and then nvcc in the
    wheels. Without the C++ compiler that nvcc calls, the libraries come first.
    """
    compilers = [CudaCompiler(path) for path in _paths()]
    if not (shutil.which("gcc") or "NVCC_CCBIN" in os.environ):
        compilers.sort(key=lambda x: not x.is_library)
    driver = driver_release()
    if driver is None:
        return next(iter(compilers), None)
    fitting = (x for x in compilers if (x.release or driver)[0] <= driver[0])
    return next(fitting, next(iter(compilers), None))


def usable_compiler() -> CudaCompiler:
    """Return the compiler that `find_cuda_compiler` finds."""
    cuda_compiler = find_cuda_compiler()
    if cuda_compiler is None:
        raise GaugeError(
            "No compiler of GPU kernels was found, neither the library NVRTC nor the program nvcc: "
            f"run `{INSTALL}`, or put the bin folder of a CUDA toolkit on PATH."
        )
    return cuda_compiler


def _paths() -> Iterator[str]:
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    toolkits = [Path(root) for root in roots if root] or [Path(USUAL_HOME)]
    on_path, wheels = shutil.which("nvcc"), wheel_folders()
    programs = [str(folder / "bin" / "nvcc") for folder in toolkits]
    yield from [on_path] if on_path else []
    yield from filter(_can_run, programs)
    places = [t / name for t in (*toolkits, *wheels, Path(sys.prefix)) for name in LIBRARIES]
    libraries = {path for place in places for path in place.glob(LIBRARY)}
    releases = {path: [int(word) for word in re.findall(r"\d+", path.name)] for path in libraries}
    yield from map(str, sorted(libraries, key=releases.__getitem__, reverse=True))
    yield from filter(_can_run, (str(folder / "bin" / "nvcc") for folder in wheels))


def wheel_folders() -> list[Path]:
    """Return the folders of NVIDIA's wheels, such as ``nvidia/cu13``, newest first."""
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations or [] if spec else []
    return sorted((path for place in places for path in Path(place).glob("cu*")), reverse=True)


def _can_run(path: str) -> bool:
    return os.access(path, os.X_OK)


MEGABYTES = {"cuda-bindings": 9, "nvidia-cuda-nvrtc": 91}
"""Approximate size of the wheels that are downloaded, with what they need."""

LEAST_OF_CUDA_13 = (7, 5)
"""Least compute capability for which CUDA 13 compiles (CUDA 13.0 release notes)."""


def install(say: Callable[[str], None]) -> None:
    """Install wheels into the current Python environment."""
    driver = driver_release()
    if driver and driver[0] < LEAST_DRIVER:
        raise GaugeError(
            f"The NVIDIA driver supports CUDA {driver[0]}.{driver[1]}, but NVIDIA's wheels need "
            f"{LEAST_DRIVER}.0: update the driver (`apt install nvidia-driver`), and try again."
        )
    bindings, compiler = requirements(extra_for(driver))
    compiler_fits = _compiler_fits(driver)
    wheels = [bindings] if compiler_fits else [bindings, compiler]
    size = MEGABYTES["cuda-bindings"] + (0 if compiler_fits else MEGABYTES["nvidia-cuda-nvrtc"])
    say(f"installing {', '.join(wheels)}: about {size} MB are downloaded, and nothing is built")
    _checked([*PYTHON, "-m", "pip", "--disable-pip-version-check", "install", *wheels])
    importlib.invalidate_caches()
    if not _compiler_fits(driver):
        raise GaugeError(
            "NVIDIA's wheels were installed, but the library NVRTC was not found in them: install "
            "a CUDA toolkit, put its bin folder on PATH, and try again."
        )


def extra_for(driver: tuple[int, int] | None) -> str:
    """Return the extra with wheels of the CUDA that the driver and all GPUs here understand."""
    old = driver is not None and driver[0] == LEAST_DRIVER
    return (
        "cuda12"
        if old or min(capabilities(), default=LEAST_OF_CUDA_13) < LEAST_OF_CUDA_13
        else "cuda"
    )


def requirements(extra: str) -> list[str]:
    """Return the requirements of an extra, the bindings of the driver first."""
    lines = [text.partition(";") for text in requires("gauge-mc") or []]
    return sorted(name.strip() for name, _, marker in lines if f"extra == '{extra}'" in marker)


def _compiler_fits(driver: tuple[int, int] | None) -> bool:
    """Return whether there is a compiler for the driver and all GPUs here."""
    cuda_compiler = find_cuda_compiler()
    if cuda_compiler is None or (
        driver and cuda_compiler.release and cuda_compiler.release[0] > driver[0]
    ):
        return False
    return all(cuda_compiler.compiles_for("sm_{}{}".format(*c)) for c in capabilities())


def _checked(command: Sequence[str]) -> None:
    """Run a command."""
    process = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if process.returncode:
        with tempfile.NamedTemporaryFile(
            "w", prefix="gauge-mc-install-", suffix=".log", delete=False
        ) as log:
            log.write(process.stdout)
        words = " ".join(command[:6])
        raise GaugeError(
            f"`{words} ...` failed: fix the first error in its output, {log.name}, and try again."
        )
