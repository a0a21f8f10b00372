"""Halo exchange between slabs, across devices and processes."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Device
from gauge_mc.devices.base import (
    Copy,
    Event,
    ForeignBuffer,
    Launch,
    Offer,
    SharedBuffer,
    SharingDevice,
    repeated,
)
from gauge_mc.devices.kernels import ANY_VARIANT, Kernel
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.mpi import Request
from gauge_mc.domain.slab import Layout, Slab, work

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
        buffers: Mapping[Pair, ForeignBuffer],
        tags: Mapping[Pair, int],
    ) -> None:
        self._processes = devices.processes
        self._shared = shared
        self._found = buffers
        self._turns = dict.fromkeys(shared, 0)
        self._links: dict[int, list[_Link]] = {number: [] for number in slabs}
        for (mine, neighbour), theirs in buffers.items():
            process = devices.process_of(neighbour)
            link = _Link(
                slabs[mine], theirs, process, (tags[mine, neighbour], tags[neighbour, mine])
            )
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
        """Return the neighbours in other processes; all processes must call this."""
        foreign = [(mine, x) for mine, x in pairs if mine in slabs]
        shared = {}
        for number in dict.fromkeys(mine for mine, _ in foreign):
            slab = slabs[number]
            if isinstance(slab.device, SharingDevice):
                buffer = slab.device.share(slab.buffer)
                if buffer:
                    shared[number] = buffer
        node = platform.node()
        offers: dict[tuple[int, str], Offer] = {}
        for some in devices.processes.allgather({(n, node): x.offer for n, x in shared.items()}):
            offers |= some
        buffers = {}
        for mine, neighbour in foreign:
            device, offer = slabs[mine].device, offers.get((neighbour, node))
            if offer and isinstance(device, SharingDevice):
                theirs = device.foreign(offer)
                if theirs:
                    buffers[mine, neighbour] = theirs
        if not all(devices.processes.allgather(len(buffers) == len(foreign))):
            return None
        tags = {pair: first_tag + n for n, pair in enumerate(pairs)}
        return cls(devices, slabs, shared, buffers, tags)

    def address(self, mine: int, neighbour: int) -> int:
        """Return the address, in this process, of the links of a neighbour."""
        return self._found[mine, neighbour].address

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


SEND_SLICES = Kernel("send_slices")

MOST_PIECES, PACKET_BYTES = map(SEND_SLICES.constant, ("MOST_PIECES", "PACKET_BYTES"))

LARGEST_PIECE = 2**21
"""Bytes of a slice up to which a kernel sends it to another GPU, since copies take longer to begin.
"""


@dataclass(frozen=True)
class Transfer:
    """The transfer of a time slice of one slab to the halo of another."""

    source: int
    """Number of the slab that is copied from."""
    source_place: int
    """Position of the slice in the memory of the first, counted in slices."""
    target: int
    """Number of the slab that is copied to."""
    target_place: int
    """Position of the slice in the memory of the second, counted in slices."""
    above: bool
    """Whether the source is above the target, so that the slice is among the first of the source.
    """


@dataclass(frozen=True)
class SliceRange:
    """The range of bytes of a slice that is to be transferred."""

    offset: int
    nbytes: int


def transfers_of(layouts: Sequence[Layout], depth: int | None = None) -> list[Transfer]:
    """Return all transfers between slabs, in the same order in all processes."""
    place_of = {t: (n, t - layout.first) for n, layout in enumerate(layouts) for t in layout.times}
    return [
        Transfer(*place_of[t], target, place, place < layout.slices + layout.above)
        for target, layout in enumerate(layouts)
        for place, t in layout.halo.items()
        if depth is None or _distance(layout, place) <= depth
    ]


def transfers_above(counts: Sequence[int], above: int) -> list[Transfer]:
    """Return the transfers to the memory behind each slab.

    They fill it with the slices that follow on other slabs.
    """
    place_of = [(n, place) for n, count in enumerate(counts) for place in range(count)]
    ends = accumulate(counts)
    return [
        Transfer(*place_of[(end + k) % len(place_of)], target, count + k, True)
        for target, (count, end) in enumerate(zip(counts, ends, strict=True))
        for k in range(above)
    ]


def _distance(layout: Layout, place: int) -> int:
    """Return the distance of a halo slice from the slab, given its position in memory."""
    above = place - layout.slices + 1
    return above if above <= layout.above else layout.period - place


@dataclass(frozen=True)
class _LocalSend:
    """The copies from one slab to others of the same process."""

    send: Callable[[], Event]
    """Issues the copies."""
    receivers: tuple[Device, ...]
    """The devices that must wait for the copies."""


@dataclass
class _HaloMessage:
    """A message to or from another process."""

    device: Device
    address: int
    data: NDArray[np.uint8]
    process: int
    tag: int
    filled: Event | None = None
    request: Request | None = None


class HaloExchange:
    """Updates the halos of a field while the devices do other work.

    Parameters
    ----------
    devices : DeviceGroup
        The devices that share the field.
    slabs : sequence of Slab
        The slabs of this process.
    transfers : sequence of Transfer
        The transfers of all processes.
    """

    def __init__(
        self, devices: DeviceGroup, slabs: Sequence[Slab], transfers: Sequence[Transfer]
    ) -> None:
        self._devices = devices
        self._processes = devices.processes
        self._process_of = devices.process_of
        self._slabs = {devices.first_slab + n: slab for n, slab in enumerate(slabs)}
        self._local: dict[int, list[Transfer]] = {n: [] for n in self._slabs}
        self._outgoing: dict[int, list[tuple[int, Transfer]]] = {n: [] for n in self._slabs}
        self._incoming: dict[int, list[tuple[int, Transfer]]] = {n: [] for n in self._slabs}
        for tag, t in enumerate(transfers):
            if t.source in self._slabs and t.target in self._slabs:
                self._local[t.source].append(t)
            elif t.source in self._slabs:
                self._outgoing[t.source].append((tag, t))
            elif t.target in self._slabs:
                self._incoming[t.target].append((tag, t))
        pairs = dict.fromkeys((t.source, t.target) for t in transfers)
        of = self._process_of
        self._foreign_pairs = [(a, b) for a, b in pairs if of(a) != of(b)]
        self._tags = len(transfers)
        self._neighbours: ForeignNeighbours | None = None
        # If MPI cannot access the devices' memory, messages go through host memory.
        in_host_memory = devices.devices[0].in_host_memory
        self._direct = devices.processes.device_memory or in_host_memory
        self._staging: dict[tuple[int, int, bool], NDArray[np.uint8]] = {}
        self._uploads: dict[int, Event] = {}
        self._prepared: dict[SliceRange, dict[int, _LocalSend]] = {}
        self._arrivals: list[tuple[Device, Event]] = []
        self._sent: list[_HaloMessage] = []
        self._awaited: list[_HaloMessage] = []

    def post(self, window: SliceRange) -> None:
        """Start to send a window of all slices in the halos, after the work issued so far."""
        for post in self.posts(window):
            post()

    def posts(self, window: SliceRange) -> list[Launch]:
        """Return a call for each slab of this process that posts its sends and receives.

        It must be called after the slab's work has been issued, and can be called repeatedly.
        """
        if window not in self._prepared:
            self._prepared[window] = {n: self._prepare(n, window) for n in self._slabs}
        return [
            partial(self._post, number, window, local)
            for number, local in self._prepared[window].items()
        ]

    @cached_property
    def targets(self) -> list[dict[str, int | None]] | None:
        """Addresses through which a kernel can store a slab's boundary in its neighbours' halos.

        For each slab of this process, the members of the structure ``HaloTargets``. None unless
        the kernels of all processes can write to the memory of their neighbours. All processes must
        ask for this.
        """
        local = all(
            slab.device.reaches(device)
            for number, slab in self._slabs.items()
            for device in (slab.device, *self._receivers(number))
        )
        foreign = ForeignNeighbours.find(
            self._devices, self._slabs, self._foreign_pairs, self._tags
        )
        if foreign is None or not all(self._processes.allgather(local)):
            return None
        self._neighbours = foreign
        targets = []
        for number, slab in self._slabs.items():
            addresses: dict[bool, int] = {}
            outgoing = (t for _, t in self._outgoing[number])
            for t in (*self._local[number], *outgoing):
                neighbour = self._slabs.get(t.target)
                base = neighbour.buffer.address if neighbour else foreign.address(number, t.target)
                shift = (t.target_place - t.source_place) * slab.slice_bytes
                addresses[t.above] = base + shift
            first, last = addresses.get(True), addresses.get(False)
            targets.append({"first": first, "last": last, "last_t": slab.layout.slices - 1})
        return targets

    @property
    def signals(self) -> list[Launch]:
        """Calls, one for each slab, that tell its neighbours that their halos are stored.

        A call follows the kernel that stores them. There are calls only if there are `targets`.
        """
        sends = {n: slab.device.prepare_copies([], 0) for n, slab in self._slabs.items()}
        locally = {n: _LocalSend(send, self._receivers(n)) for n, send in sends.items()}
        return [partial(self._signal, n, local) for n, local in locally.items()]

    def _signal(self, number: int, local: _LocalSend) -> None:
        if local.receivers:
            self._send_locally(local)
        assert self._neighbours
        self._neighbours.signal(number)

    def _prepare(self, number: int, window: SliceRange) -> _LocalSend:
        """Prepare the copies from a slab to other slabs of this process."""
        slab = self._slabs[number]
        copies = [
            Copy(
                _address(slab, t.source_place, window),
                self._slabs[t.target].device,
                _address(self._slabs[t.target], t.target_place, window),
            )
            for t in self._local[number]
        ]
        return _LocalSend(_sending(slab, copies, window.nbytes), self._receivers(number))

    def _receivers(self, number: int) -> tuple[Device, ...]:
        """Return the devices of this process whose halos contain slices of a slab."""
        devices = (self._slabs[t.target].device for t in self._local[number])
        return tuple(dict.fromkeys(devices))

    def _post(self, number: int, window: SliceRange, local: _LocalSend) -> None:
        for tag, t in self._incoming[number]:
            message = self._message(tag, t, window, incoming=True)
            if tag in self._uploads:  # the device may still be reading the previous message
                self._uploads[tag].synchronize()
            message.request = self._processes.begin_receive(message.data, message.process, tag)
            self._awaited.append(message)
        for tag, t in self._outgoing[number]:
            message = self._message(tag, t, window, incoming=False)
            if self._direct:
                message.filled = message.device.event()
            else:
                message.filled = message.device.download(message.data, message.address)
            self._sent.append(message)
            if message.filled.query():
                self._send(message)
        if local.receivers:
            self._send_locally(local)

    def _send_locally(self, local: _LocalSend) -> None:
        arrived = local.send()
        for device in local.receivers:
            self._arrivals.append((device, arrived))

    def wait(self) -> None:
        """Make later work on the devices wait until the halos are up to date."""
        for message in self._sent:
            if message.request is None:
                self._send(message)
        for message in self._awaited:
            assert message.request is not None
            message.request.wait()
            if not self._direct:
                uploaded = message.device.upload(message.address, message.data)
                self._uploads[message.tag] = uploaded
                self._arrivals.append((message.device, uploaded))
        for message in self._sent:
            assert message.request is not None
            message.request.wait()
        for device, event in self._arrivals:
            device.wait(event)
        if self._neighbours:
            self._neighbours.wait()
        for lists in (self._sent, self._awaited, self._arrivals):
            lists.clear()

    def _send(self, message: _HaloMessage) -> None:
        assert message.filled is not None
        message.filled.synchronize()
        message.request = self._processes.begin_send(message.data, message.process, message.tag)

    def _message(self, tag: int, t: Transfer, window: SliceRange, incoming: bool) -> _HaloMessage:
        number, place, partner = (
            (t.target, t.target_place, t.source)
            if incoming
            else (t.source, t.source_place, t.target)
        )
        slab, process = self._slabs[number], self._process_of(partner)
        address = _address(slab, place, window)
        if self._direct:
            memory = (ctypes.c_uint8 * window.nbytes).from_address(address)
            data = np.frombuffer(memoryview(memory), np.uint8)
            return _HaloMessage(slab.device, address, data, process, tag)
        key = (tag, window.nbytes, incoming)
        if key not in self._staging:
            self._staging[key] = slab.device.pinned_memory(window.nbytes)
        return _HaloMessage(slab.device, address, self._staging[key], process, tag)


def _sending(slab: Slab, copies: Sequence[Copy], nbytes: int) -> Callable[[], Event]:
    """Return a call that issues copies from a slab, as `Device.prepare_copies` does."""
    device = slab.device
    addresses = [end for copy in copies for end in (copy.origin, copy.to)]
    if (
        device.in_host_memory
        or not 0 < len(copies) <= MOST_PIECES
        or nbytes > LARGEST_PIECE
        or any(number % PACKET_BYTES for number in (nbytes, *addresses))
        or not all(device.reaches(copy.target) for copy in copies)
    ):
        return device.prepare_copies(copies, nbytes)
    unused = (0,) * (MOST_PIECES - len(copies))
    arguments = SEND_SLICES.arguments(
        ANY_VARIANT,
        geometry=slab.layout.geometry,
        work=work(0, 1, 1, parity=0),
        **{"from": (*(copy.origin for copy in copies), *unused)},
        to=(*(copy.to for copy in copies), *unused),
        pieces=len(copies),
        packets=nbytes // PACKET_BYTES,
    )
    launch = device.kernel(SEND_SLICES, ANY_VARIANT).prepared(repeated([arguments], 1))
    record = device.prepare_copies([], 0)

    def send() -> Event:
        launch()
        return record()

    return send


def _address(slab: Slab, place: int, window: SliceRange) -> int:
    return slab.buffer.address + place * slab.slice_bytes + window.offset
