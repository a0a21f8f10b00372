"""Two time slices of a configuration that passes through memory, read ahead and written behind.

Kernels read, check and write the slices. Where none can be compiled, NumPy does the same, so that
files can be read on every machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices import Device
from gauge_mc.devices.choice import open_host
from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.domain.slab import Slab
from gauge_mc.errors import NoKernelsError, UnsupportedError
from gauge_mc.fields.field import Field
from gauge_mc.fields.file_links import (
    MATRICES,
    READ_LINKS,
    TOLERANCE,
    WRITE_LINKS,
    LinkCheck,
    SlabBlocks,
    matrix_components,
)
from gauge_mc.fields.sums import AVERAGED, normalised, slice_sums
from gauge_mc.files.columns import Averages
from gauge_mc.storage import links as host_links
from gauge_mc.storage.links import Block, Checksums, StoredLinks

T = TypeVar("T")
Output = TypeVar("Output")

AHEAD = 1
"""Number of time slices that are read before they are needed, or written later."""

READING = AHEAD + 2
"""Number of blocks in memory while blocks are read and converted: those that are read ahead, and
one that is converted together with the next one."""

WRITING = AHEAD + 2
"""Number of blocks in memory while blocks are made and written."""


class Memory:
    """Memory for blocks. It is reused after some blocks, because fresh memory costs time.

    Parameters
    ----------
    nbytes : int
        Size of a block.
    count : int
        Number of blocks that are in use at the same time.
    """

    def __init__(self, nbytes: int, count: int) -> None:
        self._nbytes, self._count = nbytes, count
        self._blocks: deque[NDArray[np.uint8]] = deque()

    def next(self) -> NDArray[np.uint8]:
        """Return memory for the next block."""
        full = len(self._blocks) == self._count
        block = self._blocks.popleft() if full else np.empty(self._nbytes, np.uint8)
        self._blocks.append(block)
        return block


def read_ahead(read: Callable[[Output], T], items: Iterable[Output]) -> Iterator[T]:
    """Yield the results of `read` for all items, and read the next ones meanwhile."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(1) as thread:
        try:
            for item in items:
                waiting.append(thread.submit(read, item))
                if len(waiting) > AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def write_behind(write: Callable[[T], object], items: Iterable[T]) -> None:
    """Call `write` for all items, in order, while the next ones are being made."""
    waiting: deque[Future[object]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            waiting.append(thread.submit(write, item))
            if len(waiting) > AHEAD:
                waiting.popleft().result()
        for future in waiting:
            future.result()


SLICES = 2


class SliceWindow(ABC):
    """Reads a configuration slice by slice, checks its links, and writes them in another form.

    All numbers of the file are kept exactly, also the rows of matrices that follow from others.

    Parameters
    ----------
    source : StoredLinks
        How the links are stored.
    target : StoredLinks, optional
        How they are to be stored.
    """

    def __init__(self, source: StoredLinks, target: StoredLinks | None) -> None:
        self._source, self._target = source, target
        self._sums = np.zeros(3)

    @property
    @abstractmethod
    def found(self) -> LinkCheck:
        """Checksums of the blocks read so far, and the first link that is not in the group."""

    @abstractmethod
    def bad(self, t: int) -> tuple[int, int] | None:
        """Return `LinkCheck.bad` for slice `t` alone, whose block has been read."""

    @property
    @abstractmethod
    def written(self) -> Checksums:
        """Checksums of the blocks written so far."""

    @abstractmethod
    def _take(self, t: int, block: Block, following: Block, again: bool = False) -> None:
        """Read slice `t` from its block; `again` if it has been read and checked before."""

    @abstractmethod
    def _trace_sums(self, t: int) -> NDArray[np.float64]:
        """Return `slice_sums` of slice `t`, after the one that follows it has been read."""

    @abstractmethod
    def _block(self, t: int) -> Block:
        """Return the block of the target for slice `t`, the last one that was read."""

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
            with np.errstate(all="ignore"):  # numbers of a damaged file
                self._take(t, block, following)
                if t:
                    self._sums += self._trace_sums(t - 1)
            if not self._target:
                yield t, None
            elif t or not self._target.order.reaches_back:
                yield t, self._block(t)
        # The first slice once more, after the last one.
        with np.errstate(all="ignore"):
            self._take(extent_t, first, first, again=True)
            self._sums += self._trace_sums(extent_t - 1)
        if self._target and self._target.order.reaches_back:
            yield 0, self._block(extent_t)


class DeviceWindow(SliceWindow):
    """A window in the memory of a device, whose kernels read and write.

    Parameters
    ----------
    source, target
        See `SliceWindow`.
    precision : str
        Precision of the checks and of the averages, ``single`` or ``double``.
    device : Device
        The device that checks and converts the links.

    Raises
    ------
    NoKernelsError
        If the kernels cannot be compiled.
    """

    def __init__(
        self, source: StoredLinks, precision: str, device: Device, target: StoredLinks | None = None
    ) -> None:
        super().__init__(source, target)
        x, y, z, _ = source.lattice.extents
        # Slice t is at t modulo 2, so that the slice after it is the next one in memory.
        self._field = Field.empty(Lattice(x, y, z, SLICES), source.group.name, precision, device)
        (self._slab,) = self._field.slabs
        for kernel in AVERAGED:
            self._slab.kernel(kernel)
        if target:
            group, layout = source.group, self._slab.layout
            memory = device.allocate(layout.field_bytes(matrix_components(group.colours)))
            self._matrices = Slab(group, device, layout, memory)
            self._writer = SlabBlocks(self._matrices, target, MATRICES)
            self._writer.prepare(WRITE_LINKS)
            self._memory = Memory(target.block_bytes, WRITING)
        self._reader = self._new_reader()
        self._reader.prepare(READ_LINKS)

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
    def written(self) -> Checksums:
        """Checksums of the blocks written so far."""
        return LinkCheck.of(self._writer.results()).checksums

    def _take(self, t: int, block: Block, following: Block, again: bool = False) -> None:
        reader = self._new_reader() if again else self._reader
        reader.read(t % self._source.lattice.t, block, following, t % SLICES)

    def _trace_sums(self, t: int) -> NDArray[np.float64]:
        return slice_sums(self._slab, t % SLICES)

    def _block(self, t: int) -> Block:
        block = self._memory.next()
        self._writer.write(t % self._source.lattice.t, block, t % SLICES).synchronize()
        return block


class HostWindow(SliceWindow):
    """A window in the memory of the host, in which NumPy reads and writes without any kernel.

    Checks and averages are in double precision.
    """

    def __init__(self, source: StoredLinks, target: StoredLinks | None = None) -> None:
        super().__init__(source, target)
        self._slices: dict[int, host_links.Matrices] = {}
        self._read, self._written = Checksums(), Checksums()
        self._bad: dict[int, int] = {}
        self._deviation = 0.0

    @property
    def found(self) -> LinkCheck:
        """Checksums of the blocks read so far, and the first link that is not in the group."""
        return LinkCheck(self._read, min(self._bad.items(), default=None), self._deviation)

    def bad(self, t: int) -> tuple[int, int] | None:
        """Return `LinkCheck.bad` for slice `t` alone, whose block has been read."""
        return (t, self._bad[t]) if t in self._bad else None

    @property
    def written(self) -> Checksums:
        """Checksums of the blocks written so far."""
        return self._written

    def _take(self, t: int, block: Block, following: Block, again: bool = False) -> None:
        links = host_links.gather(self._source, t, block, following)
        matrices = host_links.decode(self._source, links)
        self._slices = {t - 1: self._slices.get(t - 1, matrices), t: matrices}
        if again:
            return
        self._read |= host_links.checksums(self._source, t, links)
        apart = host_links.deviations(matrices)
        self._deviation = float(np.fmax.reduce(apart, initial=self._deviation))
        outside = ~(apart <= TOLERANCE)  # so that a NaN is outside
        if outside.any():
            self._bad[t] = int(np.argmax(outside))

    def _trace_sums(self, t: int) -> NDArray[np.float64]:
        group, extents = self._source.group, self._source.lattice.extents[:3]
        pair = (host_links.in_group(group, self._slices[n]) for n in (t, t + 1))
        return host_links.trace_sums(extents, *pair)

    def _block(self, t: int) -> Block:
        assert self._target
        at, back = t % self._source.lattice.t, self._target.order.reaches_back
        links = host_links.encode(self._target, self._slices[t])
        before = host_links.encode(self._target, self._slices[t - 1]) if back else None
        self._written |= host_links.checksums(self._target, at, links)
        return host_links.scatter(self._target, at, links, before)


def open_window(
    source: StoredLinks, precision: str, target: StoredLinks | None = None
) -> SliceWindow:
    """Return a window on the host: with kernels, or by NumPy where none can be compiled.

    NumPy also takes lattices with odd extents, for which there are no kernels. For parameters see
    `DeviceWindow`.
    """
    readable = all(host_links.readable(x) for x in (source, target) if x)
    if isinstance(source.lattice, OddLattice):
        if not readable:
            raise UnsupportedError(
                f"The lattice {source.lattice} has odd extents, and only kernels, which need even "
                "ones, know the group of its links or their order."
            )
        return HostWindow(source, target)
    try:
        return DeviceWindow(source, precision, open_host(), target)
    except NoKernelsError:
        if not readable:
            raise
        return HostWindow(source, target)
