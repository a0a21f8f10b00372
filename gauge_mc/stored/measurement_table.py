"""Tables of measurements on stored configurations.

All records of a configuration are appended to the table at once, with the name of its file and a
digest of its links. A repeated measurement continues where the previous one stopped: configurations
with complete records in the table are skipped, and a last configuration with incomplete records is
measured again. Records of other links under the same number are refused, never taken for those of
this configuration.

Rows know the version that made them. Those of another version are kept, unless the user asks to
measure them again, in a new table beside the old one.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from gauge_mc.actions import restated
from gauge_mc.configurations.reading import STATED_KIND, Configuration, LinkKind, open_configuration
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import DevicePool, Devices
from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.errors import ConvergenceError, GaugeError, UsageError
from gauge_mc.fields.field import Field
from gauge_mc.files.atomic import refuse_link
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.table import Origin, Table, TableData, read_heading, read_table
from gauge_mc.formats import FORMATS, ConfigurationFolder
from gauge_mc.observables import (
    AGAIN_SUFFIX,
    CONFIGS_SUFFIX,
    OBSERVABLES,
    OF_TABLE,
    Measurer,
    Observable,
    Record,
    RecordsOfTables,
    check_records,
    table_name,
)
from gauge_mc.quoting import counted
from gauge_mc.run.directory import Run, only_newest_run
from gauge_mc.run.lock import RunLock
from gauge_mc.run.parameters import NO_FORMAT, Parameters, differences, version
from gauge_mc.storage.links import Header
from gauge_mc.stored import run_of
from gauge_mc.stored.regenerate import updates_to_measure

WHOLE = "[0-9]{1,18}"
"""Form of the number of a configuration."""


@dataclass(frozen=True)
class Ensemble:
    """Configurations with the same group and lattice."""

    files: dict[int, Path]
    """Configuration files by number, in ascending order. In a run, the number is the update; for
    other files it is the sequence number in the header, or else the last number in the name,
    unless a regular expression says where in the name it is.
    """
    group: str
    """Gauge group."""
    lattice: Lattice
    """Extents of the lattice."""
    precision: str
    """Precision of the links in the files."""
    metadata: dict[str, str]
    """Metadata that identify the ensemble, for the headers of tables."""
    folder: Path
    """Default folder of the tables."""
    measured: tuple[str, ...] = ()
    """Observables that the run itself measures."""
    kind: LinkKind = STATED_KIND
    """Extents and group, if the files themselves do not state them."""
    name: str = ""
    """Name of the folder of the files, if it is named; tables are named after it."""
    passed_over: str = ""
    """Sentence about other files in the folder; empty if there are none."""

    @property
    def measured_lattice(self) -> Lattice:
        """Lattice of the fields: that of the files, or of their copies if an extent is odd."""
        return self.lattice.copies if isinstance(self.lattice, OddLattice) else self.lattice

    def strictly(self, observable: Observable) -> bool:
        """Return whether an observable is measured with the same bits on all machines."""
        strict = observable.strict and not observable.loose
        return strict and self.metadata.get("strict") == str(True)

    def table(self, observable: str, again: bool = False) -> Path:
        """Return the default path of a table, other than the run's own and those of `--at`."""
        if again:
            return self.folder / f"{table_name(observable)}{AGAIN_SUFFIX}.csv"
        ending = f"_{self.name}" if self.name else ""
        plain = self.folder / f"{table_name(observable)}{ending}.csv"
        separate = self.folder / f"{table_name(observable)}{CONFIGS_SUFFIX}.csv"
        return separate if observable in self.measured or separate.exists() else plain

    def chosen(self, every: int, skip: int) -> Ensemble:
        """Return the ensemble of every N-th configuration after a number."""
        later = [pair for pair in self.files.items() if not skip or pair[0] > skip]
        files = dict(later[every - 1 :: every] if every > 0 else [])
        if not files:
            raise UsageError(
                f"--skip {skip} --every {every} leaves none of the "
                f"{counted(len(self.files), 'configuration')}, the last of which is "
                f"{max(self.files)}; choose other numbers."
            )
        return replace(self, files=files)

    def open(self, number: int) -> Configuration:
        """Open a configuration and read its header; for the errors see `open_configuration`."""
        return open_configuration(self.files[number], *self.kind)

    def load(self, number: int, precision: str, device: Devices) -> tuple[Field, str]:
        """Read a configuration, and return it with the digest of its links in the file.

        If an extent is odd, there are periodic copies of it in the field.
        """
        configuration = self.open(number)
        header = configuration.header
        if (header.group, header.lattice) != (self.group, self.lattice):
            raise GaugeError(
                f"{configuration.path} contains {header.group} on {header.lattice}, but the others "
                f"contain {self.group} on {self.lattice}; move it to another folder."
            )
        return configuration.load_identified(precision, device)


