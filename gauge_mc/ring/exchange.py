"""Copies of neighbours' time slices are renewed, between devices and between processes."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Device
from gauge_mc.devices.base import Mark
from gauge_mc.layout import Layout
from gauge_mc.ring import Ring
from gauge_mc.ring.processes import Request
from gauge_mc.ring.slab import Slab


@dataclass(frozen=True)
class Transfer:
    """A time slice that one slab has a copy of: slabs by number, slices by place in memory."""

    source: int
    source_place: int
    target: int
    target_place: int


@dataclass(frozen=True)
class Window:
    """Bytes of a slice: those that have changed."""

    offset: int
    nbytes: int


def transfers_of(layouts: Sequence[Layout], nearest: bool) -> list[Transfer]:
    """List what has to be copied for all slabs of a ring, in an order that all processes know.

    Parameters
    ----------
    layouts : sequence of Layout
        Of all slabs, in the order of the ring.
    nearest : bool
        Only copies of the slices next to a slab.
    """
    place_of = {t: (n, t - layout.first) for n, layout in enumerate(layouts) for t in layout.times}
    return [
        Transfer(*place_of[t], target, place)
        for target, layout in enumerate(layouts)
        for place, t in layout.copies.items()
        if not nearest or place in (layout.slices, layout.stored - 1)
    ]


@dataclass
class _Message:
    """Bytes on their way to or from another process."""

    device: Device
    address: int
    data: NDArray[np.uint8]
    process: int
    tag: int
    filled: Mark | None = None
    request: Request | None = None


class Exchange:
    """Renews a field's copies, while the devices are at work on something else.

    Parameters
    ----------
    ring : Ring
    slabs : sequence of Slab
        Those of this process.
    transfers : sequence of Transfer
        Those of all processes.
    """

    def __init__(self, ring: Ring, slabs: Sequence[Slab], transfers: Sequence[Transfer]) -> None:
        self._ring = ring
        self._slabs = {ring.first_slab + n: slab for n, slab in enumerate(slabs)}
        self._by_source: dict[int, list[tuple[int, Transfer]]] = {n: [] for n in self._slabs}
        self._awaited_by: dict[int, list[tuple[int, Transfer]]] = {n: [] for n in self._slabs}
        for tag, t in enumerate(transfers):
            if t.source in self._slabs:
                self._by_source[t.source].append((tag, t))
            elif t.target in self._slabs:
                self._awaited_by[t.target].append((tag, t))
        # Otherwise the bytes go through memory of the host.
        self._direct = ring.processes.device_memory or ring.devices[0].backend == "cpu"
        self._memory: dict[tuple[int, int, bool], NDArray[np.uint8]] = {}
        self._put: dict[int, Mark] = {}
        self._arrivals: list[tuple[Device, Mark]] = []
        self._sent: list[_Message] = []
        self._awaited: list[_Message] = []

    def start(self, window: Window) -> None:
        """Begin to copy the window of all slices that others have, behind the work launched."""
        for number in range(len(self._slabs)):
            self.depart(number, window)

    def depart(self, number: int, window: Window) -> None:
        """Begin with those of one of this process's slabs, and with what comes to it."""
        number += self._ring.first_slab
        slab = self._slabs[number]
        for tag, t in self._awaited_by[number]:
            message = self._message(tag, t, window, incoming=True)
            if tag in self._put:  # the device may still be reading what came before
                self._put[tag].synchronize()
            message.request = self._ring.processes.begin_receive(message.data, message.process, tag)
            self._awaited.append(message)
        mark = slab.device.mark()
        for tag, t in self._by_source[number]:
            if t.target in self._slabs:
                target = self._slabs[t.target]
                origin = _address(slab, t.source_place, window)
                to = _address(target, t.target_place, window)
                done = slab.device.send(target.device, to, origin, window.nbytes, mark)
                self._arrivals.append((target.device, done))
                continue
            message = self._message(tag, t, window, incoming=False)
            message.filled = mark
            if not self._direct:
                message.filled = slab.device.fetch(message.data, message.address, mark)
            self._sent.append(message)
            if message.filled.query():
                self._dispatch(message)

    def finish(self) -> None:
        """Let the work that follows wait until the copies are there."""
        for message in self._sent:
            if message.request is None:
                self._dispatch(message)
        for message in self._awaited:
            assert message.request is not None
            message.request.wait()
            if not self._direct:
                self._put[message.tag] = message.device.put(message.address, message.data)
                self._arrivals.append((message.device, self._put[message.tag]))
        for message in self._sent:
            assert message.request is not None
            message.request.wait()
        # A GPU after the other, since to turn to one takes time.
        for device, mark in sorted(self._arrivals, key=lambda arrival: id(arrival[0])):
            device.wait(mark)
        for lists in (self._sent, self._awaited, self._arrivals):
            lists.clear()

    def _dispatch(self, message: _Message) -> None:
        assert message.filled is not None
        message.filled.synchronize()
        message.request = self._ring.processes.begin_send(
            message.data, message.process, message.tag
        )

    def _message(self, tag: int, t: Transfer, window: Window, incoming: bool) -> _Message:
        here, place, there = (
            (t.target, t.target_place, t.source)
            if incoming
            else (t.source, t.source_place, t.target)
        )
        slab, process = self._slabs[here], self._ring.process_of(there)
        address = _address(slab, place, window)
        if self._direct:
            memory = (ctypes.c_uint8 * window.nbytes).from_address(address)
            data = np.frombuffer(memoryview(memory), np.uint8)
            return _Message(slab.device, address, data, process, tag)
        key = (tag, window.nbytes, incoming)
        if key not in self._memory:
            self._memory[key] = slab.device.host_memory(window.nbytes)
        return _Message(slab.device, address, self._memory[key], process, tag)


def _address(slab: Slab, place: int, window: Window) -> int:
    return slab.buffer.address + place * slab.slice_bytes + window.offset
