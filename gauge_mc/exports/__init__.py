"""Exports, which write the tables of a run to one file for other programs.

Each export has a module of its own, with a subclass of `Export` that is registered in `EXPORTS`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gauge_mc.arguments import checks_types
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind
from gauge_mc.files.table import TableData, read_table
from gauge_mc.registry import Registry, in_words
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters


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

    @property
    def kind(self) -> FileKind:
        """The kind of the files, which replace only files that `recognises` knows."""
        return FileKind(f"an export to {self.ending}", self.recognises)

    def recognises(self, path: Path) -> bool:
        """Return whether an existing file is such an export; by default its name decides."""
        return True

    @abstractmethod
    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write tables to a file, and return the names of the tables written.

        Raises
        ------
        GaugeError
            If a library is missing, if every table is too short, or if the file cannot be
            written.
        """


EXPORTS: Registry[Export] = Registry("export", __name__, Export)


def export_to(out: Path) -> Export:
    """Return the export for a file, which is determined by the ending of its name.

    Raises
    ------
    UsageError
        If no export has that ending.
    """
    for one in EXPORTS.values():
        if out.name.casefold().endswith(one.ending):
            return one
    endings = in_words([one.ending for one in EXPORTS.values()], "or")
    raise UsageError(f"The ending of {out} is unknown; let the name end in {endings}.")


@checks_types
def export(run: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[str]:
    """Write the tables of a run to one file. An existing export is replaced.

    Parameters
    ----------
    run : path
        Run directory. An unfinished run is exported up to its last record.
    out : path
        File to write; its ending determines the kind of file, as in `EXPORTS`.

    Returns
    -------
    list of str
        Names of the tables in the file.

    Raises
    ------
    UsageError
        If the run does not exist, if the ending is unknown, or if something else than an export is
        at `out`.
    GaugeError
        If the run has no table or a damaged one, if a library is missing, or if the file cannot be
        written.
    """
    target, source = Path(out), Run(Path(run))
    chosen = export_to(target)
    chosen.kind.check(target)
    parameters = source.read()[0]
    tables = {path.stem: read_table(path) for path in source.tables()}
    if not tables:
        raise GaugeError(f"The run {source.path} has no tables yet; measure something first.")
    return chosen.write(target, parameters, tables)
