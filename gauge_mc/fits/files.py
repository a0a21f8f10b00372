"""Files of the results of fits."""

from __future__ import annotations

import dataclasses
import json
import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.analysis.timeseries import Estimate, caution_spacing
from gauge_mc.errors import GaugeError
from gauge_mc.files.atomic import FileKind, write_file
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.foreign import LEFT_OUT
from gauge_mc.files.frames import SuggestingDict
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import json_with, parse_json, typed
from gauge_mc.files.table import (
    ContentMatch,
    TableContent,
    TableData,
    compare_content,
    read_heading,
)
from gauge_mc.fits.quoted import WORD
from gauge_mc.observables import AGAIN_SUFFIX, OBSERVABLES, table_name
from gauge_mc.options import Option, check_options
from gauge_mc.process import in_context
from gauge_mc.quoting import CommandLine
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run, missing_run
from gauge_mc.run.thermalisation import AUTO, SKIP, Caution, Skip, last_skipped
from gauge_mc.stored import is_of_no_run
from gauge_mc.stored.regenerate import how_to_measure


def find_table_by_columns(folder: Path, columns: Collection[str]) -> Path:
    """Return the table of a run that has the given columns.

    If several tables have them, the one whose file is named after its observable is chosen. Damaged
    tables are ignored if another one has the columns.
    """
    damaged: list[GaugeError] = []
    tables = tables_with_columns(folder, columns, damaged)
    proper = [path for path, named in tables.items() if named]
    if not tables:
        raise damaged[0] if damaged else _missing_table(folder, columns)
    if len(tables) > 1 and len(proper) != 1:
        names = ", ".join(path.name for path in tables)
        raise GaugeError(
            f"Several tables in {folder} have the required columns: {names}; name one of them."
        )
    return proper[0] if proper else next(iter(tables))


def tables_of_chains(folder: Path, columns: Collection[str]) -> list[Path]:
    """Return the tables of the runs in a folder that have the given columns.

    There are none if the folder is itself a run with such a table, or is not a folder.
    """
    if not folder.is_dir() or tables_with_columns(folder, columns):
        return []
    runs = [path for path in sorted(folder.iterdir()) if path.is_dir()]
    return [find_table_by_columns(x, columns) for x in runs if tables_with_columns(x, columns)]


def tables_with_columns(
    folder: Path, columns: Collection[str], damaged: list[GaugeError] | None = None
) -> dict[Path, bool]:
    """Return the tables of a run that have the given columns."""
    tables = {}
    for path in sorted(folder.glob("*.csv")):
        try:
            header, its_columns = read_heading(path)
        except GaugeError as error:
            if damaged is not None:
                damaged.append(error)
            continue
        if set(columns) <= set(its_columns):
            tables[path] = path.stem == table_name(header.get("observable", ""))
    return tables


def table_beside(folder: Path, columns: Collection[str]) -> Path | None:
    """Return the table with some columns that its observable names, else the first one; or None."""
    named = tables_with_columns(folder, columns)
    return max(named, key=named.__getitem__, default=None)


def _missing_table(folder: Path, columns: Collection[str]) -> GaugeError:
    """Return the error for a folder without a table that has the given columns."""
    if is_of_no_run(folder):
        return missing_run(folder)
    for name, observable in OBSERVABLES.items():
        if set(columns) <= {SWEEP, *observable.columns.names}:
            return GaugeError(
                f"There is no table of {name} in {folder}; {how_to_measure(name, folder)}."
            )
    for name, algorithm in ALGORITHMS.items():
        if set(columns) <= {SWEEP, *algorithm.columns.names}:
            return GaugeError(
                f"There is no table of {name} in {folder}, as runs have that were made with "
                f"--algorithm {name}; name such a run."
            )
    return GaugeError(
        f"There is no table with the columns {', '.join(columns)} in {folder}; name another run."
    )


MAX_RESULT = 2**24
"""Maximum size of a result in bytes."""

KEPT, KEPT_FILE, OF_ALL = "kept options", "kept.json", "all"
"""Key and name of the file of the options that are kept with a run, and the name for all fits."""

