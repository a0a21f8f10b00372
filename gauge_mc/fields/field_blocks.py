"""The links of a field as blocks of a file, one per time slice, gathered from all its devices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.halo import HaloExchange, SliceRange, transfers_of
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Layout, Slab
from gauge_mc.fields.file_links import WRITE_LINKS, LinkCheck, SlabBlocks
from gauge_mc.groups import Group
from gauge_mc.storage.links import Block, StoredLinks


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
        for one in self._slabs:
            one.prepare(WRITE_LINKS)

    def blocks(self, memory: Callable[[int], Block] | None = None) -> Iterator[Block]:
        """Compute the blocks.

        Parameters
        ----------
        memory : callable, optional
            Returns host memory for the block of a time slice; by default new memory.

        Yields
        ------
        Block
            The blocks for t = 0, 1, … in the root process; nothing in other processes.
        """
        field, size = self._field, self.stored.block_bytes
        if self.stored.order.reaches_back and len(field.layouts) > 1:
            field.exchange_halo()

        def block(t: int) -> Block:
            found: Block = memory(t) if memory else np.empty(size, np.uint8)
            self._slab(t).write(t, found).synchronize()
            return found

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
        processes = self._field.devices.processes.allgather([one.results() for one in self._slabs])
        total = np.zeros_like(processes[0][0])
        for process in processes:
            for results in process:
                total |= results  # every slice has results on one device only
        return LinkCheck.of(total)

    def _slab(self, t: int) -> SlabBlocks:
        return next(one for one in self._slabs if t in one.slab.layout.times)


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
