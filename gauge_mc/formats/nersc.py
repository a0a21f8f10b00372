"""The NERSC archive format of the Gauge Connection.

A text header of lines ``KEY = VALUE`` between ``BEGIN_HEADER`` and ``END_HEADER`` is followed by
the links ``[t][z][y][x][mu][a][b][re, im]``. ``DATATYPE`` states whether all rows of a link are
stored (``4D_SU3_GAUGE_3x3``) or all but the last (``4D_SU3_GAUGE``). ``FLOATING_POINT`` states the
size of the reals and their byte order. ``CHECKSUM`` is the sum of the 32-bit words of the links,
modulo 2^32. ``PLAQUETTE`` and ``LINK_TRACE`` are averages of Re Tr / N. In SU(2) files each 3 is a
2 (The Gauge Connection, http://qcd.nersc.gov, archive format 1.0). The keys ``ensemble_id``,
``ensemble_label``, ``sequence_number``, ``creator``, ``creator_hardware``, ``creation_date`` and
``archive_date`` of the provenance are fields that the format defines; other keys become additional
lines.

Files of the program GLU with N² - 1 reals per link, ``4D_SU3_GAUGE_SMALL`` and
``4D_SU2_GAUGE_SMALL``, can be read (R. J. Hudspith, GLU, ``src/IO``). No public sample of them is
known, so that the tests write them from this definition.

In SU(2) these reals are the phase of U00 and U01, in SU(3) U01, U02 and U10 and the phases of U00
and U20. What is left follows from the norms and from unitarity.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, Format
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.quoting import printable
from gauge_mc.storage import links

COLOURS = (2, 3)
"""Numbers of colours of the groups."""


def first_rows(reals: NDArray[np.float64], n: int) -> NDArray[np.complex128]:
    """Return all rows but the last, ``[link][row][column]``."""
    if n == min(COLOURS):
        u01 = reals[:, 1] + 1j * reals[:, 2]
        return np.stack([_rest(u01) * np.exp(1j * reals[:, 0]), u01], axis=1)[:, np.newaxis]
    u01, u02, u10 = (reals[:, k] + 1j * reals[:, k + 1] for k in (0, 2, 4))
    u00 = _rest(u01, u02) * np.exp(1j * reals[:, 6])
    u20 = _rest(u00, u10) * np.exp(1j * reals[:, 7])
    norm = np.abs(u01) ** 2 + np.abs(u02) ** 2
    # The first two rows are orthogonal, and U20 is a cofactor of them.
    overlap, cofactor = -u00.conj() * u10, u20.conj()
    with np.errstate(all="ignore"):
        u11 = (u01 * overlap - u02.conj() * cofactor) / norm
        u12 = (u02 * overlap + u01.conj() * cofactor) / norm
    rows = np.stack([u00, u01, u02, u10, u11, u12], axis=1).reshape(-1, 2, 3)
    rows[norm == 0] = np.eye(3)[:2]  # for which the reals say nothing more; GLU takes 1 as well
    return rows


def _rest(*entries: NDArray[np.complex128]) -> NDArray[np.float64]:
    """Return the modulus of the entry of a unit vector, given the others."""
    rest = 1 - sum(np.abs(entry) ** 2 for entry in entries)
    return np.sqrt(np.maximum(rest, 0))


_BEGIN, _END = b"BEGIN_HEADER", b"END_HEADER"
_MAX_HEADER = 65536
"""Number of bytes in which the end of the header is searched; usual headers have about 1 kB."""

_DATATYPE = re.compile(r"4D_SU(\d+)_GAUGE(?:_(\d+)x(\d+)|(_SMALL))?")
_BYTE_ORDER_TOLERANCE = 1e-3
"""Largest deviation of the norm of a row from 1 by which the byte order is recognised."""

_OWN_KEYS = re.compile(
    "HDR_VERSION|DATATYPE|STORAGE_FORMAT|DIMENSION_[1-4]|BOUNDARY_[1-4]|CHECKSUM|LINK_TRACE"
    "|PLAQUETTE|FLOATING_POINT"
)
_AVERAGES = dict(zip(links.STATED, ("PLAQUETTE", "LINK_TRACE"), strict=True))
"""Keys of the averages."""

_PROVENANCE = {
    "ENSEMBLE_ID": "unknown",
    "ENSEMBLE_LABEL": "unknown",
    "SEQUENCE_NUMBER": "1",
    "CREATOR": "gauge-mc",
    "CREATOR_HARDWARE": "unknown",
    "CREATION_DATE": "unknown",
    "ARCHIVE_DATE": "unknown",
}
"""Fields that other programs expect, with the values that are written if they are unknown."""


class NerscReader(links.Reader):
    """A NERSC file whose header agrees with its size."""

    def wrong_checksum(self, file: InputFile, checksums: links.Checksums) -> str:
        """Compare the sum of the words; see `Reader.wrong_checksum`."""
        if self.stored.decoded:
            checksums = links.Checksums(self._sum_of_reals(file))
        return super().wrong_checksum(file, checksums)

    def _sum_of_reals(self, file: InputFile) -> int:
        """Return the sum of the words of a file whose reals are not those of rows."""
        size, total = _few_bytes(self.stored), 0
        for t in range(self.stored.lattice.t):
            block = file.read(self.offset + t * size, size)
            total += int(block.view(f"{self.stored.dtype[0]}u4").sum(dtype=np.uint64))
        return total & 0xFFFFFFFF


class Nersc(Format):
    """The archive format of the Gauge Connection."""

    name: ClassVar[str] = "nersc"
    title: ClassVar[str] = "NERSC"
    summary: ClassVar[str] = "text header with checksum and averages; any group, single or double"
    suffix: ClassVar[str] = ".nersc"
    odd_extents: ClassVar[bool] = True
    checksums: ClassVar[frozenset[str]] = frozenset({links.WORD_SUM})

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with ``BEGIN_HEADER``."""
        return head.startswith(_BEGIN)

    def contains(self, file: InputFile) -> bool:
        """Return whether a file is not a state of random numbers, as Grid writes them."""
        head = file.read(0, min(file.size, _MAX_HEADER)).tobytes().partition(_END)[0]
        return not re.search(rb"\nFLOATING_POINT\s*=\s*UINT", head)

    def read_header(self, file: InputFile) -> NerscReader:
        """Read and check the header; see `Format.read_header`."""
        fields, offset = _fields(file)
        group, rows, few = _group_and_rows(file, fields.get("DATATYPE", ""))
        real, warnings = fields.get("FLOATING_POINT"), []
        if real is not None and not re.fullmatch("IEEE(32|64)(BIG|LITTLE)?", real):
            raise file.refusal(
                f"its FLOATING_POINT is '{real}' instead of IEEE32BIG, IEEE64BIG or similar"
            )
        extents = [fields.get(f"DIMENSION_{i}", "") for i in (1, 2, 3, 4)]
        if not all(re.fullmatch("[0-9]{1,9}", extent) for extent in extents):
            raise file.refusal(f"its extents '{' '.join(extents)}' are not four whole numbers")
        checksum = fields.get("CHECKSUM")
        if checksum is None:
            warnings.append(file.absent("CHECKSUM", "its links cannot be verified with one"))
        elif not re.fullmatch("(0[xX])?[0-9a-fA-F]{1,8}", checksum):
            raise file.refusal(f"its CHECKSUM '{checksum}' is not a hexadecimal number of 32 bits")
        for i in range(1, 5):
            boundary = fields.get(f"BOUNDARY_{i}", "PERIODIC")
            if boundary != "PERIODIC":
                words = f"its BOUNDARY_{i} is {printable(boundary[:40])}"
                warnings.append(f"{words}; its links are taken as they are")
        averages = {
            name: _average(file, key, fields[key])
            for name, key in _AVERAGES.items()
            if key in fields
        }
        lattice = links.lattice_of(file, *(int(extent) for extent in extents), odd=True)
        n = group.colours
        reals = lattice.sites * 4 * (n**2 - 1 if few else rows * n * 2)
        if real is None:
            warnings.append(file.absent("FLOATING_POINT", "the type of its numbers is a guess"))
            real = "IEEE64" if file.size - offset > 4 * reals else "IEEE32"
        bytes_each = int(real[4:6]) // 8
        dtype = f"{_byte_order(file, real, offset, rows, n)}f{bytes_each}"
        stored = links.StoredLinks(lattice, group, dtype, rows, checksums=self.checksums)
        sizes = {offset + size for size in stored.other_sizes}
        file.expect_size(offset + reals * bytes_each, sizes)
        return NerscReader.of(
            self.name,
            _of_few_reals(stored, offset) if few else stored,
            offset,
            averages,
            checksum=f"{int(checksum, 16):x}" if checksum else "",
            warning="; ".join(warnings),
            provenance={
                key.lower(): text for key, text in fields.items() if not _OWN_KEYS.fullmatch(key)
            },
        )

    def header(
        self, stored: links.StoredLinks, provenance: Mapping[str, str], sums: links.LinkSums
    ) -> bytes:
        """Return the header, always of the same length; see `Format.header`."""
        n, (checksums, averages) = stored.group.colours, sums
        lines = {
            "HDR_VERSION": "1.0",
            "DATATYPE": f"4D_SU{n}_GAUGE_{n}x{n}",
            "STORAGE_FORMAT": "1.0",
            **{f"DIMENSION_{i}": str(e) for i, e in enumerate(stored.lattice.extents, 1)},
            "LINK_TRACE": f"{averages.link_trace:.16f}"[:18],
            "PLAQUETTE": f"{averages.mean:.16f}"[:18],
            **{f"BOUNDARY_{i}": b.name for i, b in enumerate(stored.lattice.boundaries, 1)},
            "CHECKSUM": f"{checksums.word_sum:08x}",
            **_provenance(provenance),
            "FLOATING_POINT": "IEEE64BIG" if stored.precision == "double" else "IEEE32BIG",
        }
        text = "".join(f"{key} = {value}\n" for key, value in lines.items())
        return b"%s\n%s%s\n" % (_BEGIN, text.encode("ascii", "replace"), _END)