def find_ensemble(
    targets: Sequence[Path], kind: LinkKind = STATED_KIND, number: str | None = None
) -> Ensemble:
    """Find the configurations to measure on."""
    if targets and not any(target.is_dir() for target in targets):
        return _ensemble_of_files(targets, kind, number)
    if len(targets) > 1:
        raise UsageError("Several targets include a directory; name one run, or only files.")
    run = Run(run_of(targets[0])) if targets else only_newest_run()
    if not run.exists() and (folder := ConfigurationFolder.of(run.path)).files:
        ensemble = _ensemble_of_files(folder.files, kind, number)
        return replace(ensemble, name=folder.name, passed_over=folder.passed_over)
    refuse_kind(kind, number, str(run.path))
    parameters = run.read()[0]
    files_by_update = run.unambiguous_configs()
    if files_by_update:
        return ensemble_of(run, parameters, files_by_update)
    if parameters.keeps_configs:
        raise GaugeError(f"The run {run.path} has no configurations yet; generate some first.")
    at = updates_to_measure(run)
    again = f"repeat the command with --at {at}, which makes them again"
    remedy = "generate another run with --measure, which measures along the way, or --format"
    raise GaugeError(
        f"The run {run.path} keeps no configurations, because its format is {NO_FORMAT}; "
        f"{again if at else remedy}."
    )


def ensemble_of(run: Run, parameters: Parameters, files: dict[int, Path]) -> Ensemble:
    """Return files with configurations of a run, by update, as its ensemble."""
    p = parameters
    metadata = {name: value for name, value in p.provenance.items() if name != "version"}
    measured = tuple(item.observable for item in p.measure)
    return Ensemble(files, p.group, p.lattice, p.precision, metadata, run.path, measured)


def _ensemble_of_files(paths: Sequence[Path], kind: LinkKind, number: str | None) -> Ensemble:
    headers = [open_configuration(path, *kind).header for path in paths]
    first = headers[0]
    for path, header in zip(paths, headers, strict=True):
        if (header.group, header.lattice) != (first.group, first.lattice):
            raise GaugeError(
                f"{path} contains {header.group} on {header.lattice}, but {paths[0]} contains "
                f"{first.group} on {first.lattice}; measure on them separately."
            )
    pairs = zip(paths, headers, strict=True)
    stated = (_number_of(path, header) for path, header in pairs)
    numbers = stated if number is None else _numbers_by_pattern(paths, number)
    files: dict[int, Path] = {}
    for n, path in zip(numbers, paths, strict=True):
        if n in files:
            where = (
                f"{files[n]} and {path} both have the number {n} (the sequence number in the "
                "header, or else the last number in the name), which must identify a "
                "configuration; say with --number where it is in the names"
            )
            by_pattern = (
                f"--number '{number}' finds {n} in the names of both {files[n]} and {path}, but "
                "the number must identify a configuration; choose another part of the names"
            )
            raise UsageError(
                f"{where if number is None else by_pattern}, or measure on them separately, with "
                "another --output."
            )
        files[n] = path
    origin = {key: first.provenance.get(key) for key in ("beta", "strict")}
    metadata = {"group": first.group, "lattice": str(first.lattice)}
    metadata |= {key: value for key, value in origin.items() if value is not None}
    if isinstance(first.lattice, OddLattice):
        metadata["measured on"] = f"periodic copies, {first.lattice.copies}"
    files = dict(sorted(files.items()))
    return Ensemble(files, first.group, first.lattice, first.precision, metadata, Path(), kind=kind)


