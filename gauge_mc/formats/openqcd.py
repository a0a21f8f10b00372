"""openQCD's universal configuration files.

A file is little endian. It contains four 32-bit extents t, x, y, z, the average plaquette Re Tr U
in double precision, and eight SU(3) links in double precision for each odd site, with z fastest and
t slowest. For each direction t, x, y, z these are the link that leaves the site and the link that
arrives from the site behind. There is no checksum and no provenance (M. Lüscher and S. Schaefer,
openQCD, notes of ``modules/archive``).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.averages import AveragesStream
from gauge_mc.files.header import Header, lattice_of
from gauge_mc.files.input import InputFile
from gauge_mc.files.links import Links, decode, encode
from gauge_mc.formats import FORMATS, Format
from gauge_mc.groups import Group, group_of

_COLOURS = 3
_PRECISION = "double"
_HEADER = struct.Struct("<4id")
_MAX_EXTENT = 4096
"""Largest plausible extent. The format has no signature, so plausible values must identify it."""


@dataclass(frozen=True)
class OpenQcdReader:
    """An openQCD file whose header agrees with its size."""

    header: Header

    def slices(self, file: InputFile) -> Iterator[Links]:
        """Stream the links; see `gauge_mc.files.header.Reader`.

        The links in direction t that leave the even sites of a slice are stored with the next
        slice, and those of the last slice with the first one.
        """
        lattice = self.header.lattice
        stream = AveragesStream()
        block = self._block(file, 0)
        arriving = block[:, 1].copy()
        for t in range(lattice.t):
            following = self._block(file, t + 1) if t + 1 < lattice.t else None
            links = _links(lattice, t, block, arriving if following is None else following[:, 1])
            stream.add(links)
            if t == lattice.t - 1:
                self._verify(file, stream)
            yield links
            del links
            if following is not None:
                block = following

    def _block(self, file: InputFile, t: int) -> Links:
        """Read the eight links of each odd site of a time slice, ``[site, link, a, b]``."""
        lattice = self.header.lattice
        sites = lattice.x * lattice.y * lattice.z // 2
        block_bytes = sites * 8 * 144
        data = file.read(_HEADER.size + t * block_bytes, block_bytes)
        return decode(data, "<f8", (sites, 8, 3, 3))

    def _verify(self, file: InputFile, stream: AveragesStream) -> None:
        found, stated = stream.averages().mean, self.header.plaquette or 0.0
        # Rounding errors of the sum of 6 V plaquettes add up like a random walk. The constant
        # allows for links that were rounded before.
        if not abs(found - stated) <= 1e-12 + math.sqrt(6 * self.header.lattice.sites) * 2**-52:
            raise file.damaged(
                f"its links have the plaquette {found:.14g}, its header says {stated:.14g}"
            )


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
        file.expect_size(_HEADER.size + lattice.links * 144)
        group = group_of(_COLOURS).name
        header = Header(self.name, lattice, group, _PRECISION, plaquette / _COLOURS)
        return OpenQcdReader(header)

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why a group or precision cannot be stored; see `Format.refusal`."""
        if (group.colours, precision) == (_COLOURS, _PRECISION):
            return None
        return (
            f"openQCD files store SU({_COLOURS}) in {_PRECISION} precision, not {group.label} in "
            f"{precision} precision"
        )

    def write(
        self,
        out: BinaryIO,
        slices: Iterable[Links],
        lattice: Lattice,
        group: Group,
        precision: str,
        provenance: Mapping[str, str],
    ) -> None:
        """Write a configuration; see `write_configuration`. The provenance is not stored."""
        _write(out, slices, lattice)


def _write(out: BinaryIO, slices: Iterable[Links], lattice: Lattice) -> None:
    """Write a configuration.

    The block of the first slice is written at the end, because it contains links of the last slice.
    """
    stream = AveragesStream()
    first: Links | None = None
    arriving: Links | None = None
    for t, links in enumerate(slices):
        stream.add(links)
        if first is None or arriving is None:
            first = links.copy()
            out.seek(_HEADER.size + links[..., 0, 0].size * 144)
        else:
            out.write(encode(_block(lattice, t, links, arriving), "<f8").data)
        arriving = links[..., 3, :, :].copy()
    assert first is not None
    assert arriving is not None
    out.seek(0)
    plaquette = 3 * stream.averages().mean
    out.write(_HEADER.pack(lattice.t, lattice.x, lattice.y, lattice.z, plaquette))
    out.write(encode(_block(lattice, 0, first, arriving), "<f8").data)


def _sites(lattice: Lattice, t: int, parity: int) -> tuple[NDArray[np.intp], ...]:
    """Return the coordinates (x, y, z) of the sites of one parity of a time slice, z fastest."""
    x, y, z = np.indices((lattice.x, lattice.y, lattice.z))
    return np.nonzero((x + y + z + t) % 2 == parity)


def _links(lattice: Lattice, t: int, block: Links, following: Links) -> Links:
    """Return the links of a time slice from its block.

    The links in direction t that leave its even sites are ``following[site, a, b]``.
    """
    links = np.empty((lattice.z, lattice.y, lattice.x, 4, 3, 3), np.complex128)
    place = links.transpose(3, 2, 1, 0, 4, 5)
    odd = _sites(lattice, t, 1)
    place[3][odd] = block[:, 0]
    place[3][_sites(lattice, t, 0)] = following
    for mu in range(3):
        place[mu][odd] = block[:, 2 + 2 * mu]
        place[mu][_behind(lattice, odd, mu)] = block[:, 3 + 2 * mu]
    return links


def _block(lattice: Lattice, t: int, links: Links, arriving: Links) -> Links:
    """Return the eight links of each odd site of a time slice.

    The links in direction t of the previous slice are ``arriving[z, y, x, a, b]``.
    """
    place = links.transpose(3, 2, 1, 0, 4, 5)
    odd = _sites(lattice, t, 1)
    block = np.empty((len(odd[0]), 8, 3, 3), np.complex128)
    block[:, 0] = place[3][odd]
    block[:, 1] = arriving.transpose(2, 1, 0, 3, 4)[odd]
    for mu in range(3):
        block[:, 2 + 2 * mu] = place[mu][odd]
        block[:, 3 + 2 * mu] = place[mu][_behind(lattice, odd, mu)]
    return block


def _behind(
    lattice: Lattice, sites: tuple[NDArray[np.intp], ...], mu: int
) -> tuple[NDArray[np.intp], ...]:
    """Return the sites one step back in direction x, y or z."""
    moved = list(sites)
    moved[mu] = (moved[mu] - 1) % lattice.extents[mu]
    return tuple(moved)


FORMATS.register(OpenQcd())
