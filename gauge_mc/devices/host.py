"""The host: its memory, and the cores on which this process may run."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

from gauge_mc.devices.source import source_folder, structure

MEMORY = Path("/proc/meminfo")


def free_memory() -> int:
    """Return the available memory of the host in bytes."""
    if not MEMORY.exists():  # on systems other than Linux
        return int(importlib.import_module("psutil").virtual_memory().available)
    for line in MEMORY.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return sys.maxsize


def allowed_cores() -> frozenset[int]:
    """Return the numbers of the cores on which the system lets this process run.

    This is the mask that a batch system, a container or an MPI launcher sets; all cores where the
    system has no such masks.
    """
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


def can_bind() -> bool:
    """Return whether the system binds threads to cores."""
    return hasattr(os, "sched_setaffinity")


GEOMETRY = source_folder() / "lattice" / "geometry.h"
"""The header that declares the structures ``Geometry``, ``Work`` and ``Divisor``."""


@cache
def geometry_structure(name: str) -> Any:
    """Return the ctypes class of a structure declared in ``lattice/geometry.h``."""
    return structure(name, (GEOMETRY,))


def divisor(n: int) -> ctypes.Structure:
    """Return the structure ``Divisor`` for dividing numbers below 2**31 by n.

    Granlund and Montgomery, PLDI 1994, figure 4.1, with N = 32.
    """
    shift = (n - 1).bit_length()
    multiplier = (((1 << shift) - n) << 32) // n + 1
    divided: ctypes.Structure = geometry_structure("Divisor")(n, multiplier, shift)
    return divided
