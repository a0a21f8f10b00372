"""The CUDA compiler nvcc (its location, command line and reports) and the driver's release."""

from __future__ import annotations

import ctypes
import functools
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

from gauge_mc.devices.base import Registers
from gauge_mc.devices.cache import version_of
from gauge_mc.devices.cuda.bounds import Bounds
from gauge_mc.devices.kernels import Variant

WARNINGS = ["-Wreorder", "-Wext-lambda-captures-this"]
"""Options that enable further warnings."""

# These affect only single precision. Subnormal numbers do not matter for links, and less accurate
# divisions and roots (by 1 ulp) make the heatbath 10 % faster.
USUAL = ["-ftz=true", "-prec-div=false", "-prec-sqrt=false"]
"""Options for the arithmetic of kernels."""

STRICT = ["-ftz=false", "-prec-div=true", "-prec-sqrt=true", "-fmad=false"]
"""Options for that of IEEE 754, with fused operations only where the source says so."""

USUAL_HOME = "/usr/local/cuda"
"""Default location of the CUDA toolkit, used if neither CUDA_HOME nor CUDA_PATH is set."""

MISMATCHES = {
    803: "restart the machine",
    804: "restart the machine, or remove a cuda-compat library from LD_LIBRARY_PATH",
}
"""Remedies by result of cuInit: SYSTEM_DRIVER_MISMATCH and COMPAT_NOT_SUPPORTED_ON_DEVICE."""


def find_nvcc() -> str | None:
    """Return the path of nvcc, or None if it is not found.

    It is searched on PATH, then in the toolkit at CUDA_HOME or CUDA_PATH (if neither is set, at
    `USUAL_HOME`), and then in NVIDIA's wheels.
    """
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    named = [Path(root) for root in roots if root] or [Path(USUAL_HOME)]
    folders = [*named, *wheel_folders()]
    paths = [shutil.which("nvcc"), *(str(folder / "bin" / "nvcc") for folder in folders)]
    return next((path for path in paths if path and os.access(path, os.X_OK)), None)


def wheel_folders() -> list[Path]:
    """Return the toolkit folders of NVIDIA's wheels, such as ``nvidia/cu13``, newest first."""
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations or [] if spec else []
    return sorted((one for place in places for one in Path(place).glob("cu[0-9]*")), reverse=True)


def describe(nvcc: str) -> str:
    """Return the release and the path of nvcc, for the user."""
    lines = (version_of(nvcc) or "").splitlines()
    return next((line for line in lines if "release" in line), "unknown release") + f", {nvcc}"


def release(nvcc: str) -> tuple[int, int] | None:
    """Return the major and minor release of nvcc, or None if it is unknown."""
    found = re.search(r"release (\d+)\.(\d+)", version_of(nvcc) or "")
    return (int(found[1]), int(found[2])) if found else None


@functools.cache
def _load_driver() -> tuple[ctypes.CDLL | None, int]:
    """Load and initialise the driver's library; also return the result of cuInit, 0 on success."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        return library, library.cuInit(0)
    except (OSError, AttributeError):
        return None, 0


def _driver_library() -> ctypes.CDLL | None:
    """Return the driver's library, initialised, or None without a driver or a GPU."""
    library, result = _load_driver()
    return library if result == 0 else None


def driver_mismatch() -> str | None:
    """Explain why the driver's library does not work with its kernel module, or return None."""
    result = _load_driver()[1]
    if result not in MISMATCHES:
        return None
    return (
        f"the library of the NVIDIA driver does not match its kernel module (CUDA error {result}), "
        f"as after an update of the driver; {MISMATCHES[result]}."
    )


def gpus_of_driver() -> int:
    """Return the number of GPUs that the driver sees, usable or not."""
    library, count = _driver_library(), ctypes.c_int(0)
    if library is None or library.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return 0
    return count.value


def driver_release() -> tuple[int, int] | None:
    """Return the latest release of CUDA that the driver supports, or None without a driver."""
    library, version = _driver_library(), ctypes.c_int(0)
    if library is None or library.cuDriverGetVersion(ctypes.byref(version)) != 0:
        return None
    return version.value // 1000, version.value % 1000 // 10


def nvcc_command(nvcc: str, architecture: str, variant: Variant, bounds: Bounds) -> list[str]:
    """Return the command that compiles a kernel for an architecture, such as ``sm_90``."""
    return [
        nvcc,
        "-std=c++17",
        "-O3",
        f"-arch={architecture}",
        "-cubin",
        "-Xptxas",
        "-v",
        *WARNINGS,
        *(STRICT if variant.strict else USUAL),
        f"-DMAX_THREADS={bounds.threads}",
        f"-DMIN_BLOCKS={bounds.blocks}",
        *variant.definitions,
    ]


def registers_of(report: str, function: str) -> Registers | None:
    """Read the register usage of a function from the report of ``ptxas -v``, or return None."""
    report = report.partition(f"entry function '{function}'")[2].partition("entry function")[0]
    used = re.search(r"Used (\d+) registers", report)
    spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    if not used or not spilled:
        return None
    return Registers(int(used[1]), int(spilled[1]) + int(spilled[2]))
