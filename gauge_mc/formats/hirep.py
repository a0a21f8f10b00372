"""HiRep's gauge configurations.

A file is big endian. It contains five 32-bit integers, N and the extents t, x, y, z, the average
plaquette Re Tr U / N in double precision, and the links ``[t][x][y][z][direction]`` in double
precision, with the directions t, x, y, z. A link is its matrix ``[a][b][re, im]``, and in SU(2) the
four reals of its quaternion (q0, q1, q2, q3), of which q0 + i q3 and -q2 + i q1 are the first row.
Older files of SU(2) have matrices, which the size of the file tells; they can only be read. There
is no checksum and no provenance (C. Pica et al., HiRep, ``LibHR/IO/archive.c`` and
``archive_su2quat.c``). The author's repository has no file of less than 2 MB, so that those of the
tests are written with NumPy from this definition; the periodic SU(3) one of 8⁴ in
``TestProgram/StoredConfs`` has been compared with the same links in openQCD's format.

Files with the auxiliary fields of four-fermion interactions, with links of SO(N) or Sp(N), or with
open boundaries or those of the Schrödinger functional are named and not supported.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import BinaryIO, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.averages import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, Format, LinkSource, compare_plaquette
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.storage.header import Header, lattice_of
from gauge_mc.storage.links import Block, Checksums, FileOrder, StoredLinks

_PRECISION = "double"
_HEADER = struct.Struct(">5id")
_MOST_COLOURS, _MAX_EXTENT = 64, 4096
"""Largest plausible numbers. The format has no signature, so plausible values must identify it."""

_QUATERNION = 2
"""Number of colours of the group whose links are quaternions."""

_FOUR_FERMION_REALS = 2
"""Number of reals that follow the links of a site with four-fermion interactions."""


def _by_site_z_first(extents: tuple[int, int, int], parity: int) -> NDArray[np.int64]:
    """Return the numbers of links in the order of ``files/by_site_z_first.h``."""
    x, y, z = extents
    numbers = np.arange(4 * x * y * z).reshape(x, y, z, 4).transpose(2, 1, 0, 3)
    return np.roll(numbers, -1, axis=3)


BY_SITE_Z_FIRST = FileOrder(
    "by site, z first", "files/by_site_z_first.h", "BySiteZFirst", numbers=_by_site_z_first
)


def _between_quaternions_and_rows(block: Block) -> None:
    """Turn quaternions into the first rows of their matrices, or back; both are one exchange."""
    reals = block.view(">f8").reshape(-1, 4)
    reals[:, [1, 3]] = reals[:, [3, 1]]
    reals[:, 2] *= -1


def _stored(lattice: Lattice, group: Group, quaternions: bool) -> StoredLinks:
    if not quaternions:
        return StoredLinks(lattice, group, ">f8", order=BY_SITE_Z_FIRST)
    rows = StoredLinks(lattice, group, ">f8", 1, BY_SITE_Z_FIRST)

    def decoded(file: InputFile, t: int) -> Block:
        block = file.read(_HEADER.size + t * rows.block_bytes, rows.block_bytes)
        _between_quaternions_and_rows(block)
        return block

    return replace(rows, decoded=decoded)


@dataclass(frozen=True)
class HiRepReader:
    """A HiRep file whose header agrees with its size; see `Reader`."""

    header: Header
    stored: StoredLinks
    offset: int = _HEADER.size

    def verify(self, file: InputFile, checksums: Checksums, averages: Averages) -> None:
        """Compare the average plaquette of the links with that in the header."""
        compare_plaquette(file, self.header, averages)


class _Quaternions:
    """A file that turns the first rows of matrices that are written to it into quaternions."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.tell, self.seek = out.tell, out.seek

    def write(self, data: Block) -> int:
        """Write whole links."""
        block = np.array(data)
        _between_quaternions_and_rows(block)
        return self._out.write(block.data)


class HiRep(Format):
    """The format of HiRep."""

    name: ClassVar[str] = "hirep"
    title: ClassVar[str] = "HiRep"
    summary: ClassVar[str] = "HiRep's format; SU(N), double"
    suffix: ClassVar[str] = ".hirep"
    signed: ClassVar[bool] = False
    odd_extents: ClassVar[bool] = True

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with N, four extents and an average plaquette."""
        if len(head) < _HEADER.size:
            return False
        colours, *extents, plaquette = _HEADER.unpack(head[: _HEADER.size])
        likely = all(1 <= one <= _MAX_EXTENT for one in extents) and abs(plaquette) <= 1
        return likely and 2 <= colours <= _MOST_COLOURS

    def read_header(self, file: InputFile) -> HiRepReader:
        """Read and check the header; see `Format.read_header`."""
        colours, t, x, y, z, plaquette = _HEADER.unpack(file.read(0, _HEADER.size).tobytes())
        if special_unitary(colours) not in GROUPS:
            raise file.unsupported(f"its links are {colours}×{colours} matrices")
        group = GROUPS[special_unitary(colours)]
        lattice = lattice_of(file, x, y, z, t, odd=True)
        stored = _stored(lattice, group, False)
        size = file.size - _HEADER.size
        if colours == _QUATERNION and size != stored.nbytes:
            stored = _stored(lattice, group, True)
        self._refuse_others(file, stored, size)
        file.expect_size(_HEADER.size + stored.nbytes)
        if not file.read(_HEADER.size, stored.site_bytes).any():
            raise file.unsupported(
                "its links of the time slice 0 are 0, as those of the Schrödinger functional, and "
                "only periodic lattices can be read"
            )
        return HiRepReader(Header(self.name, lattice, group.name, _PRECISION, plaquette), stored)

    def _refuse_others(self, file: InputFile, stored: StoredLinks, size: int) -> None:
        """Refuse a file whose size is that of other fields of HiRep."""
        sites = stored.lattice.sites
        if size == stored.nbytes + 8 * _FOUR_FERMION_REALS * sites:
            raise file.unsupported("it has the fields of a four-fermion interaction")
        if stored.rows is None and 2 * size == stored.nbytes:
            raise file.unsupported(
                "its links have half of the reals of SU(N), as in SO(N) or Sp(N)"
            )

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why a group or precision cannot be stored; see `Format.refusal`."""
        if precision == _PRECISION:
            return super().refusal(group, precision)
        return f"HiRep files are in {_PRECISION} precision, not in {precision} precision"

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by site with z fastest, big endian."""
        return _stored(lattice, group, group.colours == _QUATERNION)

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`. The provenance is not stored."""
        lattice, n = source.stored.lattice, source.stored.group.colours
        head = (n, lattice.t, lattice.x, lattice.y, lattice.z)
        out.write(_HEADER.pack(*head, 0.0))
        _, averages = source.store(cast(BinaryIO, _Quaternions(out)) if n == _QUATERNION else out)
        out.seek(0)
        out.write(_HEADER.pack(*head, averages.mean))


FORMATS.register(HiRep())
