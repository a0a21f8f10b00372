"""openQCD's universal configuration files.

A file is little endian. It contains four 32-bit extents t, x, y, z, the average plaquette Re Tr U
in double precision, and eight SU(3) links in double precision for each odd site, with z fastest and
t slowest. For each direction t, x, y, z these are the link that leaves the site and the link that
arrives from the site behind. There is no checksum and no provenance (M. Lüscher and S. Schaefer,
openQCD, notes of ``modules/archive``).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.averages import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, Format, LinkSource, compare_plaquette
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.storage.header import Header, lattice_of
from gauge_mc.storage.links import Checksums, FileOrder, StoredLinks

_COLOURS = 3
_GROUP = special_unitary(_COLOURS)
_PRECISION = "double"
_HEADER = struct.Struct("<4id")
_MAX_EXTENT = 4096
"""Largest plausible extent. The format has no signature, so plausible values must identify it."""


def _by_odd_site(extents: tuple[int, int, int], parity: int) -> NDArray[np.int64]:
    """Return the numbers of links in the order of ``files/by_odd_site.h``."""
    x, y, z = extents
    at = np.indices((z, y, x))[::-1]
    arrives = (at.sum(axis=0) + parity + 1) % 2
    numbers = np.empty((z, y, x, 4), np.int64)
    for mu in range(4):
        odd = [(at[d] + arrives * (d == mu)) % extents[d] for d in range(3)]
        site = (odd[0] * y + odd[1]) * (z // 2) + odd[2] // 2
        numbers[..., mu] = 8 * site + 2 * ((mu + 1) % 4) + arrives
    numbers[..., 3] += arrives * 4 * x * y * z  # they belong to sites of the slice before
    return numbers


BY_ODD_SITE = FileOrder(
    "by odd site", "files/by_odd_site.h", "ByOddSite", reaches_back=True, numbers=_by_odd_site
)


def _stored(lattice: Lattice) -> StoredLinks:
    return StoredLinks(lattice, GROUPS[_GROUP], "<f8", order=BY_ODD_SITE)


@dataclass(frozen=True)
class OpenQcdReader:
    """An openQCD file whose header agrees with its size; see `Reader`."""

    header: Header
    stored: StoredLinks
    offset: int = _HEADER.size

    def verify(self, file: InputFile, checksums: Checksums, averages: Averages) -> None:
        """Compare the average plaquette of the links with that in the header."""
        compare_plaquette(file, self.header, averages)


class OpenQcd(Format):
    """The universal format of openQCD."""

    name: ClassVar[str] = "openqcd"
    title: ClassVar[str] = "openQCD"
    summary: ClassVar[str] = "openQCD's universal format; SU(3), double"
    suffix: ClassVar[str] = ".openqcd"
    signed: ClassVar[bool] = False

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with four extents and an average plaquette."""
        if len(head) < _HEADER.size:
            return False
        *extents, plaquette = _HEADER.unpack(head[: _HEADER.size])
        return all(2 <= e <= _MAX_EXTENT for e in extents) and abs(plaquette) <= _COLOURS

    def read_header(self, file: InputFile) -> OpenQcdReader:
        """Read and check the header; see `Format.read_header`."""
        t, x, y, z, plaquette = _HEADER.unpack(file.read(0, _HEADER.size).tobytes())
        lattice = lattice_of(file, x, y, z, t)
        stored = _stored(lattice)
        file.expect_size(_HEADER.size + stored.nbytes)
        header = Header(self.name, lattice, stored.group.name, _PRECISION, plaquette / _COLOURS)
        return OpenQcdReader(header, stored)

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why a group or precision cannot be stored; see `Format.refusal`."""
        if (group.name, precision) == (_GROUP, _PRECISION):
            return None
        return (
            f"openQCD files store SU({_COLOURS}) in {_PRECISION} precision, not {group.label} in "
            f"{precision} precision"
        )

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by odd site, little endian."""
        return _stored(lattice)

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`. The provenance is not stored."""
        lattice = source.stored.lattice
        extents = (lattice.t, lattice.x, lattice.y, lattice.z)
        out.write(_HEADER.pack(*extents, 0.0))
        _, averages = source.store(out)
        out.seek(0)
        out.write(_HEADER.pack(*extents, _COLOURS * averages.mean))


FORMATS.register(OpenQcd())
