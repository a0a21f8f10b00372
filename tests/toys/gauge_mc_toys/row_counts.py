"""A section of reports: the number of rows of every table."""

from collections.abc import Sequence

from gauge_mc.reports import Section
from gauge_mc.reports.markup import Markup, element
from gauge_mc.reports.page import Subject


class RowCountsSection(Section):
    """A line for every table of every run."""

    name = "row-counts"
    title = "Numbers of rows"
    place = 85

    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the lines."""
        return [
            element("p", f"{run.label}, {name}: {len(table)} rows")
            for run in subject.runs
            for name, table in run.tables.items()
        ]


ROW_COUNTS = RowCountsSection()
