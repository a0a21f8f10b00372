"""The CUDA compiler: where it is, how it is called, what it reports."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from gauge_mc.devices.base import Registers
from gauge_mc.devices.bounds import Bounds
from gauge_mc.devices.source import Variant, version_of


def find_nvcc() -> str | None:
    """The path of nvcc: on PATH, or under CUDA_HOME, CUDA_PATH or /usr/local/cuda."""
    found = shutil.which("nvcc")
    roots = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    paths = [found] + [str(Path(root) / "bin" / "nvcc") for root in roots if root]
    return next((path for path in paths if path and os.access(path, os.X_OK)), None)


def nvcc_release(nvcc: str) -> str:
    """The line in which nvcc says which release it is."""
    lines = (version_of(nvcc) or "").splitlines()
    return next((line for line in lines if "release" in line), "of an unknown release")


def nvcc_command(nvcc: str, architecture: str, variant: Variant, bounds: Bounds) -> list[str]:
    """The command that compiles a kernel to machine code for an architecture such as ``sm_90``."""
    return [
        nvcc,
        "-std=c++17",
        "-O3",
        f"-arch={architecture}",
        "-cubin",
        "-Xptxas",
        "-v",
        # Single precision: subnormal links are none, and 1 ulp more saves a tenth of the heatbath.
        "-ftz=true",
        "-prec-div=false",
        "-prec-sqrt=false",
        f"-DMAX_THREADS={bounds.threads}",
        f"-DMIN_BLOCKS={bounds.blocks}",
        *variant.definitions,
    ]


def registers_of(report: str, kernel: str) -> Registers | None:
    """Registers and spilled bytes of a kernel in what ptxas reports with ``-v``."""
    report = report.partition(f"entry function '{kernel}'")[2].partition("entry function")[0]
    used = re.search(r"Used (\d+) registers", report)
    spilled = re.search(r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    if not used or not spilled:
        return None
    return Registers(int(used[1]), int(spilled[1]) + int(spilled[2]))
