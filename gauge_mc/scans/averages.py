"""Averages of a scan: a table with one row per point of the grid, and a figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from gauge_mc.analysis.timeseries import (
    caution_short,
    caution_skip,
    estimate,
    transient_end,
    with_error,
)
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.table import TableData, Value, read_table, write_table
from gauge_mc.observables import OBSERVABLES, Observable, table_name
from gauge_mc.options import Option
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.thermalisation import AUTO, SKIP, Skip, last_skipped
from gauge_mc.scans.grid import Point, axes, differing, list_axes, number_of_point, value_at
from gauge_mc.scans.scan import Member, Scan

NUMBERS = ("", "_error", "_tau_int")
"""Suffixes of the columns of a quantity: its average, the error, and tau_int."""

NOTES = {
    "units": "dimensionless; tau_int in updates",
    "errors": "Gamma method on all chains of a point together, about their common mean",
}
"""Entries of the table's header that apply to all columns."""


@dataclass(frozen=True)
class Panel:
    """A quantity that is shown in the terminal and in the figure of a scan."""

    column: str
    """Name of the column in the scan's table."""
    label: str
    """Heading in the terminal."""
    symbol: str
    """Label of the axis in the figure, in Matplotlib's mathtext."""


def panels() -> Iterator[Panel]:
    """Yield the main quantity of every observable, and its derived quantities."""
    for observable in OBSERVABLES.values():
        for quantity in observable.columns.averaged[:1]:
            column = column_of(observable, quantity.name)
            yield Panel(column, quantity.heading, quantity.label_of_average)
        for derived in filter(lambda x: x.shown, observable.derived):
            yield Panel(column_of(observable, derived.name), derived.short, derived.label)


def column_of(observable: type[Observable], column: str) -> str:
    """Return the name in the scan's table of a column of an observable's table."""
    name = table_name(observable.name)
    return name if column == name else f"{name}_{column}"


class ScanAverages:
    """Averages at every point of a scan over the complete chains.

    Parameters
    ----------
    scan : Scan
        The scan directory.
    skip : int or str
        Last update that is left out, or `AUTO`, for every run by itself.

    Attributes
    ----------
    rows : dict of Point to dict of str to int, float or str
        Values by column of the scan's table, for every point with a complete chain.
    failures : dict of str to str
        Error messages for damaged tables, by the name of the first run at the point.

    Raises
    ------
    UsageError
        If `skip` is negative or leaves nothing.
    """

    def __init__(self, scan: Scan, skip: Skip = 0) -> None:
        self.scan, self.skip = scan, skip
        check_skip(skip, scan.parameters)
        self.members: dict[Point, list[Member]] = {}
        for member in scan.members():
            self.members.setdefault(member.point, []).append(member)
        self.rows: dict[Point, dict[str, Value]] = {}
        self.failures: dict[str, str] = {}
        self._early: dict[Point, int] = {}
        self._lengths: dict[Point, list[tuple[float, int, str]]] = {}
        for point in self.members:
            self.update(point)

    def update(self, point: Point) -> None:
        """Compute the averages at a point again."""
        self.rows.pop(point, None)
        self._early.pop(point, None)
        self._lengths.pop(point, None)
        first = self.members[point][0].name
        self.failures.pop(first, None)
        chains = [member for member in self.members[point] if member.complete()]
        if not chains:
            return
        shared = self.scan.parameters
        skipped = [last_skipped(member.run.path, self.skip) for member in chains]
        pairs = zip(chains, skipped, strict=True)
        row: dict[str, Value] = {
            "beta": point.beta,
            **{option.name: point.action.values[option.name] for option in self._options},
            **{name: value_at(point.numbers, name) for name in self._differing},
            "lattice": str(point.lattice),
            "chains": len(chains),
            "sweeps": sum(x.sweep() - max(shared.thermalize, last) for x, last in pairs),
        }
        if self.skip == AUTO:
            row[SKIP.name] = max(skipped)
        early: list[int] = []
        lengths: list[tuple[float, int, str]] = []
        try:
            for item in shared.measure:
                observable = OBSERVABLES[item.observable]
                if observable.columns.averaged:
                    paths = [member.run.table(observable.name) for member in chains]
                    both = zip(paths, skipped, strict=True)
                    tables = [read_table(x).after(last, str(x)) for x, last in both]
                    row |= average(observable, tables, paths, item.every, point.lattice)
                    main = observable.columns.averaged[0]  # which alone is shown
                    series = (
                        (next(iter(table.columns.values())), table[main.name]) for table in tables
                    )
                    early.append(max(transient_end(*pair) for pair in series))
                    name = f"{column_of(observable, main.name)}{NUMBERS[-1]}"
                    tau = float(row[name]) / item.every
                    lengths.append((tau, sum(map(len, tables)), main.heading))
            self._lengths[point] = lengths
            self.rows[point], self._early[point] = row, max(early, default=0)
        except GaugeError as error:
            self.failures[first] = str(error)

    @property
    def _options(self) -> list[Option]:
        """The options of the action that are not usual at some point, or that differ."""
        actions = [point.action for point in self.members]
        return [
            option
            for option in self.scan.parameters.action.options
            if len({option.usual or action.values[option.name] for action in actions}) > 1
            or any(option.usual not in (None, action.values[option.name]) for action in actions)
        ]

    @property
    def _differing(self) -> list[str]:
        """Names of the numbers of things in lists that differ, such as masses of quarks."""
        return differing([point.numbers for point in self.members])

    @property
    def cautions(self) -> list[str]:
        """Cautions if chains at some points seem not to have thermalised, or are short."""
        cautions: list[str] = []
        early = {point: last for point, last in self._early.items() if last}
        if early:
            worst = max(early, key=lambda point: early[point])
            place = self._where(len(early), worst)
            cautions += [f"At {place}: {sentence}" for sentence in caution_skip(early[worst])]
        # Series are short if they are shorter than `MIN_TAUS` times tau_int.
        short = {
            point: max(x, key=lambda x: x[0] / x[1])
            for point, lengths in self._lengths.items()
            if (x := [length for length in lengths if caution_short(length[1], length[0])])
        }
        if short:
            worst = max(short, key=lambda point: short[point][0] / short[point][1])
            tau, samples, name = short[worst]
            place = self._where(len(short), worst)
            cautions += [f"At {place}: {words}" for words in caution_short(samples, tau, name)]
        return cautions

    def _where(self, count: int, worst: Point) -> str:
        """Return a number of points in words, with the worst of them."""
        values = ((name, value_at(worst.numbers, name)) for name in self._differing)
        options = [number_of_point(name).said(value) for name, value in values]
        place = f"{', '.join([f'beta = {worst.beta:.12g}', *options])} on {worst.lattice}"
        return f"{count} of {len(self.rows)} points, such as {place}"

    def sorted_rows(self) -> list[dict[str, Value]]:
        """Return the rows, sorted by lattice, options of the action, quarks, and then by beta."""
        lattices = list(dict.fromkeys(point.lattice for point in self.members))
        listed = self._differing

        def place(point: Point) -> tuple[float, ...]:
            numbers = (value_at(point.numbers, name) for name in listed)
            return (
                lattices.index(point.lattice),
                *point.action.values.values(),
                *numbers,
                point.beta,
            )

        order = sorted(self.rows, key=place)
        return [self.rows[point] for point in order]

    def write(self) -> None:
        """Write the scan's table, which appears complete or not at all."""
        metadata = self.scan.parameters.provenance
        fixed = self.scan.parameters.action.changed.keys() - {*self._options}
        varying = {*axes(), *self.scan.parameters.coupling.metadata} - {x.name for x in fixed}
        varying |= list_axes().keys() if self._differing else set()
        header = {name: value for name, value in metadata.items() if name not in varying}
        derived = ((kind, x) for kind in OBSERVABLES.values() for x in kind.derived)
        notes = {column_of(kind, x.name): x.help for kind, x in derived}
        rows = self.sorted_rows()
        columns = list(rows[0]) if rows else ["beta", "lattice"]
        values = [list(row.values()) for row in rows]
        skipped = {"skip": str(self.skip)} if self.skip else {}
        write_table(self.scan.table, {**header, **skipped, **NOTES, **notes}, columns, values)


