"""Lattice sums on a device: tree reductions in double precision."""

from __future__ import annotations

import ctypes

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import repeated
from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.field import Field
from gauge_mc.layout import BOTH_PARITIES


class _SumArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
    ]


def lattice_sums(
    field: Field, kernel: str, values: int, slices: int | None = None
) -> NDArray[np.float64]:
    """Sum what a kernel computes at every site.

    Parameters
    ----------
    field : Field
        The links.
    kernel : str
        A sum kernel of ``cuda_src/kernels``.
    values : int
        How many numbers it computes a site.
    slices : int, optional
        Sum over the first so many time slices only.

    Returns
    -------
    ndarray, shape (values,), float64
        The sums, in an order of additions that depends on the lattice alone.
    """
    slices = field.layout.slices if slices is None else slices
    pieces = field.device.pieces(field.layout.extents, field.variant())
    nbytes = 8 * slices * pieces * values
    partial = field.device.scratch(nbytes)
    work = WorkStruct(0, slices, BOTH_PARITIES, 0)
    arguments = _SumArguments(field.geometry, work, field.buffer.address, partial.address)
    field.kernel(kernel)(repeated([arguments], 1))
    sums = field.device.read(partial, 0, nbytes).view(np.float64)
    by_slice = sums.reshape(slices, pieces, values).transpose(2, 0, 1).copy().sum(axis=2)
    total: NDArray[np.float64] = by_slice.sum(axis=1)
    return total
