"""Measurements on a field, on the configurations of a run, or on single configuration files.

All records of a configuration are appended to the table at once, with the name of its file and a
digest of its links. A repeated measurement continues where the previous one stopped: configurations
with complete records in the table are skipped, and a last configuration with incomplete records is
measured again. Records of other links under the same number are refused, never taken for those of
this configuration.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gauge_mc.actions import restated
from gauge_mc.analysis.timeseries import caution_series, caution_short, estimate
from gauge_mc.configurations.reading import open_configuration
from gauge_mc.devices.choice import AUTOMATIC, choose_devices, hint
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.device_pool import DevicePool, Devices, device_pool
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.atomic import refuse_link
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import Origin, Table, TableData, read_table
from gauge_mc.notebook_bar import NotebookBar
from gauge_mc.observables import (
    OBSERVABLES,
    Measurer,
    Observable,
    Record,
    RecordsOfTables,
    SecondaryTable,
    check_records,
    observable_of_table,
)
from gauge_mc.options import Owners
from gauge_mc.registry import in_words
from gauge_mc.run.convert import warning_of
from gauge_mc.run.display import (
    AT_FIRST,
    PLAIN_LEAST_SECONDS,
    PLAIN_SECONDS,
    announced_compilation,
    duration,
)
from gauge_mc.run.ensemble import Ensemble, find_ensemble, number_in_name
from gauge_mc.run.functions import CustomObservable, observable_of
from gauge_mc.run.lock import RunLock
from gauge_mc.run.session import version
from gauge_mc.run.summary import Average
from gauge_mc.signatures import with_options
from gauge_mc.smearing import smear_option, smearing_owners

if TYPE_CHECKING:
    from gauge_mc.console import Console

ONE_DEVICE = "--split has no effect with one device; choose more devices with --devices."
"""Message if several devices are to share every configuration but there is only one device."""

WARNINGS = 3
"""Maximum number of configurations with warnings that are named."""

AnyPath = str | os.PathLike[str]

Target = Field | AnyPath | Sequence[AnyPath] | None
"""A field, a run directory, configuration files, or None for the newest run."""


@dataclass(frozen=True)
class MeasurementTask:
    """A measurement that has been prepared.

    Attributes
    ----------
    ensemble : Ensemble
    observable : Observable
    table : Table
        Table, open for writing.
    done : tuple of int
        Numbers of the configurations that the table already contains.
    left : tuple of int
        Numbers of the configurations that remain to be measured.
    unknown : tuple of int
        Those of `done` whose links an earlier version did not record.
    secondary : dict of str to Table
        Secondary tables of the observable, by name.
    """

    ensemble: Ensemble
    observable: Observable
    table: Table
    done: tuple[int, ...]
    left: tuple[int, ...]
    unknown: tuple[int, ...]
    secondary: dict[str, Table]

    def carry_out(self, pool: DevicePool, precision: str) -> Iterator[int]:
        """Measure the remaining configurations, and yield the number of each one when it is done.

        The table does not depend on the number of devices in the pool.

        Raises
        ------
        GaugeError
            If a configuration cannot be read, or the table cannot be written. The table keeps the
            results up to that point.
        """
        measured = pool.results(partial(self._measured, precision), self.left)
        for number, (records, digest) in zip(self.left, measured, strict=True):
            if isinstance(records, RecordsOfTables):
                for name, table in self.secondary.items():
                    table.append([(number, *record) for record in records.secondary[name]])
                    table.sync()
            origin = Origin(self.ensemble.files[number].name, digest)
            self.table.append([(number, *record) for record in records], origin)
            self.table.sync()
            yield number

    def _measured(
        self, precision: str, device: Devices, numbers: Sequence[int]
    ) -> Generator[tuple[list[Record], str], None, None]:
        """Measure configurations on one device; yield the records and the digest of each."""
        measure: Measurer | None = None
        for number in numbers:
            field, digest = self.ensemble.load(number, precision, device)
            measure = measure or self.observable.measurer(field)
            records = measure(field)
            check_records(self.observable, [records])
            del field  # free the memory before the next configuration is loaded
            yield records, digest


@contextmanager
def measuring(
    ensemble: Ensemble, observable: Observable, path: Path, precision: str
) -> Iterator[MeasurementTask]:
    """Prepare a measurement: open the table, and determine what remains to be measured.

    Parameters
    ----------
    ensemble : Ensemble
    observable : Observable
    path : Path
        Table file. It is created if necessary.
    precision : str
        Precision of the links in memory.

    Raises
    ------
    UsageError
        If the table belongs to another measurement or another ensemble, or to other links under the
        same numbers.
    GaugeError
        If the table is damaged or cannot be written, or another process is writing to it.
    """
    header = {**observable.header, **ensemble.metadata, "measured in": f"{precision} precision"}
    if not path.parent.is_dir():
        raise UsageError(
            f"There is no folder {path.parent} for the table {path.name}; create it, or choose "
            "another --output."
        )
    lock_file = path.with_name(f".{path.name}.lock")
    lock = RunLock(lock_file)
    try:
        lock.record(lock.holder)
        refuse_link(path)
        if _is_empty(path, observable):
            # It may have other parameters, as after an attempt that was refused.
            _remove(path, observable)
        if path.exists():
            _compare(path, header, observable.formerly)
        columns = (SWEEP, *observable.columns.names)
        with Table(path, {**header, "version": version()}, columns) as table:
            done = _drop_incomplete(path, table, observable.records)
            left = tuple(number for number in ensemble.files if number not in done)
            unknown = _compare_links(path, ensemble, done)
            if done and left and left[0] < done[-1]:
                raise UsageError(
                    f"The table {path} already contains configuration {done[-1]}, so that "
                    f"configuration {left[0]} cannot be appended; choose another --output, or "
                    "remove the table to measure all configurations again."
                )
            with ExitStack() as stack:
                secondary = {
                    one.name: stack.enter_context(
                        _secondary(one, one.records(observable), path, header, done)
                    )
                    for one in observable.secondary_tables
                }
                yield MeasurementTask(ensemble, observable, table, done, left, unknown, secondary)
    finally:
        lock_file.unlink(missing_ok=True)
        lock.close()


def _is_empty(path: Path, observable: Observable) -> bool:
    """Return whether a table of an observable exists, but has no results."""
    if not path.exists():
        return False
    table = read_table(path)
    own = table.header.get("observable") == observable.header["observable"]
    return own and not any(column.size for column in table.columns.values())


def _remove(path: Path, observable: Observable) -> None:
    """Remove a table and its secondary tables."""
    for one in (path, *(one.beside(path) for one in observable.secondary_tables)):
        one.unlink(missing_ok=True)


def _secondary(
    one: SecondaryTable, records: int, path: Path, header: Mapping[str, str], done: Sequence[int]
) -> Table:
    """Open a secondary table, without configurations that the main table does not have."""
    table = one.open(path, {**header, "version": version()})
    table.truncate(after=max(done, default=-1), expected=len(done) * records)
    return table


def _compare(path: Path, header: Mapping[str, str], formerly: Mapping[str, str]) -> None:
    """Check that an existing table, which may be of an earlier version, has the given header."""
    lacking = {name: value for name, value in formerly.items() if name in header}
    found = lacking | read_table(path).header
    found.pop("version", None)
    if "action" in header:
        found = restated(found)
    names = dict.fromkeys([*header, *found])
    differences = [
        f"{name} = {found.get(name, 'none')}, not {header.get(name, 'none')}"
        for name in names
        if found.get(name) != header.get(name)
    ]
    if differences:
        raise UsageError(
            f"The table {path} has {'; '.join(differences)}; choose another --output, or remove "
            "the table."
        )


def _compare_links(path: Path, ensemble: Ensemble, done: Sequence[int]) -> tuple[int, ...]:
    """Check that the rows of a table belong to these files and not to others of the same numbers.

    Returns
    -------
    tuple of int
        Numbers of the rows that cannot be compared, because an earlier version has written them.

    Raises
    ------
    UsageError
        If the table has rows of other links, or numbers these files differently.
    """
    origins = read_table(path).origins
    unknown = tuple(number for number in done if number not in origins)
    for number, file in ensemble.files.items():
        named = number_in_name(file)
        if named != number and named in unknown and number not in done:
            raise UsageError(
                f"{file} has the number {number} in its header and {named} in its name, by which "
                f"an earlier version numbered the table {path}; choose another --output."
            )
        if number in done and number in origins:
            origin = origins[number]
            if open_configuration(file).digest() != origin.digest:
                raise UsageError(
                    f"{file} has the number {number}, which the table {path} has of other links "
                    f"(in a file {origin.name}); choose another --output, or remove the table to "
                    "measure all configurations again."
                )
    return unknown


def _drop_incomplete(path: Path, table: Table, records: int) -> tuple[int, ...]:
    """Remove an incomplete last configuration from a table; return the numbers of the others."""
    numbers = read_table(path).columns[SWEEP]
    found, counts = np.unique(numbers, return_counts=True)
    short = found[counts != records]
    whole = tuple(map(int, found[counts == records]))
    if short.size > 1 or (short.size and short[0] != numbers[-1]):
        raise GaugeError(
            f"The table {path} does not contain the {records} records of configuration {short[0]} "
            "exactly once; remove the table to measure all configurations again."
        )
    table.truncate(after=max(whole, default=-1), expected=len(whole) * records)
    return whole


@dataclass(frozen=True)
class TableReport:
    """A table with averages over its columns, for JSON.

    Attributes
    ----------
    file : str
        File that was written or read.
    records : int
        Number of records in the table.
    header : mapping of str to str
        Header of the table.
    averages : mapping of str to Average
        Averages by column; none if there are several records per configuration.
    cautions : sequence of str
        Cautions about the averages, one sentence each.
    """

    file: str
    records: int
    header: Mapping[str, str]
    averages: Mapping[str, Average]
    cautions: Sequence[str]

    @classmethod
    def of(cls, path: Path, table: TableData) -> TableReport:
        """Return the report on a table that `measure` has written."""
        averages = _averages(table)
        cautions = _cautions(table, averages)
        return cls(str(path), len(table), table.header, averages, cautions)


def _averages(table: TableData) -> dict[str, Average]:
    """Return the averages of the columns of a table that has one row per configuration."""
    observable = observable_of_table(table)
    if observable is None or not observable.columns.averaged:
        return {}
    steps = set(np.diff(table[SWEEP]).tolist())
    updates = steps.pop() if len(steps) == 1 else None
    columns = {name: column for name, column in table.columns.items() if name != SWEEP}
    return {name: Average.of(estimate(column), updates) for name, column in columns.items()}


def _cautions(table: TableData, averages: Mapping[str, Average]) -> list[str]:
    """Return cautions about averages: the chain is short, or has not thermalised."""
    if not averages:
        return []
    slowest = max(one.tau_int for one in averages.values())
    series = [table[name] for name in averages]
    return caution_short(len(table), slowest) + caution_series(table[SWEEP], *series)


def _owners() -> Owners:
    """Yield the observables and the smearings, with the options that they declare."""
    for name, one in OBSERVABLES.items():
        yield name, one.options
    yield "smear", (smear_option(),)
    yield from smearing_owners()


@with_options(_owners)
def measure(
    target: Target,
    observable: str | CustomObservable,
    *,
    output: str | Path | None = None,
    precision: str | None = None,
    backend: str = AUTOMATIC,
    devices: str | None = None,
    threads: int | None = None,
    split: bool = False,
    progress: bool = True,
    **options: Any,
) -> TableData:
    """Measure an observable on a field or on stored configurations.

    By default all GPUs are used, each for one configuration at a time; without a GPU, the CPU. A
    repeated call continues an interrupted measurement, and measures new configurations.

    Parameters
    ----------
    target : Field, path, sequence of paths or None
        A field; a run directory; configuration files; or None for the newest run in ``runs/``.
    observable : str, function, Observable or subclass of Observable
        Name of an observable; or a function of a field that returns a number, a record (mapping,
        data class or named tuple) or an array; or an `Observable`. Several devices call a function
        at the same time, each in a thread of its own. On stored configurations, a function is
        called once more than there are configurations to measure.
    output : path, optional
        Table file; by default in the run directory, or in the current folder for single files.
    precision : str, optional
        Precision of the links in memory; by default that of the files.
    backend, devices, threads
        See `gauge_mc.devices.choose_devices`; by default all GPUs are used.
    split : bool
        Whether all devices share every configuration, instead of taking one each.
    progress : bool
        Whether to show progress.
    **options : object
        Options of the observable by name. Functions and instances of `Observable` have none.

    Returns
    -------
    TableData
        The table. For a field it has no column with the number of the configuration.

    Raises
    ------
    UsageError
        If a value is invalid, or the table belongs to another measurement.
    GaugeError
        If a configuration or the table is damaged, or the device fails.
    Exception
        If a function raises an exception. The table keeps the results up to that point.
    """
    if isinstance(target, Field):
        return _measure_field(target, _observable(observable, target.lattice, options))
    ensemble = find_ensemble(_paths_of(target))
    wanted = _observable(observable, ensemble.lattice, options).for_group(ensemble.group)
    wanted = wanted.for_ensemble(ensemble.metadata)
    if precision not in (None, *REALS):
        raise UsageError(f"There is no precision '{precision}'; choose {in_words(REALS, 'or')}.")
    path = Path(output) if output else ensemble.table(wanted.name)
    width = precision or ensemble.precision
    openers = _openers(devices, backend, threads, split, ensemble.lattice)
    openers = openers[: len(ensemble.files)]
    advice = hint() if backend == AUTOMATIC and not devices else None
    console = _console(progress)
    with device_pool(openers) as pool, announced_compilation(console):
        if not wanted.records:
            wanted = _prepared(wanted, ensemble, width, pool)
        with measuring(ensemble, wanted, path, width) as work:
            console.print(*_opening(work, pool.name, advice), sep="\n", soft_wrap=True)
            if split and len(openers) == 1 and _is_single(pool):
                console.print(ONE_DEVICE, soft_wrap=True)
            numbers = work.carry_out(pool, width)
            for _ in _show_progress(numbers, work, console, len(pool.devices)):
                pass
    return read_table(path)


def _observable(
    given: str | CustomObservable, lattice: Lattice, options: Mapping[str, Any]
) -> Observable:
    """Return a registered or user-defined observable for fields on a lattice."""
    if isinstance(given, str):
        return OBSERVABLES[given].for_lattice(lattice, **options)
    return observable_of(given, lattice, **options)


def _prepared(
    observable: Observable, ensemble: Ensemble, precision: str, pool: DevicePool
) -> Observable:
    """Return the observable after a look at the first configuration."""

    def job(device: Devices, numbers: Sequence[int]) -> Generator[Observable, None, None]:
        for number in numbers:
            field, _ = ensemble.load(number, precision, device)
            yield observable.for_ensemble(ensemble.metadata, field)

    (prepared,) = pool.results(job, [min(ensemble.files)])
    return prepared


def _measure_field(field: Field, observable: Observable) -> TableData:
    """Measure an observable on a field in memory."""
    records = observable.measurer(field)(field)
    if observable.records:
        check_records(observable, [records])
    columns = {
        column: np.array([record[i] for record in records])
        for i, column in enumerate(observable.columns.names)
    }
    return TableData(observable.header, columns)


def _paths_of(target: Any) -> list[Path]:
    if target is None:
        return []
    if isinstance(target, str | os.PathLike):
        return [Path(target)]
    return [Path(one) for one in target]


def _openers(
    devices: str | None, backend: str, threads: int | None, split: bool, lattice: Lattice
) -> list[Callable[[], Devices]]:
    """Return functions that open the chosen devices: one for each, or one for all to split."""
    if split:
        together = partial(open_device_group, all_by_default=True, lattice=lattice)
        return [partial(together, devices, backend, threads)]
    return [one.open for one in choose_devices(devices, backend, threads, all_by_default=True)]


def _is_single(pool: DevicePool) -> bool:
    return len(getattr(pool.devices[0], "devices", ())) == 1


def _console(progress: bool) -> Console:
    from gauge_mc.console import Console

    return Console(quiet=not progress, highlight=False, markup=False)


def _opening(work: MeasurementTask, devices: str, advice: str | None) -> list[str]:
    """Return the lines shown at the beginning: configurations, devices, options, and a hint."""
    ensemble, header, total = work.ensemble, work.observable.header, len(work.done) + len(work.left)
    warnings = dict.fromkeys(
        f"{path}: {warning}"
        for number, path in ensemble.files.items()
        if number in work.left and (warning := warning_of(path))
    )
    lines = [
        f"{work.observable.name} on {total} configuration{'s' * (total != 1)}, {ensemble.group} on "
        f"{ensemble.lattice}, {len(work.done)} already measured, on {devices}"
    ]
    known = {"observable", "normalisation", "units"}
    again = len({*work.unknown} & ensemble.files.keys())
    trusted = (
        f"{again} of them by an earlier version, which did not record their links: they are taken "
        "to be those of these files"
    )
    details = [f"{key}: {value}" for key, value in header.items() if key not in known]
    more = ["; ".join(details)] if details else []
    more += [trusted] if again else []
    return [*lines, *more, *([advice] if advice else []), *shortest(list(warnings))]


def shortest(warnings: Sequence[str]) -> list[str]:
    """Return the first warnings, and how many there are more."""
    more = len(warnings) - WARNINGS
    return [*warnings[:WARNINGS], *([f"and {more} more such files"] if more > 0 else [])]


def _show_progress(
    numbers: Iterator[int], work: MeasurementTask, console: Console, devices: int
) -> Iterator[int]:
    """Pass on the numbers, and show progress: live where that is possible, else in plain lines."""
    from rich.progress import track

    if console.is_jupyter and not console.quiet:
        yield from _in_notebook(numbers, len(work.left))
        return
    if console.is_terminal or console.quiet:
        total = len(work.left)
        yield from track(
            numbers, "measuring", total, console=console, transient=True, disable=console.quiet
        )
        return
    yield from _plain_lines(numbers, len(work.left), console, devices)


def _in_notebook(numbers: Iterator[int], total: int) -> Iterator[int]:
    """Pass on the numbers, and show a bar in a notebook."""
    bar = NotebookBar(total, "configurations", AT_FIRST)
    for done, number in enumerate(numbers, 1):
        bar.show(done, f"configuration {number}")
        yield number


def _plain_lines(
    numbers: Iterator[int], total: int, console: Console, devices: int
) -> Iterator[int]:
    """Pass on the numbers, and show lines whose ETA leaves out the first round of all devices.

    In that round kernels are compiled.
    """
    shown, since, tenth = time.monotonic(), math.inf, 0
    for done, number in enumerate(numbers, 1):
        now = time.monotonic()
        since = now if done == devices else since
        silence = now - shown
        new_tenth = 10 * done // total > tenth
        if silence >= PLAIN_SECONDS or (new_tenth and silence >= PLAIN_LEAST_SECONDS):
            shown, tenth = now, 10 * done // total
            later = done - devices
            rest = (now - since) / later * (total - done) if later > 0 else math.nan
            console.print(f"configuration {number}, {done} of {total}  ETA {duration(rest)}")
        yield number