def check_skip(skip: Skip, parameters: Parameters) -> None:
    """Refuse to leave out a negative number of updates, or all that is measured."""
    if isinstance(skip, str):
        return
    if skip < 0:
        raise UsageError(f"--skip is {skip}; give 0 or a positive number of updates.")
    measured = parameters.configs * parameters.separation
    ends = [parameters.thermalize + measured // x.every * x.every for x in parameters.measure]
    if skip and skip >= min(ends, default=skip + 1):
        raise UsageError(
            f"--skip {skip} leaves nothing of the runs, whose last measurement is made after "
            f"update {min(ends)}; skip less."
        )


def average(
    observable: type[Observable],
    tables: Sequence[TableData],
    paths: Sequence[Path],
    every: int,
    lattice: Lattice,
) -> dict[str, float]:
    """Average an observable over the chains at one point.

    Parameters
    ----------
    observable : type of Observable
        The observable that was measured.
    tables : sequence of TableData
        Table of the observable in each run.
    paths : sequence of Path
        Files of the tables, for error messages.
    every : int
        Updates from one measurement to the next.
    lattice : Lattice
        Extents of the lattice.

    Returns
    -------
    dict of str to float
        Values by column of the scan's table: for each column of the observable the average, its
        error, and tau_int in updates; then each derived quantity with its error.

    Raises
    ------
    GaugeError
        If a table lacks a column.
    """
    columns = [table.columns for table in tables]
    result: dict[str, float] = {}
    for column in observable.columns.names:
        pairs = zip(tables, paths, strict=True)
        mean = estimate(*(x.numbers(column, path).astype(np.float64) for x, path in pairs))
        numbers = (mean.value, mean.error, every * mean.tau_int)
        name = column_of(observable, column)
        result |= {name + ending: number for ending, number in zip(NUMBERS, numbers, strict=True)}
    for derived in observable.derived:
        value, error = derived.estimate(columns, lattice)
        name = column_of(observable, derived.name)
        result |= {name: value, f"{name}_error": error}
    return result


def row_in_words(row: Mapping[str, Value]) -> dict[str, str]:
    """Return the quantities at a point as text, such as ``0.6521(3)``, by label."""
    return {
        panel.label: with_error(float(row[panel.column]), float(row[f"{panel.column}_error"]))
        for panel in panels()
        if panel.column in row
    }
