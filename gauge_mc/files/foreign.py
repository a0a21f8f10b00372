"""Series of measurements that other programs have written, which are read as tables.

Each kind is a subclass of `ForeignSeries` that is registered in `FOREIGN_SERIES`. A file is
recognised by its content, and its numbers are converted to the columns of a table of this program,
so that whatever takes the file of a table takes such a file as well.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from gauge_mc.errors import GaugeError, UnsupportedError, UsageError
from gauge_mc.files.input import open_regular, unreadable
from gauge_mc.process import in_context
from gauge_mc.registry import Registry

PROGRAM = "program"
"""Key of the header with the program that has written a series; our own tables have none."""

LEFT_OUT = "left out"
"""Key of the header with a sentence about what was left out; missing or empty if nothing was."""

OURS = b"# "
"""First bytes of our own tables."""

NUMBERED = re.compile(r"(.+\.)([0-9]{1,18})((?:\.[A-Za-z]\w*)?)", re.DOTALL)
"""Names of the files of a series that has several, such as ``pions.1000.h5``."""


@dataclass(frozen=True)
class ForeignTable:
    """The content of a series, as that of a table."""

    header: dict[str, str]
    """Header, as far as the series states it."""
    columns: dict[str, np.ndarray]
    """Columns by name, each of shape (rows,)."""


class ForeignSeries(ABC):
    """A kind of series that another program writes."""

    name: ClassVar[str]
    """Name of the kind."""
    program: ClassVar[str]
    """Name of the program."""
    needs_lattice: ClassVar[bool] = False
    """Whether the user must state the lattice."""
    separate: ClassVar[bool] = False
    """Whether the program writes a file for each configuration, with its number after the last dot
    or before an ending. Any of them then stands for all in its folder whose names differ in the
    number only.
    """

    @abstractmethod
    def recognises(self, data: bytes) -> bool:
        """Return whether a file with this content is of this kind.

        It is not asked about files that begin as our own tables do, with ``# ``.
        """

    @abstractmethod
    def read(self, files: Mapping[int, bytes], lattice: str) -> ForeignTable:
        """Return the content of a series.

        Any `LookupError`, `OSError` or `ValueError` says that the series cannot be read.

        Parameters
        ----------
        files : mapping of int to bytes
            Contents of the files by the numbers in their names, ascending.
        lattice : str
            Extents of the lattice as the user has stated them; empty unless `needs_lattice`.

        Raises
        ------
        GaugeError
            If the series is damaged or not supported, or contradicts the lattice. The name of the
            file is put before the message.
        """


FOREIGN_SERIES: Registry[ForeignSeries] = Registry("foreign series", __name__, ForeignSeries)

_lattice: ContextVar[str] = ContextVar("lattice", default="")
"""Extents that the user has stated; see `stated_lattice`."""


def stated_lattice(lattice: str | None) -> AbstractContextManager[str]:
    """State, in a context, the extents of the lattice for series that do not."""
    return in_context(_lattice, lattice or _lattice.get())


def foreign_table(path: Path) -> tuple[ForeignTable, bytes] | None:
    """Read a series of another program."""
    try:
        with open_regular(path, "a table") as file:
            data = b"" if file.peek(2)[:2] == OURS else file.read()
    except OSError as error:
        raise unreadable(path, error) from error
    kinds = FOREIGN_SERIES.values() if data else ()
    kind = next((kind for kind in kinds if kind.recognises(data)), None)
    lattice, required = _lattice.get(), kind is not None and kind.needs_lattice
    if required != bool(lattice):
        raise UsageError(
            f"{path} does not state the extents of the lattice; give them, as in --lattice "
            "24x24x24x48."
            if required
            else f"{path} is not recognised as a series that needs --lattice; leave it out."
        )
    if kind is None:
        return None
    try:
        files = _files_of(path) if kind.separate else {0: data}
        table = kind.read(files, lattice)
    except GaugeError as error:
        raise type(error)(f"{path}: {error}") from error
    except (LookupError, OSError, ValueError) as error:
        raise UnsupportedError(
            f"{path}, or another file of its series, is of {kind.program}, but cannot be read "
            f"({error}); restore or remove what is incomplete."
        ) from error
    table.header[PROGRAM] = kind.program
    return table, b"".join(files.values())


def _files_of(path: Path) -> dict[int, bytes]:
    """Return the contents of all files of a series by number, ascending."""
    name, paths = NUMBERED.fullmatch(path.name), {0: path}
    if name:
        matches = {p: NUMBERED.fullmatch(p.name) for p in path.parent.iterdir()}
        paths = {
            int(m[2]): n for n, m in matches.items() if m and m.group(1, 3) == name.group(1, 3)
        }
    return {number: paths[number].read_bytes() for number in sorted(paths)}
