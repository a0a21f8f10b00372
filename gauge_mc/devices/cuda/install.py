"""Installation of PyCUDA, and of NVIDIA's compiler from wheels if there is no CUDA toolkit.

PyCUDA has no wheels, and its build looks for a toolkit only in the usual places. This module writes
the location of the headers to ``siteconf.py``, PyCUDA's own configuration file. The build omits
CURAND, which gauge-mc does not use. It does not need the driver's library either: PyCUDA is linked
against an empty library of the same name.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import requires
from pathlib import Path

from gauge_mc.devices.cpu.compiler import find_compiler
from gauge_mc.devices.cuda.nvcc import find_nvcc, wheel_folders
from gauge_mc.errors import GaugeError

HEADERS = ("cuda.h", "cudaProfiler.h")
"""Headers that PyCUDA includes."""

CONFIGURATION = """\
CUDA_ROOT = {root!r}
CUDA_ENABLE_CURAND = False
CUDADRV_LIB_DIR = [{stubs!r}]
LDFLAGS = ["-L" + {stubs!r}, "-Wl,--no-as-needed", "-lcuda"]
"""
"""Contents of ``siteconf.py``.

``--no-as-needed`` is required because the empty library defines no symbols, so that the linker
would otherwise drop it.
"""


def install(say: Callable[[str], None]) -> None:
    """Install PyCUDA into the current Python environment, and NVIDIA's wheels if needed.

    Parameters
    ----------
    say : callable
        Shows the user a line of text; called before every step.

    Raises
    ------
    GaugeError
        If pip or the compiler fails, or the headers of the wheels are not found.
    """
    pycuda, *wheels = requirements()
    toolkit = find_toolkit()
    if toolkit is None:
        say(f"installing NVIDIA's compiler and headers: {', '.join(wheels)}")
        _pip("install", *wheels)
        importlib.invalidate_caches()
        toolkit = find_toolkit()
        if toolkit is None:
            raise GaugeError(
                "NVIDIA's wheels were installed, but their headers were not found: install a CUDA "
                "toolkit, put its bin folder on PATH, and try again."
            )
    say(f"building {pycuda} against {toolkit}; this takes a few minutes")
    with tempfile.TemporaryDirectory() as folder:
        _pip("install", str(_configured_source(pycuda, toolkit, Path(folder))))


def requirements() -> list[str]:
    """Return the requirements of the extra ``cuda``, PyCUDA first."""
    needed = [text.partition(";") for text in requires("gauge-mc") or []]
    names = [name.strip() for name, _, marker in needed if "extra == 'cuda'" in marker]
    return sorted(names, key=lambda name: not name.startswith("pycuda"))


def find_toolkit() -> Path | None:
    """Return the folder of a CUDA toolkit with nvcc and the headers that PyCUDA needs, or None."""
    nvcc = find_nvcc()
    roots = [Path(nvcc).resolve().parent.parent] if nvcc else []
    for root in [*roots, *wheel_folders()]:
        if all((root / "include" / header).is_file() for header in HEADERS):
            return root
    return None


def _configured_source(pycuda: str, toolkit: Path, folder: Path) -> Path:
    """Download PyCUDA's source, configure it for the toolkit, and return its folder."""
    _pip("download", "--no-deps", "--no-binary", "pycuda", "--dest", str(folder), pycuda)
    archive = next(folder.glob("pycuda-*.tar.gz"))
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="data")
    stubs = folder / "stubs"
    stubs.mkdir()
    empty = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c++", "/dev/null"]
    _checked([*find_compiler().words, *empty, "-o", str(stubs / "libcuda.so")])
    root = folder / archive.name.removesuffix(".tar.gz")
    text = CONFIGURATION.format(root=str(toolkit), stubs=str(stubs))
    (root / "siteconf.py").write_text(text)
    return root


def _pip(*words: str) -> None:
    _checked([sys.executable, "-m", "pip", "--disable-pip-version-check", *words])


def _checked(command: Sequence[str]) -> None:
    """Run a command.

    Raises
    ------
    GaugeError
        If the command fails. The message names a file with its output.
    """
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode:
        with tempfile.NamedTemporaryFile(
            "w", prefix="gauge-mc-install-", suffix=".log", delete=False
        ) as log:
            log.write(done.stdout)
        words = " ".join(command[:5])
        raise GaugeError(
            f"`{words} ...` failed: fix the first error in its output, {log.name}, and try again."
        )
