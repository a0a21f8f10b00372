"""MILC lattice files of version 5, and of versions 1 to 4, which can only be read.

A header of 96 bytes contains the magic number 20103, the extents x, y, z, t, a time stamp of 64
characters, the order of the sites (0: natural), and two checksums of the 32-bit words of the
links. SU(3) links ``[t][z][y][x][mu][a][b][re, im]`` in single precision follow. All numbers are
in the byte order of the machine that wrote the file, which follows from the magic number (MILC
Collaboration, MILC code version 7 manual, binary gauge configuration files). Written files are
little endian. Their time stamp is ``time_stamp`` or ``creation_date`` of the provenance, of which
the format has no other place.

Versions 1 to 4 have the magic number 59354, the extents, two parameters of the run in single
precision, and the links in the same order, without checksums.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.averages import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, Format, LinkSource
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.storage.header import Header, lattice_of
from gauge_mc.storage.links import ROTATED_WORDS, Checksums, StoredLinks

_COLOURS = 3
_GROUP = special_unitary(_COLOURS)
_PRECISION = "single"
_MAGIC = 20103
_LAYOUT = "i4i64siII"
_HEADER_BYTES, _STAMP_BYTES = 96, 64
_OLD_MAGIC, _OLD_LAYOUT, _OLD_HEADER_BYTES = 59354, "i4i2f", 28
_MAGICS = {struct.pack(f"{one}i", magic) for one in "<>" for magic in (_MAGIC, _OLD_MAGIC)}


@dataclass(frozen=True)
class MilcReader:
    """A MILC file whose header agrees with its size; see `Reader`."""

    header: Header
    stored: StoredLinks
    offset: int = _HEADER_BYTES

    def verify(self, file: InputFile, checksums: Checksums, averages: Averages) -> None:
        """Compare the checksums of the links with those in the header, if it has any."""
        if not self.header.checksum:
            return
        first, second = checksums.rotated_words
        found = f"{first:08x} {second:08x}"
        if found != self.header.checksum:
            raise file.damaged(
                f"its links have the checksums {found}, its header says {self.header.checksum}"
            )


class Milc(Format):
    """The serial format of the MILC code."""

    name: ClassVar[str] = "milc"
    title: ClassVar[str] = "MILC"
    summary: ClassVar[str] = "version 5, with checksums, and 1 to 4, read only; SU(3), single"
    suffix: ClassVar[str] = ".milc"
    odd_extents: ClassVar[bool] = True

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with a magic number in either byte order."""
        return head[:4] in _MAGICS

    def read_header(self, file: InputFile) -> MilcReader:
        """Read and check the header; see `Format.read_header`."""
        return _read_header(file)

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why a group or precision cannot be stored; see `Format.refusal`."""
        if (group.name, precision) == (_GROUP, _PRECISION):
            return None
        return (
            f"MILC files store SU({_COLOURS}) in {_PRECISION} precision, not {group.label} in "
            f"{precision} precision"
        )

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by site, little endian."""
        return _stored(lattice, "<")

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`."""
        stamp = provenance.get("time_stamp") or provenance.get("creation_date", "")
        out.write(_header(source.stored.lattice, stamp, (0, 0)))
        checksums, _ = source.store(out)
        out.seek(0)
        out.write(_header(source.stored.lattice, stamp, checksums.rotated_words))


def _stored(lattice: Lattice, order: str) -> StoredLinks:
    checksums = frozenset({ROTATED_WORDS})
    return StoredLinks(lattice, GROUPS[_GROUP], f"{order}f4", checksums=checksums)


def _header(lattice: Lattice, stamp: str, checksums: tuple[int, int]) -> bytes:
    """Return the header, with the printable characters of the time stamp that fit into it."""
    clean = "".join(c if " " <= c <= "~" else "?" for c in " ".join(stamp.split()))
    text = clean.encode("ascii")[: _STAMP_BYTES - 1]
    return struct.pack("<" + _LAYOUT, _MAGIC, *lattice.extents, text, 0, *checksums)


def _read_header(file: InputFile) -> MilcReader:
    start = file.read(0, 4).tobytes()
    for order in "<>":
        if start == struct.pack(f"{order}i", _OLD_MAGIC):
            return _read_old_header(file, order)
    head = file.read(0, _HEADER_BYTES).tobytes()
    order = "<" if head[:4] == struct.pack("<i", _MAGIC) else ">"
    _, x, y, z, t, stamp, site_order, first, second = struct.unpack(order + _LAYOUT, head)
    if site_order:
        raise file.unsupported(
            "its sites are in the order of a MILC checkpoint; let MILC save it in serial format"
        )
    lattice = lattice_of(file, x, y, z, t, odd=True)
    stored = _stored(lattice, order)
    file.expect_size(_HEADER_BYTES + stored.nbytes)
    header = Header(
        Milc.name,
        lattice,
        _GROUP,
        _PRECISION,
        checksum=f"{first:08x} {second:08x}",
        provenance={"time_stamp": stamp.split(b"\0")[0].decode("latin-1").strip()},
    )
    return MilcReader(header, stored)


def _read_old_header(file: InputFile, order: str) -> MilcReader:
    """Read and check the header of versions 1 to 4."""
    head = file.read(0, _OLD_HEADER_BYTES).tobytes()
    _, x, y, z, t, *parameters = struct.unpack(order + _OLD_LAYOUT, head)
    lattice = lattice_of(file, x, y, z, t, odd=True)
    stored = StoredLinks(lattice, GROUPS[_GROUP], f"{order}f4")
    file.expect_size(_OLD_HEADER_BYTES + stored.nbytes)
    header = Header(
        Milc.name,
        lattice,
        _GROUP,
        _PRECISION,
        provenance={"parameters": " ".join(f"{one:.7g}" for one in parameters)},
        warning="it has no checksum, so its links were not verified with one",
    )
    return MilcReader(header, stored, _OLD_HEADER_BYTES)


FORMATS.register(Milc())