KEPT_OPTIONS = FileKind("a file of kept options", json_with((KEPT,), MAX_RESULT))
"""Kind of such files."""


def _kept_in(path: Path) -> dict[str, dict[str, Any]]:
    if not path.is_file():
        return {}
    try:
        return {name: {**x} for name, x in parse_json(read_text(path, MAX_RESULT))[KEPT].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise GaugeError(f"{path} is damaged; remove it, and keep the options again.") from error


def kept_options(folder: Path, fit: str = "") -> dict[str, Any]:
    """Return the options of a fit that are kept with a run, or else with the folder of its scan."""
    options = _kept_in(folder / KEPT_FILE) or _kept_in(folder.parent / KEPT_FILE)
    check_options((SKIP,), options.get(OF_ALL, {}), KEPT_FILE)
    return {**options.get(OF_ALL, {}), **options.get(fit, {})}


def left_to_kept(
    folder: Path, fit: str, options: Iterable[Option], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the kept options among some that were not given; for errors see `kept_options`."""
    names = {option.name: option for option in options if option.name not in values}
    kept_values = kept_options(folder, fit).items()
    return check_options(
        names.values(), {name: value for name, value in kept_values if name in names}, KEPT_FILE
    )


def kept_in_words(folder: Path, options: Mapping[str, Any]) -> list[str]:
    """Return the sentence that options are those that are kept with a run, if any."""
    words = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in options.items())
    return [f"As kept with {folder}: {words}."] if options else []


def keep_options(folder: Path, fit: str, options: Mapping[str, Any]) -> None:
    """Keep the options of a fit with a run or scan, instead of those before."""
    path, fit_options = folder / KEPT_FILE, {**options}
    of_all = {SKIP.name: fit_options.pop(SKIP.name)} if SKIP.name in fit_options else {}
    document = {**_kept_in(path), OF_ALL: of_all, fit: fit_options}
    write_file(path, json.dumps({KEPT: document}, indent=1), KEPT_OPTIONS)


def kept_skip(runs: Collection[Path], otherwise: Skip) -> Skip:
    """Return what is left out of runs together: what is kept with each, or else something."""
    every = [kept_options(run).get(SKIP.name, otherwise) for run in runs] or [otherwise]
    return AUTO if AUTO in every else max(every)


CHOSEN = "thermalisation"
"""Key of what ``--skip auto`` has left out, beside the values of a result."""

STARTS = "starts"
"""Key of the comparison with a chain from another start, beside the values of a result."""

FITTED = "tables"
"""Key of the tables from which a result was made, beside its values."""

CAUTIONS = "cautions"
"""Key of the cautions about a result, beside its values."""

OPTIONS = "options"
"""Key of the options that a fit was given, beside its values."""

BESIDE = (WORD, CHOSEN, STARTS, FITTED, CAUTIONS, OPTIONS)
"""Keys beside the values of a result."""

RESULT = FileKind("the result of a fit", json_with(("observable", "units"), MAX_RESULT))
"""Kind of the files that fits write."""


def read_fit(path: Path) -> SuggestingDict[Any]:
    """Return the content of the file of a fit, with an `Estimate` for every value with an error."""
    if not RESULT.recognises(path):
        raise GaugeError(
            f"{path} is not the result of a fit; if it was one, make it again with "
            f"`{CommandLine('fit', path.stem.partition('_')[0], path.parent)}`."
        )
    content = parse_json(read_text(path, MAX_RESULT))
    return SuggestingDict({key: _with_estimates(value) for key, value in content.items()})


ESTIMATE = {field.name for field in dataclasses.fields(Estimate)}
"""Keys of an estimate."""


def _with_estimates(content: Any) -> Any:
    """Return a tree with objects for its estimates, and NaN for null among numbers."""
    if isinstance(content, dict):
        if content.keys() == ESTIMATE:
            return Estimate(**with_nan(content))
        return SuggestingDict({key: _with_estimates(value) for key, value in content.items()})
    if isinstance(content, list):
        numbers = all(x is None or isinstance(x, int | float) for x in content)
        return with_nan(content) if numbers else [_with_estimates(x) for x in content]
    return content


def without_nan(content: Any) -> Any:
    """Replace NaN and infinities, which JSON does not have, by None throughout a tree."""
    if isinstance(content, dict):
        return {key: without_nan(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [without_nan(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def with_nan(content: Any) -> Any:
    """Replace None by NaN throughout a tree."""
    if isinstance(content, dict):
        return {key: with_nan(value) for key, value in content.items()}
    if isinstance(content, list):
        return [with_nan(value) for value in content]
    return math.nan if content is None else content


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
        FittedTable(os.path.relpath(path, folder), x.content.size, x.content.sha256)
        for path, x in read.items()
        if x.content
    ]


def sampling_cautions(read: Mapping[Path, TableData], skip: Skip) -> list[Caution]:
    """Return cautions about what was measured, for tables that a fit has read.

    The configurations after the last update that is left out may not be equally spaced, or those of
    the table be only some that the run has, if the measurement was interrupted or is going on.
    """
    cautions: dict[str, Caution] = {}
    for path, table in read.items():
        sentences = []
        if table.header.get(LEFT_OUT):
            sentences.append(f"{path.name}: {table.header[LEFT_OUT]}")
        sweeps = table.columns.get(SWEEP, np.zeros(0, np.int64))
        sentences += caution_spacing(sweeps[sweeps > last_skipped(path.parent, skip)])
        run = Run(path.parent)
        if table.origins and run.exists() and not path.stem.endswith(AGAIN_SUFFIX):
            measured = {*np.unique(sweeps).tolist()}
            configs = run.configs().keys()
            if lacking := configs - measured:
                sentences.append(
                    f"{path.name} has {len(configs - lacking)} of {len(configs)} configurations of "
                    "the run; repeat the command that measured them, which measures the others."
                )
        where = "configurations", str(path.parent), path.name
        cautions |= {x: Caution(x, *where) for x in sentences if x not in cautions}
    return [*cautions.values()]


def tables_of_result(path: Path) -> list[FittedTable]:
    """Return the tables from which the result of a fit was made, as its file states them.

    There are none in the results of earlier versions.
    """
    try:
        stated = parse_json(read_text(path, MAX_RESULT)).get(FITTED, [])
        return [typed(x, FittedTable) for x in stated]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise GaugeError(f"{path} is damaged or not the result of a fit.") from error


def match_of(fitted: Sequence[FittedTable], present: Collection[Path]) -> ContentMatch | None:
    """Return whether a result belongs to tables, whose names do not matter."""
    order = list(ContentMatch)
    contents = [TableContent(x.size, x.sha256) for x in fitted]
    matches = [[compare_content(path, c) for path in present] for c in contents]
    best = [min(some, key=order.index, default=ContentMatch.OTHER) for some in matches]
    return max(best, key=order.index, default=None)


def is_of_other_tables(path: Path) -> bool:
    """Return whether a file is the result of a fit, but not of exactly the tables beside it."""
    if path.suffix != ".json" or not RESULT.recognises(path):
        return False
    try:
        fitted = tables_of_result(path)
    except GaugeError:
        return True
    paths = [path.parent / x.file for x in fitted]
    present = {*path.parent.glob("*.csv"), *(x for x in paths if x.is_file())}
    return match_of(fitted, present) is not ContentMatch.SAME


_exact: ContextVar[bool] = ContextVar("exact", default=False)
"""Whether kept results must be of exactly the present tables."""


def exactly_of_tables() -> AbstractContextManager[bool]:
    """Refuse, in a context, kept results of fits that are not of exactly the present tables.

    Elsewhere the results of tables to which rows have been added since, and of those that do not
    say what they were made from, are shown with a caution.
    """
    return in_context(_exact, True)


def wants_exact() -> bool:
    """Return whether results must be of exactly the present tables; see `exactly_of_tables`."""
    return _exact.get()


def refuses(match: ContentMatch | None) -> bool:
    """Return whether a kept result of tables that match so is refused; see `exactly_of_tables`."""
    return match is ContentMatch.OTHER or (wants_exact() and match is not ContentMatch.SAME)
