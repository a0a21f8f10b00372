"""Exports, which write the tables of a run, or of several, to one file for other programs.

Each export is a subclass of `Export` that is registered in `EXPORTS`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind
from gauge_mc.files.input import Paths, paths_of
from gauge_mc.files.table import TableData, read_table
from gauge_mc.registry import Registry, in_words
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.signatures import checks_types

TablesByName = Mapping[str, TableData]
"""Tables by name."""


@dataclass(frozen=True)
class ExportedRun:
    """A run whose tables are exported."""

    name: str
    """Name of its directory, or the whole path if names are not unique."""
    parameters: Parameters
    """Its parameters."""
    tables: TablesByName
    """Its tables by name."""


class Export(ABC):
    """A kind of file for the tables of a run."""

    name: ClassVar[str]
    """Name of the export."""
    ending: ClassVar[str]
    """Ending of the file names, such as ``.h5``."""
    summary: ClassVar[str]
    """Short description of the content of the file, for help texts."""
    least_records: ClassVar[int] = 0
    """Minimum number of records; shorter tables are left out."""
    joins_runs: ClassVar[bool] = False
    """Whether a file can have the tables of several runs, which `write_runs` then writes."""

    @property
    def kind(self) -> FileKind:
        """The kind of the files, which replace only files that `recognises` knows."""
        return FileKind(f"an export to {self.ending}", self.recognises)

    def recognises(self, path: Path) -> bool:
        """Return whether an existing file is such an export; by default its name decides."""
        return True

    @abstractmethod
    def write(self, out: Path, parameters: Parameters, tables: TablesByName) -> list[str]:
        """Write tables to a file, and return the names of the tables written.

        Raises
        ------
        GaugeError
            If a library is missing, if every table is too short, or if the file cannot be
            written.
        """

    def write_runs(self, out: Path, runs: Sequence[ExportedRun], joined: bool) -> list[str]:
        """Write the tables of runs to a file; by default those of the first one. See `write`.

        Parameters
        ----------
        out : Path
            The file.
        runs : sequence of ExportedRun
            The runs; only one unless `joins_runs`.
        joined : bool
            Whether they were named as several runs, so that rows should name theirs, even if there
            is only one.
        """
        return self.write(out, runs[0].parameters, runs[0].tables)


EXPORTS: Registry[Export] = Registry("export", __name__, Export)


def export_to(out: Path) -> Export:
    """Return the export for a file, which is determined by the ending of its name."""
    for exporter in EXPORTS.values():
        if out.name.casefold().endswith(exporter.ending):
            return exporter
    endings = in_words([x.ending for x in EXPORTS.values()], "or")
    raise UsageError(f"The ending of {out} is unknown; let the name end in {endings}.")


@checks_types
def export(
    run: Paths, out: str | os.PathLike[str], tables: str | Sequence[str] | None = None
) -> list[str]:
    """Write the tables of a run to one file. An existing export is replaced.

    Parameters
    ----------
    run : path or sequence of paths
        Run directory. An unfinished run is exported up to its last record. Some kinds of files
        take several runs, given as a sequence, such as those of a scan.
    out : path
        File to write; its ending determines the kind of file, as in `EXPORTS`.
    tables : str or sequence of str, optional
        Names of the tables to write, such as ``plaquette``; by default all.

    Returns
    -------
    list of str
        Names of the tables in the file.

    Raises
    ------
    UsageError
        If a run or a table does not exist, if the ending is unknown, if the kind of file does not
        take as many runs or tables, or if something else than an export is at `out`.
    GaugeError
        If the run has no table or a damaged one, if a library is missing, or if the file cannot be
        written.
    """
    target, paths = Path(out), paths_of(run)
    exporter = export_to(target)
    exporter.kind.check(target)
    joined = not isinstance(run, str | os.PathLike)
    if joined and (not paths or (len(paths) > 1 and not exporter.joins_runs)):
        endings = in_words([x.ending for x in EXPORTS.values() if x.joins_runs], "or")
        raise UsageError(
            f"{target} can have the tables of one run only, and there are {len(paths)}; name one "
            f"of them, or let the name end in {endings}."
        )
    names = [tables] if isinstance(tables, str) else tables
    labels = {path: path.resolve().name for path in paths}
    if len({*labels.values()}) < len(labels):
        labels = {path: str(path) for path in paths}
    runs = [_exported(path, label, names) for path, label in labels.items()]
    return exporter.write_runs(target, runs, joined)


def _exported(path: Path, name: str, names: Sequence[str] | None) -> ExportedRun:
    """Read a run and those of its tables that are wanted, or all."""
    source = Run(path)
    parameters = source.read()[0]
    files = {table.stem: table for table in source.tables()}
    if not files:
        raise GaugeError(f"The run {source.path} has no tables yet; measure something first.")
    if unknown := [name for name in names or () if name not in files]:
        raise UsageError(
            f"The run {source.path} has no table '{unknown[0]}'; choose {in_words(files, 'or')}."
        )
    tables = {file: read_table(files[file]) for file in files if names is None or file in names}
    return ExportedRun(name, parameters, tables)
