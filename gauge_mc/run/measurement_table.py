"""Tables of measurements on stored configurations.

All records of a configuration are appended to the table at once, with the name of its file and a
digest of its links. A repeated measurement continues where the previous one stopped: configurations
with complete records in the table are skipped, and a last configuration with incomplete records is
measured again. Records of other links under the same number are refused, never taken for those of
this configuration.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gauge_mc.actions import restated
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import DevicePool, Devices
from gauge_mc.errors import ConvergenceError, GaugeError, UsageError
from gauge_mc.files.atomic import refuse_link
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import Origin, Table, read_table
from gauge_mc.observables import (
    Measurer,
    Observable,
    Record,
    RecordsOfTables,
    SecondaryTable,
    check_records,
)
from gauge_mc.run.chain import version
from gauge_mc.run.ensemble import Ensemble, number_in_name
from gauge_mc.run.lock import RunLock


@dataclass(frozen=True)
class MeasurementTask:
    """A measurement that has been prepared."""

    ensemble: Ensemble
    """The configurations."""
    observable: Observable
    """The observable, with its options."""
    table: Table
    """Table, open for writing."""
    done: tuple[int, ...]
    """Numbers of the configurations that the table already contains."""
    left: tuple[int, ...]
    """Numbers of the configurations that remain to be measured."""
    unknown: tuple[int, ...]
    """Those of `done` whose links an earlier version did not record."""
    secondary: dict[str, Table]
    """Secondary tables of the observable, by name."""

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
        DeviceGroup.of(device).compute(self.ensemble.strictly(self.observable))
        measure: Measurer | None = None
        for number in numbers:
            field, digest = self.ensemble.load(number, precision, device)
            measure = measure or self.observable.measurer(field)
            try:
                records = measure(field)
            except ConvergenceError as error:
                raise ConvergenceError(f"Configuration {number}: {error}") from error
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
        The configurations.
    observable : Observable
        The observable, with its options.
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
    how = f"{precision} precision{', strictly' * ensemble.strictly(observable)}"
    header = {**observable.header, **ensemble.metadata, "measured in": how}
    if not path.parent.is_dir():
        raise UsageError(
            f"There is no folder {path.parent} for the table {path.name}; create it, or choose "
            "another --output."
        )
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file for the table with --output.")
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
    except BaseException:
        with suppress(GaugeError):  # that the table is damaged is what has been raised
            if _is_empty(path, observable):
                _remove(path, observable)
        raise
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
            if ensemble.open(number).digest() != origin.digest:
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
