"""Fits, which determine physical quantities from the tables of a run.

Each fit has a module of its name, with a subclass of `Fit` that is registered in `FITS`. Its result
is written to a JSON file in the folder of the table.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Unpack

from gauge_mc.actions import ANISOTROPY
from gauge_mc.analysis.timeseries.gamma_method import MIN_CONFIGURATIONS
from gauge_mc.arguments import checks_types
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import replacing
from gauge_mc.files.table import noted_tables, read_heading
from gauge_mc.fits.shared.files import (
    CHOSEN,
    FITTED,
    OPTIONS,
    RESULT,
    SAMPLING,
    STARTS,
    without_nan,
)
from gauge_mc.fits.shared.fitted_tables import FittedTable, fitted_tables, sampling_cautions
from gauge_mc.fits.shared.quoted import WORD, QuotedNumber, result_line
from gauge_mc.fits.shared.tables import find_table_by_columns, tables_of_chains
from gauge_mc.options import Option, check_options
from gauge_mc.registry import QUANTITIES, Registry
from gauge_mc.results import DECLARED, documented, result_field
from gauge_mc.run.directory import missing_run
from gauge_mc.run.starts import StartComparison, compared_starts
from gauge_mc.run.thermalisation import (
    AUTO,
    SKIP,
    Thermalisation,
    found_below,
    found_thermalisation,
    sentences_of,
)
from gauge_mc.scans.scan import newest_scan
from gauge_mc.scans.targets import named_or_newest, runs_of
from gauge_mc.signatures import with_options

if TYPE_CHECKING:
    from gauge_mc.keywords import FitKeywords


@dataclass(frozen=True, repr=False)
class FitResult(ABC):
    """The result of a fit."""

    thermalisation: Sequence[Thermalisation] = field(
        default=(),
        kw_only=True,
        metadata={DECLARED: {"help": "Updates that ``--skip auto`` has left out of each run."}},
    )
    starts: StartComparison | None = field(
        default=None,
        kw_only=True,
        metadata={DECLARED: {"help": "Comparison with a chain from another start, if any."}},
    )
    tables: Sequence[FittedTable] = field(
        default=(),
        kw_only=True,
        metadata={DECLARED: {"help": "The tables from which it was made; none for scans."}},
    )

    sampling: Sequence[str] = field(
        default=(),
        kw_only=True,
        metadata={DECLARED: {"help": "Cautions about which configurations were measured."}},
    )

    options: Mapping[str, Any] = field(
        default_factory=dict,
        kw_only=True,
        metadata={DECLARED: {"help": "The options of the fit that were given, by name."}},
    )

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""

    @abstractmethod
    def report(self) -> list[Any]:
        """Return the main tables that show the result on a terminal, for Rich."""

    @abstractmethod
    def quoted(self) -> Sequence[QuotedNumber]:
        """Return the few numbers that one quotes; those that are not known may be NaN."""

    def unquoted(self) -> str:
        """Return why there is no number that one can quote, as a clause."""
        return "no error is known"

    def further_report(self) -> list[Any]:
        """Return further tables, for ``--all`` and reports."""
        return []

    @property
    def result(self) -> list[QuotedNumber]:
        """The numbers of `quoted` that are known with their errors."""
        return [one for one in self.quoted() if one.known]

    @property
    def result_line(self) -> str:
        """The line that states the numbers that one quotes, or why there are none."""
        return result_line(self.result, self.unquoted())

    def document(self) -> dict[str, Any]:
        """Return `result`, `values`, what the program has left out of the runs, and tables.

        The tables are those from which the result was made; see `FittedTable`.
        """
        lists: dict[str, Sequence[Any]] = {CHOSEN: self.thermalisation, FITTED: self.tables}
        more = {key: [asdict(item) for item in one] for key, one in lists.items() if one}
        compared: dict[str, Any] = {STARTS: asdict(self.starts)} if self.starts else {}
        sampling = {SAMPLING: list(self.sampling)} if self.sampling else {}
        result = [asdict(one) for one in self.result]
        given = {OPTIONS: dict(self.options)} if self.options else {}
        return {WORD: result, **self.values(), **more, **compared, **sampling, **given}

    def whole_report(self) -> list[Any]:
        """Return `report`, and what was left out of the runs if the program has chosen it."""
        said = sentences_of(self.thermalisation)
        if self.starts:
            said.append(self.starts.sentence)
        return [*self.report(), *said, *self.sampling]

    def _repr_html_(self) -> str:
        """Return the whole report as HTML, for notebooks."""
        from gauge_mc.reports.markup import joined
        from gauge_mc.reports.rich_html import as_html, further_as_html

        shown = [self.result_line, *self.whole_report()]
        further = further_as_html(self.further_report())
        return joined([*map(as_html, shown), further, self._chart()])

    def _chart(self) -> str:
        """Return a chart of the result for notebooks, as HTML; empty if it has none."""
        return ""

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
        text = json.dumps(without_nan(self.document()), indent=1, ensure_ascii=False)
        with replacing(path, kind=RESULT) as file:
            file.write(text.encode() + b"\n")


@documented
@dataclass(frozen=True)
class FitReport:
    """The keys that the results of all fits share."""

    file: str = result_field("File that was written or read.")
    result: Sequence[QuotedNumber] = result_field(
        "The few numbers that one quotes, which the printed text ends with; empty if none is known."
    )
    observable: str = result_field("What the numbers are, in words.")
    units: str = result_field("Their units, in words.")
    thermalisation: Sequence[Thermalisation] = result_field(
        "Updates that ``--skip auto`` has left out of each run; missing if a number was given."
    )
    starts: StartComparison = result_field(
        "Comparison with a chain from another start; missing if there is none."
    )
    tables: Sequence[FittedTable] = result_field(
        "The tables from which the result was made; missing for fits of scans."
    )
    sampling: Sequence[str] = result_field(
        "Cautions that configurations are not equally spaced, or only some of those that the run "
        "has; missing if there are none."
    )
    options: Mapping[str, object] = result_field(
        "The options of the fit that were given, by name; missing if there are none."
    )
    fits: Sequence[object] = result_field("Results of the fits, if there are several runs.")


class Fit(ABC):
    """A fit to a table."""

    name: ClassVar[str]
    """Name on the command line."""
    summary: ClassVar[str]
    """Short description of the result, for help texts."""
    columns: ClassVar[tuple[str, ...]]
    """Columns that the table must have."""
    content: ClassVar[tuple[type[Any], ...]] = ()
    """Data classes of which the values of the result consist, for the description of their keys."""
    options: ClassVar[tuple[Option, ...]] = ()
    """Options of `carry_out`."""
    fewest: ClassVar[int] = MIN_CONFIGURATIONS
    """Minimum number of configurations in its table, below which `carry_out` refuses."""
    isotropic: ClassVar[bool] = False
    """Whether the results assume equal lattice spacings in space and along t."""
    knows: ClassVar[str] = ""
    """Key in the header of a table by which it is known that the spacings were treated differently
    when it was measured, if the fit then allows them; or empty.
    """

    of_scans: ClassVar[bool] = False
    """Whether it fits the runs of a scan, or of any folder of runs, together. `carry_out` then
    takes this folder instead of a table, and the result is written into it.
    """

    joins_chains: ClassVar[bool] = False
    """Whether it fits the runs in a folder together, as Markov chains of one ensemble.
    `carry_out_chains` then takes their tables, and the result is written into the folder.
    """

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
            File of the table, or the folder of the runs; see `of_scans`.
        **options : object
            The options that were given, by name. `fit_all` has checked their names and types.

        Raises
        ------
        UsageError
            If the value of an option is invalid.
        GaugeError
            If the table is damaged or contains too little data.
        """

    def carry_out_chains(self, tables: Sequence[Path], **options: Any) -> FitResult:
        """Fit the tables of several chains of one ensemble together; see `joins_chains`.

        Parameters
        ----------
        tables : sequence of Path
            Files of the tables.
        **options : object
            See `carry_out`.

        Raises
        ------
        UsageError, GaugeError
            See `carry_out`, or if the chains do not belong together.
        """
        raise NotImplementedError

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

    def file_of(self, result: FitResult) -> str:
        """Return the name of the file of a result, with its tag."""
        file = Path(self.file)
        return f"{file.stem}{result.tag}{file.suffix}"


