"""Verification of files: each file by itself, and the files of a run against each other."""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from gauge_mc import errors
from gauge_mc.configurations.reading import STATED_KIND, LinkKind, open_configuration
from gauge_mc.domain.slab import REALS
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.input import is_missing, open_regular, unreadable
from gauge_mc.files.structured import LARGE
from gauge_mc.files.table import SEAL, TableData, read_heading, read_table
from gauge_mc.formats import FORMATS, ConfigurationFolder
from gauge_mc.observables import OBSERVABLES, observable_of_table
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import Registry
from gauge_mc.run import checkpoint
from gauge_mc.run.directory import Run, ambiguous, missing_run
from gauge_mc.run.measurement import Measurement, observable_along
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import parse_duration
from gauge_mc.run.state import saved_updates
from gauge_mc.scans.grid import numbers_in, value_at
from gauge_mc.scans.scan import Scan, is_scan
from gauge_mc.signatures import checks_types
from gauge_mc.storage.links import Block
from gauge_mc.stored import named_or_newest, runs_of
from gauge_mc.stored.measurement_table import rows_of_others
from gauge_mc.stored.thinning import RemovedConfigurations, read_rules

CheckProgress = Callable[[float], object]
"""Function that is called during a check, with the fraction of it done since the last call."""

TOLERANCE = dict(zip(REALS, (1e-6, 1e-10), strict=True))
"""Maximum difference between averages in a configuration and in a table, by precision."""

MOST_MISSING = 1000
"""Largest number of missing configurations that are named one by one."""

TABLE_BEGINS = b"# observable: "
"""First bytes of a table of an observable."""

UNSEALED = (
    "caution: the last line, with the checksum, is missing, so that changed numbers would not be "
    "noticed"
)
"""Note on a table without a seal."""


@dataclass(frozen=True)
class Check:
    """A check of one file."""

    path: Path
    """File to check."""
    carry_out: Callable[[CheckProgress], str]
    """Function that checks the file and returns a short result as text. It raises `DamagedError` if
    the file is damaged or missing, and another `GaugeError` if it cannot be checked here.
    """
    named: bool = False
    """Whether only the user says what the file is, so that one of another kind is not damaged."""


@dataclass(frozen=True)
class Verdict:
    """The result of a check."""

    path: Path
    """File that was checked."""
    sound: bool | None
    """Whether the file is neither damaged nor missing; None if it cannot be checked here."""
    words: str
    """Short result, or the error message, which says why the file cannot be checked."""


class CheckedFolder(ABC):
    """A kind of folder with checks of its own, such as a publication."""

    name: str
    """Name of the kind."""

    @abstractmethod
    def holds(self, folder: Path) -> bool:
        """Return whether a folder is of this kind."""

    @abstractmethod
    def checks(self, folder: Path, regenerate: int, longest: float | None) -> list[Check]:
        """Return the checks of a folder.

        Parameters
        ----------
        folder : Path
            The folder.
        regenerate : int
            Number of configurations to make again.
        longest : float, optional
            Seconds that this may take; None for the usual time.

        Raises
        ------
        UsageError
            If the number is negative.
        """


FOLDERS: Registry[CheckedFolder] = Registry("kind of folder", __name__, CheckedFolder)


@checks_types
def verify(
    *paths: str | os.PathLike[str],
    advance: CheckProgress = lambda share: None,
    regenerate: int = 0,
    lattice: str | None = None,
    group: str | None = None,
    time_limit: str | None = None,
) -> list[Verdict]:
    """Check every file of runs and scans, or single configurations and tables.

    Parameters
    ----------
    *paths : path
        Runs, scans, publications, configurations, folders of them, or tables; by default running
        or last generated in ``runs/``.
    advance : callable
        See `CheckProgress`.
    regenerate : int
        Make this many configurations of a publication again, at random, and compare them. See
        `gauge_mc.publish`.
    lattice, group : str, optional
        Extents and group of links of which configuration files themselves say nothing; see
        `open_configuration`.
    time_limit : str, optional
        Time that making them may take; if it would take longer, they are not made; by default
        24:00:00. The first updates tell how long it would take.

    Returns
    -------
    list of Verdict
        One verdict per file.

    Raises
    ------
    UsageError
        If a path does not exist, or is a directory without a run or a scan.
    """
    targets = named_or_newest([*map(Path, paths)])
    kind = LinkKind(lattice, group)
    checks = [check for path in targets for check in checks_of(path, regenerate, kind, time_limit)]
    return [carry_out(check, advance) for check in checks]


