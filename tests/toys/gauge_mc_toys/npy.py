"""A format: configurations as NumPy files of ``U[t, z, y, x, mu, a, b]``."""

from collections.abc import Mapping
from io import BytesIO
from typing import BinaryIO

import numpy as np

from gauge_mc.files.input import InputFile
from gauge_mc.formats import Format, LinkSource
from gauge_mc.groups import GROUPS, special_unitary
from gauge_mc.storage.links import Reader, expect_links, lattice_of

MAGIC = b"\x93NUMPY"
HEAD_BYTES = 128
"""Size of the header that NumPy writes for these shapes, a multiple of 64 bytes."""

COMPLEX = {"single": "<c8", "double": "<c16"}
PRECISIONS = {np.dtype(dtype): precision for precision, dtype in COMPLEX.items()}


class Npy(Format):
    """The file format of NumPy."""

    name = "npy"
    title = "NumPy"
    summary = "U[t, z, y, x, mu, a, b] as NumPy saves it; any group"
    suffix = ".npy"
    byte_order = "<"

    def recognises(self, head: bytes) -> bool:
        """Return whether a file begins with the magic string of NumPy."""
        return head.startswith(MAGIC)

    def read_header(self, file: InputFile) -> Reader:
        """Read and check the header."""
        head = BytesIO(file.read(0, min(file.size, HEAD_BYTES)).tobytes())
        try:
            np.lib.format.read_magic(head)
            shape, _, dtype = np.lib.format.read_array_header_1_0(head)
        except ValueError as error:
            raise file.refusal(str(error)) from None
        if len(shape) != 7 or dtype not in PRECISIONS:
            raise file.refusal("it does not hold links U[t, z, y, x, mu, a, b]")
        lattice = lattice_of(file, *shape[3::-1])
        group = GROUPS[special_unitary(shape[-1])]
        stored = self.stored(lattice, group, PRECISIONS[dtype])
        expect_links(file, HEAD_BYTES, stored)
        return Reader.of(self.name, stored, HEAD_BYTES, warning="it has no checksum")

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration."""
        stored, n = source.stored, source.stored.group.colours
        shape = (*reversed(stored.lattice.extents), 4, n, n)
        dtype = COMPLEX[stored.precision]
        described = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, described)
        source.store(out)


NPY = Npy()
