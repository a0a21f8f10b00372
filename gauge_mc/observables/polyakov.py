"""The Polyakov loop."""

from __future__ import annotations

import ctypes

from gauge_mc.devices.structures import GeometryStruct, WorkStruct
from gauge_mc.field import Field
from gauge_mc.observables.sums import SlabSums
from gauge_mc.observables.time_lines import TimeLines, time_lines


class _PolyakovArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("lines", ctypes.c_void_p),
        ("sums", ctypes.c_void_p),
    ]


def polyakov_loop(field: Field) -> complex:
    """Measure Tr prod_t U_t(x, t) / N, averaged over the spatial lattice.

    Returns
    -------
    complex
        |P| <= 1; for SU(2), whose traces are real, the imaginary part is 0.
    """
    last = time_lines(field)[-1]
    complete = last.slab.layout.times.stop == field.lattice.t
    # Only where the last slab is do lines close.
    found = field.ring.processes.gather(_trace(last) if complete else None)
    lines = int(field.group[2]) * field.lattice.sites // field.lattice.t
    return next(trace for trace in found if trace is not None) / lines


def _trace(lines: TimeLines) -> complex:
    sums = SlabSums(lines.slab, values=2, rows=1, slices=1)
    arguments = _PolyakovArguments(lines.slab.geometry, sums.work, lines.after.address)
    sums.launch("polyakov", [arguments])
    re, im = sums.by_slice()[0, 0]
    return complex(re, im)
