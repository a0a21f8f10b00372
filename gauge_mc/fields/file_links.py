"""Links on their way between the memory of a device and the blocks of a file."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Event
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.devices.source import constants, source_folder
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_of
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import BOTH_PARITIES, Layout, Slab, work
from gauge_mc.groups import Group
from gauge_mc.storage.links import ROTATED_WORDS, SITE_CRC, WORD_SUM, Block, Checksums, StoredLinks

READ_LINKS = Kernel("read_links")
WRITE_LINKS = Kernel("write_links")

CONSTANTS = constants(source_folder() / "files" / "file_links.h")

GROUP_LINKS = Choice.of("content", "links", "files/content.h", "GroupLinks")
"""Fields of links, as in all other kernels."""
MATRICES = Choice.of("content", "matrices", "files/content.h", "Matrices")
"""Fields of all entries of the matrices, `matrix_components` per link."""

TOLERANCE = 1e-4
"""Largest deviation of a link from SU(N), as in ``check_unitarity`` of the MILC code. It must allow
for links that other programs have computed in single precision."""

CAUTIOUS = 1e-6
"""Deviation above which a message says that links are not exactly in the group. Links that were
rounded to single precision have less."""


def matrix_components(colours: int) -> int:
    """Return the number of reals that a field of `MATRICES` stores per link."""
    return -(-2 * colours**2 // 4) * 4


@dataclass(frozen=True)
class LinkCheck:
    """Checksums of blocks that were read or written, and the first link outside the group."""

    checksums: Checksums
    """Checksums of the blocks."""
    bad: tuple[int, int] | None = None
    """Time slice and number ``((z Y + y) X + x) 4 + mu`` of the first link that is not in the
    group.
    """
    deviation: float = 0.0
    """Largest deviation of a link from the group."""

    @classmethod
    def of(cls, results: NDArray[np.uint32]) -> LinkCheck:
        """Evaluate the results of all time slices, ``[slice][copy][result]``."""
        bad = results[:, :, CONSTANTS["BAD_RESULT"]].max(axis=1)
        first, second = (
            int(np.bitwise_xor.reduce(results[:, :, CONSTANTS[name]], axis=None))
            for name in ("FIRST_RESULT", "SECOND_RESULT")
        )
        total = int(results[:, :, CONSTANTS["SUM_RESULT"]].sum(dtype=np.uint64)) & 0xFFFFFFFF
        where = None
        if bad.any():
            t = int(np.flatnonzero(bad)[0])
            where = (t, 0xFFFFFFFF - int(bad[t]))
        most = results[:, :, CONSTANTS["DEVIATION_RESULT"]].max().view(np.float32)
        return cls(Checksums(total, (first, second), (first, second)), where, float(most) ** 0.5)


class SlabBlocks:
    """The blocks of the time slices of a slab, in memory of its device.

    Parameters
    ----------
    slab : Slab
        The slab that has the links.
    stored : StoredLinks
        How the file stores the links.
    content : Choice
        `GROUP_LINKS` or `MATRICES`, which the slab holds.
    also : Slab, optional
        A slab of the same layout with links, which `read` sets as well.
    """

    def __init__(
        self,
        slab: Slab,
        stored: StoredLinks,
        content: Choice = GROUP_LINKS,
        also: Slab | None = None,
    ) -> None:
        self.slab = slab
        self._also = also.buffer.address if also else None
        self.stored = stored
        self._choices = (stored.order.choice, content)
        slices = stored.lattice.t
        self._shape = (slices, CONSTANTS["COPIES"], CONSTANTS["RESULTS"])
        nbytes = 4 * int(np.prod(self._shape))
        self._results = slab.device.allocate(nbytes)
        self._row = nbytes // slices

    def prepare(self, kernel: Kernel) -> None:
        """Load the kernel that `write` or `read` needs, `WRITE_LINKS` or `READ_LINKS`."""
        self.slab.kernel(kernel, *self._choices)

    def write(self, t: int, block: Block, place: int | None = None) -> Event:
        """Compute the block of time slice `t`; it is complete when the event is reached."""
        device = self.slab.device
        address = block.ctypes.data
        if not device.in_host_memory:
            address = device.scratch("blocks", block.nbytes).address
        self._launch(WRITE_LINKS, t, place, address)
        return device.event() if device.in_host_memory else device.download(block, address)

    def read(
        self, t: int, block: Block, following: Block | None = None, place: int | None = None
    ) -> Event:
        """Set the links of time slice `t` from its block; the event says when."""
        address = self._address(block, "block")
        after = self._address(following, "next block") if following is not None else None
        self._launch(READ_LINKS, t, place, address, next_block=after, also=self._also)
        return self.slab.device.event()

    def results(self) -> NDArray[np.uint32]:
        """Return the results ``[slice][copy][result]``; those of other slabs are 0."""
        data = self.slab.device.read(self._results, 0, self._results.nbytes)
        return data.view(np.uint32).reshape(self._shape)

    def bad(self, t: int) -> tuple[int, int] | None:
        """Return `LinkCheck.bad` for time slice `t` alone."""
        data = self.slab.device.read(self._results, t * self._row, self._row)
        place = LinkCheck.of(data.view(np.uint32).reshape(1, *self._shape[1:])).bad
        return (t, place[1]) if place else None

    def _address(self, block: Block, use: str) -> int:
        device = self.slab.device
        if device.in_host_memory:
            return int(block.ctypes.data)
        buffer = device.scratch(use, block.nbytes)
        device.write(buffer, 0, block)
        return buffer.address

    def _launch(self, kernel: Kernel, t: int, place: int | None, address: int, **more: Any) -> None:
        layout = self.slab.layout
        at = t - layout.first if place is None else place
        more |= {"links": self.slab.buffer.address, "file": self._described(kernel, t, address)}
        self.slab.launch(kernel, work(at, 1, 1, BOTH_PARITIES), *self._choices, **more)

    def _described(self, kernel: Kernel, t: int, address: int) -> ctypes.Structure:
        stored, layout = self.stored, self.slab.layout
        kind = kernel.part("FileLinks", self.slab.variant(*self._choices))
        lanes = None if layout.packet_bytes else layout.lane_origin.ctypes.data
        described: ctypes.Structure = kind(
            words=address,
            sites_before=t * stored.lattice.slice_sites,
            reals=stored.reals,
            real_words=int(stored.dtype[-1]) // 4,
            swapped=stored.dtype[0] == ">",
            as_stored=stored.as_stored,
            lane_origin=lanes,
            results=self._results.address + t * self._row,
            checksums=self._wanted,
            tolerance=TOLERANCE,
        )
        return described

    @cached_property
    def _wanted(self) -> int:
        numbers = {WORD_SUM: "WORD_SUM", SITE_CRC: "SITE_CRC", ROTATED_WORDS: "ROTATED_WORDS"}
        return sum(CONSTANTS[numbers[name]] for name in self.stored.checksums)


class SlabbedLinks(Protocol):
    """Links on slabs, such as a `Field`."""

    @property
    def devices(self) -> DeviceGroup:
        """The devices, over which the lattice is divided along t."""

    @property
    def lattice(self) -> Lattice:
        """The lattice."""

    @property
    def slabs(self) -> Sequence[Slab]:
        """The slabs of this process."""

    @property
    def layouts(self) -> Sequence[Layout]:
        """The layouts of all slabs."""

    def exchange_halo(self) -> None:
        """Update the halos."""


class FieldBlocks:
    """The blocks of a field; all processes that share the field must make the same calls.

    Parameters
    ----------
    field : Field, or other links on slabs
        The links that are converted from or to blocks.
    stored : StoredLinks
        How a file stores the links.
    """

    def __init__(self, field: SlabbedLinks, stored: StoredLinks) -> None:
        self._field, self.stored = field, stored
        self._slabs = [SlabBlocks(slab, stored) for slab in field.slabs]

    def prepare(self) -> None:
        """Load the kernel that `blocks` needs."""
        for slab in self._slabs:
            slab.prepare(WRITE_LINKS)

    def blocks(self, memory: Callable[[int], Block] | None = None) -> Iterator[Block]:
        """Compute the blocks."""
        field, size = self._field, self.stored.block_bytes
        if self.stored.order.reaches_back and len(field.layouts) > 1:
            field.exchange_halo()

        def block(t: int) -> Block:
            content: Block = memory(t) if memory else np.empty(size, np.uint8)
            self._slab(t).write(t, content).synchronize()
            return content

        return field.devices.gather_slices(field.lattice, block)

    def restore(self, blocks: Iterable[Block]) -> None:
        """Set the links to those of the blocks for t = 0, 1, …; only the root's are used."""
        field = self._field

        def put(t: int, pair: tuple[Block, Block | None]) -> None:
            self._slab(t).read(t, *pair).synchronize()

        pairs = self._pairs(blocks)
        field.devices.scatter_slices(field.lattice, pairs, put)
        if field.devices.root:
            list(pairs)  # what follows the last block may check all of them
        field.exchange_halo()

    def _pairs(self, blocks: Iterable[Block]) -> Iterator[tuple[Block, Block | None]]:
        """Yield every block, with the next one if the order of the links needs it."""
        if not self.stored.order.reaches_back:
            yield from ((block, None) for block in blocks)
            return
        stream = iter(blocks)
        first = block = next(stream)
        for following in stream:
            yield block, following
            block = following
        yield block, first

    @property
    def found(self) -> LinkCheck:
        """Checksums of all blocks so far, and the first link outside the group."""
        processes = self._field.devices.processes.allgather([x.results() for x in self._slabs])
        total = np.zeros_like(processes[0][0])
        for process in processes:
            for results in process:
                total |= results  # every slice has results on one device only
        return LinkCheck.of(total)

    def _slab(self, t: int) -> SlabBlocks:
        return next(slab for slab in self._slabs if t in slab.slab.layout.times)


