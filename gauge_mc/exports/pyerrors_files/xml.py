"""Files of observables in XML, in the formats of the ALPHA collaboration that pyerrors writes."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from gauge_mc.exports.pyerrors_files.observables import Content, description_of
from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.files.table import TableData
from gauge_mc.run.parameters import Parameters

MARK_BYTES = 1000
"""Number of bytes in which a file of observables says what it is."""


def is_xml_of(path: Path, tag: bytes) -> bool:
    """Return whether a file is compressed XML of observables with an element of this tag."""
    with suppress(OSError, EOFError, zlib.error), gzip.open(path) as file:
        head = file.read(MARK_BYTES)
        return b"lattobs" in head and tag in head
    return False


def titles(
    parameters: Parameters, tables: Mapping[str, TableData], content: Content, names: Sequence[str]
) -> dict[str, Any]:
    """Return what the functions of pyerrors write beside the observables, which they do not quote.

    Parameters
    ----------
    parameters : Parameters
        Parameters of the run.
    tables : mapping of str to TableData
        Its tables.
    content : Content
        The part of them that is exported.
    names : sequence of str
        Names of the observables.
    """
    origin = {**description_of(parameters, tables, content), "observables": names}
    return {
        "name": escape(parameters.name),
        "spec": "tables of gauge-mc",
        "origin": escape(json.dumps(origin)),
        "symbol": [escape(name) for name in names],
    }


def write_xml(out: Path, kind: FileKind, text: str) -> None:
    """Write a compressed text, whole or not at all."""
    with replacing(out, kind=kind) as file:
        file.write(gzip.compress(text.encode(), mtime=0))
