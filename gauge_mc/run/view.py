"""Runs as Python sees them: parameters, tables, averages, fits and configurations."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.errors import UnknownNameError, UsageError
from gauge_mc.files.frames import FileMapping, SuggestingDict, html_table, unknown
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import OBSERVABLES, table_name
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run, only_newest_run
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.state import saved_updates, state_of
from gauge_mc.run.thermalisation import found_thermalisation
from gauge_mc.signatures import checks_types

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gauge_mc.configurations.reading import Configuration
    from gauge_mc.inspection.status import RunStatus
    from gauge_mc.reports.page import PageReport


@documented
@dataclass(frozen=True)
class RunView:
    """A run and what it has written, which is read from its files when it is asked for.

    Nothing is locked or written, so that the run may be in a folder that is read-only, or another
    process may continue it. A table is then read up to its last complete row.
    """

    path: Path = result_field("Run directory.")
    parameters: Parameters = result_field("Parameters of the run.")
    sweep: int = result_field(
        "Number of updates done, thermalisation included, when the object was made; `status` tells "
        "the present number."
    )

    def __repr__(self) -> str:
        return f"<Run {self.path}: {self.sweep} of {self.parameters.updates} updates>"

    def _repr_html_(self) -> str:
        rows = [(label, a, a.format_tau(), a.samples) for label, a in self.averages.items()]
        names = ("average", "value", "tau_int [measurements]", "measurements")
        return f"{escape(repr(self))}{html_table(names, rows) if rows else ''}{self._chart()}"

    def _chart(self) -> str:
        """Return the first quantity along the chain for notebooks; empty if there is none."""
        from gauge_mc.reports.figures import table_cell

        cut = found_thermalisation(self.path)
        charts = (table_cell(table, cut.update) for table in self.tables.values())
        chart = next(filter(None, charts), "")
        shaded = f"The shaded updates, up to {cut.update}, are those that skip='auto' leaves out."
        words = [shaded, *cut.cautions] if chart and cut.update else cut.cautions
        return f"{chart}{''.join(f'<p>{escape(word)}</p>' for word in words)}"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def tables(self) -> FileMapping[str, TableData]:
        """The tables by name, with underscores; their columns are NumPy arrays."""
        files = {path.stem: path for path in Run(self.path).tables()}
        return FileMapping("table", files, read_table)

    def __getitem__(self, observable: str) -> TableData:
        """Return the table of an observable."""
        tables, name = self.tables, table_name(observable)
        if name in tables:
            return tables[name]
        if observable in OBSERVABLES:
            from gauge_mc.stored.regenerate import updates_to_measure

            at = updates_to_measure(Run(self.path))
            again = f", at='{at}'" if at else ""
            raise UnknownNameError(
                f"The run {self.path} has no table of {observable}; make one with "
                f"gauge_mc.measure(run, '{observable}'{again})."
            )
        raise unknown("table", observable, tables)

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "A run is not a sequence; iterate over run.tables, run.fits or run.configurations, "
            "which are mappings by name or by update."
        )

    def __contains__(self, observable: object) -> bool:
        """Return whether the run has a table of an observable."""
        return isinstance(observable, str) and table_name(observable) in self.tables

    @property
    def averages(self) -> SuggestingDict[Estimate]:
        """The averages of the observables with errors, by label; tau_int is in measurements.

        The errors include autocorrelation. The numbers are those of ``gauge-mc status``.
        """
        from gauge_mc.run.averages import run_averages

        return SuggestingDict(run_averages(Run(self.path), self.parameters.recorded))

    @property
    def fits(self) -> FileMapping[str, SuggestingDict[Any]]:
        """The results of fits by the name of their file, such as ``potential``.

        A result consists of the keys and values of its file, with an `Estimate` for every value
        with an error, as in ``run.fits["potential"]["free"]["fit"]["r0"]``.
        """
        from gauge_mc.fits.files import RESULT, read_fit

        files = {path.stem: path for path in sorted(self.path.glob("*.json"))}
        results = {name: file for name, file in files.items() if RESULT.recognises(file)}
        return FileMapping("fit", results, read_fit)

    @property
    def configs(self) -> FileMapping[int, Path]:
        """The configuration files by update."""
        return FileMapping("configuration after update", Run(self.path).configs(), lambda it: it)

    @property
    def configurations(self) -> FileMapping[int, Configuration]:
        """The configurations by update; only their headers are read.

        ``run.configurations[200].load()`` is a `Field`, and ``.to_numpy()`` an array.

        Raises
        ------
        GaugeError
            If two files have the same number.
        """
        files = Run(self.path).unambiguous_configs()
        return FileMapping("configuration", files, open_configuration)

    def status(self) -> RunStatus:
        """Return the state and the progress of the run, as `gauge_mc.status` does."""
        from gauge_mc.inspection.status import run_status

        return run_status(Run(self.path), averages=True)

    def report(self, output: str | Path | None = None, **options: Any) -> PageReport:
        """Write a page that shows everything about this run; see `gauge_mc.report`."""
        from gauge_mc.reports.page import report

        return report(self, output, **options)

    def plot(self, what: str, output: str | Path | None = None, **options: Any) -> Figure:
        """Draw a figure of this run; see `gauge_mc.plot`."""
        from gauge_mc.plots.drawing import plot

        return plot(what, self, output, **options)


@documented
@dataclass(frozen=True)
class RunResult(RunView):
    """The result of a session: the run, see `RunView`, and what the session has done."""

    stopped: str | None = result_field(
        "Reason why the session stopped before the end of the run; None if the run is complete.",
        None,
    )
    root: bool = result_field(
        "Whether this process wrote the files. In an MPI job only one process does.", True
    )
    seconds: float = result_field("Duration of the session in seconds.", 0.0)
    links_per_s: float = result_field(
        "Link updates per second, including the time for measurements and files; 0 if unknown.", 0.0
    )
    times: Mapping[str, float] = result_field(
        "Shares of the time of the session by name, in seconds.", dict
    )
    joules: float | None = result_field(
        "Energy that the devices used in the session, in joules; None if it is not available.", None
    )
    nj_per_link: float | None = result_field("The same in nJ per link update.", None)
    energy_source: str = result_field(
        "Where the energy was read, such as ``RAPL`` or ``NVML``, or why it is not available.", ""
    )

    def __repr__(self) -> str:
        state = f"stopped by {self.stopped}" if self.stopped else "complete"
        return f"<Run {self.path}: {state}, {self.sweep} of {self.parameters.updates} updates>"


@checks_types
def open_run(path: str | os.PathLike[str] | None = None) -> RunView:
    """Open a run to read what it has written, without a lock and without writing anything.

    Parameters
    ----------
    path : path, optional
        Run directory; by default the newest run in ``runs/``.

    Returns
    -------
    RunView
        The run; its files are read when they are asked for.

    Raises
    ------
    UsageError
        If the directory contains no run.
    GaugeError
        If run.toml is damaged.
    """
    run = only_newest_run() if path is None else Run(Path(path))
    if not run.exists() and (run.path / "scan.toml").is_file():
        raise UsageError(f"{run.path} is a scan; open one of the runs in its folder.")
    parameters = run.read()[0]
    # Tables and configurations can be read even if the checkpoint is damaged.
    return RunView(run.path, parameters, state_of(run, parameters, saved_updates(run)).sweep)
