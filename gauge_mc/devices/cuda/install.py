"""Installation of what calls and compiles for NVIDIA GPUs, from wheels: nothing is built.

The bindings of the driver are ``cuda-bindings``; the compiler, if there is no CUDA toolkit, is that
of NVIDIA's wheels.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import requires

from gauge_mc.devices.cuda.nvcc import driver_release, find_nvcc
from gauge_mc.errors import GaugeError

MEGABYTES = {"cuda-bindings": 9, "cuda-toolkit": 105}
"""Approximate size of the wheels that are downloaded, with what they need."""

LEAST_DRIVER = 12
"""Oldest release of CUDA that the driver must support."""


def install(say: Callable[[str], None]) -> None:
    """Install wheels into the current Python environment.

    Parameters
    ----------
    say : callable
        Shows the user a line of text; called before every step.

    Raises
    ------
    GaugeError
        If the driver is too old for the wheels, pip fails, or the compiler is not found afterwards.
    """
    bindings, compiler = requirements()
    driver = driver_release()
    major = driver[0] if driver else None
    there = find_nvcc() is not None
    if major is not None and (major < LEAST_DRIVER or (major == LEAST_DRIVER and not there)):
        raise GaugeError(
            f"The NVIDIA driver supports CUDA {major}, but NVIDIA's compiler in wheels is of CUDA "
            "13: update the driver (`apt install nvidia-driver`), or install a CUDA "
            f"{LEAST_DRIVER} toolkit, put its bin folder on PATH, and try again."
        )
    if major == LEAST_DRIVER:
        bindings = f"cuda-bindings=={major}.*"
    wanted = [bindings] if there else [bindings, compiler]
    size = MEGABYTES["cuda-bindings"] + (0 if there else MEGABYTES["cuda-toolkit"])
    say(f"installing {', '.join(wanted)}: about {size} MB are downloaded, and nothing is built")
    _pip("install", *wanted)
    importlib.invalidate_caches()
    if find_nvcc() is None:
        raise GaugeError(
            "NVIDIA's wheels were installed, but nvcc was not found in them: install a CUDA "
            "toolkit, put its bin folder on PATH, and try again."
        )


def requirements() -> list[str]:
    """Return the requirements of the extra ``cuda``, the bindings first."""
    needed = [text.partition(";") for text in requires("gauge-mc") or []]
    return sorted(name.strip() for name, _, marker in needed if "extra == 'cuda'" in marker)


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
