"""Export to HDF5."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from gauge_mc.exports import EXPORTS, Export, TablesByName
from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.libraries import load
from gauge_mc.run.chain import version
from gauge_mc.run.parameters import Parameters


@contextmanager
def hdf5_file(out: Path, kind: FileKind) -> Iterator[Any]:
    """Open an empty HDF5 file, and write it to `out` on leaving.

    Raises
    ------
    GaugeError
        If h5py is not installed, or the file cannot be written.
    UsageError
        If something of another kind is there.
    """
    h5py = load("h5py")
    # The library crashes if the system cannot write its file, so that it writes to memory.
    content = io.BytesIO()
    with h5py.File(content, "w") as h5:
        yield h5
    with replacing(out, kind=kind) as file:
        file.write(content.getbuffer())


def hdf5_kind(name: str, attributes: Collection[str]) -> FileKind:
    """Return the kind of HDF5 files with the given attributes; see `FileKind` for the name."""

    def recognises(path: Path) -> bool:
        with suppress(OSError), load("h5py").File(path, "r") as h5:
            return all(one in h5.attrs for one in attributes)
        return False

    return FileKind(name, recognises)


def write_array(group: Any, name: str, values: np.ndarray) -> None:
    """Write an array, compressed, with strings in UTF-8."""
    data = np.char.encode(values, "utf-8") if values.dtype.kind == "U" else values
    group.create_dataset(name, data=data, compression="gzip" if len(data) else None)


class Hdf5Export(Export):
    """HDF5 file with one group per table.

    The attributes of the file are the parameters of the run, and those of a group are the header of
    its table. Each column is a data set of shape (rows,) of int64, float64 or strings.
    """

    name: ClassVar[str] = "hdf5"
    ending: ClassVar[str] = ".h5"
    summary: ClassVar[str] = "HDF5: a group for each table, with its header as attributes"

    def recognises(self, path: Path) -> bool:
        """Return whether a file is an export, not a configuration or other data in HDF5."""
        return hdf5_kind("", ("program", "group", "lattice")).recognises(path)

    def write(self, out: Path, parameters: Parameters, tables: TablesByName) -> list[str]:
        """Write tables; see `Export.write`."""
        with hdf5_file(out, self.kind) as h5:
            h5.attrs.update({"program": version(), **parameters.values()})
            for name, table in tables.items():
                group = h5.create_group(name)
                group.attrs.update(table.header)
                for key, column in table.columns.items():
                    write_array(group, key, column)
        return list(tables)


EXPORTS.register(Hdf5Export())
