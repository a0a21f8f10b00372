"""The results of all fits that the tables allow."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from gauge_mc.errors import GaugeError
from gauge_mc.fits import FITS, result_of
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.markup import Markup, element, folded, joined
from gauge_mc.reports.rich_html import as_html, further_as_html
from gauge_mc.reports.subject import Subject
from gauge_mc.run.thermalisation import SKIP


class FitsSection(Section):
    """Every fit with its usual options, to every run or scan that has the tables."""

    name: ClassVar[str] = "fits"
    title: ClassVar[str] = "Fits"
    place: ClassVar[int] = 40

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the reports of the fits, and why others were not possible."""
        parts, missing = [], []
        for name, one in FITS.items():
            targets = (
                [(path, path.name) for path in subject.scans]
                if one.of_scans
                else [(run.path, run.label) for run in subject.runs]
            )
            shown = []
            for path, label in targets:
                try:
                    shown.append(result_in_html(name, path, label, subject))
                except GaugeError as error:
                    missing.append(element("li", f"{name}, {label}: {error}"))
            if shown:
                summary = element("p", one.summary, class_="summary")
                parts += [element("h3", name), summary, *shown]
        if missing:
            parts.append(folded("Fits that these tables do not allow", element("ul", *missing)))
        return parts


SECTIONS.register(FitsSection())


def result_in_html(name: str, path: Path, label: str, subject: Subject) -> Markup:
    """Return the report of a fit, which begins with the numbers that one quotes.

    Raises
    ------
    GaugeError
        If the fit is not possible.
    """
    options = {SKIP.name: subject.skip} if SKIP in FITS[name].options else {}
    result = result_of(FITS[name], path, options)[0]
    subject.results.setdefault(path, {})[FITS[name].file_of(result)] = result
    quoted = element("p", element("strong", result.result_line))
    shown = joined(map(as_html, result.report()))
    more = further_as_html(result.further_report())
    return element("div", element("h4", label), quoted, shown, more, class_="result")
