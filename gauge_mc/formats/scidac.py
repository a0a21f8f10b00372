"""Fields of SciDAC's QIO without records of ILDG, as Chroma and MILC write them.

A LIME container with private and user XML for file and record, the record ``scidac-binary-data``
and ``scidac-checksum`` (USQCD, QIO programmer's manual). The data are four colour matrices per
site, ``[t][z][y][x][mu][a][b][re, im]``, big endian; their type is ``QDP_F3_ColorMatrix`` for SU(3)
in single precision and ``QDP_D3_ColorMatrix`` in double precision. Averages and provenance are
where those of ILDG files are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import BinaryIO, ClassVar

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, Format, LinkSource
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.storage import lime
from gauge_mc.storage.header import lattice_of
from gauge_mc.storage.links import SITE_CRC, StoredLinks
from gauge_mc.storage.scidac import (
    DATA,
    PRIVATE_RECORD,
    ScidacReader,
    fields_of,
    is_field,
    only,
    private_extents,
    reader_of,
    write_data,
    write_records_before,
)

_TYPES = {"single": ">f4", "double": ">f8"}
_LETTERS = {"F": "single", "D": "double"}


class Scidac(Format):
    """A field of colour matrices in the format of SciDAC."""

    name: ClassVar[str] = "scidac"
    title: ClassVar[str] = "SciDAC"
    summary: ClassVar[str] = "LIME container of QIO without ILDG's records; SU(N), single or double"
    suffix: ClassVar[str] = ".scidac"
    odd_extents: ClassVar[bool] = True

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with the magic number of LIME."""
        return head.startswith(lime.MAGIC)

    def contains(self, file: InputFile) -> bool:
        """Return whether a LIME file is a single field without records of ILDG."""
        return is_field(file)

    def read_header(self, file: InputFile) -> ScidacReader:
        """Find and check the records of a file; see `Format.read_header`."""
        records = lime.read_records(file)
        fields = fields_of(file, only(file, records, PRIVATE_RECORD), "scidacRecord")
        named = re.fullmatch(r"(?:QDP|USQCD)_([FD])([1-9])_ColorMatrix", fields.get("datatype", ""))
        group = special_unitary(int(named[2])) if named else ""
        if not named or group not in GROUPS or fields.get("datacount") != "4":
            raise file.unsupported(
                f"its data are {fields.get('datacount', '?')} of '{fields.get('datatype', '')}', "
                "not four matrices of colour for each site, as links are"
            )
        words = private_extents(file, records)
        if len(words) != 4 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
            raise file.unsupported(f"its extents are '{' '.join(words)}', not four numbers")
        lattice = lattice_of(file, *map(int, words), odd=True)
        stored = self.stored(lattice, GROUPS[group], _LETTERS[named[1]])
        return reader_of(self.name, file, records, only(file, records, DATA), stored)

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by site, big endian."""
        checksums = frozenset({SITE_CRC})
        return StoredLinks(lattice, group, _TYPES[precision], checksums=checksums)

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`."""
        place = write_records_before(out, source.stored, provenance, "QDP")
        write_data(out, source, DATA, place)


FORMATS.register(Scidac())
