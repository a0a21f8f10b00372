"""Installation of what calls and compiles for NVIDIA GPUs, from wheels: nothing is built.

The bindings of the driver are ``cuda-bindings``; the compiler, if there is none, is the library
NVRTC.
"""

from __future__ import annotations

import importlib
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import requires

from gauge_mc.devices.cuda.compiler import find_cuda_compiler
from gauge_mc.devices.cuda.driver import LEAST_DRIVER, capabilities, driver_release
from gauge_mc.errors import GaugeError
from gauge_mc.libraries import PYTHON

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