def _numbers_by_pattern(paths: Sequence[Path], text: str) -> Iterator[int]:
    """Yield the first groups of a regular expression in the names of files."""
    try:
        pattern = re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"--number '{text}' is not a regular expression ({error}); put a backslash before "
            "letters that stand for themselves, and close what is opened."
        ) from None
    if not pattern.groups:
        raise UsageError(
            f"--number '{text}' has no group; put parentheses around the number, as in "
            "'cfg([0-9]+)'."
        )
    for path in paths:
        match = pattern.search(path.name)
        if not match:
            raise UsageError(
                f"--number '{text}' does not match the name of {path}; give one that matches the "
                "names of all files, or name the others only."
            )
        if not re.fullmatch(WHOLE, match[1] or ""):
            raise UsageError(
                f"--number '{text}' finds '{match[1] or ''}' in the name of {path}, which is not a "
                "whole number; put the first parentheses around digits, as in '([0-9]+)'."
            )
        yield int(match[1])


def refuse_kind(kind: LinkKind, number: str | None, target: str) -> None:
    """Refuse what only files of other programs need: extents, a group, numbers in their names."""
    kind.refuse(target)
    if number is not None:
        raise UsageError(
            f"{target} has no files whose names are to be numbered; leave --number out, which is "
            "for files of other programs."
        )


def _number_of(path: Path, header: Header) -> int:
    """Return the sequence number in the header of a configuration, or else that in its name.

    Programs that do not count configurations state the number 0 or 1, which is used only if there
    is no number in the name.
    """
    stated = header.provenance.get("sequence_number", "")
    number = int(stated) if re.fullmatch(WHOLE, stated) else 0
    return number if number > 1 else number_in_name(path, number)


def number_in_name(path: Path, otherwise: int = 0) -> int:
    """Return the last number in the name of a file, such as 4000 for ``ckpoint_lat.4000``.

    The ending of a format, such as ``.h5``, does not count.
    """
    suffixes = {x.suffix for x in FORMATS.values()}
    name = path.stem if path.suffix in suffixes else path.name
    numbers = re.findall(WHOLE, name)
    return int(numbers[-1]) if numbers else otherwise


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
    kept: Path | None = None
    """The previous table, if all configurations are measured again."""

    def carry_out(self, pool: DevicePool, precision: str) -> Iterator[int]:
        """Measure the remaining configurations, and yield the number of each one when it is done.

        The table does not depend on the number of devices in the pool.
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
    """Prepare a measurement: open the table, and determine what remains to be measured."""
    manner = f"{precision} precision{', strictly' * ensemble.strictly(observable)}"
    header = {**observable.header, **ensemble.metadata, "measured in": manner}
    refuse_place(path)
    with _locked(path), _without_empty(path, observable):
        refuse_link(path)
        backup = _put_aside(path, observable) if again else None
        if _is_empty(path, observable):
            # It may have other parameters, as after an attempt that was refused.
            _remove(path, observable)
        if path.exists():
            _compare(path, header, observable.formerly)
        columns = (SWEEP, *observable.columns.names)
        header["version"] = version(observable)
        with Table(path, header, columns) as table, ExitStack() as stack:
            measured = _drop_incomplete(path, table, observable.records)
            remaining = tuple(number for number in ensemble.files if number not in measured)
            unknown = _compare_links(path, ensemble, measured)
            if measured and remaining and remaining[0] < measured[-1]:
                raise UsageError(
                    f"The table {path} already contains configuration {measured[-1]}, so that "
                    f"configuration {remaining[0]} cannot be appended; choose another --output, or "
                    "remove the table to measure all configurations again."
                )
            secondary: dict[str, Table] = {}
            for second in observable.secondary_tables:
                beside = secondary[second.name] = stack.enter_context(second.open(path, header))
                # Configurations that the main table does not have are removed.
                records = len(measured) * second.records(observable)
                beside.truncate(after=max(measured, default=-1), expected=records)
            yield MeasurementTask(
                ensemble, observable, table, measured, remaining, unknown, secondary, backup
            )


def refuse_place(path: Path) -> None:
    """Refuse a path at which no table can be: it has no folder, or is one."""
    if not path.parent.is_dir():
        raise UsageError(
            f"There is no folder {path.parent} for the table {path.name}; create it, or choose "
            "another --output."
        )
    if path.is_dir():
        raise UsageError(f"{path} is a folder; name a file for the table with --output.")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a table."""
    lock_file = path.with_name(f".{path.name}.lock")
    lock = RunLock(lock_file)
    try:
        lock.record()
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
    matching = table.header.get("observable") == observable.header["observable"]
    return matching and not any(column.size for column in table.columns.values())


