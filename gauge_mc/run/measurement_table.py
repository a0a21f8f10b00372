"""Tables of measurements on stored configurations.

All records of a configuration are appended to the table at once, with the name of its file and a
digest of its links. A repeated measurement continues where the previous one stopped: configurations
with complete records in the table are skipped, and a last configuration with incomplete records is
measured again. Records of other links under the same number are refused, never taken for those of
this configuration.

Rows know the version of the sources that made them. Those of another version are kept, and whoever
asks for it measures them again, in a new table beside the old one.
"""

from __future__ import annotations

import itertools
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
from gauge_mc.run.source_versions import mask_of_others, sources_of


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
    others: tuple[int, ...] = ()
    """Those of `done` that another version of the observable's sources has measured."""
    kept: Path | None = None
    """The table of before, if all configurations are measured again."""

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
    ensemble: Ensemble, observable: Observable, path: Path, precision: str, again: bool = False
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
    again : bool
        Whether to begin a new table if not all rows of the present one are known to be of the
        present sources. The present one is kept under another name.

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
    with _locked(path), _without_empty(path, observable):
        refuse_link(path)
        sources = sources_of(observable, ensemble.group)
        kept = _put_aside(path, observable, sources) if again else None
        if _is_empty(path, observable):
            # It may have other parameters, as after an attempt that was refused.
            _remove(path, observable)
        if path.exists():
            _compare(path, header, observable.formerly)
        columns = (SWEEP, *observable.columns.names)
        with Table(path, {**header, "version": version()}, columns, sources) as table:
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
                        _secondary(one, one.records(observable), path, header, done, sources)
                    )
                    for one in observable.secondary_tables
                }
                others = measured_by_others(path, sources)
                yield MeasurementTask(
                    ensemble, observable, table, done, left, unknown, secondary, others, kept
                )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a table."""
    lock_file = path.with_name(f".{path.name}.lock")
    lock = RunLock(lock_file)
    try:
        lock.record(lock.holder)
        yield
    finally:
        lock_file.unlink(missing_ok=True)
        lock.close()


@contextmanager
def _without_empty(path: Path, observable: Observable) -> Iterator[None]:
    """Remove a table without results if a measurement fails."""
    try:
        yield
    except BaseException:
        with suppress(GaugeError):  # that the table is damaged is what has been raised
            if _is_empty(path, observable):
                _remove(path, observable)
        raise


def _is_empty(path: Path, observable: Observable) -> bool:
    """Return whether a table of an observable exists, but has no results."""
    if not path.exists():
        return False
    table = read_table(path)
    own = table.header.get("observable") == observable.header["observable"]
    return own and not any(column.size for column in table.columns.values())


def _all_tables(path: Path, observable: Observable) -> tuple[Path, ...]:
    """Return a table and its secondary tables."""
    return (path, *(one.beside(path) for one in observable.secondary_tables))


def _remove(path: Path, observable: Observable) -> None:
    """Remove a table and its secondary tables."""
    for one in _all_tables(path, observable):
        one.unlink(missing_ok=True)


def put_aside(path: Path, observable: Observable, sources: str) -> Path | None:
    """Rename a table as `measuring` does with `again`; return its new name, if it has one."""
    if not path.exists():
        return None
    with _locked(path):
        return _put_aside(path, observable, sources)


def _put_aside(path: Path, observable: Observable, sources: str) -> Path | None:
    """Rename a table and its secondary tables, if not all rows are of the present sources.

    The new name is followed by a number, so that no file is replaced.

    Returns
    -------
    Path or None
        The new name of the table; None if it has not been renamed.
    """
    if not path.exists() or _is_empty(path, observable):
        return None
    table = read_table(path)
    if sources and {*table.sources.values()} == {sources} and 0 in table.sources:
        return None
    tables = [one for one in _all_tables(path, observable) if one.exists()]
    number = next(
        n for n in itertools.count(1) if not any(_aside(one, n).exists() for one in tables)
    )
    for one in reversed(tables):  # the table itself last, so that all is repeated after a kill
        one.rename(_aside(one, number))
    return _aside(path, number)


def _aside(path: Path, number: int) -> Path:
    """Return the name under which a table of before is kept."""
    return path.with_name(f"{path.name}.{number}")


def measured_by_others(path: Path, sources: str) -> tuple[int, ...]:
    """Return the numbers of the configurations in a table that other sources have measured."""
    table = read_table(path)
    return tuple(np.unique(table.columns[SWEEP][mask_of_others(table, sources)]).tolist())


def _secondary(
    one: SecondaryTable,
    records: int,
    path: Path,
    header: Mapping[str, str],
    done: Sequence[int],
    sources: str,
) -> Table:
    """Open a secondary table, without configurations that the main table does not have."""
    table = one.open(path, {**header, "version": version()}, sources)
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
