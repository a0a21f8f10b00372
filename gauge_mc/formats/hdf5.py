"""HDF5 files: links in one data set, as QDP++ and Chroma write them.

The data set ``[t][z][y][x][mu]`` has elements that are arrays ``[a][b]`` of compounds ``(r, i)``,
where ``r`` and ``i`` are floating-point numbers of 32 or 64 bits, which h5py shows as a complex
array ``[t, z, y, x, mu, a, b]`` (QDP++, ``lib/qdp_hdf5.cc``, ``HDF5Writer::write`` of an array of
colour matrices). It may have any name; written files call it ``links``. A data set of rank 7 with
complex elements, which h5py makes of such an array, is read as well.

Attributes of the data set are the averages ``plaquette`` and ``link_trace`` of Re Tr / N, the
``checksum`` and the provenance. The checksum is that of SciDAC for the bytes of every site as they
are stored, in two hexadecimal words. It differs from that of an ILDG file of the same links, whose
bytes are in another order. Files of other programs need have no attributes.

The links are one contiguous piece of the file, which is written and read without the HDF5 library.
All else needs the package h5py.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, BinaryIO, ClassVar

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.files.input import InputFile, open_regular
from gauge_mc.formats import FORMATS, NO_CHECKSUM, Format, LinkSource
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.libraries import load
from gauge_mc.storage.links import (
    COARSEST,
    SITE_CRC,
    STATED,
    Reader,
    StatedAverage,
    StoredLinks,
    checksum_words,
    lattice_of,
)
from gauge_mc.storage.scidac import MAX_TEXT

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_VERSIONS = ("v108", "v108")
"""Oldest and newest version of HDF5 whose structures are written: the first with checksums."""

_NAME = b"links"
_RANK = 7
_CHECKSUM = "checksum"
_AVERAGES = {name: name.replace(" ", "_") for name in STATED}
"""Attributes of the averages."""

_MAX_OBJECTS = 1000
"""Largest number of objects in a file, and of attributes of the links, that are looked at."""

_END_OF_FILE = {0: 40, 1: 44, 2: 28, 3: 28}
"""Position of the address of the end of the file, by the version of the superblock."""

_SUPERBLOCK_BYTES = 64
"""Number of bytes at the beginning of a file that contain that address."""

_ERRORS = (OSError, RuntimeError, LookupError, ValueError, TypeError, MemoryError)
"""Exceptions of h5py for damaged files, and for types that NumPy does not know."""


class Hdf5(Format):
    """The hierarchical data format, with the links in the layout of QDP++."""

    name: ClassVar[str] = "hdf5"
    title: ClassVar[str] = "HDF5"
    summary: ClassVar[str] = (
        "data set of complex matrices with checksum and averages; any group, single or double; "
        "needs h5py"
    )
    suffix: ClassVar[str] = ".h5"
    odd_extents: ClassVar[bool] = True
    byte_order: ClassVar[str] = "<"
    checksums: ClassVar[frozenset[str]] = frozenset({SITE_CRC})

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with the signature of HDF5."""
        return head.startswith(_SIGNATURE)

    def read_header(self, file: InputFile) -> Reader:
        """Find and check the data set of the links; see `Format.read_header`."""
        file.expect_size(_end_of_file(file))
        h5py = load("h5py")
        with open_regular(file.path) as content, _refusing(file), h5py.File(content, "r") as h5:
            links = _links(file, h5)
            shape, dtype = links.shape + links.dtype.shape, links.dtype.base
            offset = links.id.get_offset()
            attributes = dict(_attributes(links))
        if offset is None:
            raise file.refusal(
                "its links are compressed, in chunks or elsewhere; let h5repack -f NONE -l CONTI "
                "copy the file"
            )
        lattice, name = lattice_of(file, *shape[3::-1], odd=True), special_unitary(shape[-1])
        if name not in GROUPS:
            raise file.refusal(f"its links are of SU({shape[-1]}), which is not known")
        order = "<" if dtype.newbyteorder("<") == dtype else ">"
        reals = f"{order}f{dtype.itemsize // 2}"
        stored = StoredLinks(lattice, GROUPS[name], reals, checksums=self.checksums)
        if offset + stored.nbytes > file.size:
            raise file.refusal("its links end behind the end of the file", short=True)
        averages = {
            average: _average(file, key, attributes.pop(key))
            for average, key in _AVERAGES.items()
            if key in attributes
        }
        checksum = str(attributes.pop(_CHECKSUM, ""))
        if not re.fullmatch("([0-9a-f]{8} [0-9a-f]{8})?", checksum):
            raise file.refusal(f"its checksum '{checksum[:40]}' is not two hexadecimal words")
        texts = {key: str(value) for key, value in attributes.items()}
        warning = "" if checksum else NO_CHECKSUM
        facts = {"checksum": checksum, "provenance": texts, "warning": warning}
        return Reader.of(self.name, stored, offset, averages, **facts)

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why h5py cannot be imported or the group not be stored; see `Format.refusal`."""
        try:
            load("h5py", "HDF5 files need")
        except GaugeError as error:
            return str(error).rstrip(".")
        return super().refusal(group, precision)

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration; see `Format.write`."""
        h5py = load("h5py")
        pieces = _Pieces()
        with h5py.File(pieces, "w", libver=_VERSIONS) as h5:
            links = _create(h5py, h5, source.stored)
            out.seek(links.id.get_offset())
            checksums, averages = source.store(out)
            for name, key in _AVERAGES.items():
                links.attrs[key] = getattr(averages, STATED[name])
            words = checksum_words(checksums.site_crc)
            for name, text in {_CHECKSUM: words, **_texts(provenance)}.items():
                links.attrs[name] = np.bytes_(text.encode())
        pieces.put(out)


