"""Fits, one module each, named after the fit: from the tables of a run to numbers.

A fit is a subclass of `Fit`, registered in `FITS`. Its result goes to a JSON file beside the table.
"""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import replacing
from gauge_mc.files.table import read_heading
from gauge_mc.observables import OBSERVABLES, SWEEP
from gauge_mc.options import Option
from gauge_mc.registry import Registry
from gauge_mc.run.directory import newest_run


class FitResult(ABC):
    """The result of a fit."""

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""

    @abstractmethod
    def report(self) -> list[Any]:
        """Return the tables that show the result to people, for Rich."""

    def __repr__(self) -> str:
        ensemble = self.values().get("ensemble", {})
        return f"<{type(self).__name__}: {', '.join(f'{k} = {v}' for k, v in ensemble.items())}>"

    def write(self, path: Path) -> None:
        """Write the result as JSON, whole or not at all; numbers that are not finite become null.

        Raises
        ------
        GaugeError
            If the file cannot be written.
        """
        text = json.dumps(without_nan(self.values()), indent=1, ensure_ascii=False)
        with replacing(path) as file:
            file.write(text.encode() + b"\n")


class Fit(ABC):
    """Something to determine from a table.

    Attributes
    ----------
    name : str
    summary : str
        What is determined, in a few words.
    columns : tuple of str
        The columns of the table that it needs.
    options : tuple of Option
        What `carry_out` takes.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    options: ClassVar[tuple[Option, ...]] = ()

    @abstractmethod
    def carry_out(self, table: Path, **options: Any) -> FitResult:
        """Fit the content of a table; options that are None are not given.

        Raises
        ------
        UsageError
            If a value is not allowed.
        GaugeError
            If the table is damaged or has too little in it.
        """

    @property
    def file(self) -> str:
        """The name of the file of results."""
        return f"{self.name}.json"


FITS: Registry[Fit] = Registry("fit", __name__)

LEVEL = Option("level", int, "Smearing iterations of the loops used.", "most", "N")
"""An option of fits to tables with several smearing levels."""


def find_table_by_columns(folder: Path, columns: Collection[str]) -> Path:
    """Return the table of a run that has certain columns.

    Of several tables the one that bears the name of its observable is taken. Tables without these
    columns may be damaged.

    Raises
    ------
    GaugeError
        If there is none, or several and none of that name.
    """
    found, damaged = {}, []
    for path in sorted(folder.glob("*.csv")):
        try:
            header, its_columns = read_heading(path)
        except GaugeError as error:
            damaged.append(error)
            continue
        if set(columns) <= set(its_columns):
            found[path] = path.stem == header.get("observable")
    proper = [path for path, named in found.items() if named]
    if not found:
        raise damaged[0] if damaged else _missing_table(folder, columns)
    if len(found) > 1 and len(proper) != 1:
        names = ", ".join(path.name for path in found)
        raise GaugeError(f"There are several such tables in {folder}: {names}; name one of them.")
    return proper[0] if proper else next(iter(found))


find_table = find_table_by_columns  # gauge_mc.plots still imports this name


def _missing_table(folder: Path, columns: Collection[str]) -> GaugeError:
    """Return the error that says that a folder has no table with certain columns."""
    for name, observable in OBSERVABLES.items():
        if set(columns) <= {SWEEP, *observable.columns}:
            return GaugeError(
                f"There is no table of {name} in {folder}; make it by gauge-mc measure {name} "
                f"{folder}."
            )
    return GaugeError(f"There is no table with the columns {', '.join(columns)} in {folder}.")


def fit(what: str, run: str | os.PathLike[str] | None = None, **options: Any) -> FitResult:
    """Determine a physical quantity from the table of a run, and write it beside the table.

    Parameters
    ----------
    what : str
        The name of a fit.
    run : path, optional
        A run, a result of `gauge_mc.generate`, or a table; by default the newest run in ``runs/``.
    **options : object
        Options of the fit by name.

    Returns
    -------
    FitResult

    Raises
    ------
    UsageError
        If there is no such fit or run, or a value is not allowed.
    GaugeError
        If the table is damaged or has too little in it, or the result cannot be written.
    """
    targets = [] if run is None else [Path(run)]
    return next(fit_all(what, targets, options))[0]


def fit_all(
    what: str, targets: Sequence[Path], options: Mapping[str, Any]
) -> Iterator[tuple[FitResult, Path]]:
    """Fit runs or tables one after the other; yield each result and its file.

    Parameters and errors are those of `fit`; without targets the newest run is taken.
    """
    chosen = FITS[what]
    own = {option.name for option in chosen.options}
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in own:
            raise UsageError(f"--{name.replace('_', '-')} is not an option of fit {what}.")
    for target in targets or [newest_run().path]:
        table = find_table_by_columns(target, chosen.columns) if target.is_dir() else target
        result = chosen.carry_out(table, **given)
        path = table.parent / chosen.file
        result.write(path)
        yield result, path


def without_nan(content: Any) -> Any:
    """Replace numbers that JSON cannot hold by None, throughout a tree."""
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