def carry_out(check: Check, advance: CheckProgress) -> Verdict:
    """Carry out a check.

    Only a `DamagedError` is a verdict on the file, and a file of another kind where one of ours
    should be. No other failure says whether the file is good.
    """
    try:
        return Verdict(check.path, True, check.carry_out(advance))
    except errors.StoppedError:
        raise
    except (errors.GaugeError, OSError) as error:
        failure = unreadable(check.path, error) if isinstance(error, OSError) else error
        other_kind = isinstance(failure, errors.UnsupportedError) and not check.named
        bad = other_kind or isinstance(failure, errors.DamagedError)
        return Verdict(check.path, False if bad else None, str(failure))


def checks_of(
    path: Path, regenerate: int = 0, kind: LinkKind = STATED_KIND, time_limit: str | None = None
) -> list[Check]:
    """Return the checks of a run, a scan, a publication, a configuration or a table.

    For a configuration, its header (size, checksum, averages) and the unitarity of its links are
    checked. For a table, its checksum and its numbers are checked, and in the directory
    of a run or a scan also that it is complete. For a run, also that its configurations, tables and
    checkpoint are complete and consistent with each other. For a scan, scan.toml, the table and all
    runs are checked. The files of a publication are compared with its description.
    """
    try:
        return _checks_of(path, regenerate, kind, time_limit)
    except PermissionError as error:
        place = Path(os.fsdecode(error.filename or path))
        return [Check(path, partial(refused, unreadable(place, error)))]


def _checks_of(path: Path, regenerate: int, kind: LinkKind, time_limit: str | None) -> list[Check]:
    longest = None if time_limit is None else parse_duration(time_limit)
    for folder in FOLDERS.values():
        if path.is_dir() and folder.holds(path):
            kind.refuse(str(path))
            return folder.checks(path, regenerate, longest)
    if regenerate:
        raise errors.UsageError(
            f"{path} is not a publication whose configurations could be made again; leave out "
            "--regenerate."
        )
    if not path.exists():
        raise errors.UsageError(f"There is no file or directory {path}.")
    if not path.is_dir() and not _is_table(path):
        return [_configuration_check(path, kind)]
    runs = [] if is_scan(path) else runs_of([path])
    if path.is_dir() and runs and not Run(runs[0]).exists():
        return _folder_checks(path, kind)
    kind.refuse(str(path))
    if not path.is_dir():
        return [_table_check(path)]
    if not runs:
        return _scan_checks(path)
    return [check for run in runs for check in _run_checks(Run(run))]


def _configuration_check(path: Path, kind: LinkKind) -> Check:
    """Return the check of a configuration by itself."""
    return Check(path, partial(_configuration, path, None, {}, kind=kind), named=True)


def _folder_checks(path: Path, kind: LinkKind) -> list[Check]:
    """Return the checks of configurations in a folder, also of those by the ending of the name."""
    folder, suffixes = ConfigurationFolder.of(path), {x.suffix for x in FORMATS.values()}
    foreign = [x for x in folder.others if x.suffix not in suffixes - {""}]
    files = sorted({*folder.files, *folder.others} - {*foreign})
    if not files:
        raise missing_run(path)
    passed_over = replace(folder, others=foreign).passed_over
    checks = [Check(path, lambda advance: passed_over)] * bool(foreign)
    return checks + [_configuration_check(file, kind) for file in files]


