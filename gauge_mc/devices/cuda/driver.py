"""The driver of NVIDIA GPUs, by PyCUDA."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

from gauge_mc.devices.cuda.nvcc import driver_mismatch
from gauge_mc.errors import GaugeError

INSTALL = "gauge-mc doctor --install cuda"
"""The command that installs PyCUDA and a compiler."""


def load_driver() -> Any:
    """Import and initialise ``pycuda.driver``, and return it.

    Raises
    ------
    GaugeError
        If PyCUDA is missing or finds no usable GPU.
    """
    if find_spec("pycuda") is None:
        raise GaugeError(f"PyCUDA is not installed: run `{INSTALL}`, or use the CPU.")
    try:
        with warnings.catch_warnings(action="ignore"):
            import pycuda.driver as driver
    except ImportError as error:
        raise GaugeError(
            f"PyCUDA does not load ({error}): check with `nvidia-smi` that the NVIDIA driver is "
            f"installed, then rebuild PyCUDA with `{INSTALL}`, or use the CPU."
        ) from error
    try:
        driver.init()
    except driver.Error as error:
        if reason := driver_mismatch():
            raise GaugeError(f"The GPU cannot be used: {reason}") from error
        raise GaugeError(
            f"CUDA finds no usable GPU ({error}): check the output of `nvidia-smi`, or use the CPU."
        ) from error
    return driver
