"""Packing of the runs of a scan into batches that are updated together."""

from __future__ import annotations

from collections.abc import Iterable

from gauge_mc.run.batch import shared_values
from gauge_mc.run.state import saved_progress
from gauge_mc.scans.ladders import ladders
from gauge_mc.scans.scan import Member

RunBatch = tuple[Member, ...]
"""Runs on the same lattice after the same number of updates."""


def pack(members: Iterable[Member], busy_sites: int, slots: int) -> list[RunBatch]:
    """Divide runs into batches, those on the largest lattices first.

    Runs that exchange their couplings are one batch.

    Parameters
    ----------
    members : iterable of Member
        Runs to divide.
    busy_sites : int
        Number of sites that keep a device busy, see `gauge_mc.devices.base.Backend`. A batch of
        independent runs has at most as many, but at least one run.
    slots : int
        Number of batches that are carried out at the same time. A kind of runs is divided into as
        many batches if there are enough of them.
    """
    members = list(members)
    batches = ladders(members)
    kinds: dict[tuple[object, ...], list[Member]] = {}
    for member in members:
        if member.parameters.tempering:
            continue
        kind = (*shared_values(member.parameters), saved_progress(member.run))
        kinds.setdefault(kind, []).append(member)
    for alike in kinds.values():
        most = max(1, busy_sites // alike[0].parameters.lattice.sites)
        size = min(most, -(-len(alike) // slots))
        batches += [tuple(alike[n : n + size]) for n in range(0, len(alike), size)]
    return sorted(batches, key=lambda batch: -batch[0].parameters.lattice.sites)
