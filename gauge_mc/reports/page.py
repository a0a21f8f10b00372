"""The page of a report: its frame, and the file."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from gauge_mc import __version__
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.analysis.timeseries import Estimate, estimate
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind, write_file
from gauge_mc.files.columns import SWEEP, Column
from gauge_mc.files.input import Paths, may_be_made, paths_of
from gauge_mc.files.table import TableData, each_table_once, read_table
from gauge_mc.fits import FitResult
from gauge_mc.fits.files import kept_skip
from gauge_mc.options import check_options
from gauge_mc.plots.runs import labels_of
from gauge_mc.reports import SECTIONS
from gauge_mc.reports.markup import Markup, element, text
from gauge_mc.results import documented, result_field
from gauge_mc.run import thermalisation as transients
from gauge_mc.run.directory import Run, SessionRecord
from gauge_mc.run.lock import now
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.scan import is_scan
from gauge_mc.signatures import checks_types
from gauge_mc.stored import folders, named_or_newest, runs_of

MOST_RUNS = 12
"""Number of runs that a page shows."""


@dataclass(frozen=True)
class ChainSeries:
    """A quantity of a run along its chain."""

    label: str
    """Label of the run."""
    sweeps: NDArray[np.int64]
    """Numbers of updates, of shape (samples,)."""
    values: NDArray[np.float64]
    """Values, of shape (samples,)."""
    cut: int
    """Last update that is left out of averages."""

    @cached_property
    def kept(self) -> NDArray[np.float64]:
        """The values that are averaged."""
        return self.values[self.sweeps > self.cut]

    @cached_property
    def average(self) -> Estimate:
        """Their average; tau_int is in measurements."""
        return estimate(self.kept)

    @property
    def every(self) -> int | None:
        """Updates from one measurement to the next; None if they differ or are unknown."""
        steps = np.diff(self.sweeps)
        return int(steps[0]) if steps.size and (steps == steps[0]).all() else None


@dataclass(frozen=True)
class Quantity:
    """A column of tables of the same name."""

    table: str
    """File name of the tables."""
    column: Column
    """Its declaration."""
    series: Sequence[ChainSeries]
    """Its series in every run that has it."""

    @property
    def name(self) -> str:
        """Name for readers."""
        column = self.column
        return column.average or (
            f"{column.short}: {column.help.rstrip('.')}" if column.help else column.short
        )


@dataclass(frozen=True)
class ReportedRun:
    """A run on a page."""

    run: Run
    """The run."""
    label: str
    """Group, coupling and lattice, and if necessary the directory."""
    parameters: Parameters
    """Its parameters."""
    sessions: Sequence[SessionRecord]
    """Processes that have worked on it."""
    skip: transients.Skip
    """Updates that are left out of averages, as the user has chosen them."""

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.run.path

    @cached_property
    def thermalisation(self) -> transients.Thermalisation | None:
        """The part that has been left out; None if a number was given."""
        return transients.found_thermalisation(self.path) if isinstance(self.skip, str) else None

    @cached_property
    def cut(self) -> int:
        """Last update that is left out of averages."""
        return self.thermalisation.update if self.thermalisation else int(self.skip)

    @cached_property
    def tables(self) -> dict[str, TableData]:
        """The tables by name of their files, without damaged and empty ones."""
        return {name: x for name, x in self._read.items() if isinstance(x, TableData)}

    @property
    def damaged(self) -> list[str]:
        """Sentences about the tables that cannot be read."""
        return [str(x) for x in self._read.values() if isinstance(x, GaugeError)]

    @cached_property
    def _read(self) -> dict[str, TableData | GaugeError]:
        datas: dict[str, TableData | GaugeError] = {}
        for path in self.run.tables():
            try:
                datas[path.name] = read_table(path)
            except GaugeError as error:
                datas[path.name] = error
        return datas


@dataclass(frozen=True)
class Subject:
    """The runs and scans that a page shows."""

    paths: Sequence[Path]
    """Runs and scans, as the user has named them."""
    runs: Sequence[ReportedRun]
    """The runs, at most `MOST_RUNS`."""
    scans: Sequence[Path]
    """The scans."""
    left_out: int
    """Number of further runs, which are not shown."""
    folder: Path
    """The folder of the page, from which it links to files."""
    skip: transients.Skip
    """Updates that are left out of averages, as the user has chosen them."""
    results: dict[Path, dict[str, FitResult]] = field(default_factory=dict)
    """Results of fits by run and name of their file, which the section of fits adds."""
    said: set[str] = field(default_factory=set)
    """Cautions that the page shows already."""
    drawn: set[str] = field(default_factory=set)
    """Names of the plots that the page shows already."""

    @classmethod
    def of(cls, paths: list[Path], folder: Path, skip: transients.Skip | None) -> Subject:
        """Return the runs and scans in directories."""
        every = runs_of(folders(paths))
        shown = every[:MOST_RUNS]
        skips = [kept_skip([path], transients.AUTO) if skip is None else skip for path in shown]
        together = kept_skip(shown, transients.AUTO) if skip is None else skip
        runs = [
            ReportedRun(Run(path), label or path.resolve().name, *Run(path).read(), each)
            for path, label, each in zip(shown, labels_of(shown), skips, strict=True)
        ]
        scans = [*filter(is_scan, paths)]
        return cls(paths, runs, scans, len(every) - len(shown), folder, together)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The quantities of all tables with one row per measurement."""
        columnses: dict[tuple[str, str], tuple[Column, list[ChainSeries]]] = {}
        for run in self.runs:
            for name, table in run.tables.items():
                for column, sweeps, values in columns_of(table):
                    series = ChainSeries(run.label, sweeps, values, run.cut)
                    _, every = columnses.setdefault((name, column.name), (column, []))
                    every.append(series)
        return [Quantity(name, column, every) for (name, _), (column, every) in columnses.items()]

    def not_yet_said(self, cautions: Sequence[str]) -> list[str]:
        """Return the cautions that the page does not show yet; from now on it does."""
        new = [f for f in dict.fromkeys(cautions) if f not in self.said]
        self.said.update(new)
        return new

    def link(self, path: Path, words: object = "") -> Markup:
        """Return a link to a file from the page, or the words alone if it is on another disk."""
        shown = words or path.name
        with suppress(ValueError):
            address = quote(os.fsencode(os.path.relpath(path, self.folder)))
            return element("a", shown, href=f"./{address}")
        return text(shown)


