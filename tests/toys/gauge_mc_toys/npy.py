"""A format: configurations as NumPy files of ``U[t, z, y, x, mu, a, b]``."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import BinaryIO

import numpy as np

from gauge_mc.domain.lattice import Lattice
from gauge_mc.files.header import Header, lattice_of
from gauge_mc.files.input import InputFile
from gauge_mc.files.links import Links
from gauge_mc.formats import Format
from gauge_mc.groups import Group, group_of

MAGIC = b"\x93NUMPY"
HEAD_BYTES = 128
"""Size of the header that NumPy writes for these shapes, a multiple of 64 bytes."""

DTYPES = {"single": np.dtype("<c8"), "double": np.dtype("<c16")}
PRECISIONS = {dtype: precision for precision, dtype in DTYPES.items()}


@dataclass(frozen=True)
class NpyReader:
    """A NumPy file whose header has been read, with the shape of a time slice."""

    header: Header
    shape: tuple[int, ...]

    def slices(self, file: InputFile) -> Iterator[Links]:
        """Stream the time slices."""
        dtype = DTYPES[self.header.precision]
        nbytes = dtype.itemsize * int(np.prod(self.shape))
        for t in range(self.header.lattice.t):
            data = file.read(HEAD_BYTES + t * nbytes, nbytes)
            yield data.view(dtype).reshape(self.shape).astype(np.complex128)


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
        file.expect_size(HEAD_BYTES + dtype.itemsize * int(np.prod(shape)))
        lattice = lattice_of(file, *shape[3::-1])
        warning = "it has no checksum"
        group, precision = group_of(shape[-1]).name, PRECISIONS[dtype]
        return NpyReader(Header(self.name, lattice, group, precision, warning=warning), shape[1:])

    def write(
        self,
        out: BinaryIO,
        slices: Iterable[Links],
        lattice: Lattice,
        group: Group,
        precision: str,
        provenance: Mapping[str, str],
    ) -> None:
        """Write a configuration."""
        dtype, n = DTYPES[precision], group.colours
        shape = (*reversed(lattice.extents), 4, n, n)
        described = {"descr": dtype.str, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(out, described)
        for links in slices:
            out.write(links.astype(dtype).tobytes())


NPY = Npy()
