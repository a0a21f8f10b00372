"""The tables of runs that plots show, and the labels of runs."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any, ClassVar

import numpy as np

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.table import TableData, read_heading, read_table
from gauge_mc.fits.files import find_table_by_columns
from gauge_mc.groups import GROUPS
from gauge_mc.observables import CONFIGS_SUFFIX, OBSERVABLES, Observable, table_name
from gauge_mc.plots import Plot
from gauge_mc.plots.figures.pictures import Picture, named_apart, physics_label, typeset
from gauge_mc.process import in_context
from gauge_mc.run.directory import Run, missing_run
from gauge_mc.run.thermalisation import Caution
from gauge_mc.stored import is_of_no_run
from gauge_mc.stored.regenerate import how_to_measure


def labels_of(runs: Sequence[Path]) -> list[str]:
    """Return a label for each run: group, coupling and lattice, and if necessary the directory."""
    physics, names = [_physics(run) for run in runs], [run.resolve().name for run in runs]
    chains = [re.search(r"_chain([0-9]+)$", name) for name in names]
    numbers = Counter(zip(physics, (chain and chain[1] for chain in chains), strict=True))
    if all(chains) and max(numbers.values()) == 1:
        names = [f"chain {chain[1]}" for chain in chains if chain]
    alike, same_name = Counter(physics), Counter(zip(physics, names, strict=True))
    return [
        label
        if label and alike[label] == 1
        else ", ".join(filter(None, (label, name if same_name[label, name] == 1 else str(run))))
        for label, name, run in zip(physics, names, runs, strict=True)
    ]


def _physics(run: Path) -> str:
    """Return group, coupling, lattice and quarks of a run, and an unusual action.

    It is empty if they are unknown.
    """
    try:
        p = Run(run).read()[0]
    except GaugeError:
        return ""
    action, options = named_apart(p.action)
    group = ", ".join([GROUPS[p.group].label, *action])
    return ", ".join([physics_label(group, p.lattice, p.beta), *options, *p.algorithm.labels])


def one_run(runs: Sequence[Path], subject: str) -> Path:
    """Return the only run."""
    if len(runs) > 1:
        raise UsageError(
            f"{subject} is drawn for one run at a time; name only one, such as "
            f"{quote(str(runs[0]))}."
        )
    return runs[0]


def one_scan(scans: Sequence[Path]) -> Path:
    """Return the only scan."""
    if len(scans) > 1:
        raise UsageError("Only one scan can be drawn at a time; name only one.")
    return scans[0]


class TablePlot(Plot):
    """A figure that shows one table of one run."""

    subject: ClassVar[str]
    """The subject of a sentence that says what is drawn, such as ``The residual mass``."""
    columns: ClassVar[tuple[str, ...]]
    """Columns that the table must have."""

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw the table of one run, whose label begins the title; see `Plot.draw`."""
        run = one_run(runs, self.subject)
        picture = self.picture(find_table_by_columns(run, self.columns), options)
        title = ", ".join(filter(None, (labels_of([run])[0], picture.title)))
        replace(picture, title=title).draw(file)
        return []

    @abstractmethod
    def picture(self, table: Path, options: dict[str, Any]) -> Picture:
        """Return the figure of a table, without the label of the run.

        Parameters
        ----------
        table : Path
            File of the table.
        options : dict of str to object
            Options of the plot by name, whose names and types have been checked.

        Raises
        ------
        UsageError, GaugeError
            See `Plot.draw`.
        """


class ScanFigure(Plot):
    """A figure that shows the results of one scan."""

    of_scans: ClassVar[bool] = True

    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw one scan; see `Plot.draw`."""
        self.picture(one_scan(runs), options).draw(file)
        return []

    @abstractmethod
    def picture(self, scan: Path, options: dict[str, Any]) -> Picture:
        """Return the figure of a scan; for options and errors see `TablePlot.picture`."""


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
            registered = name.replace("_", "-") in OBSERVABLES
            if registered or table_name(name) != path.stem or SWEEP not in names:
                return None
            columns = TableColumns.of_function(name, names)
            if columns.indices:
                return cls(name, TableColumns(*columns.names))
            table = read_table(path)
        except GaugeError:
            return None
        single = table[SWEEP].size == np.unique(table[SWEEP]).size
        shown = [
            replace(column, axis=typeset(column.axis), average=typeset(column.average))
            if single and table[column.name].dtype.kind in "if"
            else Column(column.name)
            for column in columns
        ]
        return cls(name, TableColumns(*shown))


def table_kinds(runs: Sequence[Path] = ()) -> dict[str, TableKind]:
    """Return the kinds of tables by name: all observables, and functions of runs."""
    kinds = {name: TableKind.of_observable(x) for name, x in OBSERVABLES.items()}
    for run in runs:
        for path in Run(run).tables():
            if path.stem not in kinds and (kind := TableKind.of_function(path)):
                kinds[kind.name] = kind
    return kinds


def find_table(run: Path, kind: TableKind) -> TableData | None:
    """Return the table of a kind in a run, or None.

    The table that the run itself has written takes precedence over the one that was measured on its
    stored configurations.
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
    """Return the tables of a kind by run, without empty ones if there are others."""
    tables = {run: table for run in runs if (table := find_table(run, kind)) is not None}
    return {run: table for run, table in tables.items() if len(table)} or tables


def filled_tables(
    runs: Sequence[Path], kinds: Iterable[TableKind]
) -> list[tuple[TableKind, dict[Path, TableData]]]:
    """Return the tables with rows by run, for every kind that has averages to draw."""
    candidates = [(kind, find_tables(runs, kind)) for kind in kinds if kind.columns.averaged]
    candidates = [(kind, tables) for kind, tables in candidates if tables]
    filled = [(kind, tables) for kind, tables in candidates if any(map(len, tables.values()))]
    if candidates and not filled:
        kind, tables = candidates[0]
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


_cautions: ContextVar[list[Caution] | None] = ContextVar("cautions", default=None)
"""Cautions of the plots that are drawn within `noted_cautions`."""


def noted_cautions() -> AbstractContextManager[list[Caution]]:
    """Note the cautions of plots that are drawn in a context."""
    return in_context(_cautions, [])


def caution(*sentences: str) -> None:
    """Note cautions about a figure that is being drawn."""
    noted = _cautions.get()
    if noted is not None:
        noted += map(Caution, sentences)