def refused(error: errors.GaugeError, advance: CheckProgress) -> str:
    """Report an error that was noticed before the checks began."""
    raise error


def _scan_checks(path: Path) -> list[Check]:
    """Return the checks of scan.toml, of the scan's table, and of its runs."""
    scan = _known_scan(path)
    checks = [Check(scan.toml, lambda advance: f"runs: {len(Scan.read(path).members())}")]
    if scan.table.exists():
        checks.append(Check(scan.table, partial(_scan_table, scan)))
    begun = [member for member in scan.members() if member.begun()]
    return checks + [check for member in begun for check in _run_checks(member.run)]


def _known_scan(path: Path) -> Scan:
    """Return a scan, without its grids if scan.toml is damaged, which its own check reports."""
    with suppress(errors.GaugeError):
        return Scan.read(path)
    return Scan(path, Parameters())


def _is_table(path: Path) -> bool:
    """Return whether a file is a table, by the ending of its name or its first bytes."""
    if path.suffix == ".csv":
        return True
    with suppress(OSError, errors.GaugeError), open_regular(path) as file:
        return file.read(len(TABLE_BEGINS)) == TABLE_BEGINS
    return False


def _table_check(path: Path) -> Check:
    """Return the check of one table, with what the run or the scan in its directory says."""
    run = Run(path.parent)
    if run.exists():
        return Check(path, partial(_table, path, _known_parameters(run), saved_updates(run)))
    if is_scan(path.parent) and path == (scan := _known_scan(path.parent)).table:
        return Check(path, partial(_scan_table, scan))
    return Check(path, partial(_single_table, path), named=True)


def _known_parameters(run: Run) -> Parameters | None:
    """Return the parameters of a run, or None if run.toml is damaged, as its check reports."""
    with suppress(errors.GaugeError):
        return run.read()[0]
    return None


def _run_checks(run: Run) -> list[Check]:
    parameters, sweep = _known_parameters(run), saved_updates(run)
    begun = run.begun() or run.checkpoint.exists()
    measured = parameters.recorded if parameters and sweep else ()
    tables = {*run.tables(), *(run.table(item.observable) for item in measured)}
    return [
        Check(run.toml, lambda advance: f"sessions: {len(run.read()[1])}"),
        *([Check(run.checkpoint, partial(_checkpoint, run, parameters))] if begun else []),
        *([Check(run.thinned, partial(_thinned, run, parameters))] if run.thinned.exists() else []),
        *(Check(path, partial(_table, path, parameters, sweep)) for path in sorted(tables)),
        *_configuration_checks(run, parameters, sweep),
    ]


def _configuration_checks(run: Run, parameters: Parameters | None, sweep: int) -> list[Check]:
    """Return the checks of all configurations that exist or should exist."""
    files, unnamed = run.config_files(), 0
    if parameters and parameters.keeps_configs:
        numbers = {number for number, _ in files}
        due = _due(run, parameters, sweep)
        missing = (n for part in due for n in part if n not in numbers)
        stored = sum(number in part for number in numbers for part in due)
        unnamed = max(0, sum(map(len, due)) - stored - MOST_MISSING)
        files += [(n, run.config(n, parameters.format)) for n in islice(missing, MOST_MISSING)]
    stated = _tables_to_compare(run)
    checks, paths = [], dict[int, Path]()
    for number, path in sorted(files):
        first = paths.setdefault(number, path)
        check = partial(_configuration, path, parameters, stated)
        if path != first:
            check = partial(refused, ambiguous(number, first, path))
        checks.append(Check(path, check))
    if unnamed:
        folder = run.path / "configs"
        at = ",".join(f"{part[0]}:{part[-1]}:{part.step}" for part in due if part)
        again = _making_again("them", run, parameters, at)
        message = f"{unnamed} more configurations are missing from {folder}; {again}."
        checks.append(Check(folder, partial(refused, errors.DamagedError(message))))
    return checks


