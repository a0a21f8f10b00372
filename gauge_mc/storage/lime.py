"""LIME, the container format of ILDG and SciDAC files.

A file is a sequence of messages, and a message is a sequence of records. A record is a header of
144 bytes followed by its data, which is padded with zeros to a multiple of 8 bytes. The header is
big endian. It consists of the magic number, the version, a 16-bit word whose two highest bits are
the flags "message begins" and "message ends", the length of the data in 64 bits, and the type of
the record, a text of 128 bytes that ends with a zero (USQCD Software Committee, LIME manual,
version 1.2).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

from gauge_mc.files.input import InputFile

MAGIC = bytes.fromhex("456789ab")
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
    """Return the records of a LIME file without reading their data.

    Raises
    ------
    GaugeError
        If the records do not fill the file exactly, or if there is no record where one must be.
    """
    records: list[LimeRecord] = []
    position = 0
    while position < file.size:
        if len(records) == _MAX_RECORDS:
            raise file.damaged(f"it has more than {_MAX_RECORDS} LIME records")
        record = _read_header(file, position)
        position = record.offset + record.length + padding(record.length)
        if position > file.size:
            raise file.damaged(
                f"its LIME record '{record.type}' of {record.length} bytes at byte "
                f"{record.offset} goes beyond the {file.size} bytes of the file"
            )
        records.append(record)
    return records


def _read_header(file: InputFile, position: int) -> LimeRecord:
    header = file.read(position, _HEADER.size).tobytes()
    magic, version, _, length, name = _HEADER.unpack(header)
    if magic != MAGIC or version != _VERSION:
        raise file.damaged(f"no LIME record begins at byte {position}, where one must begin")
    kind = name.split(b"\0")[0].decode("ascii", "replace").lower()
    if not kind.isprintable():
        raise file.damaged(f"the LIME record at byte {position} has no readable type")
    return LimeRecord(kind, position + _HEADER.size, length)


def write_header(
    out: BinaryIO, kind: str, length: int, *, begins: bool = False, ends: bool = False
) -> None:
    """Write the header of a record, which may begin or end a message."""
    flags = begins * _BEGINS | ends * _ENDS
    out.write(_HEADER.pack(MAGIC, _VERSION, flags, length, kind.encode("ascii")))


def write_record(
    out: BinaryIO, kind: str, data: bytes, *, begins: bool = False, ends: bool = False
) -> None:
    """Write a record, header and data."""
    write_header(out, kind, len(data), begins=begins, ends=ends)
    out.write(data + bytes(padding(len(data))))


def padding(length: int) -> int:
    """Return the number of zeros that pad `length` bytes of data."""
    return -length % 8
