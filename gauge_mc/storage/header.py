"""The header of a configuration file, in a form that is common to all formats."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from gauge_mc.domain.lattice import Lattice, OddLattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.columns import Averages
from gauge_mc.files.input import InputFile
from gauge_mc.results import documented, result_field
from gauge_mc.storage.links import IDENTIFYING, Checksums, StoredLinks, checksum_words


@documented
@dataclass(frozen=True)
class Header:
    """The header of a configuration."""

    format: str = result_field("Name of the format.")
    lattice: Lattice = result_field("Extents of the lattice.")
    group: str = result_field("Name of the group.")
    precision: str = result_field("Precision of the stored links, ``single`` or ``double``.")
    plaquette: float | None = result_field(
        "Average of Re Tr / N over all plaquettes, if the file states it.", None
    )
    link_trace: float | None = result_field(
        "Average of Re Tr / N over all links, if the file states it.", None
    )
    checksum: str = result_field(
        "Checksum that the file states, in hexadecimal; two words separated by a space if the "
        "format has two. Empty if there is none.",
        "",
    )
    provenance: dict[str, str] = result_field("Free text fields of the file.", dict)
    warning: str = result_field(
        "Check that is not possible because the file lacks the information, in words; or empty.", ""
    )


AVERAGE = re.compile(r"([+-]?[0-9]{1,20}(?:\.([0-9]{0,40}))?)(?:[eE]([+-]?[0-9]{1,2}))?")
"""Form of an average in a header."""

TOLERANCE = {"single": 1e-5, "double": 1e-8}
"""Tolerance of plaquette and link trace, by the precision of the links. Other programs may sum in
this precision, with rounding errors of 6e-8 and 1e-16 that accumulate over the lattice."""

COARSEST = 0.01
"""Largest unit of the last digit of an average that is allowed for when it is compared."""


@dataclass(frozen=True)
class StatedAverage:
    """An average that a header states."""

    value: float
    """The average."""
    unit: float
    """Unit of its last digit, at most `COARSEST`."""

    @classmethod
    def parse(cls, text: str) -> StatedAverage | None:
        """Read an average; return None if the text is not a number between -1 and 1, roughly."""
        match = AVERAGE.fullmatch(text)
        value = float(text) if match else math.inf
        if match is None or not abs(value) <= 1 + COARSEST:
            return None
        return cls(value, min(COARSEST, float(f"1e{int(match[3] or 0) - len(match[2] or '')}")))


STATED = {"plaquette": "mean", "link trace": "link_trace"}
"""Averages that headers of files state, with the names that they have in `Averages`."""


@dataclass(frozen=True)
class Reader:
    """A configuration file whose header has been read and agrees with its size.

    A format whose files state checksums, or averages of another accuracy, has a subclass.
    """

    header: Header
    """The header."""
    stored: StoredLinks
    """How the file stores the links."""
    offset: int
    """Position of the links in the file, in bytes."""
    averages: Mapping[str, StatedAverage]
    """Averages that the header states, by a name in `STATED`."""

    @classmethod
    def of(
        cls,
        format: str,
        stored: StoredLinks,
        offset: int,
        averages: Mapping[str, StatedAverage] | None = None,
        **others: Any,
    ) -> Self:
        """Return the reader of a file of a format.

        Parameters
        ----------
        format : str
            Name of the format.
        stored : StoredLinks
            How the file stores the links.
        offset : int
            Position of the links in the file, in bytes.
        averages : mapping of str to StatedAverage, optional
            Averages that the header states, by a name in `STATED`.
        **others : object
            Further fields of the `Header`.
        """
        stated = averages or {}
        others |= {name.replace(" ", "_"): average.value for name, average in stated.items()}
        header = Header(format, stored.lattice, stored.group.name, stored.precision, **others)
        return cls(header, stored, offset, stated)

    def wrong_checksum(self, file: InputFile, checksums: Checksums) -> str:
        """Return what the checksum of the links is instead of the stated one; empty if it is."""
        stated = self.header.checksum
        for name in self.stored.checksums if stated else ():
            if (words := checksum_words(getattr(checksums, name))) != stated:
                title = f"{IDENTIFYING[name]} " if name in IDENTIFYING else ""
                return f"its links have the {title}checksum {words}, its header says {stated}"
        return ""

    def wrong_average(self, averages: Averages) -> str:
        """Return which average differs from the stated one by more than rounding, or nothing."""
        for name, stated in self.averages.items():
            average = getattr(averages, STATED[name])
            if not abs(average - stated.value) <= TOLERANCE[self.header.precision] + stated.unit:
                return (
                    f"its links have the {name} {average:.12g}, its header says {stated.value:.12g}"
                )
        return ""


def expect_links(file: InputFile, offset: int, stored: StoredLinks) -> None:
    """Refuse a file that does not end with its links, which begin at a position in bytes."""
    file.expect_size(offset + stored.nbytes, {offset + size for size in stored.other_sizes})


LEAST_SITE_BYTES = 64
"""Bytes per site of the most compact file: one row of four SU(2) links in single precision."""


def lattice_of(file: InputFile, x: int, y: int, z: int, t: int, *, odd: bool = False) -> Lattice:
    """Return the lattice with the extents that a file states.

    Parameters
    ----------
    file : InputFile
        The file.
    x, y, z, t : int
        The extents.
    odd : bool
        Whether they may be odd. The lattice is then an `OddLattice`.

    Raises
    ------
    GaugeError
        If the file is too short for the extents, so that it is damaged, or if they are not
        supported because they are odd or too large.
    """
    try:
        return Lattice(x, y, z, t)
    except GaugeError as error:
        extents, reason = (x, y, z, t), str(error).rstrip(".")
        positive = min(extents) > 0
        short = positive and LEAST_SITE_BYTES * math.prod(extents) > file.size
        if odd and positive and not short and any(extent % 2 for extent in extents):
            return OddLattice(*extents)
        raise file.refusal(reason, short=short) from None