def columns_of(table: TableData) -> Iterator[tuple[Column, NDArray[np.int64], NDArray[np.float64]]]:
    """Yield the columns of a table with one row per measurement that are shown as time series.

    These are the columns whose averages are shown; of algorithms, all that have numbers.
    """
    sweeps = table.columns.get(SWEEP)
    if sweeps is None or not len(table) or not single(table):
        return
    name, columns = transients.declared_columns(table)
    algorithm = name in ALGORITHMS
    for column in columns if algorithm else columns.averaged:
        if column.name in table and table[column.name].dtype.kind in "if" and not column.index:
            values = np.asarray(table[column.name], dtype=np.float64)
            if np.isfinite(values).all() and not (algorithm and np.ptp(values) == 0):
                yield column, sweeps, values


def single(table: TableData) -> bool:
    """Return whether a table has one row per measurement."""
    sweeps = table.columns.get(SWEEP)
    return sweeps is not None and bool((np.diff(sweeps) > 0).all())


MARK = b"<!DOCTYPE html>\n<!-- a report of gauge-mc -->\n"
"""The beginning of every page."""

FILE = "report.html"
"""Usual name of the file."""

SCRIPTS = ("vendor/uplot/uPlot.iife.min.js", "assets/report.js")
STYLES = ("vendor/uplot/uPlot.min.css", "assets/report.css")
"""Scripts and style sheets that are part of every page."""

LICENSE = "vendor/uplot/LICENSE"
"""Licence of the library that draws charts."""


@documented
@dataclass(frozen=True)
class PageReport:
    """Document of ``report``."""

    file: str = result_field("File that was written or read.")
    runs: Sequence[str] = result_field("Runs that the page shows.")
    sections: Sequence[str] = result_field("Sections of the page.")
    bytes: int = result_field("Size of the file in bytes.")


