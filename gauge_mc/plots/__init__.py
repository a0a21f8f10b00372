"""Plots.

Each plot has a module of its name, with a subclass of `Plot` that is registered in `PLOTS`. Every
observable also has two plots that need no module: its time series, which has the name of the
observable, and its average against the coupling, named ``NAME-beta``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.analysis.figures import History, physics_label
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.groups import GROUPS
from gauge_mc.observables import CONFIGS_SUFFIX, OBSERVABLES, SWEEP, Observable, table_name
from gauge_mc.options import Option
from gauge_mc.registry import Registry, nearest
from gauge_mc.run.directory import Run

AGAINST_BETA = "-beta"
"""Suffix of the name of a plot of averages against the coupling."""


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


PLOTS: Registry[Plot] = Registry("plot", __name__)


def plot_names() -> list[str]:
    """Return the names of all plots, including those of observables."""
    shown = [name for name, one in OBSERVABLES.items() if one.quantities]
    names = {*PLOTS, *shown, *(name + AGAINST_BETA for name in shown)}
    return sorted(names)


def find_plot(name: str) -> Plot:
    """Return a plot by name.

    Raises
    ------
    UsageError
        If no plot has this name.
    """
    from gauge_mc.plots.averages import AveragesPlot
    from gauge_mc.plots.history import HistoryPlot

    observable = name.removesuffix(AGAINST_BETA)
    if name in PLOTS:
        return PLOTS[name]
    if name not in plot_names():
        raise UsageError(f"There is no plot '{name}'{nearest(name, plot_names())}")
    if name == observable:
        return HistoryPlot(OBSERVABLES[observable])
    return AveragesPlot(OBSERVABLES[observable])


def find_table(run: Path, observable: type[Observable]) -> TableData | None:
    """Return the table of an observable in a run, or None.

    The table that the run itself has written takes precedence over the one that was measured on its
    stored configurations.

    Raises
    ------
    GaugeError
        If the table is damaged.
    """
    for ending in ("", CONFIGS_SUFFIX):
        path = run / f"{table_name(observable.name)}{ending}.csv"
        if path.exists():
            table = read_table(path)
            if any(column not in table.columns for column in (SWEEP, *observable.columns)):
                raise GaugeError(f"{path} is not a table of the observable {observable.name}.")
            return table
    return None


def require_table(run: Path, observable: type[Observable]) -> TableData:
    """Return the table of an observable in a run.

    Raises
    ------
    GaugeError
        If the run has no table of the observable, or the table is damaged.
    """
    table = find_table(run, observable)
    if table is None:
        raise missing_table([run], observable)
    return table


def missing_table(runs: Sequence[Path], observable: type[Observable]) -> GaugeError:
    """Return the error for runs that have no table of an observable."""
    names = ", ".join(str(run) for run in runs)
    return GaugeError(
        f"There is no table of {observable.name} in {names}; create it with gauge-mc measure "
        f"{observable.name} {runs[0]}."
    )


def labels_of(runs: Sequence[Path]) -> list[str]:
    """Return a label for each run: group, coupling and lattice, and if necessary the directory."""
    physics = [_physics(run) for run in runs]
    return [
        label if label and physics.count(label) == 1 else ", ".join(filter(None, (label, name)))
        for label, name in zip(physics, (run.resolve().name for run in runs), strict=True)
    ]


def _physics(run: Path) -> str:
    """Return the group, the coupling and the lattice of a run as text; empty if unknown."""
    try:
        p = Run(run).read()[0]
    except GaugeError:
        return ""
    return physics_label(GROUPS[p.group].label, p.lattice, p.beta)


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
