"""The host: its memory, and the cores on which this process may run."""

from __future__ import annotations

import ctypes
import importlib
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gauge_mc.devices.source import source_folder, structure


@dataclass(frozen=True)
class EnergyCounter:
    """A counter of the energy that a part of a machine uses, whichever process causes it."""

    name: str
    """Name of the part. Devices of a host that share the part give the same name."""
    source: str
    """Name of the interface through which the counter is read, as shown to the user."""
    read: Callable[[], float]
    """Function that returns the energy in joules since an arbitrary moment. It raises GaugeError if
    the counter cannot be read.
    """
    limit: float = math.inf
    """Energy in joules at which the counter starts again from zero."""

    def difference(self, before: float, after: float) -> float:
        """Return the energy in joules between two readings that are less than `limit` apart."""
        if after >= before:
            return after - before
        return after - before + self.limit if math.isfinite(self.limit) else 0.0


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