def _due(run: Run, parameters: Parameters, sweep: int) -> list[range]:
    """Return the updates after which there should be a configuration.

    A damaged record of what was removed on purpose, which has a check, counts as missing. If it
    cannot be read, no configuration is known to be due.
    """
    try:
        removed = RemovedConfigurations.of(run, parameters)
    except errors.UnreadableError:
        return []
    except errors.GaugeError:
        removed = RemovedConfigurations(parameters)
    return removed.kept(min(sweep, parameters.updates))


def _thinned(run: Run, parameters: Parameters | None, advance: CheckProgress) -> str:
    """Check the record of configurations that were removed on purpose."""
    removed = parameters and RemovedConfigurations.of(run, parameters)
    rules = removed.rules if removed else read_rules(run, LARGE)
    return "; ".join(f"1 of {rule.keep} kept up to update {rule.sweep}" for rule in rules)


def _tables_to_compare(run: Run) -> dict[str, TableData]:
    """Return the undamaged tables of registered observables, by observable."""
    tables = {}
    for name, observable in OBSERVABLES.items():
        path = run.table(name)
        if path.exists():
            with suppress(errors.GaugeError):  # the check of the table reports the error
                table = _sound(path)
                if tuple(table.columns) == (SWEEP, *observable.columns.names):
                    tables[name] = table
    return tables


def _scan_table(scan: Scan, advance: CheckProgress) -> str:
    """Check the table of a scan, and that the runs contain the updates that it averages."""
    table = _points(scan.table)
    names = [number.name for number in numbers_in(table.columns)]
    updates = _updates_measured(scan, names)
    for row in range(len(table) if scan.grids else 0):
        beta, lattice = float(table["beta"][row]), str(table["lattice"][row])
        numbers = (float(table[name][row]) for name in names)
        averaged, available = table["sweeps"][row], updates.get((beta, lattice, *numbers), 0)
        if averaged > available:
            raise errors.DamagedError(
                f"{scan.table} contains averages over {averaged} updates at beta = {beta:.12g} on "
                f"{lattice}, where the runs contain {available}; restore the runs from a copy, or "
                "remove the table."
            )
    return _with_note(scan.table, f"points: {len(table)}")


def _points(path: Path) -> TableData:
    """Read the table of a scan."""
    table = read_table(path, text=("lattice",))
    words = [name for name, column in table.columns.items() if column.dtype.kind == "U"]
    required = {"beta", "lattice", *(["sweeps"] if len(table) else [])}
    if words != ["lattice"] or not required <= table.columns.keys():
        raise errors.DamagedError(f"{path} is damaged: it is not the table of a scan.")
    return table


def _single_table(path: Path, advance: CheckProgress) -> str:
    """Check a table by itself."""
    names = read_heading(path)[1]
    if "lattice" in names and SWEEP not in names:
        return _with_note(path, f"points: {len(_points(path))}")
    return _table(path, None, 0, advance)


def _updates_measured(scan: Scan, names: Sequence[str]) -> dict[tuple[object, ...], float]:
    """Return the total number of updates after thermalisation at each point.

    The number is infinite where a run is damaged; the checks of that run report the damage. Points
    are told apart by the numbers with these names.
    """
    result: dict[tuple[object, ...], float] = {}
    for member in scan.members():
        point = member.point
        numbers = point.numbers
        key = (point.beta, str(point.lattice), *(value_at(numbers, name) for name in names))
        updates = max(0, member.sweep() - member.parameters.thermalize)
        inf = math.inf if member.damage() else updates
        result[key] = result.get(key, 0) + inf
    return result


def _checkpoint(run: Run, parameters: Parameters | None, advance: CheckProgress) -> str:
    """Check the checksum of the checkpoint, and that it belongs to the run."""
    state, _ = checkpoint.load(run.checkpoint)
    if parameters and not parameters.is_of(state.chain):
        raise errors.DamagedError(
            f"The checkpoint {run.checkpoint} belongs to a run with other parameters; restore it "
            "from a copy."
        )
    return f"after update {state.sweep}"


