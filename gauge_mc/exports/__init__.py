"""Exports of a run's tables to one file for other tools, one module each.

An export is a subclass of `Export`, registered in `EXPORTS`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.registry import Registry, in_words
from gauge_mc.run.directory import Run
from gauge_mc.run.parameters import Parameters


class Export(ABC):
    """A kind of file for the tables of a run.

    Attributes
    ----------
    name : str
    ending : str
        The ending of file names, such as ``.h5``.
    summary : str
        What the file holds, for help texts.
    least_records : int
        Tables with fewer records are left out.
    """

    name: ClassVar[str]
    ending: ClassVar[str]
    summary: ClassVar[str]
    least_records: ClassVar[int] = 0

    @abstractmethod
    def write(
        self, out: Path, parameters: Parameters, tables: Mapping[str, TableData]
    ) -> list[str]:
        """Write tables to a file, and return the names of those that are in it.

        Raises
        ------
        GaugeError
            If a library is missing, no table can be written, or the file cannot.
        """


EXPORTS: Registry[Export] = Registry("export", __name__)


def export_to(out: Path) -> Export:
    """Return the export that writes a file, by the ending of its name.

    Raises
    ------
    UsageError
        If there is none.
    """
    for one in EXPORTS.values():
        if out.name.endswith(one.ending):
            return one
    endings = in_words([one.ending for one in EXPORTS.values()], "or")
    raise UsageError(f"{out} does not end in {endings}, which determines the kind of file.")


def export(run: str | os.PathLike[str], out: str | os.PathLike[str]) -> list[str]:
    """Write the tables of a run to one file, which is replaced if it is there.

    Parameters
    ----------
    run : path
        The run directory; a run at work is exported as far as it is.
    out : path
        The file; its ending determines the kind.

    Returns
    -------
    list of str
        The names of the tables in the file.

    Raises
    ------
    UsageError
        If there is no run, or no kind of file has the ending.
    GaugeError
        If a table is damaged, there is none, a library is missing, or the file cannot be written.
    """
    target, source = Path(out), Run(Path(run))
    kind = export_to(target)
    parameters = source.read()[0]
    tables = {path.stem: read_table(path) for path in source.tables()}
    if not tables:
        raise GaugeError(f"The run {source.path} has no tables yet: nothing was measured.")
    return kind.write(target, parameters, tables)
