"""Files to read: exact reads that never trust a header."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError


class InputFile:
    """A regular file that is open for reading. Every failure is a `GaugeError` that names it.

    Parameters
    ----------
    path : str or path-like
        The file. Pipes and devices are refused, since their size is not known.

    Attributes
    ----------
    path : Path
    size : int
        The true size in bytes.

    Raises
    ------
    GaugeError
        If the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise GaugeError(f"{self.path} is not a file: name a configuration file.")
            self._file = open(self.path, "rb")  # noqa: SIM115 - closed by __exit__
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise GaugeError(
                f"{self.path} cannot be read ({reason}): check its name and permissions."
            ) from error
        self.size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> InputFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def damaged(self, reason: str) -> GaugeError:
        """Return the error that says that the file is damaged, and how.

        The reason may quote the file: it is shortened, and what cannot be printed is replaced.
        """
        quoted = "".join(c if c.isprintable() else "?" for c in reason[:400])
        return GaugeError(
            f"{self.path} is damaged: {quoted}; restore it from a copy or write it again."
        )

    def unsupported(self, reason: str) -> GaugeError:
        """Return the error that says that the file is sound, but holds what is not supported."""
        quoted = "".join(c if c.isprintable() else "?" for c in reason[:400])
        return GaugeError(f"{self.path} is not supported: {quoted}.")

    def expect_size(self, expected: int) -> None:
        """Compare the size of the file with what its header implies.

        Raises
        ------
        GaugeError
            If they differ.
        """
        if self.size != expected:
            state = "truncated" if self.size < expected else "too long"
            raise self.damaged(
                f"it is {state}, with {self.size} bytes where its header implies {expected}"
            )

    def read(self, offset: int, count: int) -> NDArray[np.uint8]:
        """Read exactly `count` bytes from `offset` on.

        Raises
        ------
        GaugeError
            If the file does not hold them, which is found out before anything is allocated, or the
            system fails to read them.
        """
        if offset + count > self.size:
            raise self.damaged(
                f"it is truncated, with {self.size} bytes where {offset + count} are needed"
            )
        data = np.empty(count, np.uint8)
        try:
            self._file.seek(offset)
            got = self._file.readinto(data.data)
        except OSError as error:
            raise GaugeError(
                f"{self.path} cannot be read ({error.strerror}): check the disk."
            ) from error
        if got != count:
            raise self.damaged(f"only {got} of {count} bytes could be read at byte {offset}")
        return data
