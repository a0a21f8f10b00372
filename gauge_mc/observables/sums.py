"""Lattice sums on a device: tree reductions in double precision."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import repeated
from gauge_mc.devices.source import Variant
from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.field import Field
from gauge_mc.layout import BOTH_PARITIES
from gauge_mc.ring.slab import Slab


class _SumArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
    ]


class _PiecesArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("pieces", ctypes.c_void_p),
        ("totals", ctypes.c_void_p),
        ("rows", ctypes.c_int),
        ("slices", ctypes.c_int),
        ("count", ctypes.c_int),
        ("values", ctypes.c_int),
    ]


class SlabSums:
    """Sums over a slab of what kernels compute at every site, read when all are launched.

    Parameters
    ----------
    slab : Slab
        The links.
    values : int
        How many numbers a kernel computes a site.
    rows : int
        How many launches there will be. Their memory is the device's scratch memory for sums.
    slices : int, optional
        Sum over the first so many time slices only.
    """

    def __init__(self, slab: Slab, values: int, rows: int, slices: int | None = None) -> None:
        self.slab = slab
        self.slices = slab.layout.slices if slices is None else slices
        self._values, self._rows, self._launched = values, rows, 0
        self._pieces = slab.device.pieces(slab.layout.extents, slab.variant())
        self._row_bytes = 8 * self.slices * self._pieces * values
        nbytes = rows * (self._row_bytes + 8 * self.slices * values)
        self._memory = slab.device.scratch("sums", nbytes)

    @property
    def work(self) -> WorkStruct:
        """What the launches work through: both parities of the slices summed."""
        return WorkStruct(0, 1, self.slices, BOTH_PARITIES, 0)

    def launch(self, kernel: str, steps: Sequence[Any]) -> None:
        """Launch a sum kernel with these arguments, a row each; their `sums` are set here."""
        for step in steps:
            step.sums = self._memory.address + self._launched * self._row_bytes
            self._launched += 1
        self.slab.kernel(kernel)(repeated(steps, 1))

    def by_slice(self) -> NDArray[np.float64]:
        """Wait for the launches.

        Returns
        -------
        ndarray, shape (rows, slices, values), float64
            The sums over each slice.
        """
        offset = self._rows * self._row_bytes
        arguments = _PiecesArguments(
            self.slab.geometry,
            WorkStruct(0, 1, self.slices, 0, 0),
            self._memory.address,
            self._memory.address + offset,
            self._rows,
            self.slices,
            self._pieces,
            self._values,
        )
        # It has to do with no group, so one variant serves all.
        add = self.slab.device.kernel("add_pieces", Variant("su2", "double"))
        add(repeated([arguments], 1))
        shape = (self._rows, self.slices, self._values)
        data = self.slab.device.read(self._memory, offset, 8 * int(np.prod(shape)))
        return data.view(np.float64).reshape(shape)


def total(field: Field, sums: Sequence[SlabSums]) -> NDArray[np.float64]:
    """Add up the sums over all slabs of a field.

    Parameters
    ----------
    field : Field
    sums : sequence of SlabSums
        Of this process's slabs.

    Returns
    -------
    ndarray, shape (rows, values), float64
        In an order of additions that depends on the lattice alone.
    """
    parts = field.ring.processes.gather([one.by_slice() for one in sums])
    by_slice = np.concatenate([one for process in parts for one in process], axis=1)
    return np.asarray(by_slice.sum(axis=1))


def lattice_sums(field: Field, kernel: str, values: int) -> NDArray[np.float64]:
    """Sum what a kernel computes at every site.

    Parameters
    ----------
    field : Field
        The links.
    kernel : str
        A sum kernel of ``cuda_src/kernels`` that takes nothing but links.
    values : int
        How many numbers it computes a site.

    Returns
    -------
    ndarray, shape (values,), float64
        The sums, in an order of additions that depends on the lattice alone.
    """
    sums = [SlabSums(slab, values, 1) for slab in field.slabs]
    for one in sums:
        address = one.slab.buffer.address
        one.launch(kernel, [_SumArguments(one.slab.geometry, one.work, address)])
    return np.asarray(total(field, sums)[0])
