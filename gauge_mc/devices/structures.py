"""Structures that are arguments of several kernels."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from gauge_mc.devices.source import source_folder, structure

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
