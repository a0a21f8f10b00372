"""Lines along t through the slabs of a field, each begun where the one before ends."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

from gauge_mc.devices import Buffer
from gauge_mc.devices.base import Copy, repeated
from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.field import Field
from gauge_mc.layout import BOTH_PARITIES
from gauge_mc.ring.slab import Slab

FIRST_SLICE = (0, 1, 1, BOTH_PARITIES, 0)
"""The work of kernels that are called once a line."""


class _LineArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("before", ctypes.c_void_p),
        ("after", ctypes.c_void_p),
        ("slices", ctypes.c_int),
    ]


@dataclass(frozen=True)
class TimeLines:
    """Products of the links along t, from t = 0 on, for every site in space.

    Attributes
    ----------
    slab : Slab
    before : Buffer or None
        The lines up to where the slab begins; None where that is t = 0.
    after : Buffer
        The lines up to where the slab ends.
    """

    slab: Slab
    before: Buffer | None
    after: Buffer


def time_lines(field: Field) -> list[TimeLines]:
    """Follow the lines through all slabs, and return those of this process.

    They lie in the devices' scratch memory for lines.
    """
    ring = field.ring
    lines = [_lines_of(slab, ring.first_slab + n) for n, slab in enumerate(field.slabs)]
    local = dict(enumerate(lines, ring.first_slab))
    for number in range(len(field.layouts)):
        if number in local:
            _follow(local[number])
        if number + 1 < len(field.layouts):
            _hand_on(field, local.get(number), local.get(number + 1), number)
    return lines


def _lines_of(slab: Slab, number: int) -> TimeLines:
    nbytes = slab.slice_bytes // 4
    before = slab.device.scratch("lines before", nbytes) if number else None
    return TimeLines(slab, before, slab.device.scratch("lines after", nbytes))


def _follow(lines: TimeLines) -> None:
    slab = lines.slab
    before = lines.before.address if lines.before else None
    arguments = _LineArguments(
        slab.geometry,
        WorkStruct(*FIRST_SLICE),
        slab.buffer.address,
        before,
        lines.after.address,
        slab.layout.slices,
    )
    slab.kernel("time_line")(repeated([arguments], 1))


def _hand_on(
    field: Field, last: TimeLines | None, following: TimeLines | None, number: int
) -> None:
    """Copy the lines that end in one slab to the next, either of which may be elsewhere."""
    processes, nbytes = field.ring.processes, field.slabs[0].slice_bytes // 4
    if last and following:
        assert following.before is not None
        copy = Copy(last.after.address, following.slab.device, following.before.address)
        copy.target.wait(last.slab.device.sending([copy], nbytes)())
    elif last:
        data = last.slab.device.read(last.after, 0, nbytes)
        processes.send(data, field.ring.process_of(number + 1))
    elif following:
        assert following.before is not None
        data = processes.receive(field.ring.process_of(number))
        following.slab.device.write(following.before, 0, data)
