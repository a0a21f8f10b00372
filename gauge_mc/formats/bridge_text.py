"""Text files of links, as those of Bridge++ and Gaugefields.jl, which can only be read.

A file has one real per line and nothing else: the links ``[t][z][y][x][mu][a][b][re, im]``. So it
states neither extents nor group, and has no checksum and no averages. The whole file is read into
memory (H. Matsufuru et al., Bridge++; Y. Nagai and A. Tomiya, Gaugefields.jl,
``src/output/bridge_format.jl``; of the two orders that its comments mention, this is the one of its
files, as the plaquettes of one of them show).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, NO_CHECKSUM, STATES_NOTHING, Format, too_large
from gauge_mc.groups import GROUPS, Group
from gauge_mc.storage.header import Reader
from gauge_mc.storage.links import SITE_CRC, StoredLinks

_REAL = rb"[ \t]*[+-]?[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?[ \t]*\r?\n"
_BEGINNING = re.compile(_REAL * 2)
"""Form of the first lines: decimal numbers with a point, one per line."""


_HEAD_BYTES = 8192
"""Number of leading bytes in which the first matrix is. Numbers of 17 digits have 25 bytes at most,
and a matrix of the largest group has 128.
"""
_DEVIATION = 1e-6
"""Largest deviation from a unitary matrix."""


class BridgeText(Format):
    """Text with one real per line."""

    name: ClassVar[str] = "bridge-text"
    title: ClassVar[str] = "Bridge++ text"
    summary: ClassVar[str] = "text of Bridge++ and Gaugefields.jl, which states nothing; read only"
    signed: ClassVar[bool] = False

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with two lines of one decimal number each."""
        return _BEGINNING.match(head) is not None

    def contains(self, file: InputFile) -> bool:
        """Return whether the first numbers are a unitary matrix, and not just any numbers."""
        head = file.read(0, min(file.size, _HEAD_BYTES)).tobytes()
        try:
            reals = np.array(head[: head.rfind(b"\n")].split(), np.float64)
        except ValueError:
            return False
        return any(
            _is_unitary(reals[: 2 * n**2], n) for n in {one.colours for one in GROUPS.values()}
        )

    def read_header(self, file: InputFile) -> Reader:
        """Refuse a file of whose links nothing is known."""
        raise file.refusal(STATES_NOTHING)

    def read_unstated(self, file: InputFile, lattice: Lattice, group: Group) -> Reader:
        """Read the reals of a file; see `Format.read_unstated`."""
        try:
            reals = np.array(file.read(0, file.size).tobytes().split(), np.float64)
        except ValueError as error:
            raise file.refusal("it has a line that is not a number") from error
        except MemoryError as error:
            raise too_large(file.path) from error
        stored = StoredLinks(lattice, group, "<f8", checksums=frozenset({SITE_CRC}))
        if 8 * len(reals) != stored.nbytes:
            raise UsageError(
                f"{file.path} has {len(reals)} numbers, which are not the links of {group.label} "
                f"on {lattice}; give other extents, or another group."
            )
        links = reals.astype("<f8").view(np.uint8).reshape(-1, stored.block_bytes)
        in_memory = replace(stored, decoded=lambda file, t: links[t])
        return Reader.of(self.name, in_memory, 0, warning=NO_CHECKSUM)


def _is_unitary(reals: NDArray[np.float64], n: int) -> bool:
    """Return whether numbers are an n×n matrix ``[a][b][re, im]`` that is unitary."""
    if len(reals) < 2 * n**2 or not (np.abs(reals) <= 1 + _DEVIATION).all():
        return False
    matrix = reals.view(np.complex128).reshape(n, n)
    return bool(np.abs(matrix @ matrix.conj().T - np.eye(n)).max() <= _DEVIATION)


FORMATS.register(BridgeText())
