"""The tables of a run that fits and plots need, found by their columns."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import read_heading
from gauge_mc.observables import OBSERVABLES, table_name
from gauge_mc.run.directory import is_of_no_run, missing_run
from gauge_mc.run.regeneration import how_to_measure


def find_table_by_columns(folder: Path, columns: Collection[str]) -> Path:
    """Return the table of a run that has the given columns.

    If several tables have them, the one whose file is named after its observable is chosen. Damaged
    tables are ignored if another one has the columns.

    Raises
    ------
    GaugeError
        If no table has these columns, or several have and the choice is ambiguous.
    """
    damaged: list[GaugeError] = []
    found = tables_with_columns(folder, columns, damaged)
    proper = [path for path, named in found.items() if named]
    if not found:
        raise damaged[0] if damaged else _missing_table(folder, columns)
    if len(found) > 1 and len(proper) != 1:
        names = ", ".join(path.name for path in found)
        raise GaugeError(
            f"Several tables in {folder} have the required columns: {names}; name one of them."
        )
    return proper[0] if proper else next(iter(found))


def tables_of_chains(folder: Path, columns: Collection[str]) -> list[Path]:
    """Return the tables of the runs in a folder that have the given columns.

    There are none if the folder is itself a run with such a table, or no folder.

    Raises
    ------
    GaugeError
        If it is ambiguous which table of a run is meant.
    """
    if not folder.is_dir() or tables_with_columns(folder, columns):
        return []
    runs = [one for one in sorted(folder.iterdir()) if one.is_dir()]
    return [
        find_table_by_columns(one, columns) for one in runs if tables_with_columns(one, columns)
    ]


def tables_with_columns(
    folder: Path, columns: Collection[str], damaged: list[GaugeError] | None = None
) -> dict[Path, bool]:
    """Return the tables of a run that have the given columns.

    Parameters
    ----------
    folder : Path
        The run directory.
    columns : collection of str
        Names of the columns that a table must have.
    damaged : list of GaugeError, optional
        The errors of tables that cannot be read are added to it.

    Returns
    -------
    dict of Path to bool
        Whether the file of each table is named after its observable.
    """
    found = {}
    for path in sorted(folder.glob("*.csv")):
        try:
            header, its_columns = read_heading(path)
        except GaugeError as error:
            if damaged is not None:
                damaged.append(error)
            continue
        if set(columns) <= set(its_columns):
            found[path] = path.stem == table_name(header.get("observable", ""))
    return found


def _missing_table(folder: Path, columns: Collection[str]) -> GaugeError:
    """Return the error for a folder without a table that has the given columns."""
    if is_of_no_run(folder):
        return missing_run(folder)
    for name, observable in OBSERVABLES.items():
        if set(columns) <= {SWEEP, *observable.columns.names}:
            return GaugeError(
                f"There is no table of {name} in {folder}; {how_to_measure(name, folder)}."
            )
    for name, algorithm in ALGORITHMS.items():
        if set(columns) <= {SWEEP, *algorithm.columns.names}:
            return GaugeError(
                f"There is no table of {name} in {folder}, as runs have that were made with "
                f"--algorithm {name}; name such a run."
            )
    return GaugeError(
        f"There is no table with the columns {', '.join(columns)} in {folder}; name another run."
    )
