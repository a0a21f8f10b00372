"""The tables from which the results of fits were made, told by their content."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import numpy as np

from gauge_mc.analysis.timeseries.cautions import caution_spacing
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json, typed
from gauge_mc.files.table import ContentMatch, TableContent, TableData, compare_content
from gauge_mc.fits.shared.files import FITTED, MAX_RESULT, RESULT
from gauge_mc.observables import AGAIN_SUFFIX
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run


@documented
@dataclass(frozen=True)
class FittedTable:
    """A table from which the result of a fit was made."""

    file: str = result_field("Name of its file, seen from the folder of the result.")
    size: int = result_field("Bytes up to its last row; rows may have been appended since.")
    sha256: str = result_field("SHA-256 of these bytes, in hexadecimal digits.")


class FitOfOtherTablesError(GaugeError):
    """A kept result of a fit is not of the tables that a run has now."""


def fitted_tables(read: Mapping[Path, TableData], folder: Path) -> list[FittedTable]:
    """Return what a fit has read, for its result in a folder."""
    return [
        FittedTable(os.path.relpath(path, folder), one.content.size, one.content.sha256)
        for path, one in read.items()
        if one.content
    ]


def sampling_cautions(read: Mapping[Path, TableData], skip: int) -> list[str]:
    """Return cautions about what was measured, for tables that a fit has read.

    The configurations after the update `skip` may not be equally spaced, or those of the table be
    only some that the run has, if the measurement was interrupted or is going on.
    """
    found = []
    for path, table in read.items():
        if SWEEP not in table:
            continue
        found += caution_spacing(table[SWEEP][table[SWEEP] > skip])
        run = Run(path.parent)
        if table.origins and run.exists() and not path.stem.endswith(AGAIN_SUFFIX):
            measured = {*np.unique(table[SWEEP]).tolist()}
            there = run.configs().keys()
            if lacking := there - measured:
                name = table.header.get("observable", "").replace("_", "-")
                found.append(
                    f"{path.name} has {len(there - lacking)} of {len(there)} configurations of the "
                    f"run; measure the others with gauge-mc measure {name} "
                    f"{quote(str(path.parent))}."
                )
    return list(dict.fromkeys(found))


def tables_of_result(path: Path) -> list[FittedTable]:
    """Return the tables from which the result of a fit was made, as its file states them.

    There are none in the results of earlier versions.

    Raises
    ------
    GaugeError
        If the file cannot be read, or is not the result of a fit.
    """
    try:
        stated = parse_json(read_text(path, MAX_RESULT)).get(FITTED, [])
        return [typed(one, FittedTable) for one in stated]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GaugeError(f"{path} is damaged or not the result of a fit.") from error


def match_of(fitted: Sequence[FittedTable], present: Collection[Path]) -> ContentMatch | None:
    """Return whether a result belongs to tables, whose names do not matter.

    Parameters
    ----------
    fitted : sequence of FittedTable
        The tables from which it was made.
    present : collection of Path
        Files of tables.

    Returns
    -------
    ContentMatch or None
        The worst match of a fitted table, each with the present one that is most similar; None if
        it is not known from which tables the result was made.
    """
    order = list(ContentMatch)
    best = [
        min(
            (compare_content(path, content) for path in present),
            key=order.index,
            default=ContentMatch.OTHER,
        )
        for content in (TableContent(one.size, one.sha256) for one in fitted)
    ]
    return max(best, key=order.index, default=None)


def is_of_other_tables(path: Path) -> bool:
    """Return whether a file is the result of a fit, but not of exactly the tables beside it."""
    if path.suffix != ".json" or not RESULT.recognises(path):
        return False
    try:
        fitted = tables_of_result(path)
    except GaugeError:
        return True
    return match_of(fitted, [*path.parent.glob("*.csv")]) is not ContentMatch.SAME


_exact: ContextVar[bool] = ContextVar("exact", default=False)
"""Whether kept results must be of exactly the present tables."""


@contextmanager
def exactly_of_tables() -> Iterator[None]:
    """Refuse, in a context, kept results of fits that are not of exactly the present tables.

    Elsewhere the results of tables to which rows have been added since, and of those that do not
    say what they were made from, are shown with a caution.
    """
    token = _exact.set(True)
    try:
        yield
    finally:
        _exact.reset(token)


def wants_exact() -> bool:
    """Return whether results must be of exactly the present tables; see `exactly_of_tables`."""
    return _exact.get()


def refuses(match: ContentMatch | None) -> bool:
    """Return whether a kept result of tables that match so is refused; see `exactly_of_tables`."""
    return match is ContentMatch.OTHER or (wants_exact() and match is not ContentMatch.SAME)
