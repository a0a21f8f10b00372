"""Cautions about what plots show."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from gauge_mc.analysis.timeseries.cautions import caution_skip
from gauge_mc.analysis.timeseries.gamma_method import estimate
from gauge_mc.analysis.timeseries.transients import transient_end
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import TableData
from gauge_mc.plots.runs.tables import MANY_RUNS
from gauge_mc.registry import in_words
from gauge_mc.run.chain_series import series_of
from gauge_mc.run.directory import Run
from gauge_mc.run.settings import STARTS
from gauge_mc.run.starts import compared_starts
from gauge_mc.run.thermalisation import SKIP, Skip, last_skipped

_cautions: ContextVar[list[str] | None] = ContextVar("cautions", default=None)
"""Cautions of the plots that are drawn within `noted_cautions`."""


@contextmanager
def noted_cautions() -> Iterator[list[str]]:
    """Note the cautions of plots that are drawn in a context."""
    found: list[str] = []
    token = _cautions.set(found)
    try:
        yield found
    finally:
        _cautions.reset(token)


def caution(sentence: str) -> None:
    """Note a caution about a figure that is being drawn."""
    noted = _cautions.get()
    if noted is not None:
        noted.append(sentence)


def chain_cautions(
    runs: Sequence[Path], tables: Mapping[Path, TableData], skip: Skip | None
) -> list[str]:
    """Return cautions about chains that have not thermalised or are shorter than 50 tau_int.

    Parameters
    ----------
    runs : sequence of Path
        Run directories.
    tables : mapping of Path to TableData
        The tables that a figure shows, by their files.
    skip : int, str or None
        Last update that is left out, or `AUTO`; None if the plot cannot leave any out.
    """
    last, short = 0, []
    for path, table in tables.items():
        cut = last_skipped(path.parent, skip or 0)
        for name, sweeps, values in series_of(table):
            kept = sweeps > cut
            found = estimate(values[kept]) if kept.any() else None
            if found and found.cautions:
                tau = found.tau_int + found.tau_int_error
                short.append((found.samples / tau, f"{name} in {path}: {found.cautions[0]}"))
            last = max(last, transient_end(sweeps[kept], values[kept]))
    shortest = [words for _, words in sorted(short)[:1]]
    if skip is None:
        return [*_disagreeing(runs), *shortest]
    early = [] if skip or last else _early(runs)
    return [*caution_skip(last), *early, *_disagreeing(runs), *shortest]


def _early(runs: Sequence[Path]) -> list[str]:
    """Return a caution if measurements of runs began with the first update; otherwise nothing."""
    early = []
    for run in runs:
        try:
            parameters = Run(run).read()[0]
        except GaugeError:  # the plot does not need the parameters
            continue
        if parameters.thermalize == 0 and parameters.start in STARTS:
            early.append(str(run))
    if not early:
        return []
    many = len(early) > MANY_RUNS
    names = f"{early[0]} and {len(early) - 1} other runs" if many else in_words(early)
    return [
        f"The averages of {names} include thermalisation, since measurements began with the first "
        f"update; leave the first N updates out with {SKIP.flag} N."
    ]


def _disagreeing(runs: Sequence[Path]) -> list[str]:
    """Return a caution for a run that disagrees with a chain from another start, or nothing."""
    compared = (compared_starts(run) for run in runs)
    return [one.sentence for one in compared if one and one.agree is False][:1]
