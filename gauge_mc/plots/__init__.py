"""Plots.

Each plot has a module of its name, with a subclass of `Plot` that is registered in `PLOTS`. Every
observable also has two plots that need no module: its time series, which has the name of the
observable, and its average against the coupling, named ``NAME-beta``. So has every table that a run
has measured with a function of the user.
"""

from __future__ import annotations

import os
import re
import sys
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from gauge_mc.analysis.timeseries import caution_skip, transient_end
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.columns import SWEEP, Column, TableColumns
from gauge_mc.files.table import TableData, read_heading, read_table
from gauge_mc.groups import GROUPS
from gauge_mc.observables import (
    CONFIGS_SUFFIX,
    OBSERVABLES,
    Observable,
    table_name,
)
from gauge_mc.options import Option, check_options
from gauge_mc.plots.figures.figures import (
    STYLE_DPI,
    FigureFormat,
    History,
    drawn_as,
    kept_figures,
    named_apart,
    physics_label,
    typeset,
    write_figure,
)
from gauge_mc.registry import Registry, in_words, nearest
from gauge_mc.run.directory import Run, newest_run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import STARTS
from gauge_mc.scans.scan import Scan, newest_scan
from gauge_mc.signatures import with_options

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A path, or several paths."""

AGAINST_BETA = "-beta"
"""Suffix of the name of a plot of averages against the coupling."""

SKIP = Option(
    "skip",
    int,
    "Leave updates 1 to N out of averages and distributions; also for the plots of a single "
    "observable.",
    "0",
    "N",
)
"""The option of all plots of time series that leaves out thermalisation."""

MANY_RUNS = 3
"""Number of runs above which a message does not name each of them."""


class Plot(ABC):
    """A figure that shows results of runs.

    Attributes
    ----------
    name : str
        Name on the command line.
    summary : str
        Short description of the figure.
    options : tuple of Option
        Options of `draw`.
    of_scans : bool
        Whether the figure shows a scan instead of runs.
    """

    name: str
    summary: str
    options: ClassVar[tuple[Option, ...]] = ()
    of_scans: ClassVar[bool] = False

    @abstractmethod
    def draw(self, runs: Sequence[Path], file: Path, **options: Any) -> list[Any]:
        """Draw a figure and write it to a file.

        Parameters
        ----------
        runs : sequence of Path
            Run directories, or one scan directory.
        file : Path
            File to write; its ending determines the format.
        **options : object
            Options of the plot by name.

        Returns
        -------
        list
            Tables to print on the terminal, for Rich.

        Raises
        ------
        UsageError
            If the value of an option is invalid.
        GaugeError
            If there is no data to draw, or a table is damaged.
        """


PLOTS: Registry[Plot] = Registry("plot", __name__, Plot)


@dataclass(frozen=True)
class TableKind:
    """A kind of table: that of an observable or of a function of the user.

    Attributes
    ----------
    name : str
        Name of the observable or of the function.
    columns : TableColumns
        Columns that the table must have, without the sweep; those with averages are drawn.
    """

    name: str
    columns: TableColumns

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


def plot_names(runs: Sequence[Path] = ()) -> list[str]:
    """Return the names of all plots, including those of observables and of tables in the runs."""
    shown = [name for name, one in table_kinds(runs).items() if one.columns.averaged]
    names = {*PLOTS, *shown, *(name + AGAINST_BETA for name in shown)}
    return sorted(names)


def find_plot(name: str, runs: Sequence[Path] = ()) -> Plot:
    """Return a plot by name.

    Parameters
    ----------
    name : str
    runs : sequence of Path
        Run directories whose tables have plots, too.

    Raises
    ------
    UsageError
        If no plot has this name.
    """
    if name in PLOTS:
        return PLOTS[name]
    kinds = table_kinds(runs)
    kind = kinds.get(name.removesuffix(AGAINST_BETA))
    if kind and kind.columns.averaged:
        return _plot_of_table(name, kind)
    if kind and kind.name not in PLOTS:
        raise UsageError(
            f"There is no plot of the table {kind.name}: it has several rows per measurement, or "
            "no numbers; read it with Python."
        )
    raise UsageError(f"There is no plot '{name}'{nearest(name, plot_names(runs))}")


@with_options(lambda: ((name, one.options) for name, one in PLOTS.items()))
def plot(
    what: str,
    run: Paths | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    size: tuple[float, float] | None = None,
    dpi: int | None = None,
    **options: Any,
) -> Figure:
    """Draw a figure of the results of one run, or of several runs in one frame.

    A notebook shows the figure if this is the last expression of a cell.

    Parameters
    ----------
    what : str
        Name of the plot.
    run : path or sequence of paths, optional
        Run directories, or results of `gauge_mc.generate` and `gauge_mc.open_run`; a scan stands
        for its runs. By default the newest run in ``runs/``, or the newest scan for a plot of
        scans.
    output : path, optional
        File to write; its ending ``.pdf``, ``.png`` or ``.svg`` determines the format. By default
        none is written.
    size : tuple of float, optional
        Width and height of the figure in inches; by default as suits the plot.
    dpi : int, optional
        Pixels per inch of a PNG file.
    **options : object
        Options of the plot, by name.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, which does not depend on pyplot.

    Raises
    ------
    UsageError
        If the plot or a run does not exist, or the value of an option is invalid.
    GaugeError
        If there is no data to draw, a table is damaged, Matplotlib is missing, or the file cannot
        be written.
    """
    _, runs = runs_to_draw(what, _paths_of(run))
    chosen, file = find_plot(what, runs), None if output is None else Path(output)
    given = check_options(chosen.options, options, f"plot {what}")
    with drawn_as(FigureFormat(size, STYLE_DPI if dpi is None else dpi)):
        with kept_figures() as figures:
            chosen.draw(runs, Path(f"{what}.pdf"), **given)
        if len(figures) != 1:
            raise GaugeError(f"The plot {what} draws {len(figures)} figures, instead of one.")
        if file:
            write_figure(figures[0], file)
    return figures[0]


def _paths_of(run: Paths | None) -> list[Path]:
    if run is None:
        return []
    return [Path(run)] if isinstance(run, str | os.PathLike) else [*map(Path, run)]


def expected_plot(name: str) -> Plot:
    """Return a plot by name before its runs are known.

    A name that is unknown is taken for that of a table of a function of the user.
    """
    if name in plot_names():
        return find_plot(name)
    table = name.removesuffix(AGAINST_BETA)
    return _plot_of_table(name, TableKind(table, TableColumns.of_function(table, ["value"])))


def _plot_of_table(name: str, kind: TableKind) -> Plot:
    """Return the time series of a table, or its average against the coupling."""
    from gauge_mc.plots.averages import AveragesPlot
    from gauge_mc.plots.history import HistoryPlot

    return HistoryPlot(kind) if name == kind.name else AveragesPlot(kind)


def runs_to_draw(what: str, named: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Return the directories that a plot is asked for, and those that it draws.

    Parameters
    ----------
    what : str
        Name of the plot.
    named : sequence of Path
        Runs and scans; if there are none, the newest run, or the newest scan for a plot of scans.

    Raises
    ------
    UsageError
        If a directory does not exist, or there is none.
    """
    of_scans = what in PLOTS and PLOTS[what].of_scans
    paths = [*named] or [newest_scan().path if of_scans else newest_run().path]
    for one in paths:
        if not one.is_dir():
            raise UsageError(f"There is no run {one}.")
    return paths, paths if of_scans else runs_of(paths)


