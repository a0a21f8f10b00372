"""Who publishes a run, and on what terms."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from gauge_mc.errors import UsageError

LICENSE = "CC-BY-4.0"
"""Usual licence of data."""

UNKNOWN = "unknown"
"""The institution of authors who name none."""


@dataclass(frozen=True)
class Author:
    """An author of a publication."""

    family: str
    """Family name."""
    given: str = ""
    """Given names."""

    @classmethod
    def parse(cls, text: str) -> Author:
        """Read an author, ``Family, Given``, or a single name.

        Raises
        ------
        UsageError
            If there are several names without a comma after the family name, or none.
        """
        family, comma, given = text.partition(",")
        if not family.strip() or (not comma and len(family.split()) > 1):
            raise UsageError(
                f"'{text}' is not the name of an author with a comma after the family name; give "
                "it as 'Family, Given'."
            )
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
    """Identifier of the licence in the list of SPDX, in any case."""

    def __post_init__(self) -> None:
        if not self.authors:
            raise UsageError("A publication has an author; name one with --author 'Family, Given'.")
        try:
            known = str(canonicalize_license_expression(self.license))
        except InvalidLicenseExpression:
            known = ""
        if not re.fullmatch(r"[A-Za-z0-9.+-]+", known) or known.startswith("LicenseRef"):
            raise UsageError(
                f"The licence '{self.license}' is not an identifier of SPDX, such as {LICENSE}; "
                "see https://spdx.org/licenses."
            )
        object.__setattr__(self, "license", known)

    @property
    def license_url(self) -> str:
        """Address of the text of the licence."""
        return f"https://spdx.org/licenses/{self.license}.html"
