"""The driver of AMD GPUs, and what keeps it from working."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from gauge_mc.devices.hip import bindings
from gauge_mc.errors import GaugeError

INSTALL = "apt install hipcc libamdhip64-dev rocm-device-libs   # or ROCm from AMD"
"""The command that installs HIP's library and its compiler."""

NODES = Path("/sys/class/kfd/kfd/topology/nodes")
"""Folder in which Linux describes processors and AMD GPUs (kernel driver amdgpu)."""

INTERFACE = Path("/dev/kfd")
"""Device file by which programs use AMD GPUs."""


def gpus_of_system() -> int:
    """Return the number of AMD GPUs that Linux can let programs use."""
    counts = (_properties(path).get("simd_count", "0") for path in NODES.glob("*/properties"))
    return sum(number != "0" for number in counts)


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
    """Initialise HIP, and return what has the form of ``pycuda.driver``."""
    if bindings.hip_library() is None:
        command = INSTALL.partition("  ")[0]
        raise GaugeError(
            f"HIP's library {bindings.LIBRARY} was not found: install HIP (`{command}`, or ROCm "
            "from AMD), or use another device."
        )
    try:
        bindings.init()
    except bindings.Error as error:
        if reason := refusal():
            raise GaugeError(f"The GPU cannot be used: {reason}") from error
        raise GaugeError(
            f"HIP finds no usable GPU ({error}): check the output of `rocminfo`, or use another "
            "device."
        ) from error
    return bindings
