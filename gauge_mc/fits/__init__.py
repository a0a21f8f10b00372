"""Fits, which determine physical quantities from the tables of a run.

Each fit has a module of its name, with a subclass of `Fit` that is registered in `FITS`. Its result
is written to a JSON file in the folder of the table.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from gauge_mc.actions import ANISOTROPY
from gauge_mc.analysis.timeseries.estimates import Estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.input import read_text
from gauge_mc.files.mapping import SuggestingDict
from gauge_mc.files.structured import json_with, parse_json
from gauge_mc.files.table import read_heading
from gauge_mc.observables import OBSERVABLES, table_name
from gauge_mc.options import Option, check_options
from gauge_mc.registry import Registry
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import newest_run
from gauge_mc.signatures import with_options

MAX_RESULT = 2**24
"""Maximum size of a result in bytes."""

RESULT = FileKind("the result of a fit", json_with(("observable", "units"), MAX_RESULT))
"""Kind of the files that fits write."""


class FitResult(ABC):
    """The result of a fit."""

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""

    @abstractmethod
    def report(self) -> list[Any]:
        """Return the tables that show the result on a terminal, for Rich."""

    @property
    def tag(self) -> str:
        """Part of the name of its file that tells apart several results from one table."""
        return ""

    def __repr__(self) -> str:
        ensemble = self.values().get("ensemble", {})
        return f"<{type(self).__name__}: {', '.join(f'{k} = {v}' for k, v in ensemble.items())}>"

    def write(self, path: Path) -> None:
        """Write the result to a JSON file, which appears complete or not at all.

        NaN and infinities become null.

        Raises
        ------
        GaugeError
            If the file cannot be written.
        UsageError
            If something else than the result of a fit is there.
        """
        text = json.dumps(without_nan(self.values()), indent=1, ensure_ascii=False)
        with replacing(path, kind=RESULT) as file:
            file.write(text.encode() + b"\n")


@documented
@dataclass(frozen=True)
class FitReport:
    """The keys that the results of all fits share."""

    file: str = result_field("File that was written or read.")
    observable: str = result_field("What the numbers are, in words.")
    units: str = result_field("Their units, in words.")
    fits: Sequence[object] = result_field("Results of the fits, if there are several runs.")


class Fit(ABC):
    """A fit to a table.

    Attributes
    ----------
    name : str
        Name on the command line.
    summary : str
        Short description of the result, for help texts.
    columns : tuple of str
        Columns that the table must have.
    content : tuple of type
        Data classes of which the values of the result consist, for the description of their keys.
    options : tuple of Option
        Options of `carry_out`.
    isotropic : bool
        Whether the results assume equal lattice spacings in space and along t.
    knows : str
        Key in the header of a table by which it is known that the spacings were treated
        differently when it was measured, if the fit then allows them; or empty.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    content: ClassVar[tuple[type[Any], ...]] = ()
    options: ClassVar[tuple[Option, ...]] = ()
    isotropic: ClassVar[bool] = False
    knows: ClassVar[str] = ""

    def check_anisotropy(self, table: Path) -> None:
        """Refuse a table of an anisotropic ensemble if equal spacings are assumed.

        Raises
        ------
        GaugeError
            If the header of the table states an anisotropy other than 1.
        """
        header = read_heading(table)[0]
        anisotropy = header.get(ANISOTROPY.name)
        if self.isotropic and anisotropy is not None and self.knows not in header:
            raise GaugeError(
                f"fit {self.name} assumes equal lattice spacings in space and along t, but {table} "
                f"is from an ensemble with the bare anisotropy {anisotropy}; fit an isotropic one."
            )

    @abstractmethod
    def carry_out(self, table: Path, **options: Any) -> FitResult:
        """Fit the content of a table.

        Parameters
        ----------
        table : Path
            File of the table.
        **options : object
            The options that were given, by name. `fit_all` has checked their names and types.

        Raises
        ------
        UsageError
            If the value of an option is invalid.
        GaugeError
            If the table is damaged or contains too little data.
        """

    def find_table(self, folder: Path, options: Mapping[str, Any]) -> Path:
        """Return the table of a run that is to be fitted with the given options.

        Raises
        ------
        GaugeError
            See `find_table_by_columns`.
        """
        return find_table_by_columns(folder, self.columns)

    @property
    def file(self) -> str:
        """Name of the file to which the result is written."""
        return f"{self.name}.json"


FITS: Registry[Fit] = Registry("fit", __name__, Fit)

LEVEL = Option("level", int, "Smearing iterations of the loops used.", "most", "N")
"""The smearing level, an option of all fits to Wilson loops."""


def tag_of_levels(chosen: Sequence[int], known: Sequence[int]) -> str:
    """Return the part of a file name that states smearing levels; empty if a table has only one."""
    return f"_{'_'.join(map(str, chosen))}" if len(known) > 1 else ""


T_MIN = Option("t_min", int, "First t of all plateaus.", "for each plateau where it begins")
T_MAX = Option("t_max", int, "Last t of all plateaus.", "as far as the errors allow")
AVERAGE = Option(
    "average", bool, "Average over ranges of t and windows in R with Akaike weights (AIC)."
)
"""The times that are fitted, options of fits to plateaus."""

