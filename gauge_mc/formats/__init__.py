"""Formats of configuration files.

Each format has a module of its name, with a subclass of `Format` that is registered in `FORMATS`.
Links are streamed by time slices, complex128 arrays ``U[z, y, x, mu, a, b]`` for t = 0, 1, …, so
that only a few slices are in memory.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

import numpy as np

from gauge_mc import defaults
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.layout import REALS
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import replacing
from gauge_mc.files.header import Header, Reader
from gauge_mc.files.input import InputFile
from gauge_mc.files.links import Links, misfit
from gauge_mc.groups import GROUPS, Group
from gauge_mc.registry import Registry, in_words

HEAD_BYTES = 64
"""Number of leading bytes by which formats recognise their files. The longest signature, that of
openQCD, has 24."""

WORKING_SLICES = 8
"""Memory for reading and checking a file, in time slices of complex128 links, with all temporary
arrays. Measured with tracemalloc on 24^3 sites: 3.0 for ILDG, 5.3 for NERSC and 7.4 for openQCD."""


class Format(ABC):
    """A format of configuration files. A read-only format has no suffix.

    Attributes
    ----------
    name : str
        Name on the command line, for ``--format``.
    title : str
        Name in messages, such as ``ILDG``.
    summary : str
        Short description of the files, for help texts.
    suffix : str
        Ending of the names of written files, such as ``.lime``; empty for a read-only format.
    signed : bool
        True if files begin with a signature that identifies them with certainty.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str] = ""
    signed: ClassVar[bool] = True

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes can be of this format."""

    @abstractmethod
    def read_header(self, file: InputFile) -> Reader:
        """Read and check the header of a file.

        Raises
        ------
        GaugeError
            If the header is damaged, does not fit the size of the file, or describes links that
            are not supported.
        """

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why the format cannot store a group in a precision, or None if it can."""
        return None

    def write(
        self,
        out: BinaryIO,
        slices: Iterable[Links],
        lattice: Lattice,
        group: Group,
        precision: str,
        provenance: Mapping[str, str],
    ) -> None:
        """Write a configuration; for the parameters see `write_configuration`."""
        raise NotImplementedError

    def fields(self, path: Path) -> Mapping[str, str]:
        """Return the fields of the provenance that are derived from the name of a file."""
        return {}


FORMATS: Registry[Format] = Registry("format", __name__)


def writable_formats() -> list[str]:
    """Return the names of all formats that can be written, the default first."""
    names = [name for name, one in FORMATS.items() if one.suffix]
    return sorted(names, key=lambda name: name != defaults.FORMAT)


def check_writable(format: str, group: str, precision: str) -> None:
    """Refuse a format that is read-only or cannot store a group in a precision.

    Raises
    ------
    UsageError
        If the format is refused. The message names the formats that are possible.
    """
    chosen, wanted = FORMATS[format], GROUPS[group]
    possible = [
        name for name in writable_formats() if FORMATS[name].refusal(wanted, precision) is None
    ]
    advice = f"choose {in_words(possible, 'or')}"
    if not chosen.suffix:
        raise UsageError(f"{chosen.title} files can be read but not written: {advice}.")
    reason = chosen.refusal(wanted, precision)
    if reason:
        raise UsageError(f"{reason}: {advice}.")


@dataclass(frozen=True)
class Configuration:
    """A configuration file whose header has been read and agrees with its size.

    Attributes
    ----------
    path : Path
        Path of the file.
    header : Header
        Header of the file.
    """

    path: Path
    header: Header
    _reader: Reader
    _size: int

    def __repr__(self) -> str:
        header = self.header
        what = f"{header.group} on {header.lattice}, {header.precision}, {header.format}"
        return f"<Configuration {self.path}: {what}>"

    def slices(self) -> Iterator[Links]:
        """Stream the time slices and check them.

        Before a slice is yielded, its links are checked to be in the group. Before the last slice
        is yielded, checksum, plaquette and link trace are compared with those that the file
        states. So a caller who has received all slices has an intact configuration.

        Yields
        ------
        complex128 array [z, y, x, mu, a, b]

        Raises
        ------
        GaugeError
            If the file is damaged, has changed since it was opened, or does not fit into memory.
        """
        with InputFile(self.path) as file:
            file.expect_size(self._size)
            try:
                for t, links in enumerate(self._reader.slices(file)):
                    reason = misfit(links, t)
                    if reason:
                        raise file.damaged(reason)
                    yield links
                    del links  # so that only one slice is in memory
            except MemoryError as error:
                raise _too_large(self.path) from error


