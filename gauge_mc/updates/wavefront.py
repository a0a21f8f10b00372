"""Wavefront blocking: several updates follow each other through the lattice within the cache.

When a site is updated, its neighbours must have been changed by the previous update, but not yet
by the next one. Therefore a few updates can follow each other through the lattice, each two time
slices of work behind the previous one. The slices on which they work form a front, which fits in
the CPU's cache. The result is bit-for-bit the same as without blocking. Because the lattice is
periodic, update k of a wavefront starts at slice k, so that the neighbours of its last slice are
ready, too.

A slab with neighbours must wait for their boundaries after every update. There, update k of a
wavefront first omits k slices at both ends, which depend on those boundaries, and makes up for them
when the boundaries have arrived.

If even a few slices exceed the cache, the slices are also divided along z: a wavefront takes a
block of planes through all slices before it takes the next block, and each update is again two
planes behind the previous one.

An update here is the update of one update set, a part of a sweep.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gauge_mc.actions import UpdateSet
from gauge_mc.devices.base import ThreadedDevice
from gauge_mc.domain.slab import Slab, work

DEPTHS = (4, 2)
"""Numbers of updates per wavefront to choose from; more are not faster (docs/decisions.md)."""

CACHE_SHARE = 0.9
"""Fraction of the last-level cache that one wavefront may occupy."""

FEW_THREADS, LEAST_SLOTS = 4, 96
"""Number of threads above which each needs the second number of slots per update of a block.

With fewer slots in a slice of the block, threads wait for each other longer than for the memory:
with 16 threads, wavefronts were slower on 32⁴ (64 slots) and faster on 48⁴ (108 slots)."""

LAG = 2
"""Delay between consecutive updates of a wavefront, in time slices and in planes."""


@dataclass(frozen=True)
class Wavefront:
    """Shape of a wavefront: how many updates follow each other, and the planes of a block."""

    depth: int
    """Number of updates that follow each other."""
    planes: int
    """Thickness of a block along z, in planes of a lane's sub-lattice."""


def best_wavefront(slab: Slab) -> Wavefront | None:
    """Return the wavefront that is expected to be fastest; None if none is expected to help."""
    device = slab.device
    threads = device.threads if isinstance(device, ThreadedDevice) else 1
    least_slots = LEAST_SLOTS * threads if threads > FEW_THREADS else 1
    return fitting_wavefront(slab, device.cache_bytes, least_slots)


def fitting_wavefront(slab: Slab, cache: int, least_slots: int = 1) -> Wavefront | None:
    """Return the wavefront with the least memory traffic among those that fit in a cache.

    None if the whole slab fits in the cache, or if no wavefront saves traffic.

    Parameters
    ----------
    slab : Slab
        The slab to update.
    cache : int
        Size of the cache in bytes.
    least_slots : int
        Minimum number of slots of a block in each slice.
    """
    layout = slab.layout
    planes, room = layout.extents[2], CACHE_SHARE * cache
    if slab.slice_bytes * layout.slices <= cache / 2:
        return None
    best, least = None, 1.0  # without blocking, an update reads the field once
    for one in (Wavefront(n, thick) for n in DEPTHS for thick in range(planes, 0, -1)):
        # A wavefront needs one more slice and one more plane on both sides. Every block reads again
        # depth + 1 planes of the block before it, half of which are in the cache on average.
        again = 0 if one.planes == planes else (one.depth + 1) / 2
        traffic = (1 + again / one.planes) / one.depth
        part = min(one.planes + 2, planes) / planes
        fits = (one.depth + 2) * slab.slice_bytes * part <= room
        enough = one.planes * layout.slots >= least_slots * planes
        if fits and enough and traffic < least:
            best, least = one, traffic
    return best


def order_of_sweep(
    slab: Slab, sets: Sequence[UpdateSet], wavefront: Wavefront
) -> list[ctypes.Structure]:
    """Return the work of a sweep on a slab without neighbours, in the order of execution."""
    fronts = slab.layout.slices + LAG * (wavefront.depth - 1)
    return [
        one
        for first in range(0, len(sets), wavefront.depth)
        for one in _front(slab, sets[first : first + wavefront.depth], wavefront, fronts)
    ]


def order_between_exchanges(
    slab: Slab, sets: Sequence[UpdateSet], wavefront: Wavefront
) -> list[list[ctypes.Structure]]:
    """Return, for every update set, the work on a slab before its boundary is sent."""
    slices, order = slab.layout.slices, []
    for first in range(0, len(sets), wavefront.depth):
        together = sets[first : first + wavefront.depth]
        order.append(list(_front(slab, together, wavefront, slices)))
        for k, one in enumerate(together[1:], 1):
            left = (t for t in range(slices) if not k <= t < slices - k)
            order.append([work(t, 1, 1, one.parity, one.mu) for t in left])
    return order


def _front(
    slab: Slab, sets: Sequence[UpdateSet], wavefront: Wavefront, fronts: int
) -> Iterator[ctypes.Structure]:
    """Yield the work of update sets that follow each other.

    `fronts` is the number of positions of the first update. If it is the number of slices, the
    later updates omit slices at both ends; with `LAG` more per later update, all reach the end.
    """
    slices, planes = slab.layout.slices, slab.layout.extents[2]
    slots = slab.layout.slots // planes
    lag = LAG if wavefront.planes < planes else 0
    for low in range(0, planes + lag * (wavefront.depth - 1), wavefront.planes):
        for front in range(fronts):
            for k, one in enumerate(sets):
                if not 0 <= front - LAG * k < slices:
                    continue
                t, begin = (front - k) % slices, low - lag * k
                blocks = _wrapped(begin, begin + wavefront.planes, lag // 2 * k % planes, planes)
                for z, count in blocks:
                    yield work(t, 1, 1, one.parity, one.mu, z * slots, count * slots)


def _wrapped(begin: int, end: int, shift: int, planes: int) -> Iterator[tuple[int, int]]:
    """Yield first plane and length of the pieces of [begin, end), clipped and shifted."""
    begin, end = max(begin, 0) + shift, min(end, planes) + shift
    if begin < min(end, planes):
        yield begin, min(end, planes) - begin
    if max(begin, planes) < end:
        yield max(begin - planes, 0), end - max(begin, planes)
