"""Where runs were made: sessions with versions, devices, seeds and energy."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.markup import Markup, element, table
from gauge_mc.reports.subject import Subject
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import SessionRecord
from gauge_mc.run.display import energy_text


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
        return parts


SECTIONS.register(ProvenanceSection())