def _table(path: Path, parameters: Parameters | None, sweep: int, advance: CheckProgress) -> str:
    """Check a table of a run whose checkpoint is after `sweep` updates."""
    table = _sound(path)
    if parameters:
        for name in ("group", "lattice", "beta"):
            stated, expected = table.header.get(name), str(parameters.values()[name])
            if stated not in (None, expected):
                raise errors.DamagedError(f"{path} belongs to another run: its {name} is {stated}.")
        for item in parameters.recorded:
            if path == Run(path.parent).table(item.observable):
                _check_rows(path, table, parameters, item, sweep)
    _check_numbers(path, table)
    words = f"records: {len(table)}"
    if rows := rows_of_others(path, table):
        words += f", {rows} of them by another version"
    unfinished = parameters and sweep < parameters.updates
    return words if unfinished else _with_note(path, words)


def _with_note(path: Path, words: str) -> str:
    """Append a note to the result of a check if the table has no seal.

    A table of an unfinished run may have none, and tables of version 0.1.0 have none.
    """
    data = path.read_bytes()
    sealed = data.endswith(b"\n") and data[data.rfind(b"\n", 0, -1) + 1 :].startswith(SEAL)
    return words if sealed else f"{words}, {UNSEALED}"


def _sound(path: Path) -> TableData:
    """Read a table, and check that all of its numbers are finite."""
    if is_missing(path):
        raise errors.DamagedError(f"{path} is missing; restore it from a copy.")
    table = read_table(path)
    kinds = [columns for x in OBSERVABLES.values() for columns in x.columns_of_tables()]
    words = {name for columns in kinds for name in columns.words}
    for name, column in table.columns.items():
        if name not in words and column.dtype.kind == "U" and len(column):
            raise errors.DamagedError(f"{path} is damaged: row 1 contains no number for {name}.")
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise errors.DamagedError(
                f"{path} is damaged: row {row + 1} contains {column[row]} for {name}."
            )
    return table


