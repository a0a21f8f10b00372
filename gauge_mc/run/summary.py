"""Summary of a run: averages with errors, time, rate, files."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import INDICES, OBSERVABLES, SWEEP, Quantity
from gauge_mc.run.chain import Chain
from gauge_mc.run.directory import Run
from gauge_mc.run.display import Clock, duration, link_rate, spent
from gauge_mc.run.parameters import Measurement, Parameters


def run_averages(run: Run, parameters: Parameters) -> dict[str, Estimate]:
    """Return the averages of the observables that a run has measured so far.

    Returns
    -------
    dict of str to Estimate
        Averages by the label of the quantity; tau_int is in measurements.

    Raises
    ------
    GaugeError
        If a table is damaged.
    """
    return {name: found for name, found, _ in _averages(run, parameters)}


def averages_values(run: Run, parameters: Parameters) -> dict[str, dict[str, float]]:
    """Return the averages of a run as plain numbers, by label and name; tau_int is in updates.

    Raises
    ------
    GaugeError
        If a table is damaged.
    """
    return {
        name: {
            **asdict(found),
            "tau_int": every * found.tau_int,
            "tau_int_error": every * found.tau_int_error,
        }
        for name, found, every in _averages(run, parameters)
    }


def averages_table(run: Run, parameters: Parameters) -> RenderableType:
    """Return a table of the averages of a run with errors; tau_int is in updates.

    Raises
    ------
    GaugeError
        If a table is damaged.
    """
    found = list(_averages(run, parameters))
    if not found:
        return Text("nothing measured yet")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("average")
    for heading in ("value", "tau_int [updates]", "measurements"):
        table.add_column(heading, justify="right")
    for name, number, every in found:
        table.add_row(name, number.format(), number.format_tau(every), str(number.samples))
    return Group(table, "")


def _averages(run: Run, parameters: Parameters) -> Iterator[tuple[str, Estimate, int]]:
    """Yield the label, the average and the updates between measurements of every quantity."""
    for item in parameters.measure:
        path = run.table(item.observable)
        if not path.exists():
            continue
        table = read_table(path)
        for quantity in _quantities(item, table):
            series = table.columns.get(quantity.column)
            if series is None or series.dtype.kind == "U":
                raise GaugeError(
                    f"The table {path} is damaged: it contains no numbers for {quantity.column}."
                )
            if len(series):
                yield quantity.label, estimate(series), item.every


def _quantities(item: Measurement, table: TableData) -> tuple[Quantity, ...]:
    """Return the quantities of a table to show; none if it has several rows per measurement."""
    sweeps = table.columns[SWEEP]
    if len(sweeps) > 1 and sweeps[0] == sweeps[1]:
        return ()
    if item.observable in OBSERVABLES:
        return OBSERVABLES[item.observable].quantities
    names = [name for name in table.columns if name not in (SWEEP, *INDICES)]
    labels = [
        item.observable if name == "value" else f"{item.observable}, {name}" for name in names
    ]
    return tuple(Quantity(name, label, label) for name, label in zip(names, labels, strict=True))


def summary(
    run: Run, clock: Clock, chain: Chain, updates: int, times: Mapping[str, float]
) -> RenderableType:
    """Return the summary of a session: averages, time, rate, files.

    Parameters
    ----------
    run : Run
    clock : Clock
        Clock of the session.
    chain : Chain
        Chain at the end of the session.
    updates : int
        Number of updates in the session.
    times : mapping of str to float
        Shares of the session's time, in seconds.
    """
    p = chain.parameters
    facts = Table.grid(padding=(0, 2))
    facts.add_row("time", f"{duration(time.monotonic() - clock.began)} for {updates} updates")
    facts.add_row("", spent(times))
    rate = clock.updates_per_second(chain.sweep) * p.links_per_update
    if rate:
        facts.add_row("rate", f"{link_rate(rate)}, including measurements and files")
    configs = f"{len(run.configs())} configurations" if p.keeps_configs else "no configurations"
    facts.add_row("files", f"{run.path} ({configs})")
    try:
        return Group(averages_table(run, p), facts)
    except GaugeError as error:
        return Group(Text(str(error), style="red"), facts)
