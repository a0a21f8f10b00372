"""Export to HDF5."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gauge_mc.exports import EXPORTS, Export
from gauge_mc.exports.hdf5_files.writing import hdf5_file, hdf5_kind, write_array
from gauge_mc.files.table import TableData
from gauge_mc.run.chain import version
from gauge_mc.run.parameters import Parameters


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

    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
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