def _few_bytes(stored: links.StoredLinks) -> int:
    """Return the number of bytes per time slice with N² - 1 reals per link."""
    per_link = (stored.group.colours**2 - 1) * int(stored.dtype[-1])
    return 4 * stored.lattice.slice_sites * per_link


def _of_few_reals(stored: links.StoredLinks, offset: int) -> links.StoredLinks:
    """Return links whose file has N² - 1 reals for each."""
    n, size = stored.group.colours, _few_bytes(stored)

    def decoded(file: InputFile, t: int) -> links.Block:
        reals = file.read(offset + t * size, size).view(stored.dtype).astype(np.float64)
        rows = first_rows(reals.reshape(-1, n**2 - 1), n).reshape(-1)
        return rows.view(np.float64).astype(stored.dtype).view(np.uint8)

    return replace(stored, decoded=decoded)


def _group_and_rows(file: InputFile, datatype: str) -> tuple[Group, int, bool]:
    """Return group and number of rows that ``DATATYPE`` states, and whether reals are few."""
    match = _DATATYPE.fullmatch(datatype)
    if not match or match[2] != match[3] or match[2] not in (None, match[1]):
        raise file.refusal(f"its DATATYPE is '{datatype}' instead of 4D_SU3_GAUGE_3x3 or similar")
    colours = int(match[1][:3])
    if special_unitary(colours) not in GROUPS:
        raise file.refusal(f"its DATATYPE '{datatype}' has an unknown group")
    if match[4] and colours not in COLOURS:
        raise file.refusal(f"its DATATYPE is '{datatype}', which only SU(2) and SU(3) have")
    group = GROUPS[special_unitary(colours)]
    return group, colours if match[2] else colours - 1, bool(match[4])


