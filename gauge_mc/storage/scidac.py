"""Files of SciDAC's QIO: XML in LIME records, and checksums.

A LIME file is a sequence of messages, and a message is a sequence of records. A record is a header
of 144 bytes followed by its data, which is padded with zeros to a multiple of 8 bytes. The header
is big endian. It consists of the magic number, the version, a 16-bit word whose two highest bits
are the flags "message begins" and "message ends", the length of the data in 64 bits, and the type
of the record, a text of 128 bytes that ends with a zero (USQCD Software Committee, LIME manual,
version 1.2, and QIO programmer's manual, version 2.3).
"""

from __future__ import annotations

import html
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO
from xml.etree import ElementTree

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.input import InputFile
from gauge_mc.quoting import printable
from gauge_mc.storage.links import STATED, LinkSource, Reader, StatedAverage, StoredLinks

MAX_TEXT = 65536
"""Largest number of bytes of a text record that is parsed; usual records have a few kB."""

_XML = '<?xml version="1.0" encoding="UTF-8"?>'


def only(file: InputFile, records: list[LimeRecord], kind: str) -> LimeRecord:
    """Return the only record of a type."""
    matching = [record for record in records if record.type == kind]
    if len(matching) != 1:
        raise file.refusal(f"it has {len(matching)} {kind} records instead of one")
    return matching[0]


def stated_checksum(file: InputFile, records: list[LimeRecord]) -> str:
    """Return the SciDAC checksum, two words of eight digits, or an empty string."""
    if not any(record.type == "scidac-checksum" for record in records):
        return ""
    fields = fields_of(file, only(file, records, "scidac-checksum"), "scidacChecksum")
    words = [fields.get("suma", ""), fields.get("sumb", "")]
    if not all(re.fullmatch(r"(0[xX])?[0-9a-fA-F]{1,8}", word) for word in words):
        raise file.refusal("its SciDAC checksum is not two hexadecimal numbers")
    return " ".join(f"{int(word, 16):08x}" for word in words)


ABOUT = "scidac-file-xml"
"""Type of the record in which a file says what it is."""

PRIVATE_RECORD = "scidac-private-record-xml"
"""Type of the record that says what the data are."""


def text_of(file: InputFile, record: LimeRecord) -> str:
    """Read the text of a record."""
    data = file.read(record.offset, record.length).tobytes()
    return data.decode("utf-8", "replace").strip("\0 \t\r\n")


