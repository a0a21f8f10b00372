"""Sections with results: fits, and the averages of all tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from gauge_mc.analysis.timeseries import Estimate, caution_series, estimate
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import SWEEP
from gauge_mc.files.frames import dimensions_of
from gauge_mc.files.table import TableData
from gauge_mc.fits import FITS, FittedEnsemble, result_of
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.figures import figures_of_fit
from gauge_mc.reports.markup import Markup, as_html, element, folded, further_as_html, joined, table
from gauge_mc.reports.page import ChainSeries, ReportedRun, Subject, single
from gauge_mc.run.thermalisation import SKIP, compared_starts, declared_columns, sentences_about


class FitsSection(Section):
    """Every fit with its usual options, to every run or scan that has the tables."""

    name: ClassVar[str] = "fits"
    title: ClassVar[str] = "Results"
    place: ClassVar[int] = 5

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the numbers of the fits with their figures, and why others were not possible."""
        parts, missing = [], []
        for name, fit in FITS.items():
            if fit.of_several:
                continue
            targets = [(run.path, run.label) for run in subject.runs]
            if fit.of_scans:
                targets = [(path, path.name) for path in subject.scans]
            shown = []
            for path, label in targets:
                try:
                    shown.append(result_in_html(name, path, label, subject))
                except GaugeError as error:
                    missing.append(element("li", f"{name}, {label}: {error}"))
            if shown:
                summary = element("p", fit.summary, class_="summary")
                figures = figures_of_fit(name, dict(targets), subject)
                parts += [element("h3", name), summary, *shown, *figures]
        if missing:
            parts.append(folded("Fits that these tables do not allow", element("ul", *missing)))
        return parts


SECTIONS.register(FitsSection())


def result_in_html(name: str, path: Path, label: str, subject: Subject) -> Markup:
    """Return the numbers that one quotes of a fit, its cautions, and its report to be unfolded."""
    skip = next((run.skip for run in subject.runs if run.path == path), subject.skip)
    options = {SKIP.name: skip} if SKIP in FITS[name].options else {}
    result = result_of(FITS[name], FittedEnsemble([path]), options)
    subject.results.setdefault(path, {})[FITS[name].file_of(result)] = result
    quoted = element("p", element("strong", result.result_line))
    yet_said = subject.not_yet_said(sentences_about(result.every_caution))
    cautions = [element("p", words, class_="caution") for words in yet_said]
    more = further_as_html(result.further_report())
    tables = folded("Tables", *map(as_html, result.report()), more)
    return element("div", element("h4", label), quoted, *cautions, tables, class_="result")


MOST_ROWS = 40
"""Number of averages of a table with several rows per measurement that are shown."""

MOST_COLUMNS = 6
"""Number of columns of such a table that are averaged."""


class MeanValuesSection(Section):
    """Averages with errors and autocorrelation times."""

    name: ClassVar[str] = "mean-values"
    title: ClassVar[str] = "Averages"
    place: ClassVar[int] = 20

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return a table of averages, and tables of those with indices; see `Section.content`."""
        parts = [_left_out(run) for run in subject.runs]
        labels = [run.label for run in subject.runs]
        single_heads = ["average", "τ_int [updates]", "measurements"]
        heads = ["quantity", *(labels if len(labels) > 1 else single_heads)]
        rows, cautions = [], []
        for quantity in subject.quantities:
            cells: dict[str, list[str]] = {}
            for series in quantity.series:
                average = series.average
                where = f"{quantity.name}, {series.label}"
                cautions += [f"{where}: {words}" for words in _cautions(series, average)]
                tau = average.format_tau(series.every or 1)
                cells[series.label] = [average.format(), tau, str(average.samples)]
            if len(labels) > 1:
                rows.append([quantity.name, *(_cell(*cells.get(label, [])) for label in labels)])
            else:
                rows += [[quantity.name, *cell] for cell in cells.values()]
        if rows:
            parts.append(table(heads, rows, "Averages over the chain"))
        parts += [element("p", words, class_="caution") for words in dict.fromkeys(cautions)]
        for run in subject.runs:
            for name, content in run.tables.items():
                if SWEEP in content and len(content) and not single(content):
                    parts.append(_with_indices(run, name, content))
            parts += [element("p", words, class_="caution") for words in run.damaged]
        return parts


SECTIONS.register(MeanValuesSection())


def _cell(average: str = "", tau: str = "", samples: str = "") -> Markup:
    """Return an average with its autocorrelation time below it; nothing if there is none."""
    below = element("small", f"τ_int {tau} updates, {samples} measurements") if average else ""
    return joined([average, below])


def _left_out(run: ReportedRun) -> Markup:
    """Return what is left out of the averages of a run, in sentences."""
    if run.thermalisation is None:
        starts = compared_starts(run.path)
        words = [
            f"Updates up to {run.cut} of {run.path} are left out." if run.cut else "",
            starts.sentence if starts else "",
        ]
    else:
        words = [run.thermalisation.sentence, *run.thermalisation.cautions]
    return element("p", " ".join(words)) if any(words) else Markup("")


def _cautions(series: ChainSeries, average: Estimate) -> list[str]:
    thermalised = series.sweeps > series.cut
    return [*average.length_cautions, *caution_series(series.sweeps[thermalised], series.kept)]


def _with_indices(run: ReportedRun, name: str, content: TableData) -> Markup:
    """Return the averages of a table with several rows per measurement, folded."""
    _, declared = declared_columns(content)
    title = f"{name} of {run.label}"
    try:
        indices = [d for d in dimensions_of(content.columns) if d != SWEEP]
        rows = _rows(content, indices)
    except GaugeError as error:
        return folded(title, element("p", str(error)))
    shown = {x.name: x for x in declared}
    values = [x for x in content if x not in (SWEEP, *indices) and content[x].dtype.kind == "f"][
        :MOST_COLUMNS
    ]
    if rows is None or not values:
        words = "Its measurements have different rows; fits and plots evaluate it."
        return folded(title, element("p", words))
    thermalised = content[SWEEP][rows[:, 0]] > run.cut
    lines = []
    for place in range(min(rows.shape[1], MOST_ROWS)):
        element_rows = rows[thermalised, place]
        labels = [str(content[index][rows[0, place]]) for index in indices]
        cells = [estimate(content[value][element_rows]).format() for value in values]
        lines.append([", ".join(labels), *cells])
    more = rows.shape[1] - len(lines)
    heads = [
        ", ".join(indices),
        *(shown[value].short if value in shown else value for value in values),
    ]
    note = [element("p", f"{more} further rows are in the file.")] if more > 0 else []
    return folded(title, table(heads, lines, f"Averages of {name}"), *note)


def _rows(content: TableData, indices: Sequence[str]) -> NDArray[np.int64] | None:
    """Return the rows of each measurement, of shape (measurements, rows), if all are alike."""
    sweeps = content[SWEEP]
    count = int(np.count_nonzero(sweeps == sweeps[0]))
    total = sweeps.size // count * count
    if not count or total < sweeps.size:
        return None
    rows = np.arange(total).reshape(-1, count)
    alike = all((content[index][rows] == content[index][rows[0]]).all() for index in indices)
    steps = (sweeps[rows] == sweeps[rows[:, :1]]).all()
    return rows if alike and steps else None
