"""Links to the files of runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.filesize import decimal

from gauge_mc.numbers import counted
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.markup import Markup, element, joined, table
from gauge_mc.reports.subject import ReportedRun, Subject

ENDINGS = (".csv", ".json", ".log", ".pdf", ".png", ".svg", ".toml")
"""Endings of the files that are listed one by one."""


class FilesSection(Section):
    """Tables, results and figures of every run, and its configurations."""

    name: ClassVar[str] = "files"
    title: ClassVar[str] = "Files"
    place: ClassVar[int] = 70

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return a table of files for every run; see `Section.content`."""
        return [_files(run, subject) for run in subject.runs]


SECTIONS.register(FilesSection())


def _files(run: ReportedRun, subject: Subject) -> Markup:
    rows = []
    for path in sorted(run.path.iterdir()):
        if path.suffix in ENDINGS and path.is_file() and not path.is_symlink():
            content = run.tables.get(path.name)
            words = (
                "" if content is None else f"{counted(len(content), 'row')} of {', '.join(content)}"
            )
            rows.append((subject.link(path), decimal(path.stat().st_size), words))
    configs = run.run.configs()
    place = [
        f"{counted(len(configs), 'configuration')} in ",
        subject.link(run.path / "configs", "configs"),
    ]
    listed = table(["file", "size", "content"], rows, f"Files of {run.label}, {run.path}")
    return joined([listed, element("p", joined(place)) if configs else ""])
