"""Who publishes a run, and on what terms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gauge_mc.errors import UsageError

LICENSE = "CC-BY-4.0"
"""Usual licence of data."""


@dataclass(frozen=True)
class Author:
    """An author of a publication."""

    family: str
    """Family name."""
    given: str = ""
    """Given names."""

    @classmethod
    def parse(cls, text: str) -> Author:
        """Read an author: ``Family, Given``, or ``Given Family``.

        Raises
        ------
        UsageError
            If there is no name.
        """
        family, comma, given = text.partition(",")
        if not comma:
            given, _, family = text.strip().rpartition(" ")
        if not family.strip():
            raise UsageError(f"'{text}' is not the name of an author; give one as 'Family, Given'.")
        return cls(family.strip(), given.strip())

    def __str__(self) -> str:
        return f"{self.given} {self.family}".strip()


@dataclass(frozen=True)
class Publisher:
    """Authors, institution, title, project and licence of a publication."""

    authors: tuple[Author, ...]
    """Authors; the first one is responsible."""
    institution: str
    """Institution of the first author."""
    title: str
    """Title of the publication."""
    project: str
    """Name of the project or the collaboration."""
    license: str
    """Identifier of the licence in the list of SPDX."""

    def __post_init__(self) -> None:
        if not self.authors:
            raise UsageError("A publication has an author; name one with --author 'Family, Given'.")
        if not re.fullmatch(r"[A-Za-z0-9.+-]{1,60}", self.license):
            raise UsageError(
                f"The licence '{self.license}' is not an identifier of SPDX, such as {LICENSE}."
            )

    @property
    def license_url(self) -> str:
        """Address of the text of the licence."""
        return f"https://spdx.org/licenses/{self.license}.html"
