"""Updates of a field: heatbath and overrelaxation sweeps for the Wilson action."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, cycle, repeat
from typing import Any, cast

import numpy as np

from gauge_mc.devices import Kernel
from gauge_mc.devices.base import ForkingDevice, Launch, LaunchedKernel, parted, repeated
from gauge_mc.devices.structures import CopiesStruct, GeometryStruct, StreamStruct, WorkStruct
from gauge_mc.errors import UsageError
from gauge_mc.field import Field
from gauge_mc.random import Random
from gauge_mc.ring.slab import Slab
from gauge_mc.waves import CHECKERBOARD, slab_order, sweep_order


class _HeatbathArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("copies", CopiesStruct),
        ("stream", StreamStruct),
        ("beta_over_n", ctypes.c_double),
    ]


class _OverrelaxationArguments(ctypes.Structure):
    _fields_ = [
        ("geometry", GeometryStruct),
        ("work", WorkStruct),
        ("links", ctypes.c_void_p),
        ("copies", CopiesStruct),
    ]


def heatbath(field: Field, beta: float, random: Random, sweeps: int = 1) -> None:
    """Draw every link anew from its distribution given all the others.

    Kennedy and Pendleton's sampler for SU(2), with a proposal that is seldom rejected at any beta
    (``cuda_src/heatbath.h``), in the three SU(2) subgroups of Cabibbo and Marinari for SU(3).

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
    beta_over_n = beta / int(field.group[2])

    def steps(slab: Slab, works: list[WorkStruct], copies: CopiesStruct) -> ctypes.Array[Any]:
        where, stream = slab.buffer.address, random.struct(slab)
        once = [
            _HeatbathArguments(slab.geometry, work, where, copies, stream, beta_over_n)
            for work in works
        ]
        return _counted(repeated(once, sweeps), len(works), random.step + 1)

    _sweep(
        field, [slab.kernel("heatbath", random.kind, random.luxury) for slab in field.slabs], steps
    )
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

    def steps(slab: Slab, works: list[WorkStruct], copies: CopiesStruct) -> ctypes.Array[Any]:
        where = slab.buffer.address
        once = [_OverrelaxationArguments(slab.geometry, work, where, copies) for work in works]
        return repeated(once, sweeps)

    _sweep(field, [slab.kernel("overrelaxation") for slab in field.slabs], steps)


Steps = Callable[[Slab, list[WorkStruct], CopiesStruct], "ctypes.Array[Any]"]
"""From a slab, what is to be worked through in a sweep, and where neighbours' copies are to be
stored, to the arguments for all sweeps."""


def _sweep(field: Field, kernels: Sequence[Kernel], steps: Steps) -> None:
    """Carry out sweeps on all slabs.

    No slab's links of one direction and parity are read in that update, and a neighbour has to
    have come as far before it begins the next: so nothing is overwritten too early.
    """
    if len(field.layouts) == 1:
        slab = field.slabs[0]
        kernels[0](steps(slab, sweep_order(slab), CopiesStruct()))
        return
    calls = _storing(field, kernels, steps) or _sending(field, kernels, steps)
    # One step on all slabs after the other, with as little work for the host as can be.
    for step in zip(*calls, repeat(field.halo.finish), strict=False):
        for call in step:
            call()


def _storing(field: Field, kernels: Sequence[Kernel], steps: Steps) -> list[Iterable[Launch]]:
    """List the calls for slabs whose kernels store what neighbours have copies of, if they can."""
    halo = field.halo
    if halo.stored is None:
        return []
    calls: list[Iterable[Launch]] = []
    parts = zip(kernels, field.slabs, halo.stored.values(), halo.signals, strict=True)
    for kernel, slab, copies, signal in parts:
        works = [slab.work(parity, mu) for mu, parity in CHECKERBOARD]
        launches = cast(LaunchedKernel, kernel).launches(steps(slab, works, copies))
        calls += [launches, repeat(signal)]
    return calls


def _sending(field: Field, kernels: Sequence[Kernel], steps: Steps) -> list[Iterable[Launch]]:
    """List the calls for slabs of which copies are sent."""
    windows = [field.window(mu, parity) for mu, parity in CHECKERBOARD]
    departures = zip(*map(field.halo.departures, windows), strict=True)
    calls: list[Iterable[Launch]] = []
    for kernel, slab, departs in zip(kernels, field.slabs, departures, strict=True):
        if slab.device.copies_beside:
            calls += _beside(slab, cast(LaunchedKernel, kernel), steps, cycle(departs))
        else:
            order = slab_order(slab)
            all_steps = steps(slab, list(chain(*order)), CopiesStruct())
            parts = parted(all_steps, [len(part) for part in order])
            calls += [[partial(kernel, part) for part in parts], cycle(departs)]
    return calls


def _beside(
    slab: Slab, kernel: LaunchedKernel, steps: Steps, departs: Iterable[Launch]
) -> list[Iterable[Launch]]:
    """List the calls for a slab on a GPU: edges, copies of them, and the rest beside.

    So the edges are on their way while the rest is updated, and the GPU has work while the last
    edges are updated. A device that copies by itself sends when all is done instead: to go to its
    edges before would cost more time, since their neighbours then have to be read twice.
    """
    edges = [slab.edges(parity, mu) for mu, parity in CHECKERBOARD]
    first = kernel.launches(steps(slab, edges, CopiesStruct()))
    if slab.layout.slices == 2:
        return [first, departs]
    inside = [slab.interior(parity, mu) for mu, parity in CHECKERBOARD]
    later = kernel.launches(steps(slab, inside, CopiesStruct()), beside=True)
    device = cast(ForkingDevice, slab.device)
    return [repeat(device.fork), first, departs, later, repeat(device.join)]


def _counted(steps: ctypes.Array[Any], each: int, first: int) -> ctypes.Array[Any]:
    """Give the random numbers' streams of sweeps, so many steps each, their counters."""
    size = ctypes.sizeof(steps._type_)
    sweeps = len(steps) // each
    counters = np.ndarray(
        (sweeps, each),
        np.uint64,
        memoryview(steps).cast("B"),
        offset=_HeatbathArguments.stream.offset + StreamStruct.step.offset,
        strides=(each * size, size),
    )
    counters[:] = first + np.arange(sweeps, dtype=np.uint64)[:, np.newaxis]
    return steps
