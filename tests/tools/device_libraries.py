"""Compile kernels for newer AMD GPUs by a newer Clang with older device libraries of ROCm.

A distribution may have a Clang that knows GPUs for which its ROCm has no libraries yet. These are
bitcode, which every later LLVM reads, and they have one file for each architecture, which contains
nothing but its number.
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from gauge_mc.devices.hip.compiler import HipCompiler

CLANGS = [f"clang-{release}" for release in range(25, 16, -1)]
"""Names of Clang, the newest first, since the one that knows gfx942."""

ARCHITECTURES = ("gfx942", "gfx1100")
"""Architectures for which the libraries may lack a file."""

HOME = Path("/usr")
"""Folder in which a distribution has HIP's headers, and its libraries below ``lib``."""

NUMBER = """target triple = "amdgcn-amd-amdhsa"
@__oclc_ISA_version = linkonce_odr protected local_unnamed_addr addrspace(4) constant i32 {}
"""
"""The file of an architecture, in LLVM's language."""


def find_newer_compiler() -> HipCompiler | None:
    """Return Clang, for which this process now has libraries; None if one of both is missing."""
    clang = next(filter(None, map(shutil.which, CLANGS)), None)
    folder = next(HOME.glob("lib/**/amdgcn/bitcode"), None)
    if clang is None or folder is None:
        return None
    made = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, made)
    for one in folder.glob("*.bc"):
        (made / one.name).symlink_to(one)
    for one in ARCHITECTURES:
        write_number(clang, one, made)
    os.environ.update(HIP_DEVICE_LIB_PATH=str(made), ROCM_PATH=str(HOME))  # which Clang reads
    return HipCompiler(clang)


def write_number(clang: str, architecture: str, folder: Path) -> None:
    """Write the file of an architecture, unless there is one."""
    output = folder / f"oclc_isa_version_{architecture.removeprefix('gfx')}.bc"
    if not output.exists():
        options = ["-x", "ir", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm", "-c", "-"]
        text = NUMBER.format(number_of(architecture))
        subprocess.run([clang, *options, "-o", output], input=text, text=True, check=True)


def number_of(architecture: str) -> int:
    """Return the number of an architecture: 9010 for gfx90a, 11000 for gfx1100."""
    digits = architecture.removeprefix("gfx")
    return int(digits[:-2]) * 1000 + int(digits[-2], 16) * 100 + int(digits[-1], 16)
