"""Formats of configuration files.

Each format is a subclass of `Format` that is registered in `FORMATS`. It describes how the links
are stored; kernels convert them and compute checksums.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, ClassVar

from gauge_mc import defaults
from gauge_mc.devices.kernels import REAL_BYTES
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import NoMemoryError, UnreadableError, UnsupportedError, UsageError
from gauge_mc.files.columns import Averages
from gauge_mc.files.input import PACKED_BYTES, InputFile, packed
from gauge_mc.groups import GROUPS, Group, special_unitary
from gauge_mc.registry import Registry, first_few, in_words
from gauge_mc.storage.links import Checksums, LinkSums, Reader, StoredLinks
from gauge_mc.storage.links import LinkSource as LinkSource

HEAD_BYTES = 64
"""Number of leading bytes by which formats recognise their files. The longest signature, that of
openQCD, has 24."""

STATES_NOTHING = (
    "it has links, but states neither their group nor their extents; give both to info, "
    "verify or measure, as in --lattice 8x8x8x16 --group su3, or to gauge-mc convert, "
    "which writes a file that states them"
)
"""Reason why a file cannot be read whose lattice and group are not known."""

NO_CHECKSUM = "it has no checksum, so its links were not verified with one"
"""Warning about a file whose format or version has no checksum."""

WORKING_SLICES = 13
"""Memory for reading, checking and converting a file, in time slices of complex128 links: up to
nine blocks of files, and two slices each of links and of matrices in double precision."""


class Format(ABC):
    """A format of configuration files. A read-only format has no suffix."""

    name: ClassVar[str]
    """Name on the command line, for ``--format``."""
    title: ClassVar[str]
    """Name in messages, such as ``ILDG``."""
    summary: ClassVar[str]
    """Short description of the files, for help texts."""
    suffix: ClassVar[str] = ""
    """Ending of the names of written files, such as ``.lime``; empty for a read-only format."""
    names_group: ClassVar[bool] = False
    """Whether files state the name of the group. The others state its number of colours at most,
    which stands for SU(N).
    """
    qcdml: ClassVar[bool] = False
    """Whether ILDG's QCDml describes such files."""
    signed: ClassVar[bool] = True
    """True if files begin with a signature that identifies them with certainty."""

    only: ClassVar[tuple[str, str] | None] = None
    """Name of the group and the precision of all files, if they can have no others."""
    odd_extents: ClassVar[bool] = False
    """Whether files of lattices with odd extents can be written."""

    byte_order: ClassVar[str] = ">"
    """Byte order of written files, ``>`` or ``<``."""
    checksums: ClassVar[frozenset[str]] = frozenset()
    """Checksums that files state; see `StoredLinks`."""

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Return whether a file that begins with these bytes can be of this format."""

    def contains(self, file: InputFile) -> bool:
        """Return whether a file that `recognises` knows is of this format, and not of another one.

        Several formats may have the same container.
        """
        return True

    @abstractmethod
    def read_header(self, file: InputFile) -> Reader:
        """Read and check the header of a file.

        Raises
        ------
        GaugeError
            If the header is damaged, does not fit the size of the file, or describes links that
            are not supported.
        """

    def read_unstated(self, file: InputFile, lattice: Lattice, group: Group) -> Reader:
        """Read a file that does not state lattice and group, which are given.

        Raises
        ------
        UsageError
            If the file states them, or its size is another one.
        """
        raise UsageError(
            f"{file.path} states its lattice and its group; leave --lattice and --group out."
        )

    def refusal(self, group: Group, precision: str) -> str | None:
        """Return why the format cannot store a group in a precision, or None if it can."""
        if self.only:
            name, width = self.only
            refused = f"{group.label} in {precision} precision"
            only = f"{self.title} files store {GROUPS[name].label} in {width} precision"
            return None if (group.name, precision) == self.only else f"{only}, not {refused}"
        if self.names_group or group.name == special_unitary(group.colours):
            return None
        return f"{self.title} files store links of SU(N) only, not of {group.label}"

    def stored(self, lattice: Lattice, group: Group, precision: str) -> StoredLinks:
        """Return how written files store the links: all rows of all links, by site."""
        dtype = f"{self.byte_order}f{REAL_BYTES[precision]}"
        return StoredLinks(lattice, group, dtype, checksums=self.checksums)

    def header(self, stored: StoredLinks, provenance: Mapping[str, str], sums: LinkSums) -> bytes:
        """Return the header of a file, whose length does not depend on checksums and averages.

        Only a format that writes its files in another way, by `write`, does not need it.
        """
        raise NotImplementedError

    def write(self, out: BinaryIO, source: LinkSource, provenance: Mapping[str, str]) -> None:
        """Write a configuration: a header, and the links.

        Parameters
        ----------
        out : file
            A file that can be read, written and positioned.
        source : LinkSource
            The links.
        provenance : mapping of str to str
            Free text fields; see `gauge_mc.Field.save`.
        """
        unknown = Checksums(), Averages(0.0, 0.0, 0.0, 0.0)
        out.write(self.header(source.stored, provenance, unknown))
        sums = source.store(out)
        out.seek(0)
        out.write(self.header(source.stored, provenance, sums))

    def fields(self, path: Path) -> Mapping[str, str]:
        """Return the fields of the provenance that are derived from the name of a file."""
        return {}


FORMATS: Registry[Format] = Registry("format", __name__, Format)


def writable_formats() -> list[str]:
    """Return the names of all formats that can be written, the default first."""
    names = [name for name, x in FORMATS.items() if x.suffix]
    return sorted(names, key=lambda name: name != defaults.FORMAT)


def check_writable(format: str, group: str, precision: str) -> None:
    """Refuse a format that is read-only or cannot store a group in a precision."""
    target, gauge_group = FORMATS[format], GROUPS[group]
    if target.suffix:
        refusal = target.refusal(gauge_group, precision)
    else:
        refusal = f"{target.title} files can be read but not written"
    if refusal:
        possible = [
            name
            for name in writable_formats()
            if FORMATS[name].refusal(gauge_group, precision) is None
        ]
        raise UsageError(f"{refusal}: choose {in_words(possible, 'or')}.")


def read_header(file: InputFile, stated: tuple[Lattice, Group] | None = None) -> Reader:
    """Detect the format of a file and read its header."""
    if format := _format_of(file):
        reader = format.read_unstated(file, *stated) if stated else format.read_header(file)
        lattice, group = reader.stored.lattice, reader.stored.group
        site_bytes = 4 * 16 * group.colours**2  # four complex128 matrices
        memory = WORKING_SLICES * lattice.slice_sites * site_bytes
        if memory > os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"):
            raise too_large(file.path)
        return reader
    if kind := packed(file.read(0, min(file.size, PACKED_BYTES)).tobytes()):
        raise UnsupportedError(f"{file.path} is {kind}: unpack it first.")
    titles = in_words([x.title for x in FORMATS.values()], "or")
    raise UnsupportedError(
        f"{file.path} is not a configuration in {titles} format: name another file."
    )


@dataclass(frozen=True)
class ConfigurationFolder:
    """A folder of configurations that is not a run. Hidden files do not count."""

    path: Path
    """The folder."""
    files: Sequence[Path]
    """Configurations, by name."""
    others: Sequence[Path]
    """Files that are not configurations, by name, which commands pass over."""

    @classmethod
    def of(cls, path: Path) -> ConfigurationFolder:
        """Look at the files of a folder; those that cannot be read may be configurations."""
        inside = sorted(path.iterdir()) if path.is_dir() else []
        files = [file for file in inside if file.is_file() and not file.name.startswith(".")]
        configurations = []
        for file in files:
            with suppress(UnreadableError):
                if not is_configuration(file):
                    continue
            configurations.append(file)
        return cls(path, configurations, [file for file in files if file not in configurations])

    @property
    def name(self) -> str:
        """Name of the folder; a folder ``configs`` has that of the folder around it."""
        path = self.path.resolve()
        return (path.parent if path.name == "configs" else path).name

    @property
    def passed_over(self) -> str:
        """Sentence about the files that are not configurations; empty if there are none."""
        words = first_few([file.name for file in self.others])
        return f"passed over in {self.path}, not configurations: {words}" if words else ""


def is_configuration(path: Path) -> bool:
    """Return whether a file begins like those of a format."""
    with InputFile(path) as file:
        return _format_of(file) is not None


def _format_of(file: InputFile) -> Format | None:
    """Return the format that recognises the beginning of a file; those with a signature first."""
    head = file.read(0, min(file.size, HEAD_BYTES)).tobytes()
    formats = sorted(FORMATS.values(), key=lambda x: not x.signed)
    return next((x for x in formats if x.recognises(head) and x.contains(file)), None)


def too_large(path: Path) -> NoMemoryError:
    """Return the error for a file whose time slices do not fit into memory."""
    return NoMemoryError(
        f"{path} has time slices that do not fit into memory: read it on a larger machine."
    )