def fields_of(file: InputFile, record: LimeRecord, root: str) -> dict[str, str]:
    """Read a flat XML document: the names and texts of the elements below its root."""
    if record.length > MAX_TEXT:
        raise file.refusal(f"its {record.type} record has {record.length} bytes of XML")
    text = text_of(file, record)
    if re.search("<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        # These records need no declarations, and entities can expand without bounds.
        raise file.refusal(f"the XML of its {record.type} record declares entities or a type")
    try:
        tree = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        message = f"the XML of its {record.type} record is broken ({error})"
        readable = re.findall(r"<(\w+)>([^<>]{1,40})</\1>", text)
        values = ", ".join(f"{name} = {value}" for name, value in readable) or "nothing"
        raise file.refusal(f"{message}, of which {values} can be read") from None
    if _local(tree.tag) != root:
        raise file.refusal(f"the XML of its {record.type} record is not a {root}")
    return {_local(child.tag): (child.text or "").strip() for child in tree}


def _local(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2]


def tag_of(key: str) -> str:
    """Return a key as the name of an element."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", key)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def document(root: str, fields: Mapping[str, object], attributes: str = "") -> bytes:
    """Return a document, given the texts of its elements by name."""
    content = ""
    for name, value in fields.items():
        text = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", str(value))
        content += f"<{name}>{html.escape(text, quote=False)}</{name}>"
    return f"{_XML}<{root}{attributes}>{content}</{root}>".encode()


def private_file_xml(lattice: Lattice) -> bytes:
    """Return the private XML of the file: a single volume in four dimensions."""
    dims = "".join(f"{extent} " for extent in lattice.extents)
    return document("scidacFile", {"version": "1.1", "spacetime": 4, "dims": dims, "volfmt": 0})


def checksum_xml(pair: tuple[int, int]) -> bytes:
    """Return the XML of a checksum."""
    first, second = (f"{word:x}" for word in pair)
    return document("scidacChecksum", {"version": "1.0", "suma": first, "sumb": second})


DATA = "scidac-binary-data"
"""Type of the record of a field in files without records of ILDG, as of Chroma and MILC."""

AVERAGES = dict(zip(STATED, ("plaq", "linktr"), strict=True))
"""Elements of the averages in USQCD's record."""

_MAX_TEXTS = 4 * MAX_TEXT
"""Largest number of bytes of all records with free text."""

_FREE_TEXT = ("ildg-data-lfn", "xlf-info", ABOUT, "scidac-record-xml")
_INFO = "gauge-mc"


def is_field(file: InputFile) -> bool:
    """Return whether a LIME file contains a single field, and no record of ILDG."""
    try:
        kinds = [record.type for record in read_records(file)]
    except GaugeError:  # whoever reads the file says what is wrong
        return False
    return kinds.count(DATA) == 1 and "ildg-format" not in kinds


def private_fields(file: InputFile, records: list[LimeRecord]) -> dict[str, str]:
    """Return what the private SciDAC record of the file says, or nothing if there is none."""
    kind = "scidac-private-file-xml"
    if not any(record.type == kind for record in records):
        return {}
    return fields_of(file, only(file, records, kind), "scidacFile")


def private_extents(file: InputFile, records: list[LimeRecord]) -> list[str]:
    """Return the extents in the private SciDAC record of the file; none if there is none."""
    return private_fields(file, records).get("dims", "").split()


def reader_of(
    format: str, file: InputFile, records: list[LimeRecord], data: LimeRecord, stored: StoredLinks
) -> Reader:
    """Return the reader of links in a record, of which all else is known."""
    if data.length != stored.nbytes:
        if private_fields(file, records).get("volfmt", "0") != "0":
            raise file.refusal(
                "it is one part of several, as NAME.vol0000 of QIO; let the program that wrote "
                "them join them in one file"
            )
        raise file.refusal(
            f"it has {data.length} bytes of links, but its header implies {stored.nbytes}"
        )
    provenance, averages, warnings = provenance_of(file, records)
    checksum = stated_checksum(file, records)
    if not checksum:
        warnings.append("it has no SciDAC checksum, so its links were not verified with one")
    facts = {"checksum": checksum, "provenance": provenance, "warning": "; ".join(warnings)}
    return Reader.of(format, stored, data.offset, averages, **facts)


def provenance_of(
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
            raise file.refusal(f"it has more than {_MAX_TEXTS} bytes of text")
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
    for name, key in AVERAGES.items():
        if key not in usqcd:
            continue
        stated = StatedAverage.parse(usqcd[key])
        if stated:
            averages[name] = stated
        elif usqcd.get("info") == _INFO:
            raise file.refusal(f"its {name} '{usqcd[key][:40]}' is not an average of traces")
        else:  # other programs may normalise differently
            quoted = printable(usqcd[key][:40])
            warnings.append(
                f"its {name} '{quoted}' is not an average of Re Tr / N and was not compared"
            )
    return texts, averages, warnings


def write_records_before(
    out: BinaryIO, stored: StoredLinks, provenance: Mapping[str, str], types: str
) -> int:
    """Write the records of SciDAC before the links, and return the place of the averages."""
    fields = {tag_of(key): text for key, text in provenance.items()}
    write_record(out, "scidac-private-file-xml", private_file_xml(stored.lattice), begins=True)
    write_record(out, ABOUT, document("provenance", fields), ends=True)
    record_xml = _private_record_xml(stored, provenance.get("creation_date", "unknown"), types)
    write_record(out, PRIVATE_RECORD, record_xml, begins=True)
    place = out.tell()
    write_record(out, "scidac-record-xml", _usqcd_info(0.0, 0.0))
    return place


def write_data(out: BinaryIO, source: LinkSource, kind: str, place: int) -> None:
    """Write the record of the links and their checksum, and the averages at their place."""
    nbytes = source.stored.nbytes
    write_header(out, kind, nbytes)
    checksums, averages = source.store(out)
    out.write(bytes(padding(nbytes)))
    write_record(out, "scidac-checksum", checksum_xml(checksums.site_crc), ends=True)
    out.seek(place)
    write_record(out, "scidac-record-xml", _usqcd_info(averages.mean, averages.link_trace))


def _private_record_xml(stored: StoredLinks, date: str, types: str) -> bytes:
    """Return the private XML of the record: four matrices per site."""
    letter, n = stored.precision[0].upper().replace("S", "F"), stored.group.colours
    fields = {
        "version": "1.1",
        "date": date,
        "recordtype": 0,
        "datatype": f"{types}_{letter}{n}_ColorMatrix",
        "precision": letter,
        "colors": n,
        "typesize": stored.site_bytes // 4,
        "datacount": 4,
    }
    return document("scidacRecord", fields)


def _usqcd_info(plaquette: float, link_trace: float) -> bytes:
    """Return XML with plaquette and link trace, always of the same length."""
    plaq, linktr = (f"{average:.16f}"[:18] for average in (plaquette, link_trace))
    fields = {"version": "1.0", "plaq": plaq, "linktr": linktr, "info": _INFO}
    return document("usqcdInfo", fields)


LIME_MAGIC = bytes.fromhex("456789ab")
"""Magic number at the beginning of each record."""

_HEADER = struct.Struct(">4sHHQ128s")
_VERSION = 1
_BEGINS, _ENDS = 0x8000, 0x4000
_MAX_RECORDS = 1000
"""Limit that ends the search in a damaged file early. A file of QIO has about ten records."""


@dataclass(frozen=True)
class LimeRecord:
    """A record of a LIME file."""

    type: str
    """Type of the record, in lower case."""
    offset: int
    """Position of the data in the file, in bytes."""
    length: int
    """Length of the data in bytes."""


def read_records(file: InputFile) -> list[LimeRecord]:
    """Return the records of a LIME file without reading their data."""
    records: list[LimeRecord] = []
    position = 0
    while position < file.size:
        if len(records) == _MAX_RECORDS:
            raise file.refusal(f"it has more than {_MAX_RECORDS} LIME records")
        record = _read_header(file, position)
        end = record.offset + record.length
        position = end + padding(record.length)  # which some programs leave out at the end
        if end > file.size:
            raise file.refusal(
                f"its LIME record '{record.type}' of {record.length} bytes at byte "
                f"{record.offset} goes beyond the {file.size} bytes of the file",
                short=True,
            )
        records.append(record)
    return records


def _read_header(file: InputFile, position: int) -> LimeRecord:
    words = f"no LIME record begins at byte {position}, where one must begin"
    start = file.read(position, min(len(LIME_MAGIC), file.size - position)).tobytes()
    if not LIME_MAGIC.startswith(start):
        raise file.refusal(words)
    _, version, _, length, name = _HEADER.unpack(file.read(position, _HEADER.size).tobytes())
    if version != _VERSION:
        raise file.refusal(words)
    kind = name.split(b"\0")[0].decode("ascii", "replace").lower()
    if not kind.isprintable():
        raise file.refusal(f"the LIME record at byte {position} has no readable type")
    return LimeRecord(kind, position + _HEADER.size, length)


def write_header(
    out: BinaryIO, kind: str, length: int, *, begins: bool = False, ends: bool = False
) -> None:
    """Write the header of a record, which may begin or end a message."""
    flags = begins * _BEGINS | ends * _ENDS
    out.write(_HEADER.pack(LIME_MAGIC, _VERSION, flags, length, kind.encode("ascii")))


def write_record(
    out: BinaryIO, kind: str, data: bytes, *, begins: bool = False, ends: bool = False
) -> None:
    """Write a record, header and data."""
    write_header(out, kind, len(data), begins=begins, ends=ends)
    out.write(data + bytes(padding(len(data))))


def padding(length: int) -> int:
    """Return the number of zeros that pad `length` bytes of data."""
    return -length % 8
