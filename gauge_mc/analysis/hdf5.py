"""Writing of HDF5 files."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc.files.atomic import replacing
from gauge_mc.libraries import load


@contextmanager
def hdf5_file(out: Path) -> Iterator[Any]:
    """Open an empty HDF5 file, and write it to `out` on leaving.

    Raises
    ------
    GaugeError
        If h5py is not installed, or the file cannot be written.
    """
    h5py = load("h5py", "hdf5")
    # The library crashes if the system cannot write its file, so that it writes to memory.
    content = io.BytesIO()
    with h5py.File(content, "w") as h5:
        yield h5
    with replacing(out) as file:
        file.write(content.getbuffer())


def write_array(group: Any, name: str, values: np.ndarray) -> None:
    """Write an array, compressed, with strings in UTF-8."""
    data = np.char.encode(values, "utf-8") if values.dtype.kind == "U" else values
    group.create_dataset(name, data=data, compression="gzip" if len(data) else None)
