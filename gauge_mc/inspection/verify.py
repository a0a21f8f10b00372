"""Verification of what is on disk: each file in itself, and those of a run against each other."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gauge_mc.domain.layout import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.averages import Averages, averages_of
from gauge_mc.files.links import Links
from gauge_mc.files.table import TableData, read_table
from gauge_mc.formats import open_configuration
from gauge_mc.observables import OBSERVABLES, SWEEP, observable_of_table
from gauge_mc.run import checkpoint
from gauge_mc.run.directory import Run, newest_run
from gauge_mc.run.parameters import Measurement, Parameters
from gauge_mc.scans.scan import Scan

Advance = Callable[[float], object]
"""Called as a check goes on, with the share of it that was done since the last call."""

TOLERANCE = dict(zip(REALS, (1e-6, 1e-10), strict=True))
"""How well averages over a configuration and a table must agree, by the precision of the links."""


@dataclass(frozen=True)
class Check:
    """Something to check.

    Attributes
    ----------
    path : Path
        The file.
    carry_out : callable
        Returns in words what was found sound; raises `GaugeError` if the file is damaged or gone.
    """

    path: Path
    carry_out: Callable[[Advance], str]


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    Attributes
    ----------
    path : Path
        The file.
    sound : bool
    words : str
        What was found.
    """

    path: Path
    sound: bool
    words: str


def verify(*paths: str | os.PathLike[str], advance: Advance = lambda share: None) -> list[Verdict]:
    """Check every file of runs and scans, or configuration files.

    Parameters
    ----------
    *paths : path
        Runs, scans or configuration files; without any, the newest run in ``runs/``.
    advance : callable
        See `Advance`.

    Returns
    -------
    list of Verdict
        One for each file.

    Raises
    ------
    UsageError
        If there is nothing at a path, or a directory that holds no run and no scan.
    """
    targets = paths or (newest_run().path,)
    checks = [check for path in targets for check in checks_of(Path(path))]
    return [carry_out(check, advance) for check in checks]


def carry_out(check: Check, advance: Advance) -> Verdict:
    """Carry out a check."""
    try:
        return Verdict(check.path, True, check.carry_out(advance))
    except GaugeError as error:
        return Verdict(check.path, False, str(error))


def checks_of(path: Path) -> list[Check]:
    """List what there is to check of a run, a scan or a configuration file.

    Of a configuration: what its format states (size, checksum, averages), and that its links are
    in the group. Of a run: also that its configurations, tables and checkpoint are complete, and
    belong to it and to each other. Of a scan: its record, its table and all its runs.

    Raises
    ------
    UsageError
        If there is nothing at `path`, or a directory that holds no run and no scan.
    """
    if not path.exists():
        raise UsageError(f"There is no run or file {path}.")
    if not path.is_dir():
        return [Check(path, partial(_configuration, path, None, {}))]
    if Scan(path, Parameters()).exists():
        return _scan_checks(path)
    run = Run(path)
    if not run.exists():
        raise UsageError(f"There is no run in {path}: it has no run.toml.")
    return _run_checks(run)


def _scan_checks(path: Path) -> list[Check]:
    """List the record and the table of a scan, and the files of its runs."""
    scan = Scan(path, Parameters())
    checks = [Check(scan.toml, partial(_scan_record, path))]
    with suppress(GaugeError):  # the check of the record reports it
        scan = Scan.read(path)
    if scan.table.exists():
        checks.append(Check(scan.table, partial(_scan_table, scan)))
    begun = [member for member in scan.members() if member.begun()]
    return checks + [check for member in begun for check in _run_checks(member.run)]


def _run_checks(run: Run) -> list[Check]:
    try:
        parameters = run.read()[0]
    except GaugeError:  # the check of run.toml reports it
        parameters = None
    sweep = _saved_sweep(run)
    begun = run.begun() or run.checkpoint.exists()
    return [
        Check(run.toml, partial(_record, run)),
        *([Check(run.checkpoint, partial(_checkpoint, run, parameters))] if begun else []),
        *_table_checks(run, parameters, sweep),
        *_configuration_checks(run, parameters, sweep),
    ]


def _table_checks(run: Run, parameters: Parameters | None, sweep: int) -> list[Check]:
    """List the tables that are there, or should be."""
    measured = parameters.measure if parameters and sweep else ()
    paths = {*run.tables(), *(run.table(item.observable) for item in measured)}
    return [Check(path, partial(_table, path, parameters, sweep)) for path in sorted(paths)]


