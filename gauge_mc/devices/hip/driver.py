"""The driver of AMD GPUs: HIP's library, called by ctypes, so that no package is needed."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gauge_mc.errors import GaugeError

INSTALL = "apt install hipcc libamdhip64-dev rocm-device-libs   # or ROCm from AMD"
"""The command that installs HIP's library and its compiler."""

LIBRARY = "libamdhip64.so"
"""Name of the library, which a development package installs."""

RELEASES = (7, 6, 5)
"""Releases of ROCm whose library is looked for, by its name with a number."""

USUAL_HOME = "/opt/rocm"
"""Default location of ROCm, used if neither ROCM_PATH nor HIP_PATH is set."""

NODES = Path("/sys/class/kfd/kfd/topology/nodes")
"""Folder in which Linux describes processors and AMD GPUs (kernel driver amdgpu)."""

INTERFACE = Path("/dev/kfd")
"""Device file by which programs use AMD GPUs."""


def homes() -> list[Path]:
    """Return the folders in which ROCm may be."""
    roots = [os.environ.get(name) for name in ("ROCM_PATH", "HIP_PATH")]
    return [Path(root) for root in roots if root] or [Path(USUAL_HOME)]


@functools.cache
def hip_library() -> Any:
    """Return HIP's library, or None if it does not load."""
    names = [LIBRARY, *(f"{LIBRARY}.{number}" for number in RELEASES)]
    for name in (*names, *(str(home / "lib" / LIBRARY) for home in homes())):
        try:
            library = ctypes.CDLL(name)
            library.hipGetErrorString.restype = ctypes.c_char_p
        except (OSError, AttributeError):
            continue
        return library
    return None


def gpus_of_system() -> int:
    """Return the number of AMD GPUs that Linux can let programs use."""
    found = (_properties(path).get("simd_count", "0") for path in NODES.glob("*/properties"))
    return sum(number != "0" for number in found)


def _properties(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:  # of a GPU that a container does not show
        return {}
    return {name: value for name, _, value in (line.partition(" ") for line in lines)}


def refusal() -> str | None:
    """Explain why this user may not use AMD GPUs, and what to do; None if there is no obstacle."""
    if not INTERFACE.exists() or os.access(INTERFACE, os.R_OK | os.W_OK):
        return None
    return (
        f"you may not open {INTERFACE}: run `sudo usermod -aG render,video $USER`, and log in "
        "again."
    )


def load_driver() -> Any:
    """Initialise HIP, and return what has the form of ``pycuda.driver``.

    Raises
    ------
    GaugeError
        If the library is missing or finds no usable GPU.
    """
    if hip_library() is None:
        raise GaugeError(
            f"HIP's library {LIBRARY} was not found: install HIP (`{INSTALL.partition('  ')[0]}`, "
            "or ROCm from AMD), or use another device."
        )
    from gauge_mc.devices.hip import bindings as driver

    try:
        driver.init()
    except driver.Error as error:
        if reason := refusal():
            raise GaugeError(f"The GPU cannot be used: {reason}") from error
        raise GaugeError(
            f"HIP finds no usable GPU ({error}): check the output of `rocminfo`, or use another "
            "device."
        ) from error
    return driver


def error_text(library: Any, code: int) -> str:
    """Return HIP's own words for a result of a call."""
    text: Callable[[int], bytes | None] = library.hipGetErrorString
    return (text(code) or str(code).encode()).decode()
