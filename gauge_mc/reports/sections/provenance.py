"""Where runs were made: sessions with versions, devices, seeds and energy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.markup import Markup, element, table
from gauge_mc.reports.subject import Subject
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.display import duration, energy_text
from gauge_mc.run.log import END, SESSION, LogTail


class ProvenanceSection(Section):
    """The processes that have worked on each run."""

    name: ClassVar[str] = "provenance"
    title: ClassVar[str] = "Provenance, devices and energy"
    place: ClassVar[int] = 60

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return a table of sessions for every run; see `Section.content`."""
        names = [one.name for one in dataclasses.fields(SessionRecord)]
        parts = []
        for run in subject.runs:
            rows = [
                [number, *("" if one is None else str(one) for one in dataclasses.astuple(session))]
                for number, session in enumerate(run.sessions, 1)
            ]
            caption = f"Sessions of {run.label}, seed {run.parameters.seed}"
            parts.append(table(["session", *names], rows, caption))
            known = [one.joules for one in run.sessions if one.joules is not None]
            words = [f"Energy: {energy_text(sum(known))}."] if known else []
            if run.run.checkpoint.exists():
                words.append(
                    f"The last checkpoint is after update {read_state(run.run.checkpoint).sweep}."
                )
            parts += [element("p", " ".join(words))] if words else []
            commands = _commands(run.path)
            if commands:
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
    for one in LogTail(folder).new():
        words = one.fields
        if one.event == SESSION:
            command = element("code", words.get("command", ""))
            known = (words.get("version", ""), words.get("devices", ""))
            rows.append([one.time, command, *known, "", ""])
        elif one.event == END and rows:
            seconds = words.get("seconds")
            lasted = duration(seconds) if isinstance(seconds, int | float) else ""
            rows[-1][-2:] = [words.get("ended", ""), lasted]
    return rows