def open_configuration(path: str | os.PathLike[str]) -> Configuration:
    """Open a configuration file, detect its format and read its header.

    Parameters
    ----------
    path : str or path-like
        File in one of the `FORMATS`.

    Returns
    -------
    Configuration

    Raises
    ------
    GaugeError
        If the file cannot be read, has an unknown format, or its header is damaged or does not
        agree with its size.
    """
    with InputFile(path) as file:
        head = file.read(0, min(file.size, HEAD_BYTES)).tobytes()
        for one in sorted(FORMATS.values(), key=lambda one: not one.signed):
            if one.recognises(head):
                reader = one.read_header(file)
                _check_memory(file.path, reader.header)
                return Configuration(file.path, reader.header, reader, file.size)
        titles = in_words([one.title for one in FORMATS.values()], "or")
        raise GaugeError(
            f"{file.path} is not a configuration in {titles} format: name another file, or restore "
            "this one from a copy if it is damaged."
        )


def write_configuration(
    path: str | os.PathLike[str],
    slices: Iterable[Links],
    lattice: Lattice,
    group: str,
    precision: str,
    format: str = defaults.FORMAT,
    provenance: Mapping[str, str] | None = None,
) -> None:
    """Write a configuration.

    The file appears complete and synced to disk, or not at all. The same arguments give the same
    bytes: dates are written only if they are in `provenance`.

    Parameters
    ----------
    path : str or path-like
        File to write. An existing file is replaced. The folder must exist.
    slices : iterable of complex128 arrays [z, y, x, mu, a, b]
        Time slices t = 0, 1, …, which are consumed one at a time.
    lattice : Lattice
        Extents of the lattice.
    group : str
        Name of the group.
    precision : str
        Precision of the links in the file, ``single`` or ``double``.
    format : str
        Name of a format that can be written.
    provenance : mapping of str to str
        Free text fields. Some formats define special fields, and some store no provenance; see
        their modules.

    Raises
    ------
    UsageError
        If the format is unknown, is read-only, or cannot store the group in this precision.
    GaugeError
        If a slice has the wrong shape or links that are not in the group, if the number of slices
        is wrong, or if the file cannot be written.
    """
    target = Path(path)
    if precision not in REALS:
        raise UsageError(f"There is no precision '{precision}'; choose {in_words(REALS, 'or')}.")
    check_writable(format, group, precision)
    chosen, links_of = FORMATS[format], GROUPS[group]
    fields = {**chosen.fields(target), **(provenance or {})}
    with replacing(target) as out:
        checked = _checked(target, slices, lattice, links_of)
        chosen.write(out, checked, lattice, links_of, precision, fields)


def _checked(
    path: Path, slices: Iterable[Links], lattice: Lattice, group: Group
) -> Iterator[Links]:
    """Yield the slices as complex128, and refuse a wrong number, shape or link."""
    n = group.colours
    shape = (lattice.z, lattice.y, lattice.x, 4, n, n)
    count = 0
    for links in slices:
        if count == lattice.t or links.shape != shape:
            raise GaugeError(
                f"{path} was not written: time slice {count} of shape {links.shape} is not part of "
                f"a configuration of {group.label} on {lattice}."
            )
        exact = np.asarray(links, np.complex128)
        reason = misfit(exact, count)
        if reason:
            raise GaugeError(f"{path} was not written: {reason}; the field is damaged.")
        yield exact
        count += 1
    if count < lattice.t:
        raise GaugeError(
            f"{path} was not written: {count} time slices were given, but the lattice {lattice} "
            f"has {lattice.t}."
        )


def _check_memory(path: Path, header: Header) -> None:
    """Refuse a file whose time slices do not fit into memory, before any is allocated."""
    volume = math.prod(header.lattice.extents[:3])
    site_bytes = 4 * 16 * GROUPS[header.group].colours ** 2  # four complex128 matrices
    needed = WORKING_SLICES * volume * site_bytes
    if needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise _too_large(path)


def _too_large(path: Path) -> GaugeError:
    return GaugeError(
        f"{path} has time slices that do not fit into memory: read it on a larger machine."
    )