def _end_of_file(file: InputFile) -> int:
    """Return the size of the file that its superblock states."""
    head = file.read(0, min(file.size, _SUPERBLOCK_BYTES)).tobytes().ljust(_SUPERBLOCK_BYTES)
    version, size = head[8], head[9] if head[8] > 1 else head[13]
    if version not in _END_OF_FILE or size != 8:
        raise file.refusal("its superblock is of an unknown version")
    place = _END_OF_FILE[version]
    return int.from_bytes(head[place : place + size], "little")


@contextmanager
def _refusing(file: InputFile) -> Iterator[None]:
    """Refuse a file that h5py cannot read."""
    try:
        yield
    except _ERRORS as error:
        raise file.refusal(f"HDF5 cannot read it ({error})") from error


def _links(file: InputFile, h5: Any) -> Any:
    """Return the only data set that has the form of links."""
    datasets: list[Any] = []
    count = 0

    def visit(name: str, member: Any) -> bool | None:
        nonlocal count
        count += 1
        if _is_links(member):
            datasets.append(member)
        return True if count == _MAX_OBJECTS else None

    h5.visititems(visit)
    if len(datasets) != 1:
        raise file.refusal(
            f"it has {len(datasets)} data sets of complex links [t][z][y][x][mu][a][b] instead "
            "of one"
        )
    return datasets[0]


def _is_links(member: Any) -> bool:
    if not hasattr(member, "shape"):  # a group or a type
        return False
    if member.dtype.base.kind != "c" or member.dtype.base.itemsize not in (8, 16):
        return False
    shape = member.shape + member.dtype.shape
    return len(shape) == _RANK and shape[4] == 4 and shape[5] == shape[6]


def _attributes(links: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes that are single real numbers or texts of fixed length.

    Texts of variable length are left out, because the HDF5 library may never return from reading
    a damaged one.
    """
    for name in list(links.attrs)[:_MAX_OBJECTS]:
        attribute = links.attrs.get_id(name)
        single = attribute.shape == () and attribute.get_storage_size() <= MAX_TEXT
        if single and attribute.dtype.kind in "Sf":
            value = links.attrs[name]
            yield name, value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def _average(file: InputFile, key: str, value: Any) -> StatedAverage:
    """Return an average that an attribute states."""
    if not isinstance(value, np.floating) or not abs(value) <= 1 + COARSEST:
        raise file.refusal(f"its {key} '{str(value)[:40]}' is not an average of Re Tr / N")
    return StatedAverage(float(value), 0.0)


class _Pieces(io.RawIOBase):
    """A file of which only what is written is kept, in pieces.

    With it h5py makes a file around links that it never sees, and no error of the system reaches
    the HDF5 library, which crashes if a file cannot be written.
    """

    def __init__(self) -> None:
        self._pieces: dict[int, bytes] = {}
        self._place = self._end = 0

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move, and return the position."""
        begin = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._end}[whence]
        self._place = begin + offset
        return self._place

    def write(self, data: Any) -> int:
        """Keep what is written."""
        piece = bytes(data)
        self._pieces[self._place] = piece
        self._place += len(piece)
        self._end = max(self._end, self._place)
        return len(piece)

    def truncate(self, size: int | None = None) -> int:
        """Set the size."""
        self._end = self._place if size is None else size
        return self._end

    def put(self, out: BinaryIO) -> None:
        """Write all pieces to a file, and set its size."""
        for place, piece in self._pieces.items():
            out.seek(place)
            out.write(piece)
        out.truncate(self._end)


def _create(h5py: Any, h5: Any, stored: StoredLinks) -> Any:
    """Create the data set, with a place in the file, but nothing written there."""
    n = stored.group.colours
    properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    properties.set_layout(h5py.h5d.CONTIGUOUS)
    properties.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
    properties.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
    properties.set_obj_track_times(False)
    element = np.dtype((stored.dtype.replace("f8", "c16").replace("f4", "c8"), (n, n)))
    shape = h5py.h5s.create_simple((*reversed(stored.lattice.extents), 4))
    kind = h5py.h5t.py_create(element, logical=True)
    return h5py.Dataset(h5py.h5d.create(h5.id, _NAME, kind, shape, properties))


def _texts(provenance: Mapping[str, str]) -> dict[str, str]:
    """Return the provenance as attributes, without characters that HDF5 cannot store."""
    reserved = {*_AVERAGES.values(), _CHECKSUM}
    texts = {_stored_text(name): _stored_text(text) for name, text in provenance.items()}
    return {name: text for name, text in texts.items() if name and name not in reserved}


def _stored_text(text: str) -> str:
    return text.encode("utf-8", "replace").decode().replace("\0", "?")


FORMATS.register(Hdf5())
