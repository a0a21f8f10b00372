"""Fits, which determine physical quantities from the tables of a run.

Each fit is a subclass of `Fit` that is registered in `FITS`. Its result is written to a JSON file
in the folder of the table.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, Unpack

import numpy as np

from gauge_mc.actions import ANISOTROPY
from gauge_mc.analysis.table_series import OF_A_CHAIN
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS
from gauge_mc.arrays import Array, Integers
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import write_file
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.foreign import PROGRAM, stated_lattice
from gauge_mc.files.table import TableData, noted_tables, read_heading
from gauge_mc.fits import files
from gauge_mc.fits.quoted import WORD, Goal, QuotedNumber, result_line
from gauge_mc.observables import AGAIN_SUFFIX
from gauge_mc.options import Option, check_options
from gauge_mc.quoting import CommandLine
from gauge_mc.registry import Registry, in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.directory import Run, missing_run
from gauge_mc.run.results import RunView, open_run
from gauge_mc.run.thermalisation import (
    AUTO,
    SKIP,
    Caution,
    Skip,
    StartComparison,
    Thermalisation,
    compared_starts,
    found_below,
    found_thermalisation,
    run_cautions,
    sentences_about,
    sentences_of,
    series_cautions,
)
from gauge_mc.scans.scan import is_scan
from gauge_mc.signatures import checks_types, with_options
from gauge_mc.stored import named_or_newest, runs_of

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from gauge_mc.keywords import FitKeywords

Content = TypeVar("Content", bound="DataclassInstance")


@dataclass(frozen=True, repr=False)
class FitResult(ABC):
    """The result of a fit."""

    _: KW_ONLY
    thermalisation: Sequence[Thermalisation] = result_field(
        "Updates that ``--skip auto`` has left out of each run.", ()
    )
    starts: StartComparison | None = result_field("Comparison with another start, if any.", None)
    tables: Sequence[files.FittedTable] = result_field("The fitted tables; none for scans.", ())
    cautions: Sequence[Caution] = result_field("Cautions about its runs.", ())
    options: Mapping[str, Any] = result_field("The options that were given, or are kept.", dict)
    kept: Sequence[str] = result_field("A sentence about those that are kept, if any.", ())

    @abstractmethod
    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""

    @abstractmethod
    def report(self) -> list[Any]:
        """Return the main tables that show the result on a terminal, for Rich."""

    @abstractmethod
    def quoted(self) -> Sequence[QuotedNumber]:
        """Return the few numbers that one quotes; those that are not known may be NaN."""

    def histories(self) -> Mapping[str, tuple[Integers, Array]]:
        """Return linearised time series of quoted numbers, by their names; none if none are kept.

        Each is the numbers of the updates of its configurations, those of one chain after those of
        another, and the series, whose mean is the number; both of shape (configurations,).
        """
        return {}

    def unquoted(self) -> str:
        """Return why there is no number that one can quote, as a clause."""
        return "no error is known"

    def further_report(self) -> list[Any]:
        """Return further tables, for ``--all`` and reports."""
        return []

    @property
    def result(self) -> list[QuotedNumber]:
        """The numbers of `quoted` that are known with their errors."""
        return [x for x in self.quoted() if x.known]

    @property
    def result_line(self) -> str:
        """The line that states the numbers that one quotes, or why there are none."""
        return result_line(self.result, self.unquoted())

    @property
    def every_caution(self) -> list[Caution]:
        """The cautions about the result as a whole, and about its runs."""
        return [*map(Caution, self.values().get(files.CAUTIONS, ())), *self.cautions]

    def document(self) -> dict[str, Any]:
        """Return `result`, `values`, what the program has left out of the runs, and tables.

        The tables are those from which the result was made; see `FittedTable`.
        """
        lists: dict[str, Sequence[Any]] = {
            files.CHOSEN: self.thermalisation,
            files.FITTED: self.tables,
        }
        more = {key: [asdict(item) for item in x] for key, x in lists.items() if x}
        compared: dict[str, Any] = {files.STARTS: asdict(self.starts)} if self.starts else {}
        cautions = {files.CAUTIONS: [asdict(x) for x in self.every_caution]}
        result = [asdict(x) for x in self.result]
        options = {files.OPTIONS: dict(self.options)} if self.options else {}
        return {WORD: result, **self.values(), **more, **compared, **cautions, **options}

    def whole_report(self) -> list[Any]:
        """Return `report`, and what was left out of the runs if the program has chosen it."""
        sentences = [*self.kept, *sentences_of(self.thermalisation)]
        chains = {Path(table.file).parent for table in self.tables}
        if len(chains) > 1:
            sentences.insert(0, f"{len(chains)} chains of one ensemble are joined.")
        if self.starts:
            sentences.append(self.starts.sentence)
        return [*self.report(), *dict.fromkeys([*sentences, *sentences_about(self.cautions)])]

    def _repr_html_(self) -> str:
        """Return the whole report as HTML, for notebooks."""
        from gauge_mc.reports.markup import as_html, further_as_html, joined

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
            If the file exists and is not the result of a fit.
        """
        text = json.dumps(files.without_nan(self.document()), indent=1, ensure_ascii=False)
        write_file(path, f"{text}\n", files.RESULT)


