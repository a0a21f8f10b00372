"""Measurements on configurations that are on disk: of a run, or files by themselves.

A measurement appends to a table, all records of a configuration at once, and goes on where it
stopped: configurations that are in the table are done, and one that a kill left incomplete is
measured again.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from gauge_mc import __version__
from gauge_mc.chain import provenance
from gauge_mc.crew import Crew, DeviceOrRing
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.field import Field
from gauge_mc.formats import open_configuration
from gauge_mc.formats.table import Table, read_table
from gauge_mc.lattice import Lattice
from gauge_mc.observables.records import Measurer, Observable, Record
from gauge_mc.run import Hold, Run, newest_run

VERSION = f"gauge-mc {__version__}"


@dataclass(frozen=True)
class Ensemble:
    """Configurations of one kind.

    Attributes
    ----------
    files : dict of int to Path
        By number, which is the sweep in a run, ascending.
    group, precision : str
    lattice : Lattice
    facts : dict of str to str
        What identifies them, for the headers of tables.
    folder : Path
        Where tables go.
    measured : tuple of str
        Observables that have tables there from `generate`.
    """

    files: dict[int, Path]
    group: str
    lattice: Lattice
    precision: str
    facts: dict[str, str]
    folder: Path
    measured: tuple[str, ...] = ()

    def load(self, number: int, precision: str, device: DeviceOrRing) -> Field:
        """Read a configuration.

        Raises
        ------
        GaugeError
            If it cannot be read, is damaged, or is not of the ensemble's group and lattice.
        """
        configuration = open_configuration(self.files[number])
        header = configuration.header
        if (header.group, header.lattice) != (self.group, self.lattice):
            raise GaugeError(
                f"{configuration.path} holds {header.group} on {header.lattice}, but the others "
                f"are {self.group} on {self.lattice}; take it away."
            )
        return Field.load(self.lattice, self.group, configuration.slices(), precision, device)


def find_ensemble(targets: Sequence[Path]) -> Ensemble:
    """Find the configurations to measure on.

    Parameters
    ----------
    targets : sequence of Path
        A run directory, or configuration files; or nothing, for the newest run in ``runs/``.

    Raises
    ------
    UsageError
        If there is no such run, or the files' names do not tell their numbers.
    GaugeError
        If there are no configurations, or a file cannot be read or differs from the others.
    """
    if targets and not any(target.is_dir() for target in targets):
        return _ensemble_of_files(targets)
    if len(targets) > 1:
        raise UsageError("Name one run, or configuration files; not several runs, or both.")
    return _ensemble_of_run(Run(targets[0]) if targets else newest_run())


def _ensemble_of_run(run: Run) -> Ensemble:
    parameters = run.read()[0]
    files = run.configs()
    if not files and not parameters.keeps_configs:
        raise GaugeError(
            f"The run {run.path} keeps no configurations to measure on, its format being none; "
            "generate others with --format ildg and another --output, or with --measure "
            "wilson-loops:10 to measure along the way."
        )
    if not files:
        raise GaugeError(
            f"The run {run.path} has no configurations to measure on; generate some first."
        )
    p = parameters
    facts = {name: fact for name, fact in provenance(p).items() if name != "version"}
    measured = tuple(item.observable for item in p.measure)
    return Ensemble(files, p.group, p.lattice, p.precision, facts, run.path, measured)


def _ensemble_of_files(paths: Sequence[Path]) -> Ensemble:
    headers = [open_configuration(path).header for path in paths]
    first = headers[0]
    for path, header in zip(paths, headers, strict=True):
        if (header.group, header.lattice) != (first.group, first.lattice):
            raise GaugeError(
                f"{path} holds {header.group} on {header.lattice}, but {paths[0]} holds "
                f"{first.group} on {first.lattice}; measure on them apart."
            )
    files: dict[int, Path] = {}
    for path in paths:
        number = _number_of(path)
        if number in files:
            raise UsageError(
                f"By their names {files[number]} and {path} are both configuration {number}; "
                "let the last number in a name be the configuration's."
            )
        files[number] = path
    facts = {"group": first.group, "lattice": str(first.lattice)}
    facts |= {key: first.provenance[key] for key in ("beta",) if key in first.provenance}
    files = dict(sorted(files.items()))
    return Ensemble(files, first.group, first.lattice, first.precision, facts, Path())


def _number_of(path: Path) -> int:
    """Return the last number in the name of a file, such as 4000 of ckpoint_lat.4000."""
    numbers = re.findall(r"\d+", path.name)
    return int(numbers[-1]) if numbers else 0


@dataclass(frozen=True)
class Work:
    """A measurement under way.

    Attributes
    ----------
    ensemble : Ensemble
    observable : Observable
    table : Table
        Open.
    done : tuple of int
        Numbers of the configurations that were in the table.
    todo : tuple of int
        Numbers of those that are left.
    """

    ensemble: Ensemble
    observable: Observable
    table: Table
    done: tuple[int, ...]
    todo: tuple[int, ...]

    def carry_out(self, crew: Crew, precision: str) -> Iterator[int]:
        """Measure what is left, and yield the number of each configuration that is done.

        The table does not depend on how many devices the crew has.

        Raises
        ------
        GaugeError
            If a configuration cannot be read, or the table cannot be written. What was measured
            before stays.
        """
        measured = crew.results(partial(self._measured, precision), self.todo)
        for number, records in zip(self.todo, measured, strict=True):
            self.table.append([(number, *record) for record in records])
            self.table.sync()
            yield number

    def _measured(
        self, precision: str, device: DeviceOrRing, numbers: Sequence[int]
    ) -> Generator[list[Record], None, None]:
        """Yield the records of each of these configurations, measured on one device."""
        measure: Measurer | None = None
        for number in numbers:
            field = self.ensemble.load(number, precision, device)
            measure = measure or self.observable.measurer(field)
            records = measure(field)
            del field  # which must not be held beside the next
            yield records


@contextmanager
def measurement(
    ensemble: Ensemble, observable: Observable, path: Path, precision: str
) -> Iterator[Work]:
    """Begin a measurement, or go on with it.

    Parameters
    ----------
    ensemble : Ensemble
    observable : Observable
    path : Path
        The table, there or not.
    precision : str
        In which the links are measured.

    Raises
    ------
    UsageError
        If the table is of another measurement, or another ensemble.
    GaugeError
        If it is damaged, cannot be written, or another process is at work on it.
    """
    header = {**observable.header, **ensemble.facts, "measured in": f"{precision} precision"}
    if not path.parent.is_dir():
        raise UsageError(f"There is no folder {path.parent} for the table {path.name}.")
    lock = path.with_name(f".{path.name}.lock")
    hold = Hold(lock)
    try:
        if path.exists():
            _compare(path, header)
        with Table(path, {**header, "version": VERSION}, ("sweep", *observable.columns)) as table:
            done = _whole(path, table, observable.records)
            todo = tuple(number for number in ensemble.files if number not in done)
            if done and todo and todo[0] < done[-1]:
                raise UsageError(
                    f"The table {path} is past configuration {todo[0]}, being up to {done[-1]}; "
                    "name another --output, or remove it to measure all again."
                )
            yield Work(ensemble, observable, table, done, todo)
    finally:
        lock.unlink(missing_ok=True)
        hold.close()


def _compare(path: Path, header: Mapping[str, str]) -> None:
    """Refuse to go on with a table that says something else of itself."""
    found = read_table(path).header
    found.pop("version", None)
    names = dict.fromkeys([*header, *found])
    differences = [
        f"{name} = {found.get(name, 'none')}, not {header.get(name, 'none')}"
        for name in names
        if found.get(name) != header.get(name)
    ]
    if differences:
        raise UsageError(
            f"The table {path} has {'; '.join(differences)}; name another --output, or remove it."
        )


def _whole(path: Path, table: Table, records: int) -> tuple[int, ...]:
    """Drop an incomplete last configuration from a table; return the numbers of the others."""
    numbers = read_table(path).columns["sweep"]
    found, counts = np.unique(numbers, return_counts=True)
    short = found[counts != records]
    whole = tuple(map(int, found[counts == records]))
    if short.size > 1 or (short.size and short[0] != numbers[-1]):
        raise GaugeError(
            f"The table {path} has not the {records} records of configuration {short[0]} once "
            "each; remove it to measure all again."
        )
    table.truncate(after=max(whole, default=-1), expected=len(whole) * records)
    return whole