def _fields(file: InputFile) -> tuple[dict[str, str], int]:
    """Return the fields of the header and the position of its end in the file."""
    head = file.read(0, min(file.size, _MAX_HEADER)).tobytes()
    end = re.search(rb"\n" + _END + rb"[ \t\r]*\n", head)
    if not end:
        raise file.refusal("its header has no line END_HEADER")
    fields: dict[str, str] = {}
    for line in head[: end.start()].decode("latin-1").split("\n"):
        key, equals, text = (part.strip() for part in line.partition("="))
        if equals and fields.setdefault(key, text) != text:
            raise file.refusal(f"its header states {key} twice, with different values")
    return fields, end.end()


def _average(file: InputFile, key: str, text: str) -> links.StatedAverage:
    """Read the plaquette or the link trace."""
    average = links.StatedAverage.parse(text)
    if average is None:
        raise file.refusal(f"its {key} '{text[:40]}' is not an average of traces")
    return average


def _byte_order(file: InputFile, real: str, offset: int, rows: int, n: int) -> str:
    """Return the byte order. If it is not stated, it is the one that gives a row of norm 1."""
    if not real.endswith(("32", "64")):
        return ">" if real.endswith("BIG") else "<"
    width = int(real[4:6]) // 8
    row = file.read(offset, 2 * n * width).view(f">f{width}").astype(np.float64)
    return ">" if abs(row @ row - 1) <= _BYTE_ORDER_TOLERANCE else "<"


def _provenance(provenance: Mapping[str, str]) -> dict[str, str]:
    """Return free texts as lines of the header, with keys in capitals and values on one line."""
    lines = dict(_PROVENANCE)
    for key, text in provenance.items():
        name = re.sub("[^A-Z0-9_]", "_", key.upper())
        value = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        if not _OWN_KEYS.fullmatch(name) and value:
            lines[name] = value[:256]
    if not re.fullmatch("[1-9][0-9]{0,8}", lines["SEQUENCE_NUMBER"]):
        lines["SEQUENCE_NUMBER"] = _PROVENANCE["SEQUENCE_NUMBER"]
    return lines


FORMATS.register(Nersc())