def _configuration_checks(run: Run, parameters: Parameters | None, sweep: int) -> list[Check]:
    """List the configurations that are there, or should be."""
    paths = run.configs()
    if parameters and parameters.keeps_configs:
        first = parameters.thermalize + parameters.separation
        due = range(first, min(sweep, parameters.updates) + 1, parameters.separation)
        paths = {number: run.config(number, parameters.format) for number in due} | paths
    stated = _tables_to_compare(run)
    return [
        Check(paths[number], partial(_configuration, paths[number], parameters, stated))
        for number in sorted(paths)
    ]


def _saved_sweep(run: Run) -> int:
    """Return how far the checkpoint is, or 0 if it does not tell."""
    try:
        return checkpoint.read_state(run.checkpoint).sweep
    except GaugeError:
        return 0


def _tables_to_compare(run: Run) -> dict[str, TableData]:
    """Return the tables that are sound, by observable."""
    found = {}
    for name, observable in OBSERVABLES.items():
        path = run.table(name)
        if path.exists():
            with suppress(GaugeError):  # the check of the table reports it
                table = _sound(path)
                if tuple(table.columns) == (SWEEP, *observable.columns):
                    found[name] = table
    return found


def _scan_record(path: Path, advance: Advance) -> str:
    """Check scan.toml."""
    return f"runs: {len(Scan.read(path).members())}"


def _scan_table(scan: Scan, advance: Advance) -> str:
    """Check the table of a scan, and that the runs are there of which it has averages."""
    table = read_table(scan.table, text=("lattice",))
    words = [name for name, column in table.columns.items() if column.dtype.kind == "U"]
    known = {"beta", "lattice", *(["sweeps"] if len(table) else [])}
    if words != ["lattice"] or not known <= table.columns.keys():
        raise GaugeError(f"{scan.table} is damaged: it is not the table of a scan.")
    done = _updates_measured(scan)
    for row in range(len(table) if scan.grids else 0):
        beta, lattice = float(table["beta"][row]), str(table["lattice"][row])
        averaged, there = table["sweeps"][row], done.get((beta, lattice), 0)
        if averaged > there:
            raise GaugeError(
                f"{scan.table} has averages over {averaged} updates at beta = {beta:.12g} on "
                f"{lattice}, where the runs have {there}; restore the runs from a copy, or remove "
                "the table."
            )
    return f"points: {len(table)}"


def _updates_measured(scan: Scan) -> dict[tuple[float, str], float]:
    """Return the updates after thermalisation of all runs at a point, by beta and lattice.

    Infinity where a run is damaged, which its own checks report.
    """
    result: dict[tuple[float, str], float] = {}
    for member in scan.members():
        beta, lattice = member.point
        done = max(0, member.sweep() - member.parameters.thermalize)
        found = math.inf if member.damage() else done
        result[beta, str(lattice)] = result.get((beta, str(lattice)), 0) + found
    return result


def _record(run: Run, advance: Advance) -> str:
    """Check run.toml."""
    return f"sessions: {len(run.read()[1])}"


def _checkpoint(run: Run, parameters: Parameters | None, advance: Advance) -> str:
    """Check the checksum of the checkpoint, and to which run it belongs."""
    state, _ = checkpoint.load(run.checkpoint)
    if parameters and state.chain != parameters.fixed():
        raise GaugeError(
            f"The checkpoint {run.checkpoint} belongs to a run with other parameters; restore it "
            "from a copy."
        )
    return f"after update {state.sweep}"


def _table(path: Path, parameters: Parameters | None, sweep: int, advance: Advance) -> str:
    """Check a table of a run that has done `sweep` updates."""
    table = _sound(path)
    if parameters:
        _check_origin(path, table, parameters)
        for item in parameters.measure:
            if path == Run(path.parent).table(item.observable):
                _check_rows(path, table, parameters, item, sweep)
    _check_numbers(path, table)
    return f"records: {len(table)}"


def _sound(path: Path) -> TableData:
    """Return a table whose numbers are all finite."""
    if not path.exists():
        raise _missing(path)
    table = read_table(path)
    for name, column in table.columns.items():
        if name != "path" and column.dtype.kind == "U" and len(column):
            raise GaugeError(f"{path} is damaged: row 1 has no number for {name}.")
        if column.dtype.kind == "f" and not np.isfinite(column).all():
            row = int(np.argmin(np.isfinite(column)))
            raise GaugeError(f"{path} is damaged: row {row + 1} has {column[row]} for {name}.")
    return table


def _check_origin(path: Path, table: TableData, parameters: Parameters) -> None:
    """Check that a table is of the run."""
    for name in ("group", "lattice", "beta"):
        found, expected = table.header.get(name), str(parameters.values()[name])
        if found not in (None, expected):
            raise GaugeError(f"{path} is of another run: its {name} is {found}.")


