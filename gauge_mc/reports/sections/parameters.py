"""The parameters and the state of runs, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import ClassVar

from gauge_mc.inspection.status import run_status
from gauge_mc.reports import SECTIONS, Section
from gauge_mc.reports.markup import Markup, element, folded, table
from gauge_mc.reports.subject import ReportedRun, Subject


class ParametersSection(Section):
    """State and parameters of every run, with a mark where they differ."""

    name: ClassVar[str] = "parameters"
    title: ClassVar[str] = "Runs and parameters"
    place: ClassVar[int] = 10

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the tables; see `Section.content`."""
        parts = []
        if subject.left_out:
            parts.append(
                element(
                    "p",
                    f"{subject.left_out} further runs of the scan are not shown here; name them to "
                    "see them.",
                    class_="caution",
                )
            )
        states = [run_status(one.run).lines() for one in subject.runs]
        values = [{k: str(v) for k, v in one.parameters.values().items()} for one in subject.runs]
        state = side_by_side(subject.runs, states, "State")
        chosen = side_by_side(subject.runs, values, "Parameters", mark=len(values) > 1)
        parts.append(element("div", state, chosen, class_="beside"))
        for one in subject.runs:
            command = f"gauge-mc generate --card card.toml --output {quote(str(one.path))}"
            parts.append(
                folded(
                    f"Run card of {one.label}",
                    element("pre", one.parameters.to_toml()),
                    element("p", "As card.toml, it makes the run again: ", _code(command)),
                )
            )
        return parts


SECTIONS.register(ParametersSection())


def side_by_side(
    runs: Sequence[ReportedRun],
    columns: Sequence[Mapping[str, str]],
    caption: str,
    mark: bool = False,
) -> Markup:
    """Return a table with a column for each run; rows that differ are marked if this is wanted."""
    names = dict.fromkeys(name for one in columns for name in one)
    rows = [[name, *(one.get(name, "") for one in columns)] for name in names]
    differ = [mark and len({*row[1:]}) > 1 for row in rows]
    return table(["", *(one.label for one in runs)], rows, caption, differ)


def _code(words: str) -> Markup:
    return element("code", words)
