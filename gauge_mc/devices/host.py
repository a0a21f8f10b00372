"""The host: its memory, and the cores on which this process may run."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

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
