"""The memory of the host."""

from __future__ import annotations

import sys
from pathlib import Path


def free_memory() -> int:
    """Return the available memory of the host in bytes."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return sys.maxsize
