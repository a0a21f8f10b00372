"""Averages over the measurements of a run, or of several chains."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gauge_mc.analysis import timeseries
from gauge_mc.domain.device_pool import EnergyUse
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.progress import duration
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import TEMPERING
from gauge_mc.run.state import COMPLETE, STOPPED, Clock, RunState, energy_text, link_rate, spent
from gauge_mc.run.thermalisation import columns_made_by, compared_starts

if TYPE_CHECKING:
    from gauge_mc.run.results import RunResult

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


def run_averages(run: Run, recorded: Iterable[Measurement]) -> dict[str, timeseries.Estimate]:
    """Return the averages of the observables that a run has measured so far."""
    return {name: average for name, average, *_ in _averages(_measured([run], recorded))}


@documented
@dataclass(frozen=True, repr=False)
class Average(timeseries.Estimate):
    """An average with its error as text."""

    text: str = result_field("Value with its error in brackets, such as ``0.6019(7)``.", "")
    updates: int | None = result_field(
        "Updates from one sample to the next; None if they differ.", None
    )

    @classmethod
    def of(cls, average: timeseries.Estimate, updates: int | None) -> Average:
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
) -> Iterator[tuple[str, timeseries.Estimate, int]]:
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
) -> Iterator[tuple[str, timeseries.Estimate, int, int, float]]:
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