def _all_tables(path: Path, observable: Observable) -> tuple[Path, ...]:
    """Return a table and its secondary tables."""
    return (path, *(table.beside(path) for table in observable.secondary_tables))


def _remove(path: Path, observable: Observable) -> None:
    """Remove a table and its secondary tables."""
    for table in _all_tables(path, observable):
        table.unlink(missing_ok=True)


def put_aside(path: Path, observable: Observable) -> Path | None:
    """Rename a table as `measuring` does with `again`; return its new name, if it has one."""
    if not path.exists():
        return None
    with _locked(path):
        return _put_aside(path, observable)


def _put_aside(path: Path, observable: Observable) -> Path | None:
    """Rename a table and its secondary tables, if not all rows are known to be of this version.

    The new name is followed by a number, so that no file is replaced.
    """
    if not path.exists() or _is_empty(path, observable):
        return None
    table = read_table(path)
    if {*table.makers.values()} == {version(observable)} and 0 in table.makers:
        return None
    tables = [table for table in _all_tables(path, observable) if table.exists()]
    number = 1
    while any(_aside(table, number).exists() for table in tables):
        number += 1
    for file in reversed(tables):  # the table itself last, so that all is repeated after a kill
        file.rename(_aside(file, number))
    return _aside(path, number)


def _aside(path: Path, number: int) -> Path:
    """Return the name under which a previous table is kept."""
    return path.with_name(f"{path.name}.{number}")


def measured_by_others(path: Path, observable: Observable) -> tuple[int, ...]:
    """Return the numbers of the configurations in a table that another version has measured."""
    table = read_table(path)
    foreign = table.made_by_others(version(observable))
    return tuple(np.unique(table.columns[SWEEP][foreign]).tolist())


def rows_of_others(path: Path, table: TableData) -> int:
    """Return the number of rows of a table that another version made.

    Beside a secondary table, whose path is given, is the table that names the observable.
    """
    header = table.header
    try:
        if OF_TABLE in header:
            header = read_heading(path.with_name(header[OF_TABLE]))[0]
        kind = OBSERVABLES.get(header.get("observable", "").replace("_", "-"))
    except (GaugeError, ValueError):
        return 0
    return int(table.made_by_others(version(kind)).sum())


def _compare(path: Path, header: Mapping[str, str], formerly: Mapping[str, str]) -> None:
    """Check that an existing table, which may be of an earlier version, has the given header."""
    lacking = {name: value for name, value in formerly.items() if name in header}
    stored = lacking | read_table(path).header
    stored.pop("version", None)
    if "action" in header:
        stored = restated(stored)
    if words := differences({**header, **stored}, stored, header):
        raise UsageError(
            f"The table {path} has {words}; choose another --output, or remove the table."
        )


def _compare_links(path: Path, ensemble: Ensemble, measured: Sequence[int]) -> tuple[int, ...]:
    """Check that the rows of a table belong to these files, and not to others."""
    origins = read_table(path).origins
    unknown = tuple(number for number in measured if number not in origins)
    for number, file in ensemble.files.items():
        named = number_in_name(file)
        if named != number and named in unknown and number not in measured:
            raise UsageError(
                f"{file} has the number {number} in its header and {named} in its name, by which "
                f"an earlier version numbered the table {path}; choose another --output."
            )
        if number in measured and number in origins:
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
    configs, counts = np.unique(numbers, return_counts=True)
    short = configs[counts != records]
    complete = tuple(map(int, configs[counts == records]))
    if short.size > 1 or (short.size and short[0] != numbers[-1]):
        raise GaugeError(
            f"The table {path} does not contain the {records} records of configuration {short[0]} "
            "exactly once; remove the table to measure all configurations again."
        )
    table.truncate(after=max(complete, default=-1), expected=len(complete) * records)
    return complete