def _check_rows(
    path: Path, table: TableData, parameters: Parameters, item: Measurement, sweep: int
) -> None:
    """Check the columns, and that each update that is due has all its rows, at least to `sweep`."""
    names, records = _expected(table, parameters, item)
    if tuple(table.columns) != (SWEEP, *names):
        raise GaugeError(f"{path} is damaged: it has the columns {','.join(table.columns)}.")
    start, every, found = parameters.thermalize, item.every, table.columns[SWEEP]
    wanted = start + every * (1 + np.arange(len(found)) // records)
    if not np.array_equal(found, wanted):
        row = int(np.argmax(found != wanted))
        raise GaugeError(
            f"{path} is damaged: row {row + 1} is of update {found[row]} instead of {wanted[row]}."
        )
    due = max(0, sweep - start) // every * records
    if len(found) < due:
        raise GaugeError(
            f"{path} is damaged: it ends after {len(found)} of {due} rows; restore it from a copy."
        )


def _expected(
    table: TableData, parameters: Parameters, item: Measurement
) -> tuple[tuple[str, ...], int]:
    """Return the columns of a measurement besides the sweep, and its records of one field.

    The columns of a user's own observable, and the records of one with other than the default
    options, are taken from the table.
    """
    sweeps = table.columns.get(SWEEP, np.zeros(0))
    records = int(np.count_nonzero(sweeps == sweeps[0])) if len(sweeps) else 1
    if item.observable not in OBSERVABLES:
        return tuple(name for name in table.columns if name != SWEEP), records
    usual = OBSERVABLES[item.observable].for_lattice(parameters.lattice)
    is_usual = usual.header.items() <= table.header.items()
    return usual.columns, usual.records if is_usual else records


def _check_numbers(path: Path, table: TableData) -> None:
    """Check that the numbers of each row agree, as far as they determine each other."""
    observable = observable_of_table(table)
    if observable is None or not set(observable.columns) <= table.columns.keys():
        return
    wrong = observable.contradictions(table.columns)
    if wrong is not None and wrong.any():
        sweep = table.columns[SWEEP][int(np.argmax(wrong))]
        raise GaugeError(f"{path} is damaged: the numbers of update {sweep} contradict each other.")


def _configuration(
    path: Path,
    parameters: Parameters | None,
    stated: dict[str, TableData],
    advance: Advance,
) -> str:
    """Check a configuration, and whether it agrees with the tables of its run."""
    if not path.exists():
        raise _missing(path)
    header = open_configuration(path).header
    for name in ("group", "lattice", "precision") if parameters else ():
        if getattr(header, name) != getattr(parameters, name):
            raise GaugeError(f"{path} is of another run: its {name} is {getattr(header, name)}.")
    averages = _averages(path, advance)
    compared = False
    for observable, table in stated.items():
        found = OBSERVABLES[observable].of_averages(averages)
        compared |= _compare(path, observable, found, table, TOLERANCE[header.precision])
    words = [f"plaquette {averages.mean:.12g}"]
    words += ["as in the table"] * compared + [header.warning] * bool(header.warning)
    return ", ".join(words)


def _compare(
    path: Path, observable: str, found: dict[str, float], table: TableData, tolerance: float
) -> bool:
    """Compare numbers of a configuration with its row of a table; return whether there is one."""
    if not found or not path.stem.isdecimal():
        return False
    rows = np.flatnonzero(table.columns[SWEEP] == int(path.stem))
    if len(rows) != 1:
        return False
    for column, value in found.items():
        said = float(table.columns[column][rows[0]])
        if not math.isclose(value, said, rel_tol=0, abs_tol=tolerance):
            raise GaugeError(
                f"{path} and the table of {observable} contradict each other: its {column} is "
                f"{value:.12g}, the table says {said:.12g}; restore either from a copy."
            )
    return True


def _averages(path: Path, advance: Advance) -> Averages:
    """Read a configuration with all checks of its format, and return the averages over it."""
    configuration = open_configuration(path)

    def slices() -> Iterator[Links]:
        for links in configuration.slices():
            yield links
            del links
            advance(1 / configuration.header.lattice.t)

    return averages_of(slices())


def _missing(path: Path) -> GaugeError:
    return GaugeError(f"{path} is missing; restore it from a copy.")


def summarise(verdicts: Sequence[Verdict], named: int) -> str | None:
    """Return a sentence about the files that are not sound, of which so many are named, or None."""
    bad = [str(verdict.path) for verdict in verdicts if not verdict.sound]
    if not bad:
        return None
    more = f" and {len(bad) - named} more" if len(bad) > named else ""
    return (
        f"Damaged or missing: {len(bad)} of {len(verdicts)} files, {', '.join(bad[:named])}{more}."
    )
