"""MILC version 5 lattice files, which can only be read.

A header of 96 bytes contains the magic number 20103, the extents x, y, z, t, a time stamp of 64
characters, the order of the sites (0: natural), and two checksums of the 32-bit words of the
links. SU(3) links ``[t][z][y][x][mu][a][b][re, im]`` in single precision follow. All numbers are
in the byte order of the machine that wrote the file, which follows from the magic number (MILC
Collaboration, MILC code version 7 manual, binary gauge configuration files).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from gauge_mc.files.checksums import RotatedChecksum
from gauge_mc.files.header import Header, lattice_of
from gauge_mc.files.input import InputFile
from gauge_mc.files.links import Links, decode
from gauge_mc.formats import FORMATS, Format
from gauge_mc.groups import group_of

_MAGIC = 20103
_LAYOUT = "i4i64siII"
_HEADER_BYTES = 96
_SITE_BYTES = 4 * 9 * 8
"""Bytes per site: four links of nine complex numbers in single precision."""


@dataclass(frozen=True)
class MilcReader:
    """A MILC file whose header agrees with its size.

    Attributes
    ----------
    header : Header
    order : str
        Byte order in NumPy's notation, ``<`` or ``>``.
    """

    header: Header
    order: str

    def slices(self, file: InputFile) -> Iterator[Links]:
        """Stream the links; see `gauge_mc.files.header.Reader`."""
        lattice = self.header.lattice
        slice_bytes = _SITE_BYTES * lattice.x * lattice.y * lattice.z
        checksum = RotatedChecksum()
        for t in range(lattice.t):
            data = file.read(_HEADER_BYTES + t * slice_bytes, slice_bytes)
            checksum.add(data.view(f"{self.order}u4").astype("=u4", copy=False))
            if t == lattice.t - 1 and str(checksum) != self.header.checksum:
                raise file.damaged(
                    f"its links have the checksums {checksum}, its header says "
                    f"{self.header.checksum}"
                )
            yield decode(data, f"{self.order}f4", (lattice.z, lattice.y, lattice.x, 4, 3, 3))


class Milc(Format):
    """The serial format of the MILC code."""

    name: ClassVar[str] = "milc"
    title: ClassVar[str] = "MILC"
    summary: ClassVar[str] = "version 5 with checksums; SU(3), single; read only"

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with the magic number in either byte order."""
        return head[:4] in (struct.pack("<i", _MAGIC), struct.pack(">i", _MAGIC))

    def read_header(self, file: InputFile) -> MilcReader:
        """Read and check the header; see `Format.read_header`."""
        return _read_header(file)


def _read_header(file: InputFile) -> MilcReader:
    """Read and check the header."""
    head = file.read(0, _HEADER_BYTES).tobytes()
    order = "<" if head[:4] == struct.pack("<i", _MAGIC) else ">"
    _, x, y, z, t, stamp, site_order, first, second = struct.unpack(order + _LAYOUT, head)
    if site_order:
        raise file.unsupported(
            "its sites are in the order of a MILC checkpoint; let MILC save it in serial format"
        )
    lattice = lattice_of(file, x, y, z, t)
    file.expect_size(_HEADER_BYTES + lattice.sites * _SITE_BYTES)
    header = Header(
        Milc.name,
        lattice,
        group_of(3).name,
        "single",
        checksum=f"{first:08x} {second:08x}",
        provenance={"time_stamp": stamp.split(b"\0")[0].decode("latin-1").strip()},
    )
    return MilcReader(header, order)


FORMATS.register(Milc())
