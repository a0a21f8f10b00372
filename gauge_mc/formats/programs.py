"""Configuration files of other programs: openQCD, HiRep, MILC and Bridge++."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from dataclasses import replace
from typing import BinaryIO, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.files.columns import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, NO_CHECKSUM, STATES_NOTHING, Format, LinkSource, too_large
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.storage.links import (
    ROTATED_WORDS,
    SITE_CRC,
    Block,
    FileOrder,
    LinkSums,
    Reader,
    StoredLinks,
    checksum_words,
    expect_links,
    lattice_of,
)

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


class PlaquetteReader(Reader):
    """A file whose header agrees with its size and states the average plaquette; see `Reader`."""

    def wrong_average(self, averages: Averages) -> str:
        """Compare the average plaquette; see `Reader.wrong_average`."""
        mean, stated = averages.mean, self.header.plaquette or 0.0
        # Rounding errors of the sum of 6 V plaquettes add up like a random walk. The constant,
        # which HiRep allows for itself, is for links that were rounded before.
        if abs(mean - stated) <= 1e-12 + math.sqrt(6 * self.header.lattice.sites) * 2**-52:
            return ""
        return f"its links have the plaquette {mean:.14g}, its header says {stated:.14g}"


class OpenQcd(Format):
    """The universal format of openQCD.

    A file is little endian. It contains four 32-bit extents t, x, y, z, the average plaquette Re Tr
    U in double precision, and eight SU(3) links in double precision for each odd site, with z
    fastest and t slowest. For each direction t, x, y, z these are the link that leaves the site and
    the link that arrives from the site behind. There is no checksum and no provenance (M. Lüscher
    and S. Schaefer, openQCD, notes of ``modules/archive``).
    """

    name: ClassVar[str] = "openqcd"
    title: ClassVar[str] = "openQCD"
    summary: ClassVar[str] = "openQCD's universal format; SU(3), double"
    suffix: ClassVar[str] = ".openqcd"
    signed: ClassVar[bool] = False
    only: ClassVar[tuple[str, str]] = (_GROUP, _PRECISION)

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with four extents and an average plaquette."""
        if len(head) < _HEADER.size:
            return False
        *extents, plaquette = _HEADER.unpack(head[: _HEADER.size])
        return all(2 <= e <= _MAX_EXTENT for e in extents) and abs(plaquette) <= _COLOURS

    def read_header(self, file: InputFile) -> PlaquetteReader:
        """Read and check the header; see `Format.read_header`."""
        t, x, y, z, plaquette = _HEADER.unpack(file.read(0, _HEADER.size).tobytes())
        lattice = lattice_of(file, x, y, z, t)
        stored = self.stored(lattice, GROUPS[_GROUP], _PRECISION)
        expect_links(file, _HEADER.size, stored)
        average = plaquette / _COLOURS
        return PlaquetteReader.of(self.name, stored, _HEADER.size, plaquette=average)

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by odd site, little endian."""
        return StoredLinks(lattice, group, "<f8", order=BY_ODD_SITE)

    def header(self, stored: StoredLinks, provenance: Mapping[str, str], sums: LinkSums) -> bytes:
        """Return the header; see `Format.header`. The provenance is not stored."""
        x, y, z, t = stored.lattice.extents
        return _HEADER.pack(t, x, y, z, _COLOURS * sums[1].mean)


FORMATS.register(OpenQcd())


_HIREP_HEADER = struct.Struct(">5id")
_MOST_COLOURS = 64
"""Largest plausible number of colours."""

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


def _hirep_stored(lattice: Lattice, group: Group, quaternions: bool) -> StoredLinks:
    if not quaternions:
        return StoredLinks(lattice, group, ">f8", order=BY_SITE_Z_FIRST)
    rows = StoredLinks(lattice, group, ">f8", 1, BY_SITE_Z_FIRST)

    def decoded(file: InputFile, t: int) -> Block:
        block = file.read(_HIREP_HEADER.size + t * rows.block_bytes, rows.block_bytes)
        _between_quaternions_and_rows(block)
        return block

    return replace(rows, decoded=decoded)


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
    """The format of HiRep.

    A file is big endian. It contains five 32-bit integers, N and the extents t, x, y, z, the
    average plaquette Re Tr U / N in double precision, and the links ``[t][x][y][z][direction]`` in
    double precision, with the directions t, x, y, z. A link is its matrix ``[a][b][re, im]``, and
    in SU(2) the four reals of its quaternion (q0, q1, q2, q3), of which q0 + i q3 and -q2 + i q1
    are the first row. Older files of SU(2) have matrices, which the size of the file tells; they
    can only be read. There is no checksum and no provenance (C. Pica et al., HiRep,
    ``LibHR/IO/archive.c`` and ``archive_su2quat.c``). The author's repository has no file of less
    than 2 MB, so that those of the tests are written with NumPy from this definition; the periodic
    SU(3) one of 8⁴ in ``TestProgram/StoredConfs`` has been compared with the same links in
    openQCD's format.

    Files with the auxiliary fields of four-fermion interactions, with links of SO(N) or Sp(N), or
    with open boundaries or those of the Schrödinger functional are named and not supported.
    """

    name: ClassVar[str] = "hirep"
    title: ClassVar[str] = "HiRep"
    summary: ClassVar[str] = "HiRep's format; SU(N), double"
    suffix: ClassVar[str] = ".hirep"
    signed: ClassVar[bool] = False
    odd_extents: ClassVar[bool] = True

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with N, four extents and an average plaquette."""
        if len(head) < _HIREP_HEADER.size:
            return False
        colours, *extents, plaquette = _HIREP_HEADER.unpack(head[: _HIREP_HEADER.size])
        likely = all(1 <= extent <= _MAX_EXTENT for extent in extents) and abs(plaquette) <= 1
        return likely and 2 <= colours <= _MOST_COLOURS

    def read_header(self, file: InputFile) -> PlaquetteReader:
        """Read and check the header; see `Format.read_header`."""
        colours, t, x, y, z, plaquette = _HIREP_HEADER.unpack(
            file.read(0, _HIREP_HEADER.size).tobytes()
        )
        if special_unitary(colours) not in GROUPS:
            raise file.refusal(f"its links are {colours}×{colours} matrices")
        group = GROUPS[special_unitary(colours)]
        lattice = lattice_of(file, x, y, z, t, odd=True)
        stored = _hirep_stored(lattice, group, False)
        size = file.size - _HIREP_HEADER.size
        if colours == _QUATERNION and size != stored.nbytes:
            stored = _hirep_stored(lattice, group, True)
        if size == stored.nbytes + 8 * _FOUR_FERMION_REALS * lattice.sites:
            raise file.refusal("it has the fields of a four-fermion interaction")
        if stored.rows is None and 2 * size == stored.nbytes:
            raise file.refusal("its links have half of the reals of SU(N), as in SO(N) or Sp(N)")
        expect_links(file, _HIREP_HEADER.size, stored)
        if not file.read(_HIREP_HEADER.size, stored.site_bytes).any():
            raise file.refusal(
                "its links of the time slice 0 are 0, as those of the Schrödinger functional, and "
                "only periodic lattices can be read"
            )
        return PlaquetteReader.of(self.name, stored, _HIREP_HEADER.size, plaquette=plaquette)

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why a group or precision cannot be stored; see `Format.refusal`."""
        if precision == _PRECISION:
            return super().refusal(group, precision)
        return f"HiRep files are in {_PRECISION} precision, not in {precision} precision"

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by site with z fastest, big endian."""
        return _hirep_stored(lattice, group, group.colours == _QUATERNION)

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`. The provenance is not stored."""
        lattice, n = source.stored.lattice, source.stored.group.colours
        head = (n, lattice.t, lattice.x, lattice.y, lattice.z)
        out.write(_HIREP_HEADER.pack(*head, 0.0))
        _, averages = source.store(cast(BinaryIO, _Quaternions(out)) if n == _QUATERNION else out)
        out.seek(0)
        out.write(_HIREP_HEADER.pack(*head, averages.mean))


FORMATS.register(HiRep())


_MILC_PRECISION = "single"
_MAGIC = 20103
_LAYOUT = "i4i64siII"
_HEADER_BYTES, _STAMP_BYTES = 96, 64
_OLD_MAGIC, _OLD_LAYOUT, _OLD_HEADER_BYTES = 59354, "i4i2f", 28
_MAGICS = {struct.pack(f"{x}i", magic) for x in "<>" for magic in (_MAGIC, _OLD_MAGIC)}


class Milc(Format):
    """The serial format of the MILC code."""

    name: ClassVar[str] = "milc"
    title: ClassVar[str] = "MILC"
    summary: ClassVar[str] = "version 5, with checksums, and 1 to 4, read only; SU(3), single"
    suffix: ClassVar[str] = ".milc"
    odd_extents: ClassVar[bool] = True
    byte_order: ClassVar[str] = "<"
    checksums: ClassVar[frozenset[str]] = frozenset({ROTATED_WORDS})
    only: ClassVar[tuple[str, str]] = (_GROUP, _MILC_PRECISION)

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
        return any(_is_unitary(reals[: 2 * n**2], n) for n in {x.colours for x in GROUPS.values()})

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
