"""The header of a configuration file, whatever its format."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError
from gauge_mc.files.input import InputFile
from gauge_mc.files.links import Links


@dataclass(frozen=True)
class Header:
    """The header of a configuration.

    Attributes
    ----------
    format : str
        The name of the format.
    lattice : Lattice
    group : str
        The name of the group.
    precision : str
        The precision of the stored links, ``single`` or ``double``.
    plaquette : float or None
        The average of Re Tr / N over all plaquettes, if the file states it.
    link_trace : float or None
        The average of Re Tr / N over all links, if the file states it.
    checksum : str
        The checksum that the file states, in hexadecimal: two words with a space between them if
        the format has two, and empty if there is none.
    provenance : dict of str to str
        The free text fields of the file.
    warning : str
        What was not checked because the file does not state it; empty if nothing.
    """

    format: str
    lattice: Lattice
    group: str
    precision: str
    plaquette: float | None = None
    link_trace: float | None = None
    checksum: str = ""
    provenance: dict[str, str] = field(default_factory=dict)
    warning: str = ""


class Reader(Protocol):
    """A header that has been read, and how to stream the links that follow it."""

    @property
    def header(self) -> Header:
        """The header."""

    def slices(self, file: InputFile) -> Iterator[Links]:
        """Stream the time slices. The last one comes only after the file has passed all checks."""


LEAST_SITE_BYTES = 64
"""Bytes of a site in the most compact file: one row of four SU(2) links in single precision."""


def lattice_of(file: InputFile, x: int, y: int, z: int, t: int) -> Lattice:
    """Return the lattice with a file's extents.

    Raises
    ------
    GaugeError
        If there is no such lattice: the file is damaged, or else is one of odd extents or of more
        sites than are supported.
    """
    try:
        return Lattice(x, y, z, t)
    except GaugeError as error:
        extents, reason = (x, y, z, t), str(error).rstrip(".")
        impossible = min(extents) < 1 or LEAST_SITE_BYTES * math.prod(extents) > file.size
        refuse = file.damaged if impossible else file.unsupported
        raise refuse(reason) from None
