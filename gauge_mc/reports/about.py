"""Sections about runs: state and parameters, files, provenance, and how to cite."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from rich.filesize import decimal

from gauge_mc import __version__
from gauge_mc.inspection.status import run_status
from gauge_mc.progress import duration
from gauge_mc.quoting import CommandLine, counted
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.markup import Markup, element, folded, joined, table
from gauge_mc.reports.page import ReportedRun, Subject
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.log import END, SESSION, LogTail
from gauge_mc.run.state import energy_text


class ParametersSection(Section):
    """State and parameters of every run, with a mark where they differ."""

    name: ClassVar[str] = "parameters"
    title: ClassVar[str] = "State and parameters"
    place: ClassVar[int] = 10

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the tables; see `Section.content`."""
        parts = []
        if subject.left_out:
            words = "further runs of the scan are not shown here; name them to see them."
            parts.append(element("p", f"{subject.left_out} {words}", class_="caution"))
        states = [run_status(run.run).lines() for run in subject.runs]
        values = [{k: str(v) for k, v in run.parameters.values().items()} for run in subject.runs]
        state = side_by_side(subject.runs, states, "State")
        side = side_by_side(subject.runs, values, "Parameters", mark=len(values) > 1)
        parts += [state, folded("Parameters", side)]
        for run in subject.runs:
            words = str(CommandLine("generate", card="card.toml", output=run.path))
            command = element("p", "As card.toml, it makes the run again: ", element("code", words))
            card = element("pre", run.parameters.to_toml())
            parts.append(folded(f"Run card of {run.label}", card, command))
        return parts


SECTIONS.register(ParametersSection())


def side_by_side(
    runs: Sequence[ReportedRun],
    columns: Sequence[Mapping[str, str]],
    caption: str,
    mark: bool = False,
) -> Markup:
    """Return a table with a column for each run; rows that differ are marked if this is wanted."""
    names = dict.fromkeys(name for column in columns for name in column)
    rows = [[name, *(column.get(name, "") for column in columns)] for name in names]
    differ = [mark and len({*row[1:]}) > 1 for row in rows]
    return table(["", *(run.label for run in runs)], rows, caption, differ)


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
    link = subject.link(run.path / "configs", "configs")
    place = [f"{counted(len(configs), 'configuration')} in ", link]
    listed = table(["file", "size", "content"], rows, f"Files of {run.label}, {run.path}")
    return joined([listed, element("p", joined(place)) if configs else ""])


class ProvenanceSection(Section):
    """The processes that have worked on each run."""

    name: ClassVar[str] = "provenance"
    title: ClassVar[str] = "Provenance, devices and energy"
    place: ClassVar[int] = 60

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return a table of sessions for every run; see `Section.content`."""
        names = [field.name for field in dataclasses.fields(SessionRecord)]
        parts = []
        for run in subject.runs:
            rows = [
                [number, *("" if x is None else str(x) for x in dataclasses.astuple(session))]
                for number, session in enumerate(run.sessions, 1)
            ]
            caption = f"Sessions of {run.label}, seed {run.parameters.seed}"
            parts.append(table(["session", *names], rows, caption))
            joules = [s.joules for s in run.sessions if s.joules is not None]
            words = [f"Energy: {energy_text(sum(joules))}."] if joules else []
            if run.run.checkpoint.exists():
                words.append(
                    f"The last checkpoint is after update {read_state(run.run.checkpoint).sweep}."
                )
            parts += [element("p", " ".join(words))] if words else []
            if commands := _commands(run.path):
                heads = ["began", "command", "version", "devices", "ended", "duration"]
                parts.append(table(heads, commands, f"Commands for {run.label}, by its log"))
        return parts


SECTIONS.register(ProvenanceSection())


def _commands(folder: Path) -> list[list[object]]:
    """Return the commands in the log of a run, with how they have ended and how long they took.

    An end belongs to the session that began last; a session without an end is at work or was
    killed.
    """
    rows: list[list[object]] = []
    for entry in LogTail(folder).new():
        words = entry.fields
        if entry.event == SESSION:
            command = element("code", words.get("command", ""))
            details = (words.get("version", ""), words.get("devices", ""))
            rows.append([entry.time, command, *details, "", ""])
        elif entry.event == END and rows:
            seconds = words.get("seconds")
            lasted = duration(seconds) if isinstance(seconds, int | float) else ""
            rows[-1][-2:] = [words.get("ended", ""), lasted]
    return rows


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
        publish = element("code", "gauge-mc publish RUN FOLDER --author 'Family, Given'")
        return [
            element("p", "Name the program with the versions that made the runs, and the seeds."),
            element("pre", entry),
            element("p", methods),
            element("p", "To publish the data: ", publish),
        ]


SECTIONS.register(CitationSection())
