"""How to cite the program and its methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from gauge_mc import __version__
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.markup import Markup, element
from gauge_mc.reports.subject import Subject


class CitationSection(Section):
    """The versions that made the runs, and the methods of the errors."""

    name: ClassVar[str] = "citation"
    title: ClassVar[str] = "How to cite"
    place: ClassVar[int] = 80

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return sentences and an entry for BibTeX; see `Section.content`."""
        used = {session.version for run in subject.runs for session in run.sessions}
        versions = sorted(used) or [__version__]
        entry = (
            "@software{gauge-mc,\n"
            "  title = {gauge-mc},\n"
            "  author = {{The gauge-mc developers}},\n"
            f"  version = {{{', '.join(versions)}}},\n"
            "}"
        )
        methods = (
            "Errors include autocorrelations by the Γ-method (U. Wolff, hep-lat/0306017); those of "
            "autocorrelation functions are by M. Lüscher (hep-lat/0409106). The end of the "
            "thermalisation is found by MSER (K. P. White, Simulation 69, 323). The documentation "
            "of each fit names its own sources."
        )
        return [
            element("p", "Name the program with the versions that made the runs, and the seeds."),
            element("pre", entry),
            element("p", methods),
            element(
                "p",
                "To publish the data: ",
                element("code", "gauge-mc publish RUN FOLDER --author 'Family, Given'"),
            ),
        ]


SECTIONS.register(CitationSection())
