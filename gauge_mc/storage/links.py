"""How a file stores links, and the checksums of its bytes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from gauge_mc.devices.kernels import Choice
from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.averages import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.groups import Group

Links = NDArray[np.complex128]
"""Links of one time slice, ``U[z, y, x, mu, a, b]``."""

Block = NDArray[np.uint8]
"""The bytes of a time slice in a file."""


BlockReader = Callable[[InputFile, int], Block]
"""Function that returns the block of a time slice, given the file and the number of the slice."""

OrderNumbers = Callable[[tuple[int, int, int], int], NDArray[np.int64]]
"""Function that returns the numbers ``[z, y, x, mu]`` of the links of a time slice in its block,
given the extents (x, y, z) and the parity of the first site. Links in the block of the next slice
have their number there plus the number of links in a block."""


@dataclass(frozen=True)
class FileOrder:
    """An order of the links in a file, which a C++ header declares; see ``files/file_order.h``."""

    name: str
    """Name of the order."""
    header: str
    """C++ header, relative to ``cuda_src`` or absolute."""
    cpp: str
    """Name of the class in the header."""
    reaches_back: bool = False
    """Whether the block of a time slice also contains links of the slice before."""
    numbers: OrderNumbers | None = None
    """The same order in Python. Without it, such files cannot be read without a compiler."""

    @cached_property
    def choice(self) -> Choice:
        """The compile-time selection of this order."""
        return Choice.of("file_order", self.name, self.header, self.cpp)


def _by_site(extents: tuple[int, int, int], parity: int) -> NDArray[np.int64]:
    x, y, z = extents
    return np.arange(4 * x * y * z).reshape(z, y, x, 4)


BY_SITE = FileOrder("by site", "files/by_site.h", "BySite", numbers=_by_site)
"""The order ``[t][z][y][x][mu]``."""


@dataclass(frozen=True)
class StoredLinks:
    """How a file stores the links of a lattice: in one block per time slice."""

    lattice: Lattice
    """Extents of the lattice."""
    group: Group
    """The gauge group."""
    dtype: str
    """NumPy type of a real, with byte order: ``<f4``, ``>f4``, ``<f8`` or ``>f8``."""
    rows: int | None = None
    """Number of rows ``[row][column][re, im]`` of every matrix; by default all. The others follow
    from them.
    """
    order: FileOrder = BY_SITE
    """Order of the links in a block."""
    checksums: frozenset[str] = frozenset()
    """Checksums of the bytes to compute, named as in `Checksums`."""
    decoded: BlockReader | None = None
    """Function that reads a block, if the file has the links in another form than is said here. A
    format that writes such files turns the blocks into that form.
    """
    as_stored: bool = False
    """Whether there are the components in the order in which the group stores them, not rows."""

    @property
    def precision(self) -> str:
        """Precision of the reals, ``single`` or ``double``."""
        return "single" if self.dtype.endswith("4") else "double"

    @property
    def reals(self) -> int:
        """Number of reals per link."""
        n = self.group.colours
        return self.group.reals if self.as_stored else 2 * n * (self.rows or n)

    @property
    def site_bytes(self) -> int:
        """Number of bytes per site."""
        return 4 * self.reals * int(self.dtype[-1])

    @property
    def identified(self) -> StoredLinks:
        """The same links with a checksum that depends on all bytes and their places."""
        if self.checksums & IDENTIFYING.keys():
            return self
        return replace(self, checksums=self.checksums | {SITE_CRC})

    @property
    def block_bytes(self) -> int:
        """Number of bytes per time slice."""
        return self.site_bytes * self.lattice.slice_sites

    @property
    def nbytes(self) -> int:
        """Number of bytes of all links."""
        return self.block_bytes * self.lattice.t

    def misfit(self, t: int, number: int) -> str:
        """Return a message about a link that is not in the group; see `place`."""
        return f"{self.place(t, number)} is not in {self.group.label}"

    def place(self, t: int, number: int) -> str:
        """Return direction and site of a link in words.

        Parameters
        ----------
        t : int
            Time slice.
        number : int
            Number ``((z Y + y) X + x) 4 + mu`` of the link in the slice.
        """
        site, mu = divmod(number, 4)
        rest, x = divmod(site, self.lattice.x)
        z, y = divmod(rest, self.lattice.y)
        return f"the link in direction {'xyzt'[mu]} at (x, y, z, t) = ({x}, {y}, {z}, {t})"


@dataclass(frozen=True)
class Checksums:
    """Checksums of the bytes of all links. Only those that were requested have a meaning."""

    word_sum: int = 0
    """Sum of all 32-bit words modulo 2^32."""
    site_crc: tuple[int, int] = (0, 0)
    """A pair of words: the CRC-32 of the bytes of each site, rotated left by the number of the site
    in the file modulo 29 (first word) and 31 (second word), combined by exclusive or.
    """
    rotated_words: tuple[int, int] = (0, 0)
    """The same for all 32-bit words."""

    def __or__(self, other: Checksums) -> Checksums:
        """Return the checksums of the bytes of both."""

        def both(one: tuple[int, int], two: tuple[int, int]) -> tuple[int, int]:
            return one[0] ^ two[0], one[1] ^ two[1]

        return Checksums(
            (self.word_sum + other.word_sum) & 0xFFFFFFFF,
            both(self.site_crc, other.site_crc),
            both(self.rotated_words, other.rotated_words),
        )


class LinkSource(Protocol):
    """Links that are to be written to a file."""

    @property
    def stored(self) -> StoredLinks:
        """How they are to be stored: what `Format.stored` has returned."""

    def store(self, out: BinaryIO) -> tuple[Checksums, Averages]:
        """Write all blocks from the current position of a file on, and return what headers state.

        The position is then behind the last block.
        """


WORD_SUM, SITE_CRC, ROTATED_WORDS = "word_sum", "site_crc", "rotated_words"
"""Names of the checksums."""

IDENTIFYING = {SITE_CRC: "SciDAC", ROTATED_WORDS: "MILC"}
"""Checksums that identify the content of a file, with the programs that introduced them. They have
64 bits and depend on the places of all bytes, unlike a sum of words."""


def digest(stored: StoredLinks, words: str) -> str:
    """Return the digest of links whose identifying checksum is known.

    Parameters
    ----------
    stored : StoredLinks
        How the file stores the links, with an identifying checksum.
    words : str
        The checksum as two words of eight digits.
    """
    (name,) = stored.checksums & IDENTIFYING.keys()
    return f"{IDENTIFYING[name]} checksum {words}"
