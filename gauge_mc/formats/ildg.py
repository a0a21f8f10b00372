"""Links in LIME containers with SciDAC checksums: files of ILDG, and of SciDAC alone.

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
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.storage import scidac
from gauge_mc.storage.links import SITE_CRC, Reader, StoredLinks, lattice_of

LFN = "ildg-data-lfn"
"""Key of the logical file name in the provenance, and type of its record."""

_PRECISIONS = {"32": "single", "64": "double"}


class LimeFormat(Format):
    """A LIME container of links with SciDAC's checksum."""

    odd_extents: ClassVar[bool] = True
    checksums: ClassVar[frozenset[str]] = frozenset({SITE_CRC})

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with the magic number of LIME."""
        return head.startswith(scidac.LIME_MAGIC)


class Ildg(LimeFormat):
    """The format of the International Lattice Data Grid."""

    name: ClassVar[str] = "ildg"
    qcdml: ClassVar[bool] = True
    title: ClassVar[str] = "ILDG"
    summary: ClassVar[str] = "LIME container with SciDAC checksum; any group, single or double"
    suffix: ClassVar[str] = ".lime"
    names_group: ClassVar[bool] = True

    def contains(self, file: InputFile) -> bool:
        """Return whether a LIME file is not a field of SciDAC without records of ILDG."""
        return not scidac.is_field(file)

    def read_header(self, file: InputFile) -> Reader:
        """Find and check the records of a file; see `Format.read_header`."""
        records = scidac.read_records(file)
        kinds = [record.type for record in records]
        count, data_count = kinds.count("ildg-format"), kinds.count("ildg-binary-data")
        if not count and data_count == 1:
            raise file.refusal(STATES_NOTHING)
        if count == data_count != 1:  # another kind of LIME file, or several configurations
            raise file.refusal(f"it has {count} ildg-format records instead of one")
        fields = scidac.fields_of(file, scidac.only(file, records, "ildg-format"), "ildgFormat")
        field, bits = fields.get("field", ""), fields.get("precision", "")
        group, precision = field.removesuffix("gauge"), _PRECISIONS.get(bits, "")
        extents = [fields.get(name, "") for name in ("lx", "ly", "lz", "lt")]
        integers = all(re.fullmatch("[0-9]{1,9}", extent) for extent in extents)
        if not (field and integers and re.fullmatch("[0-9]{1,3}", bits)):
            raise file.refusal(
                "its ildg-format record does not state a field, 32 or 64 bits and four extents"
            )
        if not precision:
            raise file.refusal(f"its numbers have {bits} bits, not 32 or 64")
        if group not in GROUPS:
            names = ", ".join(f"{name}gauge" for name in GROUPS)
            raise file.refusal(f"its field is '{field}', but the known fields are {names}")
        lattice = lattice_of(file, *(int(extent) for extent in extents), odd=True)
        data = scidac.only(file, records, "ildg-binary-data")
        stored = self.stored(lattice, GROUPS[group], precision)
        reader = scidac.reader_of(self.name, file, records, data, stored)
        words = scidac.private_extents(file, records)
        if words and words != [str(extent) for extent in lattice.extents]:
            raise file.refusal(
                f"its extents are {lattice} in one record and '{' '.join(words)}' in another"
            )
        return reader

    def read_unstated(self, file: InputFile, lattice: Lattice, group: Group) -> Reader:
        """Find links of which the file says nothing; see `Format.read_unstated`."""
        records = scidac.read_records(file)
        if any(record.type == "ildg-format" for record in records):
            return super().read_unstated(file, lattice, group)
        data = scidac.only(file, records, "ildg-binary-data")
        for precision in _PRECISIONS.values():
            stored = self.stored(lattice, group, precision)
            if stored.nbytes == data.length:
                return scidac.reader_of(self.name, file, records, data, stored)
        raise UsageError(
            f"{file.path} has {data.length} bytes of links, which are not those of {group.label} "
            f"on {lattice}; give other extents, or another group."
        )

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`."""
        stored = source.stored
        lfn = provenance.get(LFN, "unknown")
        fields = {key: text for key, text in provenance.items() if key != LFN}
        place = scidac.write_records_before(out, stored, fields, "USQCD")
        scidac.write_record(out, "ildg-format", _ildg_format(stored))
        scidac.write_record(out, LFN, lfn.encode("utf-8", "replace"))
        scidac.write_data(out, source, "ildg-binary-data", place)

    def fields(self, path: Path) -> Mapping[str, str]:
        """Return the logical file name, by default the name of the file."""
        return {LFN: path.name}


def _ildg_format(stored: StoredLinks) -> bytes:
    extents = dict(zip(("lx", "ly", "lz", "lt"), stored.lattice.extents, strict=True))
    bits = 64 if stored.precision == "double" else 32
    return scidac.document(
        "ildgFormat",
        {"version": "1.0", "field": f"{stored.group.name}gauge", "precision": bits, **extents},
        ' xmlns="http://www.lqcd.org/ildg"'
        ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
        ' xsi:schemaLocation="http://www.lqcd.org/ildg http://www.lqcd.org/ildg/filefmt.xsd"',
    )


FORMATS.register(Ildg())


_LETTERS = {"F": "single", "D": "double"}


class Scidac(LimeFormat):
    """A field of colour matrices in the format of SciDAC, as Chroma and MILC write it.

    A LIME container with private and user XML for file and record, the record
    ``scidac-binary-data`` and ``scidac-checksum`` (USQCD, QIO programmer's manual). The data are
    four colour matrices per site, ``[t][z][y][x][mu][a][b][re, im]``, big endian; their type is
    ``QDP_F3_ColorMatrix`` for SU(3) in single precision and ``QDP_D3_ColorMatrix`` in double
    precision. Averages and provenance are where those of ILDG files are.
    """

    name: ClassVar[str] = "scidac"
    title: ClassVar[str] = "SciDAC"
    summary: ClassVar[str] = "LIME container of QIO without ILDG's records; SU(N), single or double"
    suffix: ClassVar[str] = ".scidac"

    def contains(self, file: InputFile) -> bool:
        """Return whether a LIME file is a single field without records of ILDG."""
        return scidac.is_field(file)

    def read_header(self, file: InputFile) -> Reader:
        """Find and check the records of a file; see `Format.read_header`."""
        records = scidac.read_records(file)
        fields = scidac.fields_of(
            file, scidac.only(file, records, scidac.PRIVATE_RECORD), "scidacRecord"
        )
        named = re.fullmatch(r"(?:QDP|USQCD)_([FD])([1-9])_ColorMatrix", fields.get("datatype", ""))
        group = special_unitary(int(named[2])) if named else ""
        if not named or group not in GROUPS or fields.get("datacount") != "4":
            raise file.refusal(
                f"its data are {fields.get('datacount', '?')} of '{fields.get('datatype', '')}', "
                "not four matrices of colour for each site, as links are"
            )
        words = scidac.private_extents(file, records)
        if len(words) != 4 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
            raise file.refusal(f"its extents are '{' '.join(words)}', not four numbers")
        lattice = lattice_of(file, *map(int, words), odd=True)
        stored = self.stored(lattice, GROUPS[group], _LETTERS[named[1]])
        return scidac.reader_of(
            self.name, file, records, scidac.only(file, records, scidac.DATA), stored
        )

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`."""
        place = scidac.write_records_before(out, source.stored, provenance, "QDP")
        scidac.write_data(out, source, scidac.DATA, place)


FORMATS.register(Scidac())
