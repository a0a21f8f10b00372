"""The order in which a sweep's updates go through a slab: one after the other, or in waves.

An update of a site needs its neighbours after the update before, and must find them before the one
after. So a few updates can follow each other through the lattice two time slices apart, in a wave
that a CPU's cache holds, and no bit is different. Since the lattice is periodic, update k of a wave
begins with slice k: its neighbours are then ready when it comes to an end, too.

One of several slabs waits for its neighbours' edges after every update. There update k of a wave
leaves out k slices at either end, which need them, until they have come.

Where a few slices are more than the cache holds, the same is done along z: a wave takes a block of
planes through all slices before it takes the next block, which begins two planes lower from one
update to the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gauge_mc.devices.structures import WorkStruct
from gauge_mc.ring.slab import Slab

CHECKERBOARD = tuple((mu, parity) for mu in range(4) for parity in range(2))
"""The order of a sweep. No link of one direction and parity is in a staple of another."""

TOGETHER = (4, 2)
"""Updates that may go through the lattice in a wave; more were not faster."""

CACHE_SHARE = 0.9
"""Of the cache, that a wave may need."""


@dataclass(frozen=True)
class Wave:
    """Updates that follow each other, and the planes of z of a block; all planes are one block.

    Attributes
    ----------
    together, thick : int
    """

    together: int
    thick: int


def sweep_order(slab: Slab, wave: Wave | None = None) -> list[WorkStruct]:
    """Order the work of a sweep on a field of one slab.

    Parameters
    ----------
    slab : Slab
    wave : Wave, optional
        The one that fits the device's cache, if there is one, if not given.
    """
    wave = wave or _fitting(slab)
    if not wave:
        return [slab.work(parity, mu) for mu, parity in CHECKERBOARD]
    fronts = slab.layout.slices + 2 * (wave.together - 1)
    return [work for first in _firsts(wave) for work in _one_wave(slab, wave, first, fronts)]


def slab_order(slab: Slab, wave: Wave | None = None) -> list[list[WorkStruct]]:
    """Order the work of a sweep on one of several slabs.

    Parameters
    ----------
    slab : Slab
    wave : Wave, optional
        As for `sweep_order`; slabs that share a cache were faster with what one would take.

    Returns
    -------
    list of list of WorkStruct
        For every update what is to be done before copies of its edges are sent.
    """
    wave = wave or _fitting(slab)
    if not wave:
        return [[slab.work(parity, mu)] for mu, parity in CHECKERBOARD]
    slices, order = slab.layout.slices, []
    for first in _firsts(wave):
        order.append(list(_one_wave(slab, wave, first, slices)))
        for k in range(1, wave.together):
            mu, parity = CHECKERBOARD[first + k]
            left = (t for t in range(slices) if not k <= t < slices - k)
            order.append([WorkStruct(t, 1, 1, parity, mu) for t in left])
    return order


def _firsts(wave: Wave) -> range:
    return range(0, len(CHECKERBOARD), wave.together)


def _one_wave(slab: Slab, wave: Wave, first: int, fronts: int) -> Iterator[WorkStruct]:
    """Yield the work of the updates from the first on that go together.

    The last of so many `fronts` is where the first update has come to the end, or where all have.
    """
    slices, planes = slab.layout.slices, slab.layout.extents[2]
    slots = slab.layout.slots // planes
    lower = 2 if wave.thick < planes else 0
    updates = list(enumerate(CHECKERBOARD[first : first + wave.together]))
    for low in range(0, planes + lower * (wave.together - 1), wave.thick):
        for front in range(fronts):
            for k, (mu, parity) in updates:
                if not 0 <= front - 2 * k < slices:
                    continue
                begin = low - lower * k
                for z, count in _around(begin, begin + wave.thick, lower // 2 * k % planes, planes):
                    t = (front - k) % slices
                    yield WorkStruct(t, 1, 1, parity, mu, z * slots, count * slots)


def _around(begin: int, end: int, shift: int, planes: int) -> Iterator[tuple[int, int]]:
    """Yield where the positions from `begin` up to `end` lie: first planes and their numbers."""
    begin, end = max(begin, 0) + shift, min(end, planes) + shift
    if begin < min(end, planes):
        yield begin, min(end, planes) - begin
    if max(begin, planes) < end:
        yield max(begin - planes, 0), end - max(begin, planes)


def _fitting(slab: Slab) -> Wave | None:
    """Choose the wave with the least traffic that the cache holds.

    None where the cache holds the field, or no wave that saves any.
    """
    layout, cache = slab.layout, slab.device.cache_bytes
    planes, room = layout.extents[2], CACHE_SHARE * cache
    if slab.slice_bytes * layout.slices <= cache / 2:
        return None
    best, least = None, 1.0  # an update reads the field once if none follows it
    for wave in (Wave(n, thick) for n in TOGETHER for thick in range(planes, 0, -1)):
        # A wave needs a slice and a plane on either side. Blocks read anew the planes between
        # them, as many as there are updates and one more, half of which are found on average.
        anew = 0 if wave.thick == planes else (wave.together + 1) / 2
        traffic = (1 + anew / wave.thick) / wave.together
        part = min(wave.thick + 2, planes) / planes
        if (wave.together + 2) * slab.slice_bytes * part <= room and traffic < least:
            best, least = wave, traffic
    return best