def _check_rows(
    path: Path, table: TableData, parameters: Parameters, item: Measurement, sweep: int
) -> None:
    """Check the columns, and that every update that is due up to `sweep` has all of its rows."""
    names, records = _expected(table, parameters, item)
    if tuple(table.columns) != (SWEEP, *names):
        raise errors.DamagedError(
            f"{path} is damaged: it has the columns {','.join(table.columns)}."
        )
    start, every, sweeps = parameters.thermalize, item.every, table.columns[SWEEP]
    expected = start + every * (1 + np.arange(len(sweeps)) // records)
    if not np.array_equal(sweeps, expected):
        row = int(np.argmax(sweeps != expected))
        raise errors.DamagedError(
            f"{path} is damaged: row {row + 1} belongs to update {sweeps[row]} instead of "
            f"{expected[row]}."
        )
    due = max(0, sweep - start) // every * records
    if len(sweeps) < due:
        raise errors.DamagedError(
            f"{path} is damaged: it ends after {len(sweeps)} of {due} rows; restore it from a copy."
        )


def _expected(
    table: TableData, parameters: Parameters, item: Measurement
) -> tuple[tuple[str, ...], int]:
    """Return the columns of a measurement without the sweep, and its number of records.

    The columns of a user-defined observable are taken from the table, and so is the number of
    records of an observable whose options differ from the defaults.
    """
    sweeps = table.columns.get(SWEEP, np.zeros(0))
    records = int(np.count_nonzero(sweeps == sweeps[0])) if len(sweeps) else 1
    if item.observable not in OBSERVABLES:
        return tuple(name for name in table.columns if name != SWEEP), records
    usual = observable_along(item, parameters)
    is_usual = usual.header.items() <= table.header.items()
    every = OBSERVABLES[item.observable].columns
    lacking = {x.name for x in every if x.optional} - table.columns.keys()
    names = (name for name in usual.columns.names if is_usual or name not in lacking)
    return tuple(names), usual.records if is_usual else records


def _check_numbers(path: Path, table: TableData) -> None:
    """Check relations between the numbers of each row, if the observable declares any."""
    observable = observable_of_table(table)
    if observable is None or not set(observable.columns.names) <= table.columns.keys():
        return
    wrong = observable.contradictions(table.columns)
    if wrong is not None and wrong.any():
        row = int(np.argmax(wrong))
        where = f"update {table[SWEEP][row]}" if SWEEP in table.columns else f"row {row + 1}"
        raise errors.DamagedError(
            f"{path} is damaged: the numbers of {where} contradict each other."
        )


def _making_again(pronoun: str, run: Run, parameters: Parameters | None, at: str) -> str:
    """Return the advice for configurations that a run lacks."""
    if parameters and parameters.tempering:  # which a run cannot do by itself
        return f"restore {pronoun} from a copy"
    return f"make {pronoun} again with `{CommandLine('regenerate', run.path, at=at)}`"


def _configuration(
    path: Path,
    parameters: Parameters | None,
    stated: dict[str, TableData],
    advance: CheckProgress,
    kind: LinkKind = STATED_KIND,
) -> str:
    """Check a configuration, and that it agrees with the tables of its run."""
    if is_missing(path):
        again = _making_again("it", Run(path.parents[1]), parameters, str(int(path.stem)))
        raise errors.DamagedError(f"{path} is missing; {again}.")
    configuration = open_configuration(path, *kind)
    header = configuration.header
    for name in ("group", "lattice", "precision") if parameters else ():
        if getattr(header, name) != getattr(parameters, name):
            raise errors.DamagedError(
                f"{path} belongs to another run: its {name} is {getattr(header, name)}."
            )

    def advancing(blocks: Iterable[Block], count: int) -> Iterator[Block]:
        for block in blocks:
            yield block
            advance(1 / count)

    averages = configuration.check(advancing)
    compared = False
    for observable, table in stated.items():
        recomputed = OBSERVABLES[observable].of_averages(averages)
        compared |= _compare(path, observable, recomputed, table, TOLERANCE[header.precision])
    words = [f"plaquette {averages.mean:.12g}"]
    words += ["as in the table"] * compared + [header.warning] * bool(header.warning)
    words += configuration.cautions
    return ", ".join(words)


def _compare(
    path: Path, observable: str, averages: dict[str, float], table: TableData, tolerance: float
) -> bool:
    """Compare averages over a configuration with its row in a table."""
    if not averages or not path.stem.isdecimal():
        return False
    rows = np.flatnonzero(table.columns[SWEEP] == int(path.stem))
    if len(rows) != 1:
        return False
    for column, value in averages.items():
        tabulated = float(table.columns[column][rows[0]])
        if not math.isclose(value, tabulated, rel_tol=0, abs_tol=tolerance):
            raise errors.DamagedError(
                f"{path} and the table of {observable} contradict each other: {column} is "
                f"{value:.12g} in the configuration, but {tabulated:.12g} in the table; restore "
                "them from a copy."
            )
    return True


def summarise(verdicts: Sequence[Verdict], named: int) -> errors.GaugeError | None:
    """Return the error that says which files are damaged, missing or unchecked, if any are."""
    bad, unchecked = (
        [str(v.path) for v in verdicts if v.sound is sound] for sound in (False, None)
    )

    def files(paths: Sequence[str]) -> str:
        more = f" and {len(paths) - named} more" if len(paths) > named else ""
        return f"{len(paths)} of {len(verdicts)} files, {', '.join(paths[:named])}{more}."

    words = [f"Damaged or missing: {files(bad)}"] * bool(bad)
    words += [f"Could not be checked here: {files(unchecked)}"] * bool(unchecked)
    return (
        (errors.DamagedError if bad else errors.UncheckedError)(" ".join(words)) if words else None
    )
