"""HIP's library, which ctypes calls, so that no package of Python is needed: where it is."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

LIBRARY = "libamdhip64.so"
"""Name of the library, which a development package installs."""

RELEASES = (7, 6, 5)
"""Releases of ROCm whose library is looked for, by its name with a number."""

USUAL_HOME = "/opt/rocm"
"""Default location of ROCm, used if neither ROCM_PATH nor HIP_PATH is set."""


def rocm_folders() -> list[Path]:
    """Return the folders in which ROCm may be."""
    roots = [os.environ.get(name) for name in ("ROCM_PATH", "HIP_PATH")]
    return [Path(root) for root in roots if root] or [Path(USUAL_HOME)]


@functools.cache
def hip_library() -> Any:
    """Return HIP's library, or None if it does not load."""
    names = [LIBRARY, *(f"{LIBRARY}.{number}" for number in RELEASES)]
    for name in (*names, *(str(folder / "lib" / LIBRARY) for folder in rocm_folders())):
        try:
            library = ctypes.CDLL(name)
            library.hipGetErrorString.restype = ctypes.c_char_p
        except (OSError, AttributeError):
            continue
        return library
    return None


def error_text(library: Any, code: int) -> str:
    """Return HIP's own words for a result of a call."""
    text: Callable[[int], bytes | None] = library.hipGetErrorString
    return (text(code) or str(code).encode()).decode()
