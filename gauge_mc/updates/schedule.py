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
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, cast

from gauge_mc.actions import Action, UpdateSet
from gauge_mc.domain.slab import Slab, work
from gauge_mc.fields.field import Field
from gauge_mc.updates.wavefront import (
    CACHE_SHARE,
    Wavefront,
    best_wavefront,
    order_between_exchanges,
    order_of_sweep,
)


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
    """Return the stages of a sweep on a slab, with the wavefront that is expected to be fastest.

    Parameters
    ----------
    slab : Slab
        The slab to update.
    action : Action
        The gauge action, whose reach decides about the halos.
    exchange : Exchange
        The method of halo exchange, from `exchange_of`; the same for all slabs.
    """
    sets = action.update_sets(slab.layout.lattice)
    if exchange is Exchange.BESIDE:
        return [_boundary_first(slab, one, action.halo_depth) for one in sets]
    wavefront = best_wavefront(slab) if allows_wavefronts(action) else None
    if exchange is Exchange.NONE:
        return [Stage(tuple(order_alone(slab, action, wavefront)))]
    if wavefront:
        parts = order_between_exchanges(slab, sets, wavefront)
        return [Stage(tuple(part), one) for part, one in zip(parts, sets, strict=True)]
    return [Stage((whole(slab, one),), one) for one in sets]


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
        order = [whole(slab, one) for one in sets]
    return [
        _moved(one, first * layout.period, min(together, layout.replicas - first))
        for first in range(0, layout.replicas, together)
        for one in order
    ]


def _moved(one: ctypes.Structure, t: int, replicas: int) -> ctypes.Structure:
    """Return work on one replica as work on some replicas, the first of which begins at slice t."""
    moved: Any = type(one).from_buffer_copy(one)
    moved.t_begin += t
    moved.slices *= replicas
    return cast(ctypes.Structure, moved)


def _replicas_in_cache(slab: Slab) -> int:
    """Return the number of replicas that are updated together; all on a GPU."""
    cache, layout = slab.device.cache_bytes, slab.layout
    if not cache:
        return layout.replicas
    return max(1, int(CACHE_SHARE / 2 * cache) // (slab.slice_bytes * layout.slices))


def _boundary_first(slab: Slab, one: UpdateSet, depth: int) -> Stage:
    # One launch cannot work on several slices at both ends.
    if depth > 1 or slab.layout.slices == 2:
        return Stage((whole(slab, one),), one)
    boundary, interior = (of(one.parity, one.mu) for of in (slab.boundary, slab.interior))
    return Stage((boundary,), one, (interior,))


def whole(slab: Slab, one: UpdateSet) -> ctypes.Structure:
    """Return the work on an update set in all time slices of a replica.

    If all lanes have the same colours, a launch visits only rows of sites; see
    ``cuda_src/update/colours.h``.
    """
    rows = one.rows if _lanes_share(slab, one.colours) else None
    parity = 0 if rows else one.parity
    places = 0, 1, slab.layout.slices, parity, one.mu
    return work(*places, colour=one.colour, colours=one.colours, rows=rows or (1, 1))


def _lanes_share(slab: Slab, colours: int) -> bool:
    """Return whether the sites of a slot have the same colour in all lanes."""
    parts = zip(slab.layout.extents, slab.layout.split, strict=True)
    return all(lanes == 1 or (colours % 4 == 0 and extent % 4 == 0) for extent, lanes in parts)
