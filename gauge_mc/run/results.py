"""Results of runs: averages over chains, reports, and runs as Python sees them."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

import gauge_mc
from gauge_mc.analysis import timeseries
from gauge_mc.analysis.timeseries import Estimate
from gauge_mc.configurations.reading import Configuration, open_configuration
from gauge_mc.domain.device_pool import EnergyUse
from gauge_mc.errors import UnknownNameError, UsageError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.frames import FileMapping, SuggestingDict, html_table, unknown
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import OBSERVABLES, table_name
from gauge_mc.options import Option
from gauge_mc.progress import duration
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run, only_newest_run
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import TEMPERING, Parameters
from gauge_mc.run.state import (
    COMPLETE,
    STOPPED,
    Clock,
    RunState,
    energy_text,
    link_rate,
    saved_updates,
    spent,
    state_of,
)
from gauge_mc.run.thermalisation import columns_made_by, compared_starts, found_thermalisation
from gauge_mc.signatures import checks_types

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from gauge_mc.inspection.status import RunStatus
    from gauge_mc.reports.page import PageReport

TAU_EXP = Option(
    "tau_exp",
    float,
    "Autocorrelation time in updates of the slowest mode, whose tail is added to the errors of the "
    "averages of a run (arXiv:1009.5228).",
    default="no tail",
    metavar="UPDATES",
    least=1e-3,
    most=1e12,
)
"""The time that a tail of the autocorrelation function decays with, an option of averages."""


MOST_COMPARED = 6
"""Number of chains that are compared with those from other starts beside averages over all."""


def run_averages(run: Run, recorded: Iterable[Measurement]) -> dict[str, Estimate]:
    """Return the averages of the observables that a run has measured so far."""
    return {name: average for name, average, *_ in _averages(_measured([run], recorded))}


@documented
@dataclass(frozen=True, repr=False)
class Average(Estimate):
    """An average with its error as text."""

    text: str = result_field("Value with its error in brackets, such as ``0.6019(7)``.", "")
    updates: int | None = result_field(
        "Updates from one sample to the next; None if they differ.", None
    )

    @classmethod
    def of(cls, average: Estimate, updates: int | None) -> Average:
        """Return an estimate with its text."""
        return cls(**asdict(average), text=str(average), updates=updates)


def averages_values(
    runs: Sequence[Run], recorded: Iterable[Measurement], tau_exp: float | None = None
) -> dict[str, Average]:
    """Return the averages over chains by label, for JSON; see `averages_table`."""
    averages = _averages(_measured(runs, recorded), tau_exp)
    return {name: Average.of(average, every) for name, average, every, *_ in averages}


@dataclass(frozen=True)
class AveragesSummary:
    """A table of averages with cautions about them."""

    shown: RenderableType
    """The table, or what has been measured if there are no averages."""
    cautions: Sequence[str] = ()
    """Cautions, one sentence each."""
    notes: Sequence[str] = ()
    """From where chains from different starts agree, one sentence each."""

    def __rich__(self) -> RenderableType:
        if not isinstance(self.shown, Table):
            return self.shown
        return Group(self.shown, *self.cautions, *self.notes, "")


def averages_table(
    runs: Sequence[Run], recorded: Iterable[Measurement], tau_exp: float | None = None
) -> AveragesSummary:
    """Return a table of the averages over chains with errors; tau_int is in updates."""
    measured = list(_measured(runs, recorded))
    averages = list(_averages(measured, tau_exp))
    if not averages:
        names = ", ".join(item.observable for item, *_ in measured)
        words = f"measured: {names}, which fits and plots evaluate"
        return AveragesSummary(Text(words if names else "nothing measured yet"))
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("average")
    for heading in ("value", "tau_int [updates]", "measurements"):
        table.add_column(heading, justify="right")
    for name, number, every, *_ in averages:
        table.add_row(name, number.format(), number.format_tau(every), str(number.samples))
    short = [x for _, x, *_ in averages if x.length_cautions]
    worst = min(short, key=lambda x: x.samples / x.tau_int, default=None)
    early = max(last for *_, last, _ in averages)
    slow = max(((factor, name) for name, *_, factor in averages), default=(1.0, ""))
    cautions = [*(worst.length_cautions if worst else ()), *timeseries.caution_skip(early)]
    compared = [compared_starts(run.path) for run in runs[:MOST_COMPARED]]
    if not early:
        cautions += timeseries.caution_growth(slow[0], slow[1], _remedy(TAU_EXP.metavar))
        largest = max(tau_exp or 0, *(x.tau_int * every for _, x, every, *_ in averages))
        for name, mode, every in _slow_modes(measured):
            tau = math.ceil((mode.tau_int + mode.tau_int_error) * every)
            cautions += timeseries.caution_slower(mode, every, largest, name, _remedy(str(tau)))
    agreements = {x.both: x for x in compared if x}.values()
    cautions += [a.sentence for a in agreements if a.agree is False]
    notes = [a.sentence for a in agreements if a.agree is not False]
    return AveragesSummary(table, cautions, notes)


def _remedy(tau_exp: str) -> str:
    """Return the end of a caution about slow modes, given their autocorrelation time as text."""
    command = f"gauge-mc status {TAU_EXP.flag} {tau_exp}"
    return f", or add the tail of the slowest mode to the errors ({command})"


MeasurementTables = tuple[Measurement, list[Path], list[TableData]]
"""A measurement with the files of its tables in all chains, and the tables."""


def _measured(runs: Sequence[Run], recorded: Iterable[Measurement]) -> Iterator[MeasurementTables]:
    """Read the tables of everything that has been measured along the way."""
    for item in recorded:
        paths = [path for run in runs if (path := run.table(item.observable)).exists()]
        if paths:
            tables = [read_table(path) for path in paths]
            for path, table in zip(paths, tables, strict=True):
                table.numbers(SWEEP, path)  # refuses a table without them
            yield item, paths, tables


def _slow_modes(
    measured: Iterable[MeasurementTables],
) -> Iterator[tuple[str, Estimate, int]]:
    """Yield the name, the average and the updates between measurements of every slow mode.

    Modes of a single measurement are left out, since nothing is known of their tau_int.
    """
    for item, _, tables in measured:
        filled = [table for table in tables if len(table)]
        if item.observable in OBSERVABLES and filled:
            series = [OBSERVABLES[item.observable].slow_modes(table) for table in filled]
            for name in series[0]:
                mode = timeseries.estimate(*(s[name] for s in series))
                if math.isfinite(mode.tau_int):
                    yield name, mode, item.every


def _averages(
    measured: Iterable[MeasurementTables], tau_exp: float | None = None
) -> Iterator[tuple[str, Estimate, int, int, float]]:
    """Yield the label, the average and the updates between measurements of every quantity.

    The last two elements are the last update before which the chain seems not to have thermalised,
    or 0, and by which factor long bins show a larger error. The parameter tau_exp is in updates.
    """
    for item, paths, tables in measured:
        sweeps = tables[0].columns[SWEEP]
        if item.observable == TEMPERING or (len(sweeps) > 1 and sweeps[0] == sweeps[1]):
            continue
        tail = tau_exp and tau_exp / item.every
        for column in columns_made_by(item.observable, tables[0].columns).averaged:
            pairs = zip(paths, tables, strict=True)
            series = [table.numbers(column.name, path) for path, table in pairs]
            if any(len(s) for s in series):
                average = timeseries.estimate(*(s for s in series if len(s)), tau_exp=tail)
                both = zip(tables, series, strict=True)
                early = max(timeseries.transient_end(table.columns[SWEEP], x) for table, x in both)
                grown = max(timeseries.growth(s, tail) for s in series)
                yield column.average, average, item.every, early, grown


@documented
@dataclass(frozen=True)
class RunReport(RunState):
    """Report on a session of a run, for JSON."""

    run: str = result_field("Run directory.")
    parameters: Mapping[str, object] = result_field("Parameters of the run, as in ``run.toml``.")
    stopped: str | None = result_field(
        "Reason why the session stopped before the end; None if all is done."
    )
    seconds: float = result_field("Duration of the session in seconds.")
    nj_per_link: float | None = result_field("Energy per link update in nJ; None if it is unknown.")
    energy_source: str | None = result_field(
        "Where the energy was read, such as ``RAPL`` or ``NVML``, or why it is unknown."
    )
    configurations: int = result_field("Number of configurations.")
    averages: Mapping[str, Average] = result_field("Averages by the label of the quantity.")

    @classmethod
    def of(cls, result: RunResult) -> RunReport:
        """Return the report on the result of `generate`."""
        p = result.parameters
        return cls(
            str(result.path),
            p.values(),
            result.stopped,
            result.seconds,
            result.nj_per_link,
            result.energy_source or None,
            len(result.configs),
            averages_values([Run(result.path)], p.recorded),
            state=STOPPED if result.stopped else COMPLETE,
            sweep=result.sweep,
            sweeps=p.updates,
            thermalize=p.thermalize,
            links_per_s=result.links_per_s or None,
            times=result.times,
            joules=result.joules,
        )


@documented
@dataclass(frozen=True)
class RunReports:
    """Report on a session of several runs, for JSON."""

    runs: Sequence[RunReport] = result_field("Runs.")
    stopped: str | None = result_field(
        "Reason why the session stopped before the end; None if all is done."
    )

    @classmethod
    def of(cls, results: Sequence[RunResult]) -> RunReports:
        """Return the report on the results of `generate_chains`."""
        reason = next((result.stopped for result in results if result.stopped), None)
        return cls([RunReport.of(result) for result in results], reason)


def session_table(
    clock: Clock, began: int, sweep: int, links: int, times: Mapping[str, float], energy: EnergyUse
) -> Table:
    """Return the time, the rate and the energy of a session, given the links of an update."""
    table = Table.grid(padding=(0, 2))
    elapsed = duration(time.monotonic() - clock.began)
    table.add_row("time", f"{elapsed} for {counted(sweep - began, 'update')}")
    table.add_row("", spent(times))
    pace = clock.updates_per_second(sweep) * clock.chains
    if pace:
        table.add_row("rate", f"{link_rate(pace * links)}, including measurements and files")
    if energy.joules is not None:
        each = energy.nj_per_link((sweep - began) * links * clock.chains)
        words = f", {each:.3g} nJ per link update" if each else ""
        table.add_row("energy", f"{energy_text(energy.joules)} by {energy.source}{words}")
    return table


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
        return gauge_mc.status(self.path)  # type: ignore[return-value]

    def report(self, output: str | Path | None = None, **options: Any) -> PageReport:
        """Write a page that shows everything about this run; see `gauge_mc.report`."""
        return gauge_mc.report(self, output, **options)

    def plot(self, what: str, output: str | Path | None = None, **options: Any) -> Figure:
        """Draw a figure of this run; see `gauge_mc.plot`."""
        return gauge_mc.plot(what, self, output, **options)


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
