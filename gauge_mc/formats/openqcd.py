"""openQCD's universal configuration files.

Little endian: four 32-bit extents t, x, y, z; the average plaquette Re Tr U in double
precision; then for each odd site, z fastest and t slowest, eight SU(3) links in double
precision: those in directions t, x, y, z, each followed by the one that arrives at the site
from the opposite side. There is no checksum. (M. Lüscher and S. Schaefer, openQCD, notes of
``modules/archive``.)
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from gauge_mc.formats.files import InputFile
from gauge_mc.formats.header import Header, lattice_of
from gauge_mc.formats.links import Links, decode, encode
from gauge_mc.formats.plaquette import PlaquetteStream
from gauge_mc.lattice import Lattice

_HEADER = struct.Struct("<4id")
_MAX_EXTENT = 4096
"""Beyond it four integers are not taken for extents, as nothing else tells the format."""


@dataclass(frozen=True)
class OpenQcdReader:
    """An openQCD file whose header agrees with its size."""

    header: Header

    def slices(self, file: InputFile) -> Iterator[Links]:
        """Stream the links; see `gauge_mc.formats.header.Reader`.

        The links in t that leave the even sites of a slice are found with the next slice;
        those of the last slice with the first.
        """
        lattice = self.header.lattice
        stream = PlaquetteStream()
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

    def _verify(self, file: InputFile, stream: PlaquetteStream) -> None:
        found, stated = stream.averages().mean, self.header.plaquette or 0.0
        # openQCD itself asks for roundings alone; another program may add in another order.
        if not abs(found - stated) <= 1e-12 + math.sqrt(6 * self.header.lattice.sites) * 2**-52:
            raise file.damaged(
                f"its links have the plaquette {found:.14g}, its header says {stated:.14g}"
            )


def recognises(head: bytes) -> bool:
    """Tell from the first bytes whether a file may be of this format, which has no mark."""
    if len(head) < _HEADER.size:
        return False
    *extents, plaquette = _HEADER.unpack(head[: _HEADER.size])
    return all(2 <= e <= _MAX_EXTENT for e in extents) and abs(plaquette) <= 3


def read_header(file: InputFile) -> OpenQcdReader:
    """Read and check the header.

    Raises
    ------
    GaugeError
        If it does not fit the size of the file.
    """
    t, x, y, z, plaquette = _HEADER.unpack(file.read(0, _HEADER.size).tobytes())
    lattice = lattice_of(file, x, y, z, t)
    file.expect_size(_HEADER.size + lattice.links * 144)
    return OpenQcdReader(Header("openqcd", lattice, "su3", "double", plaquette / 3))


def write(
    out: BinaryIO,
    slices: Iterable[Links],
    lattice: Lattice,
    group: str,
    precision: str,
    provenance: Mapping[str, str],
) -> None:
    """Write an SU(3) configuration in double precision; see `write_configuration`.

    The block of the first slice needs links of the last one, and is written at the end.
    """
    stream = PlaquetteStream()
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
    """Coordinates (x, y, z) of the sites of a time slice with a parity, z fastest."""
    x, y, z = np.indices((lattice.x, lattice.y, lattice.z))
    return np.nonzero((x + y + z + t) % 2 == parity)


def _links(lattice: Lattice, t: int, block: Links, following: Links) -> Links:
    """Put the links of a time slice where they belong, from its block.

    Those in direction t that leave its even sites come from the next one, ``following[:, a, b]``.
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
    """Take the eight links of each odd site of a time slice.

    Those in direction t that arrive from the slice before are ``arriving[z, y, x, a, b]``.
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
    """Step back one site in direction x, y or z."""
    moved = list(sites)
    moved[mu] = (moved[mu] - 1) % lattice.extents[mu]
    return tuple(moved)
