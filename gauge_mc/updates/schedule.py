"""The schedule of a sweep: the order of work on every slab, and the halo exchanges.

A sweep goes through the update sets of the action one after the other: for the Wilson action the
links along x on even sites, those on odd sites, and then the same along y, z and t. Every slab
updates the links of the set on all its sites. Then the new links of its first and last slice must
reach the halos of its neighbours before the next set is updated. The method depends on the devices
(`Exchange`), and `schedule` turns it into stages. All slabs carry out the same stages, in order:

1. run the `main` work of the stage on the slab's main stream;
2. post the sends of the update set, if there are neighbours;
3. run the `side` work of the stage on the side stream, during the sends;
4. wait until the halos are up to date.

Links are not overwritten too early: a slab does not read links of the set that it updates, and its
neighbours must have finished that set before it begins the next one.

Wavefront blocking: several updates follow each other through the lattice within the cache.

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
from enum import Enum, auto
from typing import Any, cast

from gauge_mc.actions import Action, UpdateSet
from gauge_mc.devices.base import ThreadedDevice
from gauge_mc.domain.slab import Slab, work
from gauge_mc.fields.field import Field


class Exchange(Enum):
    """The method by which the boundary of a slab reaches its neighbours' halos."""

    NONE = auto()
    """There is only one slab, which has no halo."""

    STORE = auto()
    """The kernels also store the boundary directly in the neighbours' halos.

    Every device must be able to write to its neighbours' memory."""

    BESIDE = auto()
    """The boundary is updated first, and sent while the side stream updates the interior."""

    AFTER = auto()
    """The whole slab is updated before its boundary is copied.

    This is faster on devices without a side stream, which cannot compute during copies. There,
    updating the boundary first would only load its neighbours twice."""


@dataclass(frozen=True)
class Stage:
    """The work of a slab between two halo exchanges."""

    main: tuple[ctypes.Structure, ...]
    """Work on the main stream, in order."""
    sends: UpdateSet | None = None
    """The update set whose boundary is sent afterwards; None if there are no neighbours."""
    side: tuple[ctypes.Structure, ...] = ()
    """Work on the side stream, during the sends."""


def exchange_of(field: Field, action: Action) -> Exchange:
    """Return the method by which the slabs of a field exchange their halos in updates."""
    if len(field.layouts) == 1:
        return Exchange.NONE
    if field.halo(action.halo_depth).targets is not None:
        return Exchange.STORE
    return Exchange.BESIDE if field.slabs[0].device.has_side_stream else Exchange.AFTER


def schedule(slab: Slab, action: Action, exchange: Exchange) -> list[Stage]:
    """Return the stages of a sweep on a slab, with the wavefront that is expected to be fastest."""
    sets = action.update_sets(slab.layout.lattice)
    if exchange is Exchange.BESIDE:
        return [_boundary_first(slab, s, action.halo_depth) for s in sets]
    wavefront = best_wavefront(slab) if allows_wavefronts(action) else None
    if exchange is Exchange.NONE:
        return [Stage(tuple(order_alone(slab, action, wavefront)))]
    if wavefront:
        parts = order_between_exchanges(slab, sets, wavefront)
        return [Stage(tuple(part), s) for part, s in zip(parts, sets, strict=True)]
    return [Stage((whole(slab, s),), s) for s in sets]


def allows_wavefronts(action: Action) -> bool:
    """Return whether updates can follow each other through the lattice; see `wavefront`."""
    return action.halo_depth == 1


def order_alone(slab: Slab, action: Action, wavefront: Wavefront | None) -> list[ctypes.Structure]:
    """Return the work of a sweep on a slab without neighbours, in the order of execution.

    Replicas that fit in the cache together are swept together. A wavefront goes through the
    replicas one after the other.
    """
    layout = slab.layout
    sets = action.update_sets(layout.lattice)
    if wavefront:
        together, order = 1, order_of_sweep(slab, sets, wavefront)
    else:
        together = _replicas_in_cache(slab)
        order = [whole(slab, s) for s in sets]
    return [
        _moved(x, first * layout.period, min(together, layout.replicas - first))
        for first in range(0, layout.replicas, together)
        for x in order
    ]


def _moved(region: ctypes.Structure, t: int, replicas: int) -> ctypes.Structure:
    """Return work on one replica as work on some replicas, the first of which begins at slice t."""
    moved: Any = type(region).from_buffer_copy(region)
    moved.t_begin += t
    moved.slices *= replicas
    return cast(ctypes.Structure, moved)