def runs_of(paths: Sequence[Path]) -> list[Path]:
    """Return run directories, with the runs of a scan in place of each scan directory.

    Raises
    ------
    UsageError
        If no run of a scan has begun.
    GaugeError
        If the scan.toml of a scan is damaged.
    """
    runs = []
    for path in paths:
        if not Scan(path, Parameters()).exists():
            runs.append(path)
            continue
        begun = [one.run.path for one in Scan.read(path).members() if one.run.begun()]
        if not begun:
            raise UsageError(f"No run of the scan {path} has begun; continue the scan.")
        runs += begun
    return runs


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
    names = ", ".join(map(str, runs))
    if len(runs) > MANY_RUNS:
        names = f"{runs[0]} and {len(runs) - 1} other runs"
    return GaugeError(
        f"There is no table of {name} in {names}; create it with gauge-mc measure {name} {runs[0]}."
    )


def caution_unthermalised(runs: Sequence[Path], histories: Sequence[History] = ()) -> None:
    """Warn on stderr if averages over all updates of the runs include thermalisation.

    Parameters
    ----------
    runs : sequence of Path
    histories : sequence of History
        Series that are averaged. If the first measurements of some deviate from the later ones, the
        number of updates to leave out is suggested.
    """
    last = max((transient_end(one.sweeps, abs(one.values)) for one in histories), default=0)
    if last:
        print(f"gauge-mc: {caution_skip(last)[0]}", file=sys.stderr)
        return
    early = []
    for run in runs:
        try:
            parameters = Run(run).read()[0]
        except GaugeError:  # the plot does not need the parameters
            continue
        if parameters.thermalize == 0 and parameters.start in STARTS:
            early.append(str(run))
    if early:
        many = len(early) > MANY_RUNS
        names = f"{early[0]} and {len(early) - 1} other runs" if many else in_words(early)
        print(
            f"gauge-mc: The averages of {names} include thermalisation, since measurements began "
            f"with the first update; leave the first N updates out with {SKIP.flag} N.",
            file=sys.stderr,
        )


def labels_of(runs: Sequence[Path]) -> list[str]:
    """Return a label for each run: group, coupling and lattice, and if necessary the directory."""
    physics, names = [_physics(run) for run in runs], [run.resolve().name for run in runs]
    chains = [re.search(r"_chain([0-9]+)$", name) for name in names]
    numbers = Counter(zip(physics, (found and found[1] for found in chains), strict=True))
    if all(chains) and max(numbers.values()) == 1:
        names = [f"chain {found[1]}" for found in chains if found]
    alike, same_name = Counter(physics), Counter(zip(physics, names, strict=True))
    return [
        label
        if label and alike[label] == 1
        else ", ".join(filter(None, (label, name if same_name[label, name] == 1 else str(run))))
        for label, name, run in zip(physics, names, runs, strict=True)
    ]


def _physics(run: Path) -> str:
    """Return group, coupling and lattice of a run, and an unusual action; empty if unknown."""
    try:
        p = Run(run).read()[0]
    except GaugeError:
        return ""
    action, options = named_apart(p.action)
    group = ", ".join([GROUPS[p.group].label, *action])
    return ", ".join([physics_label(group, p.lattice, p.beta), *options])


def one_run(runs: Sequence[Path], what: str) -> Path:
    """Return the only run.

    Parameters
    ----------
    runs : sequence of Path
    what : str
        Subject of the error message, such as ``The effective potential``.

    Raises
    ------
    UsageError
        If there are several runs.
    """
    if len(runs) > 1:
        raise UsageError(f"{what} is drawn for one run at a time; name only one run.")
    return runs[0]


def history_of(label: str, table: TableData, column: str) -> History:
    """Return a column of a table as a time series."""
    return History(label, table.columns[SWEEP], table.columns[column])
