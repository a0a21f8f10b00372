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
from gauge_mc.files.averages import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.formats import FORMATS, Format, LinkSource
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.quoting import printable
from gauge_mc.storage import lime
from gauge_mc.storage.header import STATED, Header, StatedAverage, lattice_of
from gauge_mc.storage.lime import LimeRecord
from gauge_mc.storage.links import SITE_CRC, StoredLinks
from gauge_mc.storage.scidac import (
    MAX_TEXT,
    ScidacReader,
    checksum_xml,
    document,
    element,
    fields_of,
    only,
    private_file_xml,
    stated_checksum,
    tag_of,
    text_of,
)

LFN = "ildg-data-lfn"
"""Key of the logical file name in the provenance, and type of its record."""

_PRECISIONS = {"32": "single", "64": "double"}
_TYPES = {"single": ">f4", "double": ">f8"}
_MAX_TEXTS = 4 * MAX_TEXT
"""Largest number of bytes of all records with free text."""

_AVERAGES = dict(zip(STATED, ("plaq", "linktr"), strict=True))
"""Elements of the averages in USQCD's record."""

_FREE_TEXT = (LFN, "xlf-info", "scidac-file-xml", "scidac-record-xml")
_INFO = "gauge-mc"
SCIDAC_DATA = "scidac-binary-data"
"""Type of the record of links in files without records of ILDG, as of Chroma and MILC."""


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
            if self.stored(lattice, group, precision).nbytes == data.length:
                return _reader_of(file, records, data, lattice, group.name, precision)
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
    if not count and kinds.count(SCIDAC_DATA) == 1:
        return _read_color_matrices(file, records)
    if not count and data_count == 1:
        raise file.unsupported(
            "it has links, but states neither their group nor their extents; give both to info, "
            "verify or measure, as in --lattice 8x8x8x16 --group su3, or to gauge-mc convert, "
            "which writes a file that states them"
        )
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
    reader = _reader_of(file, records, data, lattice, group, precision)
    _compare_extents(file, records, lattice)
    return reader


def _read_color_matrices(file: InputFile, records: list[LimeRecord]) -> ScidacReader:
    """Find and check the records of a field of four colour matrices per site, without ILDG's."""
    kind = "scidac-private-record-xml"
    fields = fields_of(file, only(file, records, kind), "scidacRecord")
    named = re.fullmatch(r"(?:QDP|USQCD)_([FD])([1-9])_ColorMatrix", fields.get("datatype", ""))
    group = special_unitary(int(named[2])) if named else ""
    if not named or group not in GROUPS or fields.get("datacount") != "4":
        raise file.unsupported(
            f"its data are {fields.get('datacount', '?')} of '{fields.get('datatype', '')}', not "
            "four matrices of colour for each site, as links are"
        )
    words = _private_extents(file, records)
    if len(words) != 4 or not all(re.fullmatch("[0-9]{1,9}", word) for word in words):
        raise file.unsupported(f"its extents are '{' '.join(words)}', not four numbers")
    lattice = lattice_of(file, *map(int, words), odd=True)
    precision = {"F": "single", "D": "double"}[named[1]]
    data = only(file, records, SCIDAC_DATA)
    return _reader_of(file, records, data, lattice, group, precision)


def _private_extents(file: InputFile, records: list[LimeRecord]) -> list[str]:
    """Return the extents in the private SciDAC record of the file."""
    record = only(file, records, "scidac-private-file-xml")
    return fields_of(file, record, "scidacFile").get("dims", "").split()


def _reader_of(
    file: InputFile,
    records: list[LimeRecord],
    data: LimeRecord,
    lattice: Lattice,
    group: str,
    precision: str,
) -> ScidacReader:
    """Return the reader of links whose group, lattice and precision are known."""
    stored = FORMATS[Ildg.name].stored(lattice, GROUPS[group], precision)
    if data.length != stored.nbytes:
        raise file.damaged(
            f"it has {data.length} bytes of links, but its header implies {stored.nbytes}"
        )
    provenance, averages, warnings = _provenance(file, records)
    checksum = stated_checksum(file, records)
    if not checksum:
        warnings.append("it has no SciDAC checksum, so its links were not verified with one")
    plaquette, link_trace = (averages.get(name) for name in _AVERAGES)
    header = Header(
        Ildg.name,
        lattice,
        group,
        precision,
        plaquette.value if plaquette else None,
        link_trace.value if link_trace else None,
        checksum=checksum,
        provenance=provenance,
        warning="; ".join(warnings),
    )
    return ScidacReader(header, stored, data.offset, averages)


