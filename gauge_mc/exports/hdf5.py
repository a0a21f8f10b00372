"""Export to HDF5."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import numpy as np

from gauge_mc.analysis.libraries import load
from gauge_mc.exports import EXPORTS, Export
from gauge_mc.files.atomic import replacing
from gauge_mc.files.table import TableData
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.session import version


class Hdf5(Export):
    """HDF5 file with one group per table.

    The attributes of the file are the parameters of the run, and those of a group are the header of
    its table. Each column is a data set of shape (rows,) of int64, float64 or strings.
    """

    name: ClassVar[str] = "hdf5"
    ending: ClassVar[str] = ".h5"
    summary: ClassVar[str] = "HDF5: a group for each table, with its header as attributes"

    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write tables; see `Export.write`."""
        h5py = load("h5py", "hdf5")
        # The library crashes if the system cannot write its file, so that it writes to memory.
        content = io.BytesIO()
        with h5py.File(content, "w") as h5:
            h5.attrs.update({"program": version(), **parameters.values()})
            for name, table in tables.items():
                group = h5.create_group(name)
                group.attrs.update(table.header)
                for key, column in table.columns.items():
                    data = np.char.encode(column, "utf-8") if column.dtype.kind == "U" else column
                    group.create_dataset(key, data=data, compression="gzip" if len(data) else None)
        with replacing(out) as file:
            file.write(content.getbuffer())
        return list(tables)


EXPORTS.register(Hdf5())
