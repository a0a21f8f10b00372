"""Where the thermalised part of a run begins, by the series in its tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.analysis.timeseries import (
    LEAST_BINS,
    SampledChain,
    agreement,
    caution_skip,
    estimate,
    thermalisation,
    transient,
    transient_end,
)
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP, TableColumns
from gauge_mc.files.table import TableData, read_table
from gauge_mc.observables import OBSERVABLES
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import known_parameters, number_of_chain, same_ensemble
from gauge_mc.run.settings import STARTS

MEAN, LAST_ROW = "mean ", ", last row"
"""Beginning and end of the names of the two series of a column with several rows a measurement."""


NamedSeries = tuple[str, NDArray[np.int64], NDArray[np.float64]]
"""Name of a quantity, numbers of updates, and values, of shape (samples,)."""


def series_of(table: TableData) -> Iterator[NamedSeries]:
    """Yield the series of a table that tell whether a chain has thermalised.

    These are the columns whose averages are shown and the slow modes of the observable; of the
    table of an algorithm, such as the energies of trajectories, all columns with numbers. Of a
    table with several rows per measurement they are the mean over the rows of each measurement and
    its last row, which is that of the longest flow time or of the largest loop. Columns that may
    be nothing but rounding are left out.
    """
    sweeps = table.columns.get(SWEEP)
    if sweeps is None or sweeps.dtype.kind != "i" or not len(table):
        return
    name, declared = declared_columns(table)
    observable = OBSERVABLES.get(name)
    updates, first, rows = np.unique(sweeps, return_index=True, return_counts=True)
    for column in _columns(table, declared, name in ALGORITHMS or rows.size < sweeps.size):
        values = np.asarray(table[column], dtype=np.float64)
        if rows.size == sweeps.size:
            yield column, sweeps, values
        else:
            yield f"{MEAN}{column}", updates, np.add.reduceat(values, first) / rows
            yield f"{column}{LAST_ROW}", updates, values[first + rows - 1]
    if observable:
        for name, values in observable.slow_modes(table).items():
            if len(values) == updates.size:
                yield name, updates, values


def declared_columns(table: TableData) -> tuple[str, TableColumns]:
    """Return the name of what made a table, and its declared columns."""
    name = table.header.get("observable", "").replace("_", "-")
    return name, columns_made_by(name, table)


def columns_made_by(name: str, names: Iterable[str]) -> TableColumns:
    """Return the declared columns of what makes a table, given the names of those there."""
    maker = OBSERVABLES.get(name) or ALGORITHMS.get(name)
    return maker.columns if maker else TableColumns.of_function(name or "value", names)


def _columns(table: TableData, columns: TableColumns, every: bool) -> list[str]:
    """Return the names of the columns that are looked at, which contain decimal numbers."""
    decimal = tuple(column for column in columns if column.kind is float and not column.rounding)
    names = (x.name for x in (decimal if every else columns.averaged) if not x.index)
    return [name for name in names if name in table and table[name].dtype.kind in "if"]


AUTO = "auto"
"""The word instead of a number of updates for what the time series suggest."""

SKIP = Option(
    "skip",
    int,
    "Leave what was measured up to update N out; auto finds where the chain has thermalised.",
    default="0",
    metavar="N|auto",
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
    thermalised: bool | None = result_field(
        "Whether the transients are over, as far as can be seen: none is nearly half as long as "
        "its series, none is in what is left, and a chain from another start agrees. None if the "
        "run is too short to tell."
    )
    starts: StartComparison | None = result_field(
        "Comparison with a chain from another start; None if there is none.", None
    )

    @property
    def sentence(self) -> str:
        """Sentences about what is left out, and about the agreement with another start."""
        if self.thermalised is None:
            words = (
                f"Nothing of {self.run} is left out: it is too short to tell whether it has "
                f"thermalised, which needs {LEAST_BINS} measurements."
            )
        elif self.update:
            words = (
                f"Updates up to {self.update} of {self.run} are left out, as the series of "
                f"{self.series} suggests."
            )
        else:
            words = f"Nothing of {self.run} is left out: its series are stationary from the start."
        if self.starts and self.starts.agree is not False:
            return f"{words} {self.starts.sentence}"
        return words

    @property
    def cautions(self) -> list[str]:
        """A caution if the run has not thermalised, or nothing."""
        if self.starts and self.starts.agree is False:
            return [self.starts.sentence]
        words = "still change in what is left; the run has not thermalised, so make it longer."
        return [f"The series of {self.run} {words}"] if self.thermalised is False else []


LONG = 0.45
"""Fraction of a series from which on a transient counts as not ended: half is the most found."""


def found_thermalisation(folder: Path) -> Thermalisation:
    """Return where the thermalised part of a run begins, by all tables in its directory.

    The rule is that of `gauge_mc.analysis.timeseries.thermalisation`, and the series
    that thermalises last decides. If there is a chain from another start, nothing is kept before
    both agree; see `gauge_mc.run.thermalisation`. Damaged tables are ignored.
    """
    return _found(folder, stamps_of(folder), compared_starts(folder))


@lru_cache(maxsize=256)
def _found(folder: Path, files: Stamps, starts: StartComparison | None) -> Thermalisation:
    """Return where the thermalised part begins, given the tables with their sizes and times."""
    return thermalisation_of(folder, _series(files), starts)


def thermalisation_of(
    folder: Path, every: Sequence[tuple[str, NamedSeries]], starts: StartComparison | None = None
) -> Thermalisation:
    """Return where the thermalised part of a run begins, by series with the names of their tables.

    For the rule see `found_thermalisation`.
    """
    update, named, settled = 0, "", True
    for table, (name, sweeps, values) in every:
        count = thermalisation(values)
        settled &= count < LONG * values.size
        if count and sweeps[count - 1] > update:
            update, named = int(sweeps[count - 1]), f"{name} in {table}"
    if starts and starts.update > update:
        update, named = starts.update, f"{starts.series}, compared with {starts.other},"
    settled &= not any(transient(values[sweeps > update]) for _, (_, sweeps, values) in every)
    settled &= not starts or starts.agree is not False
    decidable = any(values.size >= LEAST_BINS for _, (_, _, values) in every)
    return Thermalisation(str(folder), update, named, settled if decidable else None, starts)


def found_in(folder: Path) -> list[Thermalisation]:
    """Return where the thermalised part begins of a run, or of every run in a folder of runs."""
    tables = any(folder.glob("*.csv"))
    return [found_thermalisation(folder)] if tables else found_below(folder)


def found_below(folder: Path) -> list[Thermalisation]:
    """Return where the thermalised part begins of every run in a folder of runs."""
    return [found_thermalisation(run) for run in sorted({x.parent for x in folder.glob("*/*.csv")})]


def last_skipped(run: Path, skip: Skip) -> int:
    """Return the last update of a run that is left out, which `AUTO` looks for."""
    return found_thermalisation(run).update if isinstance(skip, str) else skip


MOST_NAMED = 3
"""Number of runs above which sentences name only those that lose most."""


def sentences_of(results: Sequence[Thermalisation]) -> list[str]:
    """Return what is left out of runs, in sentences that name at most a few of them."""
    if len(results) <= MOST_NAMED:
        return [words for x in results for words in (x.sentence, *x.cautions)]
    cut = sorted((x for x in results if x.update), key=lambda x: -x.update)
    moving = [x for x in results if x.thermalised is False]
    return [
        f"Updates are left out of {len(cut)} of {len(results)} runs.",
        *(x.sentence for x in cut[:MOST_NAMED]),
        *(words for x in moving[:MOST_NAMED] for words in x.cautions),
    ]


@documented
@dataclass(frozen=True)
class StartComparison:
    """How a chain agrees with a chain from another start, which has the same parameters."""

    run: str = result_field("Run directory.")
    start: str = result_field("How it began.")
    other: str = result_field("Run directory of the other chain.")
    other_start: str = result_field("How the other chain began.")
    update: int = result_field("Last update up to which they disagree; 0 if they never do.")
    series: str = result_field(
        "Table and quantity of the series that agrees last; empty if all agree from the start."
    )
    agree: bool | None = result_field(
        "Whether all series agree in the last half of the updates that both have done; None if "
        "they are too short to tell."
    )

    @property
    def both(self) -> frozenset[str]:
        """The two run directories."""
        return frozenset((self.run, self.other))

    @property
    def sentence(self) -> str:
        """A sentence about from where the chains agree."""
        both = f"{self.run} ({self.start} start) and {self.other} ({self.other_start} start)"
        if self.agree is None:
            return f"{both} are too short to tell from where they agree."
        if not self.agree:
            return (
                f"{both} disagree even in the last half of their updates, in {self.series}: they "
                "have not thermalised, or are in different states, so make them longer."
            )
        since = f"after update {self.update}" if self.update else "from their first measurement on"
        last = f", the series of {self.series} last" if self.series else ""
        return f"{both} agree within errors {since}{last}."


@documented
@dataclass(frozen=True)
class Caution:
    """A doubt about a result."""

    sentence: str = result_field("The doubt, and what to do, in words.")
    kind: str = result_field(
        "What is doubted about a run: ``thermalisation``, ``length``, ``slow modes``, ``starts``, "
        "or ``configurations``. Empty for the result as a whole.",
        "",
    )
    run: str = result_field("Run directory that it concerns; empty for the whole.", "")
    column: str = result_field("Series that it concerns, with its table; empty for all.", "")
    enters: bool = result_field(
        "Whether the series enters the result. Other cautions are not printed.", True
    )


def sentences_about(cautions: Iterable[Caution]) -> list[str]:
    """Return the sentences of cautions that enter a result: of those of a kind, the first one."""
    kinds: dict[str, list[str]] = {}
    for caution in cautions:
        if caution.enters:
            kinds.setdefault(caution.kind or caution.sentence, []).append(caution.sentence)
    return [
        f"{first} ({len(more)} more with --json)" if (more := {*rest} - {first}) else first
        for first, *rest in kinds.values()
    ]


def run_cautions(runs: Iterable[Path], skip: Skip | None) -> Iterator[Caution]:
    """Yield cautions about runs that include thermalisation, or disagree with another start."""
    for run in runs:
        starts = compared_starts(run)
        if starts and starts.agree is False:
            yield Caution(starts.sentence, "starts", str(run))
        p = None if skip else known_parameters(run)
        if skip is not None and p and p.thermalize == 0 and p.start in STARTS:
            words = (
                f"The averages of {run} include thermalisation, since measurements began with the "
                f"first update; leave the first N updates out with {SKIP.flag} N."
            )
            yield Caution(words, "thermalisation", str(run))


def series_cautions(
    tables: Mapping[Path, TableData], skip: Skip | None, every_column: bool = False
) -> list[Caution]:
    """Return cautions about chains that have not thermalised or are too short, the worst first."""
    ranked: list[tuple[float, Caution]] = []
    for path, table in tables.items():
        cut = last_skipped(path.parent, skip or 0)
        shown = declared_columns(table)[1].averaged[: None if every_column else 1]
        for column, sweeps, values in series_of(table):
            mask = sweeps > cut
            average, last = estimate(values[mask]), transient_end(sweeps[mask], values[mask])
            kind = "length" if average.length_cautions else "slow modes"
            doubts = [
                (
                    kind,
                    average.samples / (average.tau_int + average.tau_int_error),
                    average.cautions,
                )
            ]
            if skip is not None:
                doubts.append(("thermalisation", -float(last), caution_skip(last)))
            enters = (
                column.startswith(MEAN)
                or column.endswith(LAST_ROW)
                or column in (x.name for x in shown)
            )
            about = str(path.parent), f"{column} in {path.name}", enters
            for kind, rank, words in doubts:
                sentences = (f"{column} in {path}: {word}" for word in words[:1])
                ranked += [(rank, Caution(s, kind, *about)) for s in sentences]
    return [x for _, x in sorted(ranked, key=lambda pair: pair[0])]


Stamps = tuple[tuple[Path, int, int], ...]
"""Files with their sizes and times."""


def stamps_of(folder: Path) -> Stamps:
    """Return the tables in a folder with their sizes and the times of their last changes."""
    files = [(path, path.stat()) for path in sorted(folder.glob("*.csv")) if path.is_file()]
    return tuple((path, x.st_size, x.st_mtime_ns) for path, x in files)


def compared_starts(folder: Path) -> StartComparison | None:
    """Return how a run agrees with one from another start; None if there is no such run.

    This is the chain with the next number or the one before it, as
    ``generate --chains 2 --start hot,cold`` makes them, if both have the same parameters except for
    the start, the seed and the length. All series that tell whether a chain has thermalised are
    compared, by the rule of `gauge_mc.analysis.timeseries.agreement`. Damaged tables are
    ignored.
    """
    chain = number_of_chain(folder)
    parameters = known_parameters(folder) if chain else None
    if not chain or not parameters:
        return None
    name, number = chain
    for near in (number + 1, number - 1) if number % 2 else (number - 1, number + 1):
        partner = folder.parent / f"{name}{near}"
        its = known_parameters(partner)
        if its and its.start != parameters.start and same_ensemble(parameters, its):
            return _compared(
                folder, parameters.start, partner, its.start, stamps_of(folder), stamps_of(partner)
            )
    return None


@lru_cache(maxsize=256)
def _compared(
    run: Path, start: str, partner: Path, other_start: str, stamps: Stamps, its: Stamps
) -> StartComparison:
    """Return the comparison of two chains, given their tables with sizes and times."""
    first, second = (
        {f"{series[0]} in {table}": SampledChain(*series[1:]) for table, series in _series(files)}
        for files in (stamps, its)
    )
    comparisons = [(name, agreement(first[name], second[name])) for name in first if name in second]
    agreements = [(name, x) for name, x in comparisons if x]
    late = [(x.update, name) for name, x in agreements if x.update]
    update, named = max(late, default=(0, ""))
    agree = all(x.reached for _, x in agreements) if agreements else None
    return StartComparison(str(run), start, str(partner), other_start, update, named, agree)


def _series(files: Stamps) -> list[tuple[str, NamedSeries]]:
    """Return the series of all tables that are not damaged, with the name of the file."""
    pairs: list[tuple[str, NamedSeries]] = []
    for path, *_ in files:
        try:
            table = read_table(path)
        except GaugeError:
            continue
        pairs += [(path.name, series) for series in series_of(table)]
    return pairs
