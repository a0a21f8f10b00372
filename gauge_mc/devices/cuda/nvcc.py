"""The CUDA compiler: where it is, how it is called, what it reports; and the driver's release."""

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
"""Warnings besides those that are on anyway."""


USUAL_HOME = "/usr/local/cuda"
"""Where CUDA toolkits are installed if neither CUDA_HOME nor CUDA_PATH says otherwise."""


def find_nvcc() -> str | None:
    """Return the path of nvcc, or None.

    On PATH, or in the toolkit at CUDA_HOME or CUDA_PATH (if neither is set, at `USUAL_HOME`), or
    from NVIDIA's wheels.
    """
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")]
    named = [Path(root) for root in roots if root] or [Path(USUAL_HOME)]
    folders = [*named, *wheel_folders()]
    paths = [shutil.which("nvcc"), *(str(folder / "bin" / "nvcc") for folder in folders)]
    return next((path for path in paths if path and os.access(path, os.X_OK)), None)


def wheel_folders() -> list[Path]:
    """Return where NVIDIA's wheels install a toolkit, such as ``nvidia/cu13``, newest first."""
    spec = find_spec("nvidia")
    places = spec.submodule_search_locations or [] if spec else []
    return sorted((one for place in places for one in Path(place).glob("cu[0-9]*")), reverse=True)


def describe(nvcc: str) -> str:
    """Return the line in which nvcc states its release, and where it is."""
    lines = (version_of(nvcc) or "").splitlines()
    return next((line for line in lines if "release" in line), "unknown release") + f", {nvcc}"


def release(nvcc: str) -> tuple[int, int] | None:
    """Return the major and minor release of nvcc, or None if it does not tell."""
    found = re.search(r"release (\d+)\.(\d+)", version_of(nvcc) or "")
    return (int(found[1]), int(found[2])) if found else None


@functools.cache
def _driver_library() -> ctypes.CDLL | None:
    """Return the driver's library, initialised; None if there is none, or no GPU."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
        return library if library.cuInit(0) == 0 else None
    except (OSError, AttributeError):
        return None


def gpus_of_driver() -> int:
    """Return how many GPUs the driver sees, whether they can be used or not."""
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
    """Return the command that compiles a kernel to machine code for an architecture (``sm_90``)."""
    return [
        nvcc,
        "-std=c++17",
        "-O3",
        f"-arch={architecture}",
        "-cubin",
        "-Xptxas",
        "-v",
        *WARNINGS,
        # In single precision subnormal numbers never matter for links, and divisions and roots that
        # are 1 ulp less accurate make the heatbath a tenth faster.
        "-ftz=true",
        "-prec-div=false",
        "-prec-sqrt=false",
        f"-DMAX_THREADS={bounds.threads}",
        f"-DMIN_BLOCKS={bounds.blocks}",
        *variant.definitions,
    ]


def registers_of(report: str, function: str) -> Registers | None:
    """Return registers and spilled bytes of a function from what ptxas reports with ``-v``."""
    report = report.partition(f"entry function '{function}'")[2].partition("entry function")[0]
    used = re.search(r"Used (\d+) registers", report)
    spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    if not used or not spilled:
        return None
    return Registers(int(used[1]), int(spilled[1]) + int(spilled[2]))
