"""Files of SciDAC's QIO: XML in LIME records, and checksums.

USQCD Software Committee, QIO programmer's manual, version 2.3.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.averages import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.storage.header import Header, StatedAverage, refuse_other_averages
from gauge_mc.storage.lime import LimeRecord
from gauge_mc.storage.links import Checksums, StoredLinks

MAX_TEXT = 65536
"""Largest number of bytes of a text record that is parsed; usual records have a few kB."""

_XML = '<?xml version="1.0" encoding="UTF-8"?>'


def checksum_words(pair: tuple[int, int]) -> str:
    """Return the SciDAC checksum as two words of eight digits."""
    first, second = pair
    return f"{first:08x} {second:08x}"


def only(file: InputFile, records: list[LimeRecord], kind: str) -> LimeRecord:
    """Return the only record of a type."""
    found = [record for record in records if record.type == kind]
    if len(found) != 1:
        raise file.damaged(f"it has {len(found)} {kind} records instead of one")
    return found[0]


def stated_checksum(file: InputFile, records: list[LimeRecord]) -> str:
    """Return the SciDAC checksum, two words of eight digits, or an empty string."""
    if not any(record.type == "scidac-checksum" for record in records):
        return ""
    fields = fields_of(file, only(file, records, "scidac-checksum"), "scidacChecksum")
    words = [fields.get("suma", ""), fields.get("sumb", "")]
    if not all(re.fullmatch(r"(0[xX])?[0-9a-fA-F]{1,8}", word) for word in words):
        raise file.damaged("its SciDAC checksum is not two hexadecimal numbers")
    return " ".join(f"{int(word, 16):08x}" for word in words)


ABOUT = "scidac-file-xml"
"""Type of the record in which a file says what it is."""


def text_of(file: InputFile, record: LimeRecord) -> str:
    """Read the text of a record."""
    data = file.read(record.offset, record.length).tobytes()
    return data.decode("utf-8", "replace").strip("\0 \t\r\n")


def fields_of(file: InputFile, record: LimeRecord, root: str) -> dict[str, str]:
    """Read a flat XML document: the names and texts of the elements below its root."""
    if record.length > MAX_TEXT:
        raise file.damaged(f"its {record.type} record has {record.length} bytes of XML")
    text = text_of(file, record)
    if re.search("<!(DOCTYPE|ENTITY)", text, re.IGNORECASE):
        # These records need no declarations, and entities can expand without bounds.
        raise file.damaged(f"the XML of its {record.type} record declares entities or a type")
    try:
        tree = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        said = f"the XML of its {record.type} record is broken ({error})"
        if not (readable := re.findall(r"<(\w+)>([^<>]{1,40})</\1>", text)):
            raise file.damaged(said) from None
        # Some programs wrote it so; the links may be intact.
        values = ", ".join(f"{name} = {value}" for name, value in readable)
        raise file.unsupported(f"{said}, of which {values} can be read") from None
    if _local(tree.tag) != root:
        said = f"the XML of its {record.type} record is not a {root}"
        # Every kind of file has its own text about itself.
        raise file.unsupported(said) if record.type == ABOUT else file.damaged(said)
    return {_local(child.tag): (child.text or "").strip() for child in tree}


def _local(tag: str) -> str:
    """Return the name of an element without its namespace."""
    return tag.rpartition("}")[2]


def tag_of(key: str) -> str:
    """Return a key as the name of an element."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", key)
    return name if re.match(r"[A-Za-z_]", name) else f"_{name}"


def element(name: str, text: object) -> str:
    """Return an element with text."""
    clean = re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "?", str(text))
    return f"<{name}>{html.escape(clean, quote=False)}</{name}>"


def document(root: str, content: str, attributes: str = "") -> bytes:
    """Return a document, given its content in XML."""
    return f"{_XML}<{root}{attributes}>{content}</{root}>".encode()


def private_file_xml(lattice: Lattice) -> bytes:
    """Return the private XML of the file: a single volume in four dimensions."""
    return document(
        "scidacFile",
        element("version", "1.1")
        + element("spacetime", 4)
        + element("dims", " ".join(map(str, lattice.extents)) + " ")
        + element("volfmt", 0),
    )


def checksum_xml(pair: tuple[int, int]) -> bytes:
    """Return the XML of a checksum."""
    first, second = pair
    return document(
        "scidacChecksum",
        element("version", "1.0") + element("suma", f"{first:x}") + element("sumb", f"{second:x}"),
    )


@dataclass(frozen=True)
class ScidacReader:
    """A file of links whose structure is consistent, with SciDAC's checksum; see `Reader`."""

    header: Header
    stored: StoredLinks
    offset: int
    averages: Mapping[str, StatedAverage]

    def verify(self, file: InputFile, checksums: Checksums, averages: Averages) -> None:
        """Compare the SciDAC checksum and the averages of the links with those in the file."""
        found = checksum_words(checksums.site_crc)
        if self.header.checksum not in ("", found):
            raise file.damaged(
                f"its links have the SciDAC checksum {found}, its header says "
                f"{self.header.checksum}"
            )
        refuse_other_averages(file, self.averages, averages, self.header.precision)
