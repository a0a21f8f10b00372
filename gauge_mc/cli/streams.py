"""Standard streams whose failures cost no results: a closed pipe, a full disk, a lost terminal."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
from typing import Any, TextIO

SILENT = (errno.EPIPE, errno.EBADF)
"""Failures that are nothing to complain about: nobody wants to read the output."""


class LenientFile(io.RawIOBase):
    """A file for writing that records failures of the system instead of raising them.

    Parameters
    ----------
    number : int
        File descriptor.

    Attributes
    ----------
    failure : OSError or None
        First failure.
    """

    def __init__(self, number: int) -> None:
        self._number = number
        self.failure: OSError | None = None

    def fileno(self) -> int:
        """Return the file descriptor."""
        return self._number

    def isatty(self) -> bool:
        """Return whether the file is a terminal."""
        return os.isatty(self._number)

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, data: Any) -> int:
        """Write bytes, and return how many; after a failure they are lost."""
        try:
            return os.write(self._number, data)
        except BlockingIOError:
            select.select([], [self._number], [])
            return 0
        except OSError as error:
            self.failure = self.failure or error
            return len(data)


class Streams:
    """Lenient standard output and standard error, which also encode everything.

    Streams that were closed when the program began are replaced by ``/dev/null``, since otherwise
    the next file that is opened would take their place. Streams that are not those of the process
    stay as they are.
    """

    def __init__(self) -> None:
        self._files: list[LenientFile] = []
        for number in range(3):
            _occupy(number)
        self.stdout = sys.stdout = self._lenient(sys.stdout, 1)
        self.stderr = sys.stderr = self._lenient(sys.stderr, 2)

    def _lenient(self, stream: TextIO | None, number: int) -> TextIO:
        if stream is not None and type(stream) is not io.TextIOWrapper:
            return stream
        encoding = stream.encoding if stream else "utf-8"
        file = LenientFile(number)
        self._files.append(file)
        lines = number == 2 or file.isatty()
        return io.TextIOWrapper(
            io.BufferedWriter(file), encoding, "backslashreplace", line_buffering=lines
        )

    def failure(self) -> OSError | None:
        """Return the failure of an output that somebody wants to read, after the last output."""
        for stream in (self.stdout, self.stderr):
            stream.flush()
        failures = (file.failure for file in self._files)
        return next((one for one in failures if one and one.errno not in SILENT), None)


def _occupy(number: int) -> None:
    """Open ``/dev/null`` as a standard stream that is closed."""
    try:
        os.fstat(number)
    except OSError:
        os.open(os.devnull, os.O_RDWR)  # gets the smallest free number
