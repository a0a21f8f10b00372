"""ILDG files: links in a LIME container, with a SciDAC checksum.

The record ``ildg-format`` states group, precision and extents in XML. The record
``ildg-binary-data`` contains the links ``[t][z][y][x][mu][a][b][re, im]``, big endian, and
``ildg-data-lfn`` the logical file name (ILDG Metadata Working Group, ILDG binary file format,
revision 1.1). For SU(2) the field is named ``su2gauge``. The other records are those of the SciDAC
file format, so that SciDAC programs can read the same file: private and user XML for file and
record, and ``scidac-checksum`` (USQCD, QIO programmer's manual). The user XML of the record is
USQCD's ``usqcdInfo`` with plaquette and link trace. The provenance is in the user XML of the file,
except the keys ``creation_date`` and ``ildg-data-lfn`` (by default the name of the file), which
have special places.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO, ClassVar

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import UsageError
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, STATES_NOTHING, Format, LinkSource
from gauge_mc.groups import GROUPS, Group
from gauge_mc.storage import lime
from gauge_mc.storage.header import lattice_of
from gauge_mc.storage.lime import LimeRecord
from gauge_mc.storage.links import SITE_CRC, StoredLinks
from gauge_mc.storage.scidac import (
    ScidacReader,
    document,
    element,
    fields_of,
    is_field,
    only,
    private_extents,
    reader_of,
    write_data,
    write_records_before,
)

LFN = "ildg-data-lfn"
"""Key of the logical file name in the provenance, and type of its record."""

_PRECISIONS = {"32": "single", "64": "double"}
_TYPES = {"single": ">f4", "double": ">f8"}


class Ildg(Format):
    """The format of the International Lattice Data Grid."""

    name: ClassVar[str] = "ildg"
    qcdml: ClassVar[bool] = True
    title: ClassVar[str] = "ILDG"
    summary: ClassVar[str] = "LIME container with SciDAC checksum; any group, single or double"
    suffix: ClassVar[str] = ".lime"
    names_group: ClassVar[bool] = True
    odd_extents: ClassVar[bool] = True

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with the magic number of LIME."""
        return head.startswith(lime.MAGIC)

    def contains(self, file: InputFile) -> bool:
        """Return whether a LIME file is not a field of SciDAC without records of ILDG."""
        return not is_field(file)

    def read_header(self, file: InputFile) -> ScidacReader:
        """Find and check the records of a file; see `Format.read_header`."""
        return _read_header(file)

    def read_unstated(self, file: InputFile, lattice: Lattice, group: Group) -> ScidacReader:
        """Find links of which the file says nothing; see `Format.read_unstated`."""
        records = lime.read_records(file)
        if any(record.type == "ildg-format" for record in records):
            return super().read_unstated(file, lattice, group)  # type: ignore[return-value]
        data = only(file, records, "ildg-binary-data")
        for precision in _TYPES:
            stored = self.stored(lattice, group, precision)
            if stored.nbytes == data.length:
                return reader_of(self.name, file, records, data, stored)
        raise UsageError(
            f"{file.path} has {data.length} bytes of links, which are none of {group.label} on "
            f"{lattice}; give other extents, or another group."
        )

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by site, big endian."""
        checksums = frozenset({SITE_CRC})
        return StoredLinks(lattice, group, _TYPES[precision], checksums=checksums)

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`."""
        _write(out, source, provenance)

    def fields(self, path: Path) -> Mapping[str, str]:
        """Return the logical file name, by default the name of the file."""
        return {LFN: path.name}


def _read_header(file: InputFile) -> ScidacReader:
    """Find and check the records of a file."""
    records = lime.read_records(file)
    kinds = [record.type for record in records]
    count, data_count = kinds.count("ildg-format"), kinds.count("ildg-binary-data")
    if not count and data_count == 1:
        raise file.unsupported(STATES_NOTHING)
    if count == data_count != 1:  # another kind of LIME file, or several configurations
        raise file.unsupported(f"it has {count} ildg-format records instead of one")
    fields = fields_of(file, only(file, records, "ildg-format"), "ildgFormat")
    field, bits = fields.get("field", ""), fields.get("precision", "")
    group, precision = field.removesuffix("gauge"), _PRECISIONS.get(bits, "")
    extents = [fields.get(name, "") for name in ("lx", "ly", "lz", "lt")]
    whole = all(re.fullmatch("[0-9]{1,9}", extent) for extent in extents)
    if not (field and whole and re.fullmatch("[0-9]{1,3}", bits)):
        raise file.damaged(
            "its ildg-format record does not state a field, 32 or 64 bits and four extents"
        )
    if not precision:
        raise file.unsupported(f"its numbers have {bits} bits, not 32 or 64")
    if group not in GROUPS:
        known = ", ".join(f"{name}gauge" for name in GROUPS)
        raise file.unsupported(f"its field is '{field}', but the known fields are {known}")
    lattice = lattice_of(file, *(int(extent) for extent in extents), odd=True)
    data = only(file, records, "ildg-binary-data")
    stored = FORMATS[Ildg.name].stored(lattice, GROUPS[group], precision)
    reader = reader_of(Ildg.name, file, records, data, stored)
    _compare_extents(file, records, lattice)
    return reader


def _write(out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
    stored = source.stored
    lfn = provenance.get(LFN, "unknown")
    fields = {key: text for key, text in provenance.items() if key != LFN}
    place = write_records_before(out, stored, fields, "USQCD")
    lime.write_record(out, "ildg-format", _ildg_format(stored))
    lime.write_record(out, LFN, lfn.encode("utf-8", "replace"))
    write_data(out, source, "ildg-binary-data", place)


def _compare_extents(file: InputFile, records: list[LimeRecord], lattice: Lattice) -> None:
    """Compare the extents with those in the private SciDAC record of the file, if there is one."""
    kind = "scidac-private-file-xml"
    if any(record.type == kind for record in records):
        words = private_extents(file, records)
        if words != [str(extent) for extent in lattice.extents]:
            raise file.damaged(
                f"its extents are {lattice} in one record and '{' '.join(words)}' in another"
            )


def _ildg_format(stored: StoredLinks) -> bytes:
    return document(
        "ildgFormat",
        element("version", "1.0")
        + element("field", f"{stored.group.name}gauge")
        + element("precision", 64 if stored.precision == "double" else 32)
        + "".join(
            element(f"l{axis}", extent)
            for axis, extent in zip("xyzt", stored.lattice.extents, strict=True)
        ),
        ' xmlns="http://www.lqcd.org/ildg"'
        ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        ' xsi:schemaLocation="http://www.lqcd.org/ildg http://www.lqcd.org/ildg/filefmt.xsd"',
    )


FORMATS.register(Ildg())
