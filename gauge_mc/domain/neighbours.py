"""Neighbouring slabs in other processes on the same host, whose halos kernels store directly."""

from __future__ import annotations

import platform
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import ForeignBuffer, Offer, SharedBuffer, SharingDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.processes import Request
from gauge_mc.domain.slab import Slab

Pair = tuple[int, int]
"""Numbers of a slab that stores in the halo of another one, and of that other one."""


@dataclass
class _Link:
    """The signals between a slab of this process and a neighbour in another one."""

    slab: Slab
    theirs: ForeignBuffer
    process: int
    tags: Pair
    sent: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, np.uint8))
    received: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(1, np.uint8))
    requests: list[Request] = field(default_factory=list)


class ForeignNeighbours:
    """The neighbours of the slabs of this process that belong to other processes.

    After a kernel has stored in the halos of its neighbours, its slab signals: it records an event
    on its device and tells the neighbours' processes, by a message without content, that they can
    make their devices wait for it. Nobody waits on the host for a device. Two events take turns.
    None is recorded again too early: for that a slab must have the message of the turn between,
    which its neighbour sends after it has begun to wait for the first one.

    Objects are made by `find`.
    """

    def __init__(
        self,
        devices: DeviceGroup,
        slabs: Mapping[int, Slab],
        shared: Mapping[int, SharedBuffer],
        found: Mapping[Pair, ForeignBuffer],
        tags: Mapping[Pair, int],
    ) -> None:
        self._processes = devices.processes
        self._shared = shared
        self._found = found
        self._turns = dict.fromkeys(shared, 0)
        self._links: dict[int, list[_Link]] = {number: [] for number in slabs}
        for (mine, other), theirs in found.items():
            process = devices.process_of(other)
            link = _Link(slabs[mine], theirs, process, (tags[mine, other], tags[other, mine]))
            self._links[mine].append(link)
        self._signalled: list[tuple[int, _Link]] = []

    @classmethod
    def find(
        cls,
        devices: DeviceGroup,
        slabs: Mapping[int, Slab],
        pairs: Collection[Pair],
        first_tag: int,
    ) -> ForeignNeighbours | None:
        """Return the neighbours in other processes; all processes must call this.

        Parameters
        ----------
        devices : DeviceGroup
            The devices that share the field.
        slabs : mapping of int to Slab
            The slabs of this process and their numbers.
        pairs : collection of (int, int)
            All pairs of slabs of different processes where the first stores in the halo of the
            second, in the same order in all processes.
        first_tag : int
            Tag from which on tags of messages are unused.

        Returns
        -------
        ForeignNeighbours or None
            None unless every process reaches the memory of all its neighbours.
        """
        wanted = [(mine, other) for mine, other in pairs if mine in slabs]
        shared = {}
        for number in dict.fromkeys(mine for mine, _ in wanted):
            slab = slabs[number]
            if isinstance(slab.device, SharingDevice):
                buffer = slab.device.share(slab.buffer)
                if buffer:
                    shared[number] = buffer
        node = platform.node()
        offers: dict[tuple[int, str], Offer] = {}
        for some in devices.processes.allgather(
            {(n, node): one.offer for n, one in shared.items()}
        ):
            offers |= some
        found = {}
        for mine, other in wanted:
            device, offer = slabs[mine].device, offers.get((other, node))
            if offer and isinstance(device, SharingDevice):
                theirs = device.foreign(offer)
                if theirs:
                    found[mine, other] = theirs
        if not all(devices.processes.allgather(len(found) == len(wanted))):
            return None
        tags = {pair: first_tag + n for n, pair in enumerate(pairs)}
        return cls(devices, slabs, shared, found, tags)

    def address(self, mine: int, other: int) -> int:
        """Return the address, in this process, of the links of a neighbour."""
        return self._found[mine, other].address

    def signal(self, number: int) -> None:
        """Tell the neighbours of a slab that its kernel has been issued."""
        if not self._links[number]:
            return
        turn = self._turns[number]
        self._turns[number] += 1
        self._shared[number].record(turn)
        for link in self._links[number]:
            out, back = link.tags
            link.requests = [
                self._processes.begin_receive(link.received, link.process, back),
                self._processes.begin_send(link.sent, link.process, out),
            ]
            self._signalled.append((turn, link))

    def wait(self) -> None:
        """Make later work of the slabs that have signalled wait for their neighbours."""
        for turn, link in self._signalled:
            for request in link.requests:
                request.wait()
            link.slab.device.wait(link.theirs.event(turn))
        self._signalled.clear()
