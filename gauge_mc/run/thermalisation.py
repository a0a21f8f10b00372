"""Where the thermalised part of a run begins, by its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gauge_mc.analysis.timeseries.gamma_method import LEAST_BINS
from gauge_mc.analysis.timeseries.transients import thermalisation, transient
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import read_table
from gauge_mc.options import Option
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain_series import NamedSeries, series_of
from gauge_mc.run.starts import Stamps, StartComparison, compared_starts, stamps_of

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
        if self.thermalised is not False:
            return []
        return [
            f"The series of {self.run} still change in what is left; the run has not thermalised, "
            "so make it longer."
        ]


LONG = 0.45
"""Fraction of a series from which on a transient counts as not ended: half is the most found."""


def found_thermalisation(folder: Path) -> Thermalisation:
    """Return where the thermalised part of a run begins, by all tables in its directory.

    The rule is that of `gauge_mc.analysis.timeseries.transients.thermalisation`, and the series
    that thermalises last decides. If there is a chain from another start, nothing is kept before
    both agree; see `gauge_mc.run.starts`. Damaged tables are ignored.

    Parameters
    ----------
    folder : Path
        A run directory, or any folder with tables of one chain.
    """
    return _found(folder, stamps_of(folder), compared_starts(folder))


@lru_cache(maxsize=256)
def _found(folder: Path, files: Stamps, starts: StartComparison | None) -> Thermalisation:
    """Return where the thermalised part begins, given the tables with their sizes and times."""
    every = []
    for path, *_ in files:
        try:
            table = read_table(path)
        except GaugeError:
            continue
        every += [(path.name, series) for series in series_of(table)]
    return thermalisation_of(folder, every, starts)


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
    known = any(values.size >= LEAST_BINS for _, (_, _, values) in every)
    return Thermalisation(str(folder), update, named, settled if known else None, starts)


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
    moving = [one for one in found if one.thermalised is False]
    return [
        f"Updates are left out of {len(cut)} of {len(found)} runs.",
        *(one.sentence for one in cut[:MOST_NAMED]),
        *(words for one in moving[:MOST_NAMED] for words in one.cautions),
    ]
