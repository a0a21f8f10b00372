"""The page of a report: its frame, and the file."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.arguments import checks_types
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import FileKind, replacing
from gauge_mc.files.folders import may_be_made
from gauge_mc.files.given_paths import Paths, paths_of
from gauge_mc.files.table import each_table_once
from gauge_mc.options import check_options
from gauge_mc.reports import SECTIONS
from gauge_mc.reports.markup import Markup, element, joined
from gauge_mc.reports.subject import Subject
from gauge_mc.results import documented, result_field
from gauge_mc.run.lock import now
from gauge_mc.run.thermalisation import AUTO, SKIP, Skip
from gauge_mc.scans.targets import named_or_newest

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
    run: Paths | None = None, output: str | os.PathLike[str] | None = None, *, skip: Skip = AUTO
) -> PageReport:
    """Write a page that shows everything about runs: parameters, series, averages, fits, figures.

    The page is one file that needs neither the network nor other files. Nothing else is written.

    Parameters
    ----------
    run : path or sequence of paths, optional
        Run directories, or results of `gauge_mc.generate` and `gauge_mc.open_run`; a scan stands
        for its runs. By default the newest one in ``runs/``.
    output : path, optional
        File to write; by default ``report.html`` in the run or scan, or in this folder for several.
    skip : int or str
        Last update that is left out of averages, figures and fits; by default the end of the
        thermalisation of each run is looked for.

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
    chosen = check_options([SKIP], {SKIP.name: skip}, "reports").get(SKIP.name, AUTO)
    if not may_be_made(file.parent):  # which is not to be found out after all figures
        raise GaugeError(
            f"The report {file} could not be written: no files can be made in {file.parent}; "
            "choose another --output."
        )
    with each_table_once():
        subject = Subject.of(paths, file.parent, chosen)
        PAGE.check(file)
        content, names = page(subject)
    written = content.encode("utf-8", "backslashreplace")
    with replacing(file, kind=PAGE) as out:
        out.write(written)
    runs = [str(one.path) for one in subject.runs]
    return PageReport(str(file), runs, names, len(written))


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
    sections = sorted(SECTIONS.values(), key=lambda one: (one.place, one.name))
    parts, links, names = [], [], []
    for one in sections:
        try:
            content = one.content(subject)
        except GaugeError as error:
            content = [element("p", str(error), class_="caution")]
        if content:
            head = element("h2", one.title, id=f"{one.name}-title")
            labelled = f"{one.name}-title"
            parts.append(element("section", head, *content, id=one.name, aria_labelledby=labelled))
            links.append(element("li", element("a", one.title, href=f"#{one.name}")))
            names.append(one.name)
    title = "; ".join(one.label for one in subject.runs[:3])
    heading = f"Report: {title}"
    body = element(
        "body",
        element("a", "Skip to the content", href="#content", class_="jump"),
        element(
            "header",
            element("h1", heading),
            element("p", f"Made by gauge-mc {__version__}, {now()}"),
        ),
        element("nav", element("ul", *links), aria_label="Sections"),
        element("main", *parts, id="content", tabindex="-1"),
        element("footer", element("details", element("summary", "Licences"), _licence())),
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
    found = resources.files(package)
    for part in name.split("/"):
        found = found.joinpath(part)
    return found.read_text(encoding="utf-8")


@cache
def script() -> str:
    """Return all scripts of a page, which nothing in a run can change."""
    return "\n".join(map(asset, SCRIPTS))


def _licence() -> Markup:
    words = "The charts are drawn by uPlot, which has this licence:"
    return joined([element("p", words), element("pre", asset(LICENSE))])
