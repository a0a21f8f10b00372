"""The driver of NVIDIA GPUs, by PyCUDA if it is installed, else by NVIDIA's own bindings."""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

from gauge_mc.devices.cuda.nvcc import driver_mismatch
from gauge_mc.errors import GaugeError

INSTALL = "gauge-mc doctor --install cuda"
"""The command that installs bindings of the driver and a compiler."""


def installed_bindings() -> str:
    """Return the name of the package that calls the driver, or nothing if there is none."""
    if find_spec("pycuda"):
        return "pycuda"
    try:
        return "cuda-bindings" if find_spec("cuda.bindings.driver") else ""
    except ModuleNotFoundError:  # there is no package `cuda`
        return ""


def load_driver() -> Any:
    """Import and initialise ``pycuda.driver``, or what has its form, and return it.

    Raises
    ------
    GaugeError
        If bindings of the driver are missing or find no usable GPU.
    """
    name = installed_bindings()
    if not name:
        raise GaugeError(f"cuda-bindings is not installed: run `{INSTALL}`, or use the CPU.")
    try:
        with warnings.catch_warnings(action="ignore"):
            if name == "pycuda":
                import pycuda.driver as driver
            else:
                from gauge_mc.devices.cuda import bindings as driver
    except ImportError as error:
        raise GaugeError(
            f"The package {name} does not load ({error}): check with `nvidia-smi` that the NVIDIA "
            f"driver is installed, then install it again, `{INSTALL}`, or use the CPU."
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
