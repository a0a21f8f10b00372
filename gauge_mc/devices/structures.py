"""What kernels take as arguments: the structures of ``cuda_src/lattice.h`` and others."""

from __future__ import annotations

import ctypes


class DivisorStruct(ctypes.Structure):
    """``Divisor``: a division by multiplication."""

    _fields_ = [(name, ctypes.c_uint32) for name in ("divisor", "multiplier", "shift")]

    @classmethod
    def of(cls, divisor: int) -> DivisorStruct:
        """For division by `divisor` of numbers below 2**31."""
        shift = (divisor - 1).bit_length()
        return cls(divisor, (((1 << shift) - divisor) << 32) // divisor + 1, shift)


class GeometryStruct(ctypes.Structure):
    """``Geometry``."""

    _fields_ = [
        ("extent", ctypes.c_int * 3),
        ("full", ctypes.c_int * 4),
        ("slices", ctypes.c_int),
        ("first", ctypes.c_int),
        ("turn", ctypes.c_int * 3),
        ("half_x", DivisorStruct),
        ("y", DivisorStruct),
        ("slots", ctypes.c_int),
        ("stride", ctypes.c_longlong),
        ("turns", ctypes.c_void_p),
        ("lane_site", ctypes.c_void_p),
    ]


class WorkStruct(ctypes.Structure):
    """``Work``; of all slots, if nothing is said of them."""

    _fields_ = [
        (name, ctypes.c_int)
        for name in ("t_begin", "t_step", "slices", "parity", "mu", "first_slot", "slots")
    ]


class CopiesStruct(ctypes.Structure):
    """``Copies``; null addresses, if nothing is said of them."""

    _fields_ = [
        ("first", ctypes.c_void_p),
        ("last", ctypes.c_void_p),
        ("last_t", ctypes.c_int),
    ]


class StreamStruct(ctypes.Structure):
    """``Stream``, of random numbers."""

    _fields_ = [
        ("key", ctypes.c_uint32 * 20),
        ("step", ctypes.c_uint32 * 2),
        ("state", ctypes.c_void_p),
    ]

    @classmethod
    def of(cls, seed: int, step: int, state: int | None = None) -> StreamStruct:
        """For a sweep, with the keys that Philox's rounds make of a seed of 64 bits."""
        halves = (seed, 0x9E3779B9), (seed >> 32, 0xBB67AE85)
        keys = [half + n * weyl & 0xFFFFFFFF for n in range(10) for half, weyl in halves]
        return cls(tuple(keys), (step & 0xFFFFFFFF, step >> 32), state)