def read_blocks(field: SlabbedLinks, stored: StoredLinks, blocks: Iterable[Block]) -> LinkCheck:
    """Set the links of a field to those of blocks; return their checksums and any misfit."""
    reading = FieldBlocks(field, stored)
    reading.restore(blocks)
    return reading.found


@dataclass(frozen=True)
class SlabField:
    """Numbers for every link of a lattice, in the memory of one or more devices."""

    lattice: Lattice
    """Extents of the lattice."""
    group: Group
    """The gauge group."""
    precision: str
    """``single`` or ``double``."""
    devices: DeviceGroup
    """The devices that hold the numbers."""
    slabs: tuple[Slab, ...]
    """The slabs of this process, one per device."""
    layouts: tuple[Layout, ...]
    """The layouts of all slabs, including those of other processes."""

    def halo(self, depth: int | None = 1) -> HaloExchange:
        """Return the exchange of some slices on either side of each slab; None means all."""
        if depth not in self._exchanges:
            transfers = transfers_of(self.layouts, depth)
            self._exchanges[depth] = HaloExchange(self.devices, self.slabs, transfers)
        return self._exchanges[depth]

    @cached_property
    def _exchanges(self) -> dict[int | None, HaloExchange]:
        return {}

    def exchange_halo(self, depth: int | None = 1) -> None:
        """Update some slices of the halo on either side of each slab; None means all."""
        halo = self.halo(depth)
        halo.post(SliceRange(0, self.slabs[0].slice_bytes))
        halo.wait()