@checks_types
def report(
    run: Paths | None = None,
    output: str | os.PathLike[str] | None = None,
    *,
    skip: transients.Skip | None = None,
) -> PageReport:
    """Write a page that shows everything about runs.

    The page has all fits and figures that the tables allow, state and parameters, averages, time
    series with running averages and the cut of the thermalisation, autocorrelation functions,
    histograms, provenance, links to files, and how to cite. Several runs are shown side by side. It
    is one file, which needs no network.

    Parameters
    ----------
    run : path or sequence of paths, optional
        Runs; a scan stands for its runs; by default running or last generated in ``runs/``. Results
        of `gauge_mc.generate` and `gauge_mc.open_run` stand for their runs as well.
    output : path, optional
        File to write; by default ``report.html`` in the run or scan, or in this folder for several.
    skip : int or str, optional
        Leave what was measured up to update N out; auto finds where the chain has thermalised; by
        default as kept, else auto. This concerns averages, figures and fits.

    Returns
    -------
    PageReport
        The file, and what it shows.

    Raises
    ------
    UsageError
        If a run does not exist, or `output` is another file.
    GaugeError
        If a file of a run is damaged, or the page cannot be written.
    """
    paths = named_or_newest(None) if run is None else paths_of(run)
    if not paths:
        raise UsageError("There is no run to report; name one.")
    file = Path(output) if output else (paths[0] if len(paths) == 1 else Path()) / FILE
    cut = check_options([transients.SKIP], {transients.SKIP.name: skip}, "reports").get(
        transients.SKIP.name
    )
    if not may_be_made(file.parent):  # which is not to be found out after all figures
        raise GaugeError(
            f"The report {file} could not be written: no files can be made in {file.parent}; "
            "choose another --output."
        )
    with each_table_once():
        subject = Subject.of(paths, file.parent, cut)
        PAGE.check(file)
        content, names = page(subject)
    encoded = content.encode("utf-8", "backslashreplace")
    write_file(file, encoded, PAGE)
    runs = [str(run.path) for run in subject.runs]
    return PageReport(str(file), runs, names, len(encoded))


def _is_page(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MARK)) == MARK
    except OSError:
        return False


PAGE = FileKind("a report", _is_page)
"""Kind of the files of reports."""


def page(subject: Subject) -> tuple[str, list[str]]:
    """Return the page of runs as HTML, and the names of its sections."""
    sections = sorted(SECTIONS.values(), key=lambda x: (x.place, x.name))
    parts, links, names = [], [], []
    for section in sections:
        try:
            content = section.content(subject)
        except GaugeError as error:
            content = [element("p", str(error), class_="caution")]
        if content:
            head = element("h2", section.title, id=f"{section.name}-title")
            labelled = f"{section.name}-title"
            parts.append(
                element("section", head, *content, id=section.name, aria_labelledby=labelled)
            )
            links.append(element("li", element("a", section.title, href=f"#{section.name}")))
            names.append(section.name)
    title = "; ".join(run.label for run in subject.runs[:3])
    heading = f"Report: {title}"
    byline = element("p", f"Made by gauge-mc {__version__}, {now()}")
    words = "The charts are drawn by uPlot, which has this licence:"
    licence = element("p", words), element("pre", asset(LICENSE))
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="jump"),
        element("header", element("h1", heading), byline),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *parts, id="content", tabindex="-1"),
        element("footer", element("details", element("summary", "Licences"), *licence)),
        element("script", Markup(script())),
    )
    digest = base64.b64encode(hashlib.sha256(script().encode()).digest()).decode()
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", heading),
        element("style", Markup("\n".join(map(asset, STYLES)))),
    )
    return MARK.decode() + element("html", head, body, lang="en") + "\n", names


@cache
def asset(name: str, package: str = "gauge_mc.reports") -> str:
    """Return a script or a style sheet of a package."""
    files = resources.files(package)
    for part in name.split("/"):
        files = files.joinpath(part)
    return files.read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return all scripts of a page, which nothing in a run can change."""
    return "\n".join(map(asset, SCRIPTS))
