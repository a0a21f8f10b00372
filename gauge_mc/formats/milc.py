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
from typing import ClassVar

from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, NO_CHECKSUM, Format
from gauge_mc.groups import GROUPS, special_unitary
from gauge_mc.storage.header import Reader, expect_links, lattice_of
from gauge_mc.storage.links import ROTATED_WORDS, LinkSums, StoredLinks, checksum_words

_COLOURS = 3
_GROUP = special_unitary(_COLOURS)
_PRECISION = "single"
_MAGIC = 20103
_LAYOUT = "i4i64siII"
_HEADER_BYTES, _STAMP_BYTES = 96, 64
_OLD_MAGIC, _OLD_LAYOUT, _OLD_HEADER_BYTES = 59354, "i4i2f", 28
_MAGICS = {struct.pack(f"{one}i", magic) for one in "<>" for magic in (_MAGIC, _OLD_MAGIC)}


class Milc(Format):
    """The serial format of the MILC code."""

    name: ClassVar[str] = "milc"
    title: ClassVar[str] = "MILC"
    summary: ClassVar[str] = "version 5, with checksums, and 1 to 4, read only; SU(3), single"
    suffix: ClassVar[str] = ".milc"
    odd_extents: ClassVar[bool] = True
    byte_order: ClassVar[str] = "<"
    checksums: ClassVar[frozenset[str]] = frozenset({ROTATED_WORDS})
    only: ClassVar[tuple[str, str]] = (_GROUP, _PRECISION)

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with a magic number in either byte order."""
        return head[:4] in _MAGICS

    def read_header(self, file: InputFile) -> Reader:
        """Read and check the header; see `Format.read_header`."""
        start = file.read(0, 4).tobytes()
        for order in "<>":
            if start == struct.pack(f"{order}i", _OLD_MAGIC):
                return _read_old_header(file, order)
        head = file.read(0, _HEADER_BYTES).tobytes()
        order = "<" if head[:4] == struct.pack("<i", _MAGIC) else ">"
        _, x, y, z, t, stamp, site_order, first, second = struct.unpack(order + _LAYOUT, head)
        if site_order:
            raise file.refusal(
                "its sites are in the order of a MILC checkpoint; let MILC save it in serial format"
            )
        lattice = lattice_of(file, x, y, z, t, odd=True)
        stored = StoredLinks(lattice, GROUPS[_GROUP], f"{order}f4", checksums=self.checksums)
        expect_links(file, _HEADER_BYTES, stored)
        checksum = checksum_words((first, second))
        fields = {"time_stamp": stamp.split(b"\0")[0].decode("latin-1").strip()}
        place = _HEADER_BYTES
        return Reader.of(self.name, stored, place, checksum=checksum, provenance=fields)

    def header(self, stored: StoredLinks, provenance: Mapping[str, str], sums: LinkSums) -> bytes:
        """Return the header, with the printable characters of the time stamp that fit into it."""
        stamp = provenance.get("time_stamp") or provenance.get("creation_date", "")
        clean = "".join(c if " " <= c <= "~" else "?" for c in " ".join(stamp.split()))
        text, words = clean.encode("ascii")[: _STAMP_BYTES - 1], sums[0].rotated_words
        return struct.pack("<" + _LAYOUT, _MAGIC, *stored.lattice.extents, text, 0, *words)


def _read_old_header(file: InputFile, order: str) -> Reader:
    """Read and check the header of versions 1 to 4."""
    head = file.read(0, _OLD_HEADER_BYTES).tobytes()
    _, x, y, z, t, *parameters = struct.unpack(order + _OLD_LAYOUT, head)
    lattice = lattice_of(file, x, y, z, t, odd=True)
    stored = StoredLinks(lattice, GROUPS[_GROUP], f"{order}f4")
    expect_links(file, _OLD_HEADER_BYTES, stored)
    fields = {"parameters": " ".join(f"{parameter:.7g}" for parameter in parameters)}
    place = _OLD_HEADER_BYTES
    return Reader.of(Milc.name, stored, place, provenance=fields, warning=NO_CHECKSUM)


FORMATS.register(Milc())