SKIP = Option("skip", int, "Leave the configurations up to update N out.", "0", "N")
"""The last update that is left out, an option of all fits."""


def find_table_by_columns(folder: Path, columns: Collection[str]) -> Path:
    """Return the table of a run that has the given columns.

    If several tables have them, the one whose file is named after its observable is chosen. Damaged
    tables are ignored if another one has the columns.

    Raises
    ------
    GaugeError
        If no table has these columns, or several have and the choice is ambiguous.
    """
    damaged: list[GaugeError] = []
    found = tables_with_columns(folder, columns, damaged)
    proper = [path for path, named in found.items() if named]
    if not found:
        raise damaged[0] if damaged else _missing_table(folder, columns)
    if len(found) > 1 and len(proper) != 1:
        names = ", ".join(path.name for path in found)
        raise GaugeError(
            f"Several tables in {folder} have the required columns: {names}; name one of them."
        )
    return proper[0] if proper else next(iter(found))


def tables_with_columns(
    folder: Path, columns: Collection[str], damaged: list[GaugeError] | None = None
) -> dict[Path, bool]:
    """Return the tables of a run that have the given columns.

    Parameters
    ----------
    folder : Path
        The run directory.
    columns : collection of str
        Names of the columns that a table must have.
    damaged : list of GaugeError, optional
        The errors of tables that cannot be read are added to it.

    Returns
    -------
    dict of Path to bool
        Whether the file of each table is named after its observable.
    """
    found = {}
    for path in sorted(folder.glob("*.csv")):
        try:
            header, its_columns = read_heading(path)
        except GaugeError as error:
            if damaged is not None:
                damaged.append(error)
            continue
        if set(columns) <= set(its_columns):
            found[path] = path.stem == table_name(header.get("observable", ""))
    return found


def _missing_table(folder: Path, columns: Collection[str]) -> GaugeError:
    """Return the error for a folder without a table that has the given columns."""
    for name, observable in OBSERVABLES.items():
        if set(columns) <= {SWEEP, *observable.columns.names}:
            return GaugeError(
                f"There is no table of {name} in {folder}; make one with gauge-mc measure {name} "
                f"{folder}."
            )
    return GaugeError(
        f"There is no table with the columns {', '.join(columns)} in {folder}; name another run."
    )


@with_options(lambda: ((name, one.options) for name, one in FITS.items()))
def fit(
    what: str,
    run: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    **options: Any,
) -> FitResult:
    """Fit the table of a run, and write the result to a file in the folder of the table.

    Parameters
    ----------
    what : str
        Name of the fit.
    run : path, optional
        A run directory, a result of `gauge_mc.generate`, or the file of a table. By default the
        newest run in ``runs/``.
    output : path, optional
        File of the result; by default it is in the folder of the table.
    **options : object
        Options of the fit, by name.

    Returns
    -------
    FitResult
        The result, as it was written to the file.

    Raises
    ------
    UsageError
        If the fit or the run does not exist, or the value of an option is invalid.
    GaugeError
        If the table is damaged or contains too little data, or the result cannot be written.
    """
    targets = [] if run is None else [Path(run)]
    return next(fit_all(what, targets, options, None if output is None else Path(output)))[0]


def fit_all(
    what: str,
    targets: Sequence[Path],
    options: Mapping[str, Any],
    output: Path | None = None,
) -> Iterator[tuple[FitResult, Path]]:
    """Fit several runs or tables, and yield each result with the path of its file.

    Parameters and errors are those of `fit`. Without targets the newest run is fitted.
    """
    chosen = FITS[what]
    given = check_options(chosen.options, options, f"fit {what}")
    if output and len(targets) > 1:
        raise UsageError("--output names one file, but there are several runs; leave it out.")
    if output:
        RESULT.check(output)
    for target in targets or [newest_run().path]:
        table = chosen.find_table(target, given) if target.is_dir() else target
        chosen.check_anisotropy(table)
        result = chosen.carry_out(table, **given)
        file = Path(chosen.file)
        path = output or table.parent / f"{file.stem}{result.tag}{file.suffix}"
        result.write(path)
        yield result, path


def read_fit(path: Path) -> SuggestingDict[Any]:
    """Return the content of the file of a fit, with an `Estimate` for every value with an error.

    Raises
    ------
    GaugeError
        If the file cannot be read or is not the result of a fit.
    """
    if not RESULT.recognises(path):
        raise GaugeError(f"{path} is not the result of a fit; make it again with gauge-mc fit.")
    content = parse_json(read_text(path, MAX_RESULT))
    return SuggestingDict({key: _with_estimates(value) for key, value in content.items()})


ESTIMATE = {one.name for one in dataclasses.fields(Estimate)}
"""Keys of an estimate."""


def _with_estimates(content: Any) -> Any:
    """Return a tree with objects for its estimates, and NaN for null among numbers."""
    if isinstance(content, dict):
        if content.keys() == ESTIMATE:
            return Estimate(**with_nan(content))
        return SuggestingDict({key: _with_estimates(value) for key, value in content.items()})
    if isinstance(content, list):
        numbers = all(one is None or isinstance(one, int | float) for one in content)
        return with_nan(content) if numbers else [_with_estimates(one) for one in content]
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
