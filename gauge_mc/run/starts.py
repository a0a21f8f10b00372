"""Comparison of chains that began from different starts, as hot and cold ones."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from gauge_mc.analysis.timeseries.agreement import SampledChain, agreement
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import read_table
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain_series import series_of
from gauge_mc.run.chains import known_parameters, number_of_chain, same_ensemble


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


Stamps = tuple[tuple[Path, int, int], ...]
"""Files with their sizes and times."""


def stamps_of(folder: Path) -> Stamps:
    """Return the tables in a folder with their sizes and the times of their last changes."""
    files = [(path, path.stat()) for path in sorted(folder.glob("*.csv")) if path.is_file()]
    return tuple((path, one.st_size, one.st_mtime_ns) for path, one in files)


def compared_starts(folder: Path) -> StartComparison | None:
    """Return how a run agrees with one from another start; None if there is no such run.

    This is the chain with the next number or the one before it, as
    ``generate --chains 2 --start hot,cold`` makes them, if both have the same parameters except for
    the start, the seed and the length. All series that tell whether a chain has thermalised are
    compared, by the rule of `gauge_mc.analysis.timeseries.agreement.agreement`. Damaged tables are
    ignored.

    Parameters
    ----------
    folder : Path
        A run directory.
    """
    found = number_of_chain(folder)
    own = known_parameters(folder) if found else None
    if not found or not own:
        return None
    name, number = found
    for near in (number + 1, number - 1) if number % 2 else (number - 1, number + 1):
        other = folder.parent / f"{name}{near}"
        its = known_parameters(other)
        if its and its.start != own.start and same_ensemble(own, its):
            return _compared(
                folder, own.start, other, its.start, stamps_of(folder), stamps_of(other)
            )
    return None


@lru_cache(maxsize=256)
def _compared(
    run: Path, start: str, other: Path, other_start: str, own: Stamps, its: Stamps
) -> StartComparison:
    """Return the comparison of two chains, given their tables with sizes and times."""
    first, second = _series(own), _series(its)
    found = [(name, agreement(first[name], second[name])) for name in first if name in second]
    known = [(name, one) for name, one in found if one]
    late = [(one.update, name) for name, one in known if one.update]
    update, named = max(late, default=(0, ""))
    agree = all(one.reached for _, one in known) if known else None
    return StartComparison(str(run), start, str(other), other_start, update, named, agree)


def _series(files: Stamps) -> dict[str, SampledChain]:
    """Return the series of all tables by quantity and name of the file."""
    found = {}
    for path, *_ in files:
        try:
            table = read_table(path)
        except GaugeError:
            continue
        for name, sweeps, values in series_of(table):
            found[f"{name} in {path.name}"] = SampledChain(sweeps, values)
    return found
