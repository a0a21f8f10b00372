"""Wavefront blocking: updates that follow each other through the lattice while a cache holds it.

An update of a site needs its neighbours as the previous update leaves them, and must find them before
the next update changes them. So a few updates can follow each other through the lattice two time
slices apart, over a front that a CPU's cache holds, and no bit of the result is different. Since the
lattice is periodic, update k of a wavefront begins with slice k, so that its neighbours are also ready
when it comes to the end.

A slab with neighbours waits for their boundaries after every update. There update k of a wavefront
leaves out k slices at either end, which need those boundaries, until they have arrived.

If a few slices exceed the cache, the same is done along z: a wavefront takes a block of planes through
all slices before it takes the next block, which begins two planes lower from one update to the next.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gauge_mc.actions import UpdateSet
from gauge_mc.domain.slab import Slab, work

DEPTHS = (4, 2)
"""Numbers of updates in a wavefront that are tried. More were not faster (docs/performance.md)."""

CACHE_SHARE = 0.9
"""Fraction of the last-level cache that one wavefront may occupy."""

LAG = 2
"""Distance between consecutive updates of a wavefront, in time slices and in planes."""


@dataclass(frozen=True)
class Wavefront:
    """The shape of a wavefront.

    Attributes
    ----------
    depth : int
        The number of updates that follow each other.
    planes : int
        The thickness of a block along z, in planes of a lane's sub-lattice.
    """

    depth: int
    planes: int


def best_wavefront(slab: Slab) -> Wavefront | None:
    """Return the wavefront with the least memory traffic that the device's cache holds.

    None if the cache holds the whole slab, or if no wavefront saves traffic.
    """
    layout, cache = slab.layout, slab.device.cache_bytes
    planes, room = layout.extents[2], CACHE_SHARE * cache
    if slab.slice_bytes * layout.slices <= cache / 2:
        return None
    best, least = None, 1.0  # a single update reads the field once
    for one in (Wavefront(n, thick) for n in DEPTHS for thick in range(planes, 0, -1)):
        # A wavefront needs a slice and a plane on either side. Blocks read the planes between them
        # again, one more than there are updates, and find half of them in the cache on average.
        again = 0 if one.planes == planes else (one.depth + 1) / 2
        traffic = (1 + again / one.planes) / one.depth
        part = min(one.planes + 2, planes) / planes
        if (one.depth + 2) * slab.slice_bytes * part <= room and traffic < least:
            best, least = one, traffic
    return best


def order_of_sweep(
    slab: Slab, sets: Sequence[UpdateSet], wavefront: Wavefront
) -> list[ctypes.Structure]:
    """Return the work of a sweep on a slab without neighbours, in order."""
    fronts = slab.layout.slices + LAG * (wavefront.depth - 1)
    return [
        one
        for first in range(0, len(sets), wavefront.depth)
        for one in _front(slab, sets[first : first + wavefront.depth], wavefront, fronts)
    ]


def order_between_exchanges(
    slab: Slab, sets: Sequence[UpdateSet], wavefront: Wavefront
) -> list[list[ctypes.Structure]]:
    """Return for every update set the work on one of several slabs before its boundary is sent."""
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

    The last of so many `fronts` is where the first update reaches the end, or where all do.
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
    """Yield the first planes and the lengths of the blocks from `begin` to `end`, shifted cyclically."""
    begin, end = max(begin, 0) + shift, min(end, planes) + shift
    if begin < min(end, planes):
        yield begin, min(end, planes) - begin
    if max(begin, planes) < end:
        yield max(begin - planes, 0), end - max(begin, planes)
