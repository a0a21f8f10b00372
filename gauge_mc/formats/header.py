"""What a configuration file says about itself, whatever its format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from gauge_mc.errors import GaugeError
from gauge_mc.formats.files import InputFile
from gauge_mc.formats.links import Links
from gauge_mc.lattice import Lattice


@dataclass(frozen=True)
class Header:
    """The header of a configuration.

    Attributes
    ----------
    format : str
        ``ildg``, ``nersc``, ``milc`` or ``openqcd``.
    lattice : Lattice
    group : str
        ``su2`` or ``su3``.
    precision : str
        ``single`` or ``double``: how the links are stored.
    plaquette : float or None
        Average of Re Tr / N over all plaquettes, if the file states it.
    link_trace : float or None
        Average of Re Tr / N over all links, if the file states it.
    checksum : str
        As the file states it, in hexadecimal; two words apart by a space where the format has
        two; empty where it has none.
    provenance : dict of str to str
        The free text fields of the file.
    """

    format: str
    lattice: Lattice
    group: str
    precision: str
    plaquette: float | None = None
    link_trace: float | None = None
    checksum: str = ""
    provenance: dict[str, str] = field(default_factory=dict)


class Reader(Protocol):
    """Knows a header, and how to stream the links that follow it."""

    @property
    def header(self) -> Header:
        """The header."""

    def slices(self, file: InputFile) -> Iterator[Links]:
        """Stream the time slices; the last one only after all that the file states holds."""


def lattice_of(file: InputFile, x: int, y: int, z: int, t: int) -> Lattice:
    """Make the lattice of a file's extents.

    Raises
    ------
    GaugeError
        If gauge-mc cannot hold such a lattice; the message names the file.
    """
    try:
        return Lattice(x, y, z, t)
    except GaugeError as error:
        raise GaugeError(f"{file.path} cannot be used: {error}") from None
