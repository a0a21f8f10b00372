"""A format: configurations as NumPy files of ``U[t, z, y, x, mu, a, b]``."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.averages import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.formats import Format, LinkSource
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.storage.header import Header, lattice_of
from gauge_mc.storage.links import Checksums, StoredLinks

MAGIC = b"\x93NUMPY"
HEAD_BYTES = 128
"""Size of the header that NumPy writes for these shapes, a multiple of 64 bytes."""

REALS = {"single": "<f4", "double": "<f8"}
COMPLEX = {"single": "<c8", "double": "<c16"}
PRECISIONS = {np.dtype(dtype): precision for precision, dtype in COMPLEX.items()}


@dataclass(frozen=True)
class NpyReader:
    """A NumPy file whose header has been read."""

    header: Header
    stored: StoredLinks
    offset: int = HEAD_BYTES

    def verify(self, file: InputFile, checksums: Checksums, averages: Averages) -> None:
        """Do nothing: the file states neither checksums nor averages."""


class Npy(Format):
    """The file format of NumPy."""

    name = "npy"
    title = "NumPy"
    summary = "U[t, z, y, x, mu, a, b] as NumPy saves it; any group"
    suffix = ".npy"

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with the magic string of NumPy."""
        return head.startswith(MAGIC)

    def read_header(self, file: InputFile) -> NpyReader:
        """Read and check the header."""
        head = BytesIO(file.read(0, min(file.size, HEAD_BYTES)).tobytes())
        try:
            np.lib.format.read_magic(head)
            shape, _, dtype = np.lib.format.read_array_header_1_0(head)
        except ValueError as error:
            raise file.damaged(str(error)) from None
        if len(shape) != 7 or dtype not in PRECISIONS:
            raise file.unsupported("it does not hold links U[t, z, y, x, mu, a, b]")
        lattice = lattice_of(file, *shape[3::-1])
        group = GROUPS[special_unitary(shape[-1])]
        stored = self.stored(lattice, group, PRECISIONS[dtype])
        file.expect_size(HEAD_BYTES + stored.nbytes)
        warning = "it has no checksum"
        header = Header(self.name, lattice, group.name, stored.precision, warning=warning)
        return NpyReader(header, stored)

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return that the links are stored by site."""
        return StoredLinks(lattice, group, REALS[precision])

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration."""
        stored, n = source.stored, source.stored.group.colours
        shape = (*reversed(stored.lattice.extents), 4, n, n)
        dtype = COMPLEX[stored.precision]
        described = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, described)
        source.store(out)


NPY = Npy()
