"""Checks of what lies on disk: each file in itself, and those of a run against each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gauge_mc import checkpoint
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.formats import Averages, open_configuration, plaquette_of
from gauge_mc.formats.links import Links
from gauge_mc.formats.table import TableData, read_table
from gauge_mc.observables.records import observable_of
from gauge_mc.parameters import Parameters
from gauge_mc.run import Run

Advance = Callable[[float], object]
"""Told, as a check goes on, which share of it has been done since it was last told."""

TOLERANCE = {"single": 1e-6, "double": 1e-10}
"""How well plaquettes of a configuration and of a table agree, by the precision of the links."""


@dataclass(frozen=True)
class Check:
    """Something to check.

    Parameters
    ----------
    path : Path
        The file.
    carry_out : callable
        Answers in words what was found good; raises `GaugeError` if the file is damaged or gone.
    """

    path: Path
    carry_out: Callable[[Advance], str]


def checks_of(path: Path) -> list[Check]:
    """List what there is to check of a run or of a configuration file.

    Of a configuration: what its format states (size, checksum, averages), and that its links are
    in the group. Of a run: also that its configurations, tables and checkpoint are complete, and
    belong to it and to each other.

    Raises
    ------
    UsageError
        If there is nothing at `path`, or a directory that holds no run.
    """
    if not path.exists():
        raise UsageError(f"There is no run or file {path}.")
    if not path.is_dir():
        return [Check(path, partial(_configuration, path, None, None))]
    run = Run(path)
    if not run.exists():
        raise UsageError(f"There is no run in {path}: it has no run.toml.")
    try:
        parameters = run.read()[0]
    except GaugeError:  # as the check of run.toml will tell
        parameters = None
    sweep = _saved_sweep(run)
    return [
        Check(run.toml, partial(_record, run)),
        *([Check(run.checkpoint, partial(_checkpoint, run, parameters))] if run.begun() else []),
        *_table_checks(run, parameters, sweep),
        *_configuration_checks(run, parameters, sweep),
    ]


def _table_checks(run: Run, parameters: Parameters | None, sweep: int) -> list[Check]:
    """List the tables that are there, or should be."""
    measured = parameters.measure if parameters and sweep else ()
    paths = {*run.path.glob("*.csv"), *(run.table(item.observable) for item in measured)}
    return [Check(path, partial(_table, path, parameters, sweep)) for path in sorted(paths)]


def _configuration_checks(run: Run, parameters: Parameters | None, sweep: int) -> list[Check]:
    """List the configurations that are there, or should be."""
    paths = run.configs()
    if parameters and parameters.keeps_configs:
        first = parameters.thermalize + parameters.separation
        due = range(first, min(sweep, parameters.sweeps) + 1, parameters.separation)
        paths = {number: run.config(number, parameters.format) for number in due} | paths
    stated = _stated_plaquettes(run)
    return [
        Check(paths[number], partial(_configuration, paths[number], parameters, stated.get(number)))
        for number in sorted(paths)
    ]


def _saved_sweep(run: Run) -> int:
    """Return how far the checkpoint is, or 0 if it does not tell."""
    try:
        return checkpoint.read_moment(run.checkpoint).sweep
    except GaugeError:
        return 0


def _stated_plaquettes(run: Run) -> dict[int, tuple[float, ...]]:
    """Return all, spatial and temporal plaquettes by sweep, as far as the table can be read."""
    try:
        columns = read_table(run.table("plaquette")).columns
        names = ("plaquette", "spatial", "temporal")
        values = zip(*(columns[name].astype(float).tolist() for name in names), strict=True)
        return dict(zip(columns["sweep"].tolist(), values, strict=True))
    except (GaugeError, KeyError, ValueError):
        return {}


def _record(run: Run, advance: Advance) -> str:
    """Check run.toml."""
    return f"sessions: {len(run.read()[1])}"


def _checkpoint(run: Run, parameters: Parameters | None, advance: Advance) -> str:
    """Check the checksum of the checkpoint, and whose it is."""
    moment, _ = checkpoint.load(run.checkpoint)
    if parameters and moment.chain != parameters.settled():
        raise GaugeError(
            f"The checkpoint {run.checkpoint} belongs to a run with other parameters; restore it "
            "from a copy."
        )
    return f"after sweep {moment.sweep}"


def _table(path: Path, parameters: Parameters | None, sweep: int, advance: Advance) -> str:
    """Check a table of a run that has got to `sweep`."""
    table = _sound(path)
    if parameters:
        for name in ("group", "lattice", "beta"):
            found, expected = table.header.get(name), str(parameters.values()[name])
            if found not in (None, expected):
                raise GaugeError(f"{path} is of another run: its {name} is {found}.")
        for item in parameters.measure:
            if path == Run(path.parent).table(item.observable):
                observable = observable_of(item.observable, parameters.lattice)
                if tuple(table.columns) != ("sweep", *observable.columns):
                    columns = ",".join(table.columns)
                    raise GaugeError(f"{path} is damaged: it has the columns {columns}.")
                start, records = parameters.thermalize, observable.records
                _check_sweeps(path, table, start, item.every, records, sweep)
                _check_sums(path, table)
    return f"records: {max(map(len, table.columns.values()))}"


def _sound(path: Path) -> TableData:
    """Read a table whose numbers are all finite."""
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


def _check_sweeps(
    path: Path, table: TableData, start: int, every: int, records: int, sweep: int
) -> None:
    """Check that each sweep that is due has all its rows, up to `sweep` at the least."""
    found = table.columns["sweep"]
    wanted = start + every * (1 + np.arange(len(found)) // records)
    if not np.array_equal(found, wanted):
        row = int(np.argmax(found != wanted))
        raise GaugeError(
            f"{path} is damaged: row {row + 1} is of sweep {found[row]} instead of {wanted[row]}."
        )
    due = max(0, sweep - start) // every * records
    if len(found) < due:
        raise GaugeError(
            f"{path} is damaged: it ends after {len(found)} of {due} rows; restore it from a copy."
        )


def _check_sums(path: Path, table: TableData) -> None:
    """Check that the numbers of each row, which say more than is needed, agree."""
    c = table.columns
    if {"plaquette", "spatial", "temporal"} <= c.keys():
        excess = c["plaquette"] - (c["spatial"] + c["temporal"]) / 2
    elif {"re", "im", "abs"} <= c.keys():
        excess = c["abs"] - np.hypot(c["re"], c["im"])
    else:
        return
    wrong = np.abs(excess) > 1e-9
    if wrong.any():
        row = int(np.argmax(wrong))
        raise GaugeError(
            f"{path} is damaged: the numbers of sweep {c['sweep'][row]} contradict each other."
        )


def _configuration(
    path: Path,
    parameters: Parameters | None,
    stated: tuple[float, ...] | None,
    advance: Advance,
) -> str:
    """Check a configuration, and whether it belongs to a run whose table states its plaquettes."""
    if not path.exists():
        raise _missing(path)
    header = open_configuration(path).header
    for name in ("group", "lattice", "precision") if parameters else ():
        if getattr(header, name) != getattr(parameters, name):
            raise GaugeError(f"{path} is of another run: its {name} is {getattr(header, name)}.")
    averages = _averages(path, advance)
    found = (averages.mean, averages.spatial, averages.temporal)
    for kind, value, said in zip(
        ("", "spatial ", "temporal "), found, stated or found, strict=True
    ):
        if not math.isclose(value, said, rel_tol=0, abs_tol=TOLERANCE[header.precision]):
            raise GaugeError(
                f"{path} and the table of plaquettes contradict each other: its {kind}plaquette "
                f"is {value:.12g}, the table says {said:.12g}; restore either from a copy."
            )
    return f"plaquette {averages.mean:.12g}" + (", as in the table" if stated else "")


def _averages(path: Path, advance: Advance) -> Averages:
    """Read a configuration, with all checks that its format makes, and average over it."""
    configuration = open_configuration(path)

    def told() -> Iterator[Links]:
        for links in configuration.slices():
            yield links
            del links
            advance(1 / configuration.header.lattice.t)

    return plaquette_of(told())


def _missing(path: Path) -> GaugeError:
    return GaugeError(f"{path} is missing; restore it from a copy.")
