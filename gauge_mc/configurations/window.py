"""Two time slices of a configuration that passes through the memory of a device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

import numpy as np

from gauge_mc.configurations.pipeline import WRITING, Memory
from gauge_mc.devices import Device
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import Slab
from gauge_mc.fields.averages import normalised, slice_sums
from gauge_mc.fields.field import Field
from gauge_mc.fields.file_links import MATRICES, LinkCheck, SlabBlocks, matrix_components
from gauge_mc.files.averages import Averages
from gauge_mc.storage.links import Block, StoredLinks

SLICES = 2


class SliceWindow:
    """Reads a configuration slice by slice, checks its links, and writes them in another form.

    All numbers of the file are kept exactly, also the rows of matrices that follow from others.

    Parameters
    ----------
    source : StoredLinks
        How the links are stored.
    precision : str
        Precision of the checks and of the averages, ``single`` or ``double``.
    device : Device
        The device that checks and converts the links.
    target : StoredLinks, optional
        How they are to be stored.
    """

    def __init__(
        self,
        source: StoredLinks,
        precision: str,
        device: Device,
        target: StoredLinks | None = None,
    ) -> None:
        self._source, self._target = source, target
        x, y, z, _ = source.lattice.extents
        # Slice t is at t modulo 2, so that the slice after it is the next one in memory.
        self._field = Field.empty(Lattice(x, y, z, SLICES), source.group.name, precision, device)
        (self._slab,) = self._field.slabs
        self._sums = np.zeros(3)
        if target:
            group, layout = source.group, self._slab.layout
            memory = device.allocate(layout.field_bytes(matrix_components(group.colours)))
            self._matrices = Slab(group, device, layout, memory)
            self._writer = SlabBlocks(self._matrices, target, MATRICES)
            self._memory = Memory(target.block_bytes, WRITING)
        self._reader = self._new_reader()

    def _new_reader(self) -> SlabBlocks:
        if self._target:
            return SlabBlocks(self._matrices, self._source, MATRICES, also=self._slab)
        return SlabBlocks(self._slab, self._source)

    @property
    def found(self) -> LinkCheck:
        """Checksums of the blocks read so far, and the first link that is not in the group."""
        return LinkCheck.of(self._reader.results())

    def bad(self, t: int) -> tuple[int, int] | None:
        """Return `LinkCheck.bad` for slice `t` alone, whose block has been read."""
        return self._reader.bad(t)

    @property
    def written(self) -> LinkCheck:
        """Checksums of the blocks written so far."""
        return LinkCheck.of(self._writer.results())

    @property
    def averages(self) -> Averages:
        """Averages over the configuration, after all blocks have been read."""
        source = self._source
        return normalised(self._sums, source.group.colours, source.lattice.sites)

    def read(self, blocks: Iterable[Block]) -> Iterator[tuple[int, Block | None]]:
        """Read the blocks of all time slices, in order.

        Yields
        ------
        int
            Time slice.
        Block or None
            Its block in the form of the target, if there is one, in memory that is used again
            after `WRITING` blocks. If blocks of the target reach back, the first slice comes last.
        """
        extent_t = self._source.lattice.t
        stream = iter(blocks)
        first = next(stream)
        for t, (block, following) in enumerate(pairwise(chain([first], stream, [first]))):
            self._reader.read(t, block, following, t % SLICES)
            if t:
                self._sums += slice_sums(self._slab, (t - 1) % SLICES)
            if not self._target:
                yield t, None
            elif t or not self._target.order.reaches_back:
                yield t, self._block(t)
        # The first slice once more, after the last one; its results are the same again.
        self._new_reader().read(0, first, first, extent_t % SLICES)
        self._sums += slice_sums(self._slab, (extent_t - 1) % SLICES)
        if self._target and self._target.order.reaches_back:
            yield 0, self._block(0)

    def _block(self, t: int) -> Block:
        """Return the block of the target for slice `t`."""
        assert self._target
        block = self._memory.next()
        self._writer.write(t, block, t % SLICES).synchronize()
        return block
