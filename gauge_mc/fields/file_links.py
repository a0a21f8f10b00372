"""Links on their way between the memory of a device and the blocks of a file."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.base import Event
from gauge_mc.devices.kernels import Choice, Kernel
from gauge_mc.devices.source import constants, source_folder
from gauge_mc.domain.slab import BOTH_PARITIES, Slab, work
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
"""Deviation above which it is said that links are not exactly in the group. Links that were rounded
to single precision have less."""


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
        """Compute the block of time slice `t`; it is complete when the event is reached.

        Parameters
        ----------
        t : int
            Time slice, counted from the slab's first one.
        block : ndarray of uint8
            Host memory for the bytes, `Device.pinned_memory` for speed.
        place : int, optional
            Position of the slice in the memory of the slab; by default that of `t`.
        """
        device = self.slab.device
        address = block.ctypes.data
        if not device.in_host_memory:
            address = device.scratch("blocks", block.nbytes).address
        self._launch(WRITE_LINKS, t, place, address)
        return device.event() if device.in_host_memory else device.download(block, address)

    def read(
        self, t: int, block: Block, following: Block | None = None, place: int | None = None
    ) -> Event:
        """Set the links of time slice `t` from its block; the event is reached when they are set.

        Parameters
        ----------
        t : int
            Time slice, counted from the slab's first one.
        block : ndarray of uint8
            Must not be changed until the event is reached.
        following : ndarray of uint8, optional
            The block of the next slice, if the order of the links needs it.
        place : int, optional
            See `write`.
        """
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
        found = LinkCheck.of(data.view(np.uint32).reshape(1, *self._shape[1:])).bad
        return (t, found[1]) if found else None

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
