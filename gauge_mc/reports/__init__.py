"""Reports: pages that show everything about runs.

A page consists of sections. Each section is a subclass of `Section` that is registered in
`SECTIONS`. Sections iterate over what is declared, so that a new observable, fit or plot appears
without a line here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from gauge_mc.registry import Registry

if TYPE_CHECKING:
    from gauge_mc.reports.markup import Markup
    from gauge_mc.reports.page import Subject


class Section(ABC):
    """A section of a page."""

    name: ClassVar[str]
    """Name, which is also its address in the page."""
    title: ClassVar[str]
    """Heading."""
    place: ClassVar[int]
    """Number by which sections are ordered."""

    @abstractmethod
    def content(self, subject: Subject) -> Sequence[Markup]:
        """Return the content of the section; nothing if it has none for these runs.

        Parameters
        ----------
        subject : Subject
            The runs and scans that the page shows.

        Raises
        ------
        GaugeError
            If a file of a run is damaged.
        """


SECTIONS: Registry[Section] = Registry("section of reports", f"{__name__}.sections", Section)
