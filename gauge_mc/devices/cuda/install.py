"""Installation of PyCUDA, with NVIDIA's compiler from wheels where no CUDA toolkit is installed.

PyCUDA has no wheels, and its build looks for a toolkit in usual places only. Here it is told where
the headers are, through the file ``siteconf.py`` in which PyCUDA keeps such choices. CURAND, which
gauge-mc does not use, is left out, and the driver's library need not be present: a stub of the same
name takes its place while PyCUDA is linked.
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
"""Contents of ``siteconf.py``. A linker would leave out the stub, which defines nothing."""


def install(say: Callable[[str], None]) -> None:
    """Install PyCUDA into this Python's environment, and NVIDIA's wheels if they are needed.

    Parameters
    ----------
    say : callable
        Takes a line for the user before every step.

    Raises
    ------
    GaugeError
        If pip or a compiler fails.
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
                "NVIDIA's wheels were installed but their headers are not found: install a CUDA "
                "toolkit, put its bin folder on PATH, and try again."
            )
    say(f"building {pycuda} against {toolkit}; this takes some minutes")
    with tempfile.TemporaryDirectory() as folder:
        _pip("install", str(_configured_source(pycuda, toolkit, Path(folder))))


def requirements() -> list[str]:
    """Return what the extra ``cuda`` needs, PyCUDA first."""
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
    """Download PyCUDA's source and tell it where the toolkit is; return its folder."""
    _pip("download", "--no-deps", "--no-binary", "pycuda", "--dest", str(folder), pycuda)
    archive = next(folder.glob("pycuda-*.tar.gz"))
    with tarfile.open(archive) as source:
        source.extractall(folder, filter="data")
    stubs = folder / "stubs"
    stubs.mkdir()
    empty = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-x", "c++", "/dev/null"]
    _checked([*find_compiler().command.split(), *empty, "-o", str(stubs / "libcuda.so")])
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
        If the command fails; the message names a file with its output.
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
            f"`{words} ...` failed: read {log.name}, and mend the first error that it shows."
        )
