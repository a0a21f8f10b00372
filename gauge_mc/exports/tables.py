"""Exports of tables to HDF5 and to Parquet."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.actions import BETA
from gauge_mc.errors import DamagedError, UsageError
from gauge_mc.exports import EXPORTS, Export, ExportedRun, TablesByName
from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.files.columns import SWEEP, Column
from gauge_mc.files.table import TableData
from gauge_mc.libraries import load
from gauge_mc.observables import OBSERVABLES, OF_TABLE, observable_of_table
from gauge_mc.registry import in_words
from gauge_mc.run.parameters import TEMPERING, Parameters, version
from gauge_mc.updates.chain_steps import COLUMNS as OF_EXCHANGES


@contextmanager
def hdf5_file(out: Path, kind: FileKind) -> Iterator[Any]:
    """Open an empty HDF5 file, and write it to `out` on leaving."""
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
            return all(a in h5.attrs for a in attributes)
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


RUN = "run"
"""Name of the column with the name of the run, if there are several."""

KINDS: Mapping[type[Any], type[Any]] = {int: np.int64, float: np.float64, str: np.str_}
"""NumPy types of columns, by the type that is declared."""

WORDS = {int: "a whole number", float: "a number", str: "a word"}
"""Values of columns in words, by the type that is declared."""

MARK = b"gauge-mc"
"""Key of the metadata of a file, with everything that is known of the table."""

PANDAS = b"PANDAS_ATTRS"
"""Key under which pandas keeps the attributes of a data frame."""


class ParquetExport(Export):
    """Parquet file with one table, which `--table` chooses if there are several.

    The columns are those of the table, as int64, float64 and strings, with the same values bit for
    bit. The table of a scan or a folder of runs has the rows of all of them, one run after the
    other, and further columns at the beginning: `run`, the name of the run, `beta`, and every other
    parameter in which the runs differ.

    The metadata of a field are its `description`, `unit` and `symbol`, as far as they are declared,
    and its `provenance`: the column of the table, or the parameter, from which it comes. The
    metadata of the file have one entry, `gauge-mc`, which is JSON: `program`, `table`, `runs`, and
    for each run its `name`, its `parameters`, the `header` of its table, its number of `rows`, the
    `sources` (digests of the program that made the rows, by the number of the first row) and the
    `configurations` (files and digests, by number), as far as the table states them. pandas has
    them as `attrs`.
    """

    name: ClassVar[str] = "parquet"
    ending: ClassVar[str] = ".parquet"
    summary: ClassVar[str] = "Parquet: one table, of a run or of all runs of a scan"
    joins_runs: ClassVar[bool] = True

    def recognises(self, path: Path) -> bool:
        """Return whether a file is an export, not a Parquet file of another program."""
        load("pyarrow")
        from pyarrow import ArrowException
        from pyarrow.parquet import read_schema

        with suppress(OSError, ArrowException):
            return MARK in (read_schema(path).metadata or {})
        return False

    def write(self, out: Path, parameters: Parameters, tables: TablesByName) -> list[str]:
        """Write a table; see `Export.write`."""
        return self.write_runs(out, [ExportedRun(parameters.name, parameters, tables)], False)

    def write_runs(self, out: Path, runs: Sequence[ExportedRun], joined: bool) -> list[str]:
        """Write a table of one or of several runs; see `Export.write_runs`."""
        pa, parquet = load("pyarrow"), load("pyarrow.parquet")
        name = _one_table(runs)
        columns = [*(_of_parameters(runs, name) if joined else ()), *_of_tables(runs, name)]
        arrays = [pa.array(column.values) for column in columns]  # strings for those of NumPy
        pairs = zip(columns, arrays, strict=True)
        fields = [pa.field(x.declared.name, a.type, metadata=x.metadata) for x, a in pairs]
        schema = pa.schema(fields, metadata=_metadata(runs, name))
        with replacing(out, kind=self.kind) as file:
            parquet.write_table(pa.Table.from_arrays(arrays, schema=schema), file)
        return [name]


EXPORTS.register(ParquetExport())


@dataclass(frozen=True)
class ParquetColumn:
    """A column of a file."""

    declared: Column
    """Its declaration."""
    values: NDArray[Any]
    """Its values."""
    provenance: str
    """The column or the parameter from which it comes."""

    @property
    def metadata(self) -> dict[str, str]:
        """Metadata of the field."""
        declared = self.declared
        texts = {"description": declared.meaning, "unit": declared.unit, "symbol": declared.symbol}
        return {key: text for key, text in texts.items() if text} | {"provenance": self.provenance}


def _one_table(runs: Sequence[ExportedRun]) -> str:
    """Return the name of the table that all runs have."""
    names = {name for run in runs for name in run.tables}
    if len(names) > 1:
        raise UsageError(
            f"A Parquet file has one table; choose {in_words(sorted(names), 'or')} by --table."
        )
    (name,) = names
    if without := [run.name for run in runs if name not in run.tables]:
        raise UsageError(f"The run {without[0]} has no table {name}; measure it there as well.")
    return name


def _of_tables(runs: Sequence[ExportedRun], name: str) -> Iterator[ParquetColumn]:
    """Yield the columns of the tables of all runs, one after the other."""
    tables = [run.tables[name] for run in runs]
    for run, table in zip(runs, tables, strict=True):
        if [*table] != [*tables[0]]:
            raise UsageError(
                f"The tables {name} of {runs[0].name} and {run.name} have different columns; "
                "export each of them to a file of its own."
            )
    declared = _declared(runs[0].parameters, tables[0])
    for key in tables[0]:
        column = declared.get(key) or Column(key, _kind([table[key] for table in tables]))
        for run, table in zip(runs, tables, strict=True):
            if len(table) and not column.fits(table[key]):
                raise DamagedError(
                    f"The table {run.name}: {name}.csv is damaged: its column '{key}' contains a "
                    f"value that is not {WORDS[column.kind]}."
                )
        values = np.concatenate([table[key].astype(KINDS[column.kind]) for table in tables])
        yield ParquetColumn(column, values, f"{key} in {name}.csv")


def _kind(parts: Sequence[NDArray[Any]]) -> type[Any]:
    """Return the type of a column that nobody declares, given the values in each run."""
    kinds = {part.dtype.kind for part in parts if len(part)}
    return str if "U" in kinds else int if kinds == {"i"} else float


def _declared(parameters: Parameters, table: TableData) -> dict[str, Column]:
    """Return the declarations of the columns of a table, as far as they are known."""
    title, algorithm = table.header.get("observable", ""), parameters.algorithm
    columns = [Column(SWEEP, int, "number of updates, or of the configuration")]
    if title == TEMPERING:
        columns += OF_EXCHANGES
    elif title == algorithm.name:
        columns += algorithm.columns
    elif OF_TABLE in table.header:
        seconds = (table for kind in OBSERVABLES.values() for table in kind.secondary_tables)
        columns += next((second.columns for second in seconds if second.name == title), ())
    elif observable := observable_of_table(table):
        columns += observable.columns
    return {x.name: x for x in columns}


def _of_parameters(runs: Sequence[ExportedRun], name: str) -> Iterator[ParquetColumn]:
    """Yield the columns with the name of the run and the parameters in which the runs differ."""
    counts = [len(run.tables[name]) for run in runs]

    def column(key: str, help: str, values: Iterable[object], provenance: str) -> ParquetColumn:
        return ParquetColumn(Column(key, help=help), np.repeat([*values], counts), provenance)

    yield column(RUN, "name of the run", [run.name for run in runs], "name of the run")
    parameters = [run.parameters.values() for run in runs]
    reserved = {RUN, *runs[0].tables[name]}
    for key in parameters[0]:
        values = [x.get(key) for x in parameters]
        if key not in reserved and (key == BETA.name or len({*values}) > 1):
            yield column(key, f"parameter {key} of the run", values, f"{key} in run.toml")


def _metadata(runs: Sequence[ExportedRun], name: str) -> dict[bytes, str]:
    """Return the metadata of a file."""
    document = {
        "program": version(),
        "table": name,
        "runs": [
            {
                "name": run.name,
                "parameters": run.parameters.values(),
                "header": run.tables[name].header,
                "rows": len(run.tables[name]),
                "versions": run.tables[name].makers,
                "configurations": {
                    number: {"file": origin.name, "digest": origin.digest}
                    for number, origin in run.tables[name].origins.items()
                },
            }
            for run in runs
        ],
    }
    return {MARK: json.dumps(document), PANDAS: json.dumps(document)}
