"""The schedule of a sweep: what every slab does in which order, and when halos are exchanged.

A sweep updates the update sets of the action one after the other: for the Wilson action the links in
x on even sites, those on odd sites, then y, z and t. A slab updates the set on all its sites; then the
new links of its first and last slice must reach the halos of its neighbours before the next set is
updated. How that is done depends on the devices (`Exchange`), and `schedule` turns it into stages. All
slabs carry out one stage after the other:

1. the `main` work of the stage, on the slab's main stream;
2. post the sends of the update set, if there are neighbours;
3. the `side` work of the stage, on the side stream, beside the sends;
4. wait until the halos are up to date.

No slab reads links of the set that it updates, and a neighbour must have finished the set before it
begins the next one. So nothing is overwritten too early.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from gauge_mc.actions import Action, UpdateSet
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.field import Field
from gauge_mc.updates.wavefront import best_wavefront, order_between_exchanges, order_of_sweep


class Exchange(Enum):
    """How the boundary of a slab reaches its neighbours' halos."""

    NONE = auto()
    """There is one slab, which has no halo."""

    STORE = auto()
    """The kernels store the boundary in the halos as well, which are in reach of every device."""

    BESIDE = auto()
    """The boundary is updated first and sent while the interior is updated on the side stream.

    The device has work while the last boundary is sent, too."""

    AFTER = auto()
    """The whole slab is updated, then the boundary is copied: for devices that copy themselves, on
    which updating the boundary first would only read its neighbours twice."""


@dataclass(frozen=True)
class Stage:
    """What a slab does between two halo exchanges.

    Attributes
    ----------
    main : tuple of Work
        Work on the main stream, in order.
    sends : UpdateSet or None
        The set whose boundary is then sent; None if there are no neighbours.
    side : tuple of Work
        Work on the side stream, beside the sends.
    """

    main: tuple[ctypes.Structure, ...]
    sends: UpdateSet | None = None
    side: tuple[ctypes.Structure, ...] = ()


def exchange_of(field: Field) -> Exchange:
    """Return how the slabs of a field exchange their halos."""
    if len(field.layouts) == 1:
        return Exchange.NONE
    if field.halo.targets is not None:
        return Exchange.STORE
    return Exchange.BESIDE if field.slabs[0].device.has_side_stream else Exchange.AFTER


def schedule(slab: Slab, action: Action, exchange: Exchange) -> list[Stage]:
    """Return the stages of a sweep on one slab.

    Parameters
    ----------
    slab : Slab
    action : Action
    exchange : Exchange
        As of `exchange_of`; the same for all slabs.
    """
    sets = action.update_sets
    if exchange is Exchange.BESIDE:
        return [_boundary_first(slab, one) for one in sets]
    wavefront = best_wavefront(slab) if action.halo_depth == 1 else None
    if exchange is Exchange.NONE:
        order = order_of_sweep(slab, sets, wavefront) if wavefront else _one_by_one(slab, sets)
        return [Stage(tuple(order))]
    if wavefront:
        parts = order_between_exchanges(slab, sets, wavefront)
        return [Stage(tuple(part), one) for part, one in zip(parts, sets, strict=True)]
    return [Stage((slab.whole(one.parity, one.mu),), one) for one in sets]


def _one_by_one(slab: Slab, sets: Sequence[UpdateSet]) -> list[ctypes.Structure]:
    return [slab.whole(one.parity, one.mu) for one in sets]


def _boundary_first(slab: Slab, one: UpdateSet) -> Stage:
    interior = (slab.interior(one.parity, one.mu),) if slab.layout.slices > 2 else ()
    return Stage((slab.boundary(one.parity, one.mu),), one, interior)