@dataclass(frozen=True, repr=False)
class DataResult(FitResult, Generic[Content]):
    """The result of a fit whose values are the fields of a data class."""

    observable: ClassVar[str]
    """Name of the numbers, in words."""
    units: ClassVar[str]
    """Their units, in words."""
    found: Content
    """The data class."""

    def values(self) -> dict[str, Any]:
        """Return the result as plain values, for JSON."""
        return {"observable": self.observable, "units": self.units, **asdict(self.found)}


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
    starts: StartComparison = result_field("Comparison with another start; missing without one.")
    tables: Sequence[files.FittedTable] = result_field(
        "The tables from which the result was made; missing for fits of scans."
    )
    cautions: Sequence[Caution] = result_field(
        "Cautions about the result and about its runs, the same for its plot."
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
    takes this folder alone instead of tables, and the result is written into it.
    """

    of_several: ClassVar[bool] = False
    """Whether it fits all targets together, which are runs at several lattice spacings, or folders
    of them. The result of several is written into the current folder.
    """
    goals: ClassVar[tuple[Goal, ...]] = ()
    """The numbers that ``gauge-mc determine`` can aim at, which share the runs that they need."""

    joins: ClassVar[bool] = True
    """Whether it can fit the tables of several Markov chains of one ensemble together."""

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
    def carry_out(self, tables: Sequence[Path], **options: Any) -> FitResult:
        """Fit the content of a table, or of those of all chains of an ensemble together.

        Parameters
        ----------
        tables : sequence of Path
            Files of the tables, one for each chain, or the folder of the runs; see `of_scans`.
        **options : object
            The options that were given, by name. `fit_all` has checked their names and types. The
            last update that is left out may be one for each chain.

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
        return files.find_table_by_columns(folder, self.columns)

    @property
    def file(self) -> str:
        """Name of the file to which the result is written."""
        return f"{self.name}.json"

    def file_of(self, result: FitResult) -> str:
        """Return the name of the file of a result, with its tag."""
        file = Path(self.file)
        return f"{file.stem}{result.tag}{file.suffix}"


FITS: Registry[Fit] = Registry("fit", __name__, Fit)


@with_options(lambda: ((name, x.options) for name, x in FITS.items()))
@checks_types
def fit(
    what: str,
    run: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
    output: str | os.PathLike[str] | None = None,
    separate: bool = False,
    lattice: str | None = None,
    keep: bool = False,
    **options: Unpack[FitKeywords],
) -> FitResult:
    """Fit the table of a run, or those of the chains of an ensemble, and write the result.

    Parameters
    ----------
    what : str
        Name of the fit.
    run : path or sequence of path, optional
        A run directory, a result of `gauge_mc.generate`, the file of a table or of a series of
        another program, or a folder of chains of one ensemble; a scan for fits of scans; or several
        of these that are fitted together. By default the newest one in ``runs/``.
    output : path, optional
        File of the result; by default FIT.json in the folder of the table or of the chains;
        FIT_LEVEL.json if it has several levels, FIT_chains.json in the first of several chains
        without a folder.
    separate : bool
        Whether chains of one ensemble are not joined.
    lattice : str, optional
        Extents of the lattice, for series of other programs that do not state them.
    keep : bool
        Whether to keep the options with the run, for later fits, plots and reports.
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
    several = [run] if isinstance(run, str | os.PathLike) else run or []
    targets = [*map(Path, several)]
    with stated_lattice(lattice):
        every = ensembles_of(FITS[what], targets, options, separate)
    if len(every) > 1:
        raise UsageError(
            f"{run or 'The newest ensemble'} consists of {len(every)} runs or ensembles; fit them "
            f"one by one, such as {every[0].runs[0]}."
        )
    file = None if output is None else Path(output)
    return next(fit_all(what, targets, options, file, separate, lattice, keep))[0]


def fit_all(
    name: str,
    targets: Sequence[Path],
    options: Mapping[str, Any],
    output: Path | None = None,
    separate: bool = False,
    lattice: str | None = None,
    keep: bool = False,
) -> Iterator[tuple[FitResult, Path]]:
    """Fit several ensembles, and yield each result with the path of its file.

    Parameters and errors are those of `fit`. Chains of one ensemble are fitted together unless they
    are to be separate. Without targets the newest run is fitted, with all chains of its ensemble,
    or all runs of the newest scan.
    """
    fit = FITS[name]
    values = check_options(fit.options, options, f"fit {name}")
    with stated_lattice(lattice):
        every = ensembles_of(fit, targets, values, separate)
    if output and len(every) > 1:
        raise UsageError("--output names one file, but there are several runs; leave it out.")
    if output:
        files.RESULT.check(output)
    for ensemble in every:
        with stated_lattice(lattice):
            result = result_of(fit, ensemble, values)
        path = output or ensemble.file_of(fit.file_of(result))
        result.write(path)
        for run in ensemble.runs if keep else ():
            files.keep_options(run if run.is_dir() else run.parent, name, values)
        yield result, path


JOINED = "_chains"
"""End of the name of the file of a joint result in the folder of the first of several chains."""


@dataclass(frozen=True)
class FittedEnsemble:
    """The runs or tables that are fitted together: one, or the chains of an ensemble.

    Attributes
    ----------
    runs : list of Path
        Run directories or files of tables; for fits of scans the folder of the runs.
    folder : Path or None
        The folder of these chains alone that was named, if any.
    """

    runs: list[Path]
    folder: Path | None = None

    @property
    def place(self) -> Path:
        """The folder to which the result belongs."""
        first = self.runs[0]
        return self.folder or (first if first.is_dir() else first.parent)

    def file_of(self, name: str) -> Path:
        """Return the path of a result with the given name of its file."""
        file = Path(name)
        ending = "" if self.folder or len(self.runs) == 1 else JOINED
        return self.place / f"{file.stem}{ending}{file.suffix}"


def ensembles_of(
    fit: Fit, targets: Sequence[Path], options: Mapping[str, Any], separate: bool = False
) -> list[FittedEnsemble]:
    """Return what is fitted together; see `fit_all`.

    Tables belong to one ensemble if their headers state the same lattice and all other parameters
    but those of a chain. Tables of the same chain, such as copies, are never joined.
    """
    if fit.of_several and len(targets) > 1:
        return [FittedEnsemble([*targets], Path())]
    if fit.of_scans:
        return [FittedEnsemble([target]) for target in named_or_newest(targets, True)]
    every = []
    for target in named_or_newest(targets):
        runs = runs_of([target])  # of a scan or folder
        if runs == [target]:
            runs = files.tables_of_chains(target, fit.columns) or runs
        every.append((target, runs))
    groups: dict[object, list[Path]] = {}
    members: Counter[object] = Counter()
    for run in chain.from_iterable(runs for _, runs in every):
        key = _member(fit, run, options) if fit.joins and not separate else (run, run)
        groups.setdefault((key[0], members[key]), []).append(run)
        members[key] += 1
    folders = {tuple(runs): target for target, runs in every if len(runs) > 1}
    return [FittedEnsemble(runs, folders.get(tuple(runs))) for runs in groups.values()]


def _member(fit: Fit, run: Path, options: Mapping[str, Any]) -> tuple[object, object]:
    """Return what identifies the ensemble of a run or table, and what its chain; else the run."""
    try:
        table = fit.find_table(run, options) if run.is_dir() else run
        header = read_heading(table)[0]
    except GaugeError:  # which is raised again when it is fitted
        return run, run
    if "lattice" not in header or PROGRAM in header:  # whose coupling is not known
        return run, run
    shared = frozenset(header.items() - {(key, header.get(key)) for key in OF_A_CHAIN})
    seed, start = (header.get(key) for key in OF_A_CHAIN[:2])
    return shared, (seed, start) if seed else table.parent.resolve()


def result_of(fit: Fit, ensemble: FittedEnsemble, options: Mapping[str, Any]) -> FitResult:
    """Return the result of a fit without writing anything."""
    folder = ensemble.runs[0] if ensemble.runs[0].is_dir() else ensemble.runs[0].parent
    run_options = files.left_to_kept(folder, fit.name, fit.options, options)
    every = {**run_options, **options}
    fitted = _of_runs if fit.of_scans else _of_tables
    return replace(
        fitted(fit, ensemble, every), options=every, kept=files.kept_in_words(folder, run_options)
    )


def _of_tables(fit: Fit, ensemble: FittedEnsemble, options: Mapping[str, Any]) -> FitResult:
    """Return the result of a fit to a table, or to those of the chains of an ensemble."""
    runs = ensemble.runs
    for run in runs:
        if not run.exists():
            raise missing_run(run)
    tables = [fit.find_table(run, options) if run.is_dir() else run for run in runs]
    for table in tables:
        fit.check_anisotropy(table)
    skip = options.get(SKIP.name, 0)
    cuts = [found_thermalisation(table.parent) for table in tables] if skip == AUTO else []
    skips = [cut.update for cut in cuts] or [skip] * len(tables)
    numbers: dict[str, Any] = {**options}
    if cuts:
        numbers[SKIP.name] = skips[0] if len(skips) == 1 else tuple(skips)
    places = dict.fromkeys(table.parent for table in tables)
    starts = None if cuts else compared_starts(tables[0].parent)
    with noted_tables() as read:
        result = fit.carry_out(tables, **numbers)
    return replace(
        result,
        thermalisation=cuts,
        starts=starts,
        tables=files.fitted_tables(read, ensemble.place),
        cautions=[
            *files.sampling_cautions(read, skip),
            *run_cautions(places, _skip_of(fit, options)),
        ],
    )


def _skip_of(fit: Fit, options: Mapping[str, Any]) -> Skip | None:
    """Return what a fit leaves out; None if it cannot leave out anything."""
    return options.get(SKIP.name, 0) if SKIP in fit.options else None


def _of_runs(fit: Fit, ensemble: FittedEnsemble, options: Mapping[str, Any]) -> FitResult:
    """Return the result of a fit to a folder of runs, or to several; see `Fit.of_several`."""
    targets = ensemble.runs
    for target in targets:
        if not target.is_dir():
            raise UsageError(
                f"fit {fit.name} needs the folder of a scan or of several runs, and {target} is "
                "not a folder; name one."
            )
    with noted_tables() as read:
        result = fit.carry_out(targets, **options)
    skip = _skip_of(fit, options)
    runs = sorted({path.parent for path in read})
    cautions = [*series_cautions(read, skip), *run_cautions(runs, skip)]
    left_out = found_below(targets[0]) if skip == AUTO else ()
    return replace(result, cautions=cautions, thermalisation=left_out)


def caution_few(table: TableData, path: Path, folder: Path | None) -> list[str]:
    """Return a sentence if fits of a table need more configurations than it has; else nothing."""
    if SWEEP not in table:
        return []
    number, bounds = np.unique(table[SWEEP]).size, dict[str, int]()
    for name in FITS:
        try:
            fit = FITS[name]
        except GaugeError:  # of a package that cannot be imported
            continue
        if not fit.of_scans and fit.fewest > number and {*fit.columns} <= {*table.columns}:
            bounds[name] = fit.fewest
    if not bounds:
        return []
    most = max(bounds.values())
    names = [name for name, fewest in bounds.items() if fewest == most]
    subject = f"The fits {in_words(names)} need" if len(names) > 1 else f"The fit {names[0]} needs"
    advice = "measure on more"
    if folder is not None and Run(folder).exists():
        again = path.stem.endswith(AGAIN_SUFFIX)
        advice = _more_configurations(open_run(folder), again, most, most - number)
    return [f"{subject} at least {most} configurations, and {path.name} has {number}; {advice}."]


def _more_configurations(run: RunView, again: bool, most: int, lacking: int) -> str:
    """Return the advice that leads to further configurations of a run, or to those made again.

    A run is continued by itself, or by the scan that it belongs to.
    """
    p = run.parameters
    made = max(0, run.sweep - p.thermalize) // p.separation  # removed ones included
    configs = most if again else made + lacking
    scan = run.path.parent
    command, output = ("scan", scan) if is_scan(scan) else ("generate", run.path)
    more = configs if configs > p.configs else None
    continued = f"`{CommandLine(command, output=output, configs=more)}`"
    if not again:
        return f"make more with {continued}, and repeat the command"
    last = p.thermalize + most * p.separation
    measured = f"measure more with --at {p.thermalize + p.separation}:{last}:{p.separation}"
    return measured if made >= most else f"continue the run with {continued}, and {measured}"
