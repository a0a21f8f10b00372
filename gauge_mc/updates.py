"""Updates of a field: heatbath and overrelaxation sweeps for the Wilson action."""

from __future__ import annotations

import ctypes

import numpy as np

from gauge_mc.devices.base import repeated
from gauge_mc.devices.structures import GeometryStruct, StreamStruct, WorkStruct
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.random import Random

CHECKERBOARD = tuple((mu, parity) for mu in range(4) for parity in range(2))
"""The order of a sweep. No link of one direction and parity is in a staple of another."""


class _HeatbathArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("stream", StreamStruct),
        ("beta_over_n", ctypes.c_double),
    ]


class _OverrelaxationArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
    ]


def heatbath(field: Field, beta: float, random: Random, sweeps: int = 1) -> None:
    """Draw every link anew from its distribution given all the others.

    Creutz's and Kennedy and Pendleton's samplers for SU(2), in the three SU(2) subgroups of
    Cabibbo and Marinari for SU(3) (``cuda_src/heatbath.h``).

    Parameters
    ----------
    field : Field
        Updated in place.
    beta : float
        2 N / g^2 > 0 of the Wilson action, beta (1 - Re Tr U_plaquette / N) summed.
    random : Random
        Advances by one step a sweep.
    sweeps : int
        How often every link is updated, at least once.

    Raises
    ------
    UsageError
        If beta is not positive.
    """
    if not beta > 0 or beta == float("inf"):
        raise UsageError(f"beta is {beta}; it must be positive.")
    stream, beta_over_n = random.struct(), beta / int(field.group[2])
    once = [
        _HeatbathArguments(
            field.geometry, field.work(parity, mu), field.buffer.address, stream, beta_over_n
        )
        for mu, parity in CHECKERBOARD
    ]
    steps = repeated(once, sweeps)
    counters = np.ndarray(
        (sweeps, len(once)),
        np.uint64,
        memoryview(steps).cast("B"),
        offset=_HeatbathArguments.stream.offset + StreamStruct.step.offset,
        strides=(len(once) * ctypes.sizeof(once[0]), ctypes.sizeof(once[0])),
    )
    counters[:] = random.step + 1 + np.arange(sweeps, dtype=np.uint64)[:, np.newaxis]
    field.kernel("heatbath", random.kind, random.luxury)(steps)
    random.step += sweeps


def overrelax(field: Field, sweeps: int = 1) -> None:
    """Reflect every link about its staples, which keeps the action.

    Parameters
    ----------
    field : Field
        Updated in place.
    sweeps : int
        How often every link is updated, at least once.
    """
    once = [
        _OverrelaxationArguments(field.geometry, field.work(parity, mu), field.buffer.address)
        for mu, parity in CHECKERBOARD
    ]
    field.kernel("overrelaxation")(repeated(once, sweeps))