def _write(out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
    stored = source.stored
    lfn = provenance.get(LFN, "unknown")
    fields = "".join(element(tag_of(key), provenance[key]) for key in provenance if key != LFN)
    lime.write_record(out, "scidac-private-file-xml", private_file_xml(stored.lattice), begins=True)
    lime.write_record(out, "scidac-file-xml", document("provenance", fields), ends=True)
    record_xml = _scidac_record(stored, provenance.get("creation_date", "unknown"))
    lime.write_record(out, "scidac-private-record-xml", record_xml, begins=True)
    place = out.tell()
    lime.write_record(out, "scidac-record-xml", _usqcd_info(None))
    lime.write_record(out, "ildg-format", _ildg_format(stored))
    lime.write_record(out, LFN, lfn.encode("utf-8", "replace"))
    lime.write_header(out, "ildg-binary-data", stored.nbytes)
    checksums, averages = source.store(out)
    out.write(bytes(lime.padding(stored.nbytes)))
    lime.write_record(out, "scidac-checksum", checksum_xml(checksums.site_crc), ends=True)
    out.seek(place)
    lime.write_record(out, "scidac-record-xml", _usqcd_info(averages))


def _compare_extents(file: InputFile, records: list[LimeRecord], lattice: Lattice) -> None:
    """Compare the extents with those in the private SciDAC record of the file, if there is one."""
    kind = "scidac-private-file-xml"
    if any(record.type == kind for record in records):
        words = _private_extents(file, records)
        if words != [str(extent) for extent in lattice.extents]:
            raise file.damaged(
                f"its extents are {lattice} in one record and '{' '.join(words)}' in another"
            )


def _provenance(
    file: InputFile, records: list[LimeRecord]
) -> tuple[dict[str, str], dict[str, StatedAverage], list[str]]:
    """Return free texts, averages, and warnings about averages that cannot be compared."""
    texts: dict[str, str] = {}
    usqcd: dict[str, str] = {}
    length = 0
    for record in records:
        if record.type not in _FREE_TEXT or not 0 < record.length <= MAX_TEXT:
            continue
        length += record.length
        if length > _MAX_TEXTS:
            raise file.damaged(f"it has more than {_MAX_TEXTS} bytes of text")
        text = text_of(file, record)
        if "<provenance" in text:
            texts.update(fields_of(file, record, "provenance"))
        elif "<usqcdInfo" in text:
            usqcd = fields_of(file, record, "usqcdInfo")
            if usqcd.get("info", _INFO) != _INFO:
                texts["info"] = usqcd["info"]
        else:
            texts[record.type] = text
    averages: dict[str, StatedAverage] = {}
    warnings = []
    for name, key in _AVERAGES.items():
        if key not in usqcd:
            continue
        stated = StatedAverage.parse(usqcd[key])
        if stated:
            averages[name] = stated
        elif usqcd.get("info") == _INFO:
            raise file.damaged(f"its {name} '{usqcd[key][:40]}' is not an average of traces")
        else:  # other programs may normalise differently
            quoted = printable(usqcd[key][:40])
            warnings.append(
                f"its {name} '{quoted}' is not an average of Re Tr / N and was not compared"
            )
    return texts, averages, warnings


def _scidac_record(stored: StoredLinks, date: str) -> bytes:
    """Return the private XML of the record: four matrices per site."""
    letter, n = stored.precision[0].upper().replace("S", "F"), stored.group.colours
    return document(
        "scidacRecord",
        element("version", "1.1")
        + element("date", date)
        + element("recordtype", 0)
        + element("datatype", f"USQCD_{letter}{n}_ColorMatrix")
        + element("precision", letter)
        + element("colors", n)
        + element("typesize", stored.site_bytes // 4)
        + element("datacount", 4),
    )


def _usqcd_info(averages: Averages | None) -> bytes:
    """Return XML with plaquette and link trace, or with zeros, always of the same length."""
    plaquette, trace = (averages.mean, averages.link_trace) if averages else (0.0, 0.0)
    return document(
        "usqcdInfo",
        element("version", "1.0")
        + element("plaq", f"{plaquette:.16f}"[:18])
        + element("linktr", f"{trace:.16f}"[:18])
        + element("info", _INFO),
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
