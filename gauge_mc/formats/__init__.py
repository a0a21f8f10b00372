"""Configuration files to and from NumPy, one module a format, named after the format.

A format is a subclass of `Format`, registered in `FORMATS`. Links are streamed by time slices,
complex128 ``U[z, y, x, mu, a, b]`` for t = 0, 1, …, so that only a few of them are in memory.
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
"""Bytes from which a format tells whether a file is its own."""

WORKING_SLICES = 8
"""Time slices that reading and checking hold at a time, with all temporary arrays."""


class Format(ABC):
    """A format of configuration files. A format that is only read has no suffix.

    Attributes
    ----------
    name : str
        As in ``--format``.
    title : str
        Such as ``ILDG``.
    summary : str
        What its files hold, for help texts.
    suffix : str
        The ending of files that are written, such as ``.lime``; empty if none can be written.
    signed : bool
        Whether files begin with a mark by which they are recognised with certainty.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    summary: ClassVar[str]
    suffix: ClassVar[str] = ""
    signed: ClassVar[bool] = True

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes may be of this format."""

    @abstractmethod
    def read_header(self, file: InputFile) -> Reader:
        """Read and check the header of a file.

        Raises
        ------
        GaugeError
            If it is damaged, does not fit the size of the file, or describes what is not supported.
        """

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why files cannot hold links of a group in a precision, or None if they can."""
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
        """Write a configuration; parameters as of `write_configuration`."""
        raise NotImplementedError

    def fields(self, path: Path) -> Mapping[str, str]:
        """Return the fields of the provenance that follow from the name of a file."""
        return {}


FORMATS: Registry[Format] = Registry("format", __name__)


def writable_formats() -> list[str]:
    """Return the names of the formats that can be written, the default first."""
    names = [name for name, one in FORMATS.items() if one.suffix]
    return sorted(names, key=lambda name: name != defaults.FORMAT)


def check_writable(format: str, group: str, precision: str) -> None:
    """Refuse a format that cannot be written, or cannot hold links of a group in a precision.

    Raises
    ------
    UsageError
        If it cannot; the message names the formats that can.
    """
    chosen, wanted = FORMATS[format], GROUPS[group]
    possible = [
        name for name in writable_formats() if FORMATS[name].refusal(wanted, precision) is None
    ]
    advice = f"choose {in_words(possible, 'or')}"
    if not chosen.suffix:
        raise UsageError(f"{chosen.title} files are only read: {advice}.")
    reason = chosen.refusal(wanted, precision)
    if reason:
        raise UsageError(f"{reason}: {advice}.")


@dataclass(frozen=True)
class Configuration:
    """A configuration file whose header has been read and fits its size.

    Attributes
    ----------
    path : Path
    header : Header
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

        Each slice is checked for links that are not in the group before it is yielded. The last
        slice is yielded only after checksum, plaquette and link trace, as far as the format has
        them, have been compared with the header. So whoever has received all slices has sound ones.

        Yields
        ------
        complex128 array [z, y, x, mu, a, b]

        Raises
        ------
        GaugeError
            If the file is damaged, or has changed since it was opened.
        """
        with InputFile(self.path) as file:
            file.expect_size(self._size)
            try:
                for t, links in enumerate(self._reader.slices(file)):
                    reason = misfit(links, t)
                    if reason:
                        raise file.damaged(reason)
                    yield links
                    del links  # must not be held beside the next slice
            except MemoryError as error:
                raise _too_large(self.path) from error


def open_configuration(path: str | os.PathLike[str]) -> Configuration:
    """Open a configuration file, detect its format and read its header.

    Parameters
    ----------
    path : str or path-like
        A file of any of `FORMATS`.

    Returns
    -------
    Configuration

    Raises
    ------
    GaugeError
        If the file cannot be read, is of none of these formats, or its header is damaged or
        does not fit its size.
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
            "this one from a copy if it was one."
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

    It appears under its name whole and synced to disk, or not at all. The same arguments give
    the same bytes: dates are written only if `provenance` has them.

    Parameters
    ----------
    path : str or path-like
        The file, replaced if it exists. Its folder must exist.
    slices : iterable of complex128 arrays [z, y, x, mu, a, b]
        The time slices t = 0, 1, …, taken one at a time.
    lattice : Lattice
    group : str
        The name of the group.
    precision : str
        ``single`` or ``double``: the precision of the links in the file.
    format : str
        The name of a format that can be written.
    provenance : mapping of str to str
        Free text fields. Formats have a place of their own for some of them, and some formats hold
        none; see their modules.

    Raises
    ------
    UsageError
        If there is no such format, it is only read, or it cannot hold the group or precision.
    GaugeError
        If a slice has another shape or links that are not in the group, there are too few or
        too many of them, or the file cannot be written.
    """
    target = Path(path)
    if precision not in REALS:
        raise UsageError(f"There is no precision '{precision}': choose {in_words(REALS, 'or')}.")
    check_writable(format, group, precision)
    chosen, links_of = FORMATS[format], GROUPS[group]
    fields = {**chosen.fields(target), **(provenance or {})}
    with replacing(target) as out:
        checked = _checked(target, slices, lattice, links_of)
        chosen.write(out, checked, lattice, links_of, precision, fields)


def _checked(
    path: Path, slices: Iterable[Links], lattice: Lattice, group: Group
) -> Iterator[Links]:
    """Pass on exactly the right number of slices with links in the group; refuse all else."""
    n = group.colours
    shape = (lattice.z, lattice.y, lattice.x, 4, n, n)
    count = 0
    for links in slices:
        if count == lattice.t or links.shape != shape:
            raise GaugeError(
                f"{path} was not written: time slice {count} of shape {links.shape} does not "
                f"belong to a configuration of {group.label} on {lattice}."
            )
        exact = np.asarray(links, np.complex128)
        reason = misfit(exact, count)
        if reason:
            raise GaugeError(
                f"{path} was not written: {reason}; the field it comes from is damaged."
            )
        yield exact
        count += 1
    if count < lattice.t:
        raise GaugeError(
            f"{path} was not written: there were {count} time slices, but the lattice {lattice} "
            f"has {lattice.t}."
        )


def _check_memory(path: Path, header: Header) -> None:
    """Refuse a file of which not even one time slice fits into memory, before allocating any."""
    volume = math.prod(header.lattice.extents[:3])
    needed = WORKING_SLICES * volume * 64 * GROUPS[header.group].colours ** 2
    if needed > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
        raise _too_large(path)


def _too_large(path: Path) -> GaugeError:
    return GaugeError(
        f"{path} has time slices that do not fit into memory: read it on a larger machine."
    )
