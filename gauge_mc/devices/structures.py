"""Structures that the arguments of several kernels share."""

from __future__ import annotations

import ctypes
from typing import Any

from gauge_mc.devices.source import source_folder, structure

GEOMETRY = source_folder() / "lattice" / "geometry.h"
"""The header that declares sites and what a launch works on."""


def geometry_structure(name: str) -> Any:
    """Return the class of a structure that ``lattice/geometry.h`` declares."""
    return structure(name, (GEOMETRY,))


def divisor(n: int) -> ctypes.Structure:
    """Return a ``Divisor`` for division by n of numbers below 2**31.

    Granlund and Montgomery, PLDI 1994, figure 4.1, with N = 32.
    """
    shift = (n - 1).bit_length()
    multiplier = (((1 << shift) - n) << 32) // n + 1
    divided: ctypes.Structure = geometry_structure("Divisor")(n, multiplier, shift)
    return divided