FITS: Registry[Fit] = Registry("fit", __name__, Fit, rooms=QUANTITIES)


@with_options(lambda: ((name, one.options) for name, one in FITS.items()))
@checks_types
def fit(
    what: str,
    run: str | os.PathLike[str] | None = None,
    output: str | os.PathLike[str] | None = None,
    **options: Unpack[FitKeywords],
) -> FitResult:
    """Fit the table of a run, and write the result to a file in the folder of the table.

    Parameters
    ----------
    what : str
        Name of the fit.
    run : path, optional
        A run directory, a result of `gauge_mc.generate`, or the file of a table; a scan for fits of
        scans; a folder of chains for fits that join them. By default the newest one in ``runs/``.
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
    every = fitted_targets(FITS[what], targets)
    if len(every) > 1:
        raise UsageError(
            f"{run or 'The newest ensemble'} consists of {len(every)} runs; fit them one by one, "
            f"such as {every[0]}."
        )
    return next(fit_all(what, targets, options, None if output is None else Path(output)))[0]


def fit_all(
    what: str,
    targets: Sequence[Path],
    options: Mapping[str, Any],
    output: Path | None = None,
) -> Iterator[tuple[FitResult, Path]]:
    """Fit several runs or tables, and yield each result with the path of its file.

    Parameters and errors are those of `fit`. Without targets the newest run is
    fitted, or all chains of its ensemble, or all runs of the newest scan.
    """
    chosen = FITS[what]
    given = check_options(chosen.options, options, f"fit {what}")
    every = fitted_targets(chosen, targets)
    if output and len(every) > 1:
        raise UsageError("--output names one file, but there are several runs; leave it out.")
    if output:
        RESULT.check(output)
    for target in every:
        result, folder = result_of(chosen, target, given)
        path = output or folder / chosen.file_of(result)
        result.write(path)
        yield result, path


def fitted_targets(chosen: Fit, targets: Sequence[Path]) -> list[Path]:
    """Return the runs, tables or folders that are fitted, each by itself; see `fit`."""
    if chosen.of_scans:
        return [*targets] or [newest_scan().path]
    if chosen.joins_chains and targets:
        return [*targets]
    return runs_of(named_or_newest(targets))


def result_of(chosen: Fit, target: Path, given: Mapping[str, Any]) -> tuple[FitResult, Path]:
    """Return the result of a fit, and the folder to which it belongs, without writing anything.

    Parameters
    ----------
    chosen : Fit
        The fit.
    target : Path
        A run directory or the file of a table, or the folder of runs for fits of scans.
    given : mapping of str to object
        Options that `check_options` has returned.

    Raises
    ------
    UsageError, GaugeError
        See `fit`.
    """
    result, folder = (_of_runs if chosen.of_scans else _of_table)(chosen, target, given)
    return replace(result, options=given), folder


def _of_table(chosen: Fit, target: Path, given: Mapping[str, Any]) -> tuple[FitResult, Path]:
    """Return the result of a fit to one table, with the folder of the table.

    The tables may be several ones of chains in a folder; see `Fit.joins_chains`.
    """
    if chosen.joins_chains and (tables := tables_of_chains(target, chosen.columns)):
        for one in tables:
            chosen.check_anisotropy(one)
        with noted_tables() as read:
            result = chosen.carry_out_chains(tables, **given)
        chains = [one.parent for one in tables] if given.get(SKIP.name) == AUTO else []
        left_out = [*map(found_thermalisation, chains)]
        fitted = fitted_tables(read, target)
        said = sampling_cautions(read, 0 if chains else given.get(SKIP.name, 0))
        return replace(result, thermalisation=left_out, tables=fitted, sampling=said), target
    if not target.exists():
        raise missing_run(target)
    table = chosen.find_table(target, given) if target.is_dir() else target
    chosen.check_anisotropy(table)
    found = [found_thermalisation(table.parent)] if given.get(SKIP.name) == AUTO else []
    numbers = {**given, SKIP.name: found[0].update} if found else given
    starts = None if found else compared_starts(table.parent)
    with noted_tables() as read:
        result = chosen.carry_out(table, **numbers)
    fitted = fitted_tables(read, table.parent)
    said = sampling_cautions(read, numbers.get(SKIP.name, 0))
    made = replace(result, thermalisation=found, starts=starts, tables=fitted, sampling=said)
    return made, table.parent


def _of_runs(chosen: Fit, target: Path, given: Mapping[str, Any]) -> tuple[FitResult, Path]:
    """Return the result of a fit to a folder of runs, with this folder."""
    if not target.is_dir():
        raise UsageError(
            f"fit {chosen.name} needs the folder of a scan or of several runs, and {target} is "
            "none; name one."
        )
    result = chosen.carry_out(target, **given)
    if given.get(SKIP.name) != AUTO:
        return result, target
    return replace(result, thermalisation=found_below(target)), target
