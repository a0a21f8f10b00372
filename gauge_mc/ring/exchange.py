"""Copies of neighbours' time slices are renewed, between devices and between processes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Device
from gauge_mc.devices.base import Copy, Launch, Mark
from gauge_mc.devices.structures import CopiesStruct
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


@dataclass(frozen=True)
class _Sending:
    """Copies from one slab to others of its process: what launches them, and who waits for them."""

    send: Callable[[], Mark]
    receivers: tuple[Device, ...]


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
        self._within: dict[int, list[Transfer]] = {n: [] for n in self._slabs}
        self._outgoing: dict[int, list[tuple[int, Transfer]]] = {n: [] for n in self._slabs}
        self._incoming: dict[int, list[tuple[int, Transfer]]] = {n: [] for n in self._slabs}
        for tag, t in enumerate(transfers):
            if t.source in self._slabs and t.target in self._slabs:
                self._within[t.source].append(t)
            elif t.source in self._slabs:
                self._outgoing[t.source].append((tag, t))
            elif t.target in self._slabs:
                self._incoming[t.target].append((tag, t))
        # Otherwise the bytes go through memory of the host.
        self._direct = ring.processes.device_memory or ring.devices[0].backend == "cpu"
        self._memory: dict[tuple[int, int, bool], NDArray[np.uint8]] = {}
        self._put: dict[int, Mark] = {}
        self._sendings: dict[Window, dict[int, _Sending]] = {}
        self._arrivals: list[tuple[Device, Mark]] = []
        self._sent: list[_Message] = []
        self._awaited: list[_Message] = []

    def start(self, window: Window) -> None:
        """Begin to copy the window of all slices that others have, behind the work launched."""
        for depart in self.departures(window):
            depart()

    def departures(self, window: Window) -> list[Launch]:
        """For each of this process's slabs, what begins to copy to others and from other processes.

        To be called, any number of times, when the slab's work is launched.
        """
        if window not in self._sendings:
            self._sendings[window] = {n: self._sending(n, window) for n in self._slabs}
        return [
            partial(self._depart, number, window, sending)
            for number, sending in self._sendings[window].items()
        ]

    @cached_property
    def stored(self) -> dict[int, CopiesStruct] | None:
        """Where kernels that update slabs can store what others have copies of, by slab.

        None unless all kernels can, and all slabs are of this process.
        """
        if any(self._outgoing.values()) or any(self._incoming.values()):
            return None
        stored = {}
        for number, slab in self._slabs.items():
            devices = (slab.device, *self._receivers(number))
            if not all(map(slab.device.stores_in, devices)):
                return None
            addresses: dict[int, int] = {}
            for t in self._within[number]:
                target = self._slabs[t.target]
                shift = (t.target_place - t.source_place) * slab.slice_bytes
                addresses[t.source_place] = target.buffer.address + shift
            last = slab.layout.slices - 1
            stored[number] = CopiesStruct(addresses.get(0), addresses.get(last), last)
        return stored

    @cached_property
    def signals(self) -> list[Launch]:
        """For each slab what tells those with copies of it that its kernel has stored them."""
        return [
            partial(
                self._depart,
                number,
                Window(0, 0),
                _Sending(slab.device.sending([], 0), self._receivers(number)),
            )
            for number, slab in self._slabs.items()
        ]

    def _sending(self, number: int, window: Window) -> _Sending:
        """Prepare the copies from a slab to others of this process."""
        slab = self._slabs[number]
        copies = [
            Copy(
                _address(slab, t.source_place, window),
                self._slabs[t.target].device,
                _address(self._slabs[t.target], t.target_place, window),
            )
            for t in self._within[number]
        ]
        return _Sending(slab.device.sending(copies, window.nbytes), self._receivers(number))

    def _receivers(self, number: int) -> tuple[Device, ...]:
        """The devices of this process with copies of a slab."""
        devices = (self._slabs[t.target].device for t in self._within[number])
        return tuple(dict.fromkeys(devices))

    def _depart(self, number: int, window: Window, sending: _Sending) -> None:
        for tag, t in self._incoming[number]:
            message = self._message(tag, t, window, incoming=True)
            if tag in self._put:  # the device may still be reading what came before
                self._put[tag].synchronize()
            message.request = self._ring.processes.begin_receive(message.data, message.process, tag)
            self._awaited.append(message)
        for tag, t in self._outgoing[number]:
            message = self._message(tag, t, window, incoming=False)
            if self._direct:
                message.filled = message.device.mark()
            else:
                message.filled = message.device.fetch(message.data, message.address)
            self._sent.append(message)
            if message.filled.query():
                self._dispatch(message)
        if sending.receivers:
            there = sending.send()
            for device in sending.receivers:
                self._arrivals.append((device, there))

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
        for device, mark in self._arrivals:
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
