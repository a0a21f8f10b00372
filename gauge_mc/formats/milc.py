"""MILC version 5 lattice files, read only.

A header of 96 bytes: the magic number 20103, the extents x, y, z, t, a time stamp of 64
characters, the order of the sites (0: natural), and two checksums of the 32-bit words of the
links. Then SU(3) links ``[t][z][y][x][mu][a][b][re, im]`` in single precision. All in the byte
order of the machine that wrote it, told by the magic number. (MILC Collaboration, MILC code
version 7 manual, binary gauge configuration files.)
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from gauge_mc.errors import GaugeError
from gauge_mc.formats.checksums import RotatedChecksum
from gauge_mc.formats.files import InputFile
from gauge_mc.formats.header import Header, lattice_of
from gauge_mc.formats.links import Links, decode

_MAGIC = 20103
_LAYOUT = "i4i64siII"
_HEADER_BYTES = 96
_SITE_BYTES = 4 * 9 * 8


@dataclass(frozen=True)
class MilcReader:
    """A MILC file whose header agrees with its size; `order` is its byte order."""

    header: Header
    order: str

    def slices(self, file: InputFile) -> Iterator[Links]:
        """Stream the links; see `gauge_mc.formats.header.Reader`."""
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


def recognises(head: bytes) -> bool:
    """Tell from the first bytes whether a file is of this format."""
    return head[:4] in (struct.pack("<i", _MAGIC), struct.pack(">i", _MAGIC))


def read_header(file: InputFile) -> MilcReader:
    """Read and check the header.

    Raises
    ------
    GaugeError
        If it is damaged, does not fit the size of the file, or lists sites in another order.
    """
    head = file.read(0, _HEADER_BYTES).tobytes()
    order = "<" if head[:4] == struct.pack("<i", _MAGIC) else ">"
    _, x, y, z, t, stamp, site_order, first, second = struct.unpack(order + _LAYOUT, head)
    if site_order:
        raise GaugeError(
            f"{file.path} lists its sites in the order of a MILC checkpoint: have MILC save it "
            "in serial format."
        )
    lattice = lattice_of(file, x, y, z, t)
    file.expect_size(_HEADER_BYTES + lattice.sites * _SITE_BYTES)
    header = Header(
        "milc",
        lattice,
        "su3",
        "single",
        checksum=f"{first:08x} {second:08x}",
        provenance={"time_stamp": stamp.split(b"\0")[0].decode("latin-1").strip()},
    )
    return MilcReader(header, order)
