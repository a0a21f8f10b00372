"""The checksum of SciDAC and MILC files, a pair of 32-bit words."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray


class RotatedChecksum:
    """A checksum that depends on the value and on the position of each 32-bit word of a sequence.

    Each word is rotated left by its position in the sequence modulo 29 (first checksum) and modulo
    31 (second checksum), and the results are combined by exclusive or. The words are those of the
    links for MILC, and one CRC-32 per site for SciDAC (MILC manual, version 5 lattice files; QIO
    manual, SciDAC checksum).

    Attributes
    ----------
    first, second : int
        The checksums with the periods 29 and 31 of all words added so far.
    """

    def __init__(self) -> None:
        self.first = 0
        self.second = 0
        self._count = 0

    def add(self, words: NDArray[np.uint32]) -> None:
        """Add the next words of the sequence."""
        self.first ^= _fold(words, self._count, 29)
        self.second ^= _fold(words, self._count, 31)
        self._count += words.size

    def add_sites(self, data: NDArray[np.uint8], site_bytes: int) -> None:
        """Add the CRC-32 of each of the next sites, which have `site_bytes` bytes each."""
        view = data.data
        # For 64 to 576 bytes per site, one call of zlib per site is faster than a table in NumPy.
        crc = (zlib.crc32(view[i : i + site_bytes]) for i in range(0, len(view), site_bytes))
        self.add(np.fromiter(crc, np.uint32, len(view) // site_bytes))

    def __str__(self) -> str:
        return f"{self.first:08x} {self.second:08x}"


def _fold(words: NDArray[np.uint32], start: int, period: int) -> int:
    """Combine words by exclusive or, each rotated left by its position modulo `period`."""
    whole = words.size - words.size % period
    folded = np.bitwise_xor.reduce(words[:whole].reshape(-1, period), axis=0)
    folded[: words.size - whole] ^= words[whole:]
    result = 0
    for number, word in enumerate(folded.tolist(), start):
        turns = number % period
        result ^= (word << turns | word >> (32 - turns)) & 0xFFFFFFFF
    return result
