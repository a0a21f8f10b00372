"""Writing of HDF5 files."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.libraries import load


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
