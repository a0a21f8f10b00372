"""The tables of runs that plots show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.table import TableData, read_heading, read_table
from gauge_mc.observables import CONFIGS_SUFFIX, OBSERVABLES, Observable, table_name
from gauge_mc.plots.figures.labels import typeset
from gauge_mc.plots.figures.series import History
from gauge_mc.run.directory import Run, is_of_no_run, missing_run
from gauge_mc.run.regeneration import how_to_measure

MANY_RUNS = 3
"""Number of runs above which a message does not name each of them."""


@dataclass(frozen=True)
class TableKind:
    """A kind of table: that of an observable or of a function of the user."""

    name: str
    """Name of the observable or of the function."""
    columns: TableColumns
    """Columns that the table must have, without the sweep; those with averages are drawn."""

    @classmethod
    def of_observable(cls, observable: type[Observable]) -> TableKind:
        """Return the kind of an observable's tables."""
        return cls(observable.name, observable.columns)

    @classmethod
    def of_function(cls, path: Path) -> TableKind | None:
        """Return the kind of a table that a run has measured with a function of the user, or None.

        None is returned for any other file, and for damaged ones.
        """
        try:
            header, names = read_heading(path)
            name = header.get("observable", "")
            known = name.replace("_", "-") in OBSERVABLES
            if known or table_name(name) != path.stem or SWEEP not in names:
                return None
            columns = TableColumns.of_function(name, names)
            if columns.indices:
                return cls(name, TableColumns(*columns.names))
            table = read_table(path)
        except GaugeError:
            return None
        single = table[SWEEP].size == np.unique(table[SWEEP]).size
        shown = [
            replace(one, axis=typeset(one.axis), average=typeset(one.average))
            if single and table[one.name].dtype.kind in "if"
            else Column(one.name)
            for one in columns
        ]
        return cls(name, TableColumns(*shown))


def table_kinds(runs: Sequence[Path] = ()) -> dict[str, TableKind]:
    """Return the kinds of tables by name: all observables, and functions that runs have measured.

    Parameters
    ----------
    runs : sequence of Path
        Run directories in which to look for tables of functions.
    """
    kinds = {name: TableKind.of_observable(one) for name, one in OBSERVABLES.items()}
    for run in runs:
        for path in Run(run).tables():
            if path.stem not in kinds and (kind := TableKind.of_function(path)):
                kinds[kind.name] = kind
    return kinds


def find_table(run: Path, kind: TableKind) -> TableData | None:
    """Return the table of a kind in a run, or None.

    The table that the run itself has written takes precedence over the one that was measured on its
    stored configurations.

    Raises
    ------
    GaugeError
        If the table is damaged.
    """
    for ending in ("", CONFIGS_SUFFIX):
        path = run / f"{table_name(kind.name)}{ending}.csv"
        if path.exists():
            table = read_table(path)
            if any(column not in table.columns for column in (SWEEP, *kind.columns.names)):
                raise GaugeError(f"{path} is not a table of the observable {kind.name}.")
            return table
    return None


def find_tables(runs: Sequence[Path], kind: TableKind) -> dict[Path, TableData]:
    """Return the tables of a kind by run, without empty ones if there are others.

    Raises
    ------
    GaugeError
        If a table is damaged.
    """
    found = {run: table for run in runs if (table := find_table(run, kind)) is not None}
    return {run: table for run, table in found.items() if len(table)} or found


def filled_tables(
    runs: Sequence[Path], kinds: Iterable[TableKind]
) -> list[tuple[TableKind, dict[Path, TableData]]]:
    """Return the tables with rows by run, for every kind that has averages to draw.

    Raises
    ------
    GaugeError
        If there are tables, but all of them are empty; or if a table is damaged.
    """
    found = [(kind, find_tables(runs, kind)) for kind in kinds if kind.columns.averaged]
    found = [(kind, tables) for kind, tables in found if tables]
    filled = [(kind, tables) for kind, tables in found if any(map(len, tables.values()))]
    if found and not filled:
        kind, tables = found[0]
        raise GaugeError(
            f"The table of {kind.name} in {next(iter(tables))} has no rows yet; continue the run, "
            "since nothing is measured while it thermalises."
        )
    return filled


def missing_table(runs: Sequence[Path], name: str) -> GaugeError:
    """Return the error for runs that have no table of an observable."""
    if len(runs) == 1 and is_of_no_run(runs[0]):
        return missing_run(runs[0])
    names = ", ".join(map(str, runs))
    if len(runs) > MANY_RUNS:
        names = f"{runs[0]} and {len(runs) - 1} other runs"
    return GaugeError(f"There is no table of {name} in {names}; {how_to_measure(name, runs[0])}.")


def history_of(label: str, table: TableData, column: str) -> History:
    """Return a column of a table as a time series."""
    return History(label, table.columns[SWEEP], table.columns[column])
