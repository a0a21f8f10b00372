"""Where the thermalised part of a run begins, by its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.analysis.timeseries.transients import thermalisation, transient
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, TableColumns
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field

AUTO = "auto"
"""The word instead of a number of updates for what the time series suggest."""

SKIP = Option(
    "skip",
    int,
    "Leave what was measured up to update N out; auto finds where the chain has thermalised.",
    "0",
    "N|auto",
    instead=(AUTO,),
)
"""The last update that is left out, an option of fits and plots."""

Skip = int | str
"""A number of updates, or `AUTO`."""


@documented
@dataclass(frozen=True)
class Thermalisation:
    """The part of a run that ``--skip auto`` leaves out."""

    run: str = result_field("Run directory.")
    update: int = result_field("Last update that is left out; 0 if none is.")
    series: str = result_field(
        "Table and quantity of the series that thermalises last; empty if none has a transient."
    )
    thermalised: bool = result_field(
        "Whether the transients are over, as far as can be seen: none is nearly half as long as "
        "its series, and none is in what is left."
    )

    @property
    def sentence(self) -> str:
        """A sentence about the updates that are left out."""
        if not self.update:
            return f"Nothing of {self.run} is left out: its series are stationary from the start."
        return (
            f"Updates up to {self.update} of {self.run} are left out, as the series of "
            f"{self.series} suggests."
        )

    @property
    def cautions(self) -> list[str]:
        """A caution if the run has not thermalised, or nothing."""
        if self.thermalised:
            return []
        return [
            f"The series of {self.run} still change in what is left; the run has not thermalised, "
            "so make it longer."
        ]


LONG = 0.45
"""Fraction of a series from which on a transient counts as not ended: half is the most found."""


NamedSeries = tuple[str, NDArray[np.int64], NDArray[np.float64]]
"""Name of a quantity, numbers of updates, and values, of shape (samples,)."""


def found_thermalisation(folder: Path) -> Thermalisation:
    """Return where the thermalised part of a run begins, by all tables in its directory.

    The rule is that of `gauge_mc.analysis.timeseries.transients.thermalisation`, and the series
    that thermalises last decides. Damaged tables are ignored.

    Parameters
    ----------
    folder : Path
        A run directory, or any folder with tables of one chain.
    """
    files = [(path, path.stat()) for path in sorted(folder.glob("*.csv")) if path.is_file()]
    return _found(folder, tuple((path, s.st_size, s.st_mtime_ns) for path, s in files))


@lru_cache(maxsize=256)
def _found(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> Thermalisation:
    """Return where the thermalised part begins, given the tables with their sizes and times."""
    every = []
    for path, *_ in files:
        try:
            table = read_table(path)
        except GaugeError:
            continue
        every += [(path.name, series) for series in series_of(table)]
    return thermalisation_of(folder, every)


def thermalisation_of(folder: Path, every: Sequence[tuple[str, NamedSeries]]) -> Thermalisation:
    """Return where the thermalised part of a run begins, by series with the names of their tables.

    For the rule see `found_thermalisation`.
    """
    update, named, settled = 0, "", True
    for table, (name, sweeps, values) in every:
        count = thermalisation(values)
        settled &= count < LONG * values.size
        if count and sweeps[count - 1] > update:
            update, named = int(sweeps[count - 1]), f"{name} in {table}"
    settled &= not any(transient(values[sweeps > update]) for _, (_, sweeps, values) in every)
    return Thermalisation(str(folder), update, named, settled)


def found_in(folder: Path) -> list[Thermalisation]:
    """Return where the thermalised part begins of a run, or of every run in a folder of runs."""
    return [found_thermalisation(folder)] if _has_tables(folder) else found_below(folder)


def found_below(folder: Path) -> list[Thermalisation]:
    """Return where the thermalised part begins of every run in a folder of runs."""
    runs = sorted(one for one in folder.iterdir() if one.is_dir() and _has_tables(one))
    return [found_thermalisation(one) for one in runs]


def _has_tables(folder: Path) -> bool:
    return any(folder.glob("*.csv"))


def last_skipped(run: Path, skip: Skip) -> int:
    """Return the last update of a run that is left out, which `AUTO` looks for."""
    return found_thermalisation(run).update if isinstance(skip, str) else skip


MOST_NAMED = 3
"""Number of runs above which sentences name only those that lose most."""


def sentences_of(found: Sequence[Thermalisation]) -> list[str]:
    """Return what is left out of runs, in sentences that name at most a few of them."""
    if len(found) <= MOST_NAMED:
        return [words for one in found for words in (one.sentence, *one.cautions)]
    cut = sorted((one for one in found if one.update), key=lambda one: -one.update)
    moving = [one for one in found if not one.thermalised]
    return [
        f"Updates are left out of {len(cut)} of {len(found)} runs.",
        *(one.sentence for one in cut[:MOST_NAMED]),
        *(words for one in moving[:MOST_NAMED] for words in one.cautions),
    ]


def series_of(table: TableData) -> Iterator[NamedSeries]:
    """Yield the series of a table that tell whether a chain has thermalised.

    These are the columns whose averages are shown and the slow modes of the observable; of the
    table of an algorithm, such as the energies of trajectories, all columns with numbers. Of a
    table with several rows per measurement they are the mean over the rows of each measurement and
    its last row, which is that of the longest flow time or of the largest loop.
    """
    sweeps = table.columns.get(SWEEP)
    if sweeps is None or sweeps.dtype.kind != "i" or not len(table):
        return
    observable = OBSERVABLES.get(_name(table))
    updates, first, rows = np.unique(sweeps, return_index=True, return_counts=True)
    for column in _columns(table, rows.size == sweeps.size):
        values = np.asarray(table[column], dtype=np.float64)
        if rows.size == sweeps.size:
            yield column, sweeps, values
        else:
            yield f"{column}, mean of its rows", updates, np.add.reduceat(values, first) / rows
            yield f"{column}, last row", updates, values[first + rows - 1]
    if observable:
        for name, values in observable.slow_modes(table).items():
            if len(values) == updates.size:
                yield name, updates, values


def _name(table: TableData) -> str:
    """Return the name of the observable, the algorithm or the function that made a table."""
    return table.header.get("observable", "").replace("_", "-")


def _columns(table: TableData, single: bool) -> Sequence[str]:
    """Return the names of the columns that are looked at, which contain decimal numbers."""
    name = _name(table)
    known = OBSERVABLES.get(name) or ALGORITHMS.get(name)
    columns = known.columns if known else TableColumns.of_function(name, table.columns)
    every = tuple(one for one in columns if one.kind is float)
    chosen = columns.averaged if single and name not in ALGORITHMS else every
    return [
        one.name
        for one in chosen
        if not one.index and one.name in table and table[one.name].dtype.kind in "if"
    ]