def _replicas_in_cache(slab: Slab) -> int:
    """Return the number of replicas that are updated together; all on a GPU."""
    cache, layout = slab.device.cache_bytes, slab.layout
    if not cache:
        return layout.replicas
    return max(1, int(CACHE_SHARE / 2 * cache) // (slab.slice_bytes * layout.slices))


def _boundary_first(slab: Slab, update_set: UpdateSet, depth: int) -> Stage:
    # One launch cannot work on several slices at both ends.
    if depth > 1 or slab.layout.slices == 2:
        return Stage((whole(slab, update_set),), update_set)
    boundary, interior = (
        of(update_set.parity, update_set.mu) for of in (slab.boundary, slab.interior)
    )
    return Stage((boundary,), update_set, (interior,))


def whole(slab: Slab, update_set: UpdateSet) -> ctypes.Structure:
    """Return the work on an update set in all time slices of a replica.

    If all lanes have the same colours, a launch visits only rows of sites; see
    ``cuda_src/update/colours.h``.
    """
    rows = update_set.rows if _lanes_share(slab, update_set.colours) else None
    parity = 0 if rows else update_set.parity
    places = 0, 1, slab.layout.slices, parity, update_set.mu
    return work(*places, colour=update_set.colour, colours=update_set.colours, rows=rows or (1, 1))


def _lanes_share(slab: Slab, colours: int) -> bool:
    """Return whether the sites of a slot have the same colour in all lanes."""
    parts = zip(slab.layout.extents, slab.layout.split, strict=True)
    return all(lanes == 1 or (colours % 4 == 0 and extent % 4 == 0) for extent, lanes in parts)


DEPTHS = (4, 2)
"""Numbers of updates per wavefront to choose from; docs/notes/decisions.md has times of others."""

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
    """
    layout = slab.layout
    planes, room = layout.extents[2], CACHE_SHARE * cache
    if slab.slice_bytes * layout.slices <= cache / 2:
        return None
    best, least = None, 1.0  # without blocking, an update reads the field once
    for wavefront in (Wavefront(n, thick) for n in DEPTHS for thick in range(planes, 0, -1)):
        # A wavefront needs one more slice and one more plane on both sides. Every block reads again
        # depth + 1 planes of the block before it, half of which are in the cache on average.
        again = 0 if wavefront.planes == planes else (wavefront.depth + 1) / 2
        traffic = (1 + again / wavefront.planes) / wavefront.depth
        part = min(wavefront.planes + 2, planes) / planes
        fits = (wavefront.depth + 2) * slab.slice_bytes * part <= room
        enough = wavefront.planes * layout.slots >= least_slots * planes
        if fits and enough and traffic < least:
            best, least = wavefront, traffic
    return best


def order_of_sweep(
    slab: Slab, sets: Sequence[UpdateSet], wavefront: Wavefront
) -> list[ctypes.Structure]:
    """Return the work of a sweep on a slab without neighbours, in the order of execution."""
    fronts = slab.layout.slices + LAG * (wavefront.depth - 1)
    return [
        x
        for first in range(0, len(sets), wavefront.depth)
        for x in _front(slab, sets[first : first + wavefront.depth], wavefront, fronts)
    ]


def order_between_exchanges(
    slab: Slab, sets: Sequence[UpdateSet], wavefront: Wavefront
) -> list[list[ctypes.Structure]]:
    """Return, for every update set, the work on a slab before its boundary is sent."""
    slices, order = slab.layout.slices, []
    for first in range(0, len(sets), wavefront.depth):
        together = sets[first : first + wavefront.depth]
        order.append(list(_front(slab, together, wavefront, slices)))
        for k, update_set in enumerate(together[1:], 1):
            rest = (t for t in range(slices) if not k <= t < slices - k)
            order.append([work(t, 1, 1, update_set.parity, update_set.mu) for t in rest])
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
            for k, update_set in enumerate(sets):
                if not 0 <= front - LAG * k < slices:
                    continue
                t, begin = (front - k) % slices, low - lag * k
                blocks = _wrapped(begin, begin + wavefront.planes, lag // 2 * k % planes, planes)
                for z, count in blocks:
                    yield work(t, 1, 1, update_set.parity, update_set.mu, z * slots, count * slots)


def _wrapped(begin: int, end: int, shift: int, planes: int) -> Iterator[tuple[int, int]]:
    """Yield first plane and length of the pieces of [begin, end), clipped and shifted."""
    begin, end = max(begin, 0) + shift, min(end, planes) + shift
    if begin < min(end, planes):
        yield begin, min(end, planes) - begin
    if max(begin, planes) < end:
        yield max(begin - planes, 0), end - max(begin, planes)
