"""Files that are open for reading, with sizes checked before anything is allocated."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError


class InputFile:
    """A regular file that is open for reading. Every failure is a `GaugeError` that names the file.

    Parameters
    ----------
    path : str or path-like
        File to open. Pipes and devices are refused, because their size is unknown.

    Attributes
    ----------
    path : Path
        Path of the file.
    size : int
        Size of the file in bytes.

    Raises
    ------
    GaugeError
        If the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            if not stat.S_ISREG(os.stat(self.path).st_mode):
                raise GaugeError(f"{self.path} is not a regular file: name a configuration file.")
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
        """Return the error for a damaged file.

        The reason may quote the file. So it is shortened to 400 characters, and characters that
        cannot be printed are replaced.
        """
        quoted = "".join(c if c.isprintable() else "?" for c in reason[:400])
        return GaugeError(
            f"{self.path} is damaged: {quoted}; restore it from a copy or write it again."
        )

    def unsupported(self, reason: str) -> GaugeError:
        """Return the error for a file that is intact, but whose content is not supported."""
        quoted = "".join(c if c.isprintable() else "?" for c in reason[:400])
        return GaugeError(f"{self.path} is not supported: {quoted}.")

    def expect_size(self, expected: int) -> None:
        """Compare the size of the file with the size that its header implies.

        Raises
        ------
        GaugeError
            If the sizes differ.
        """
        if self.size != expected:
            state = "truncated" if self.size < expected else "too long"
            raise self.damaged(
                f"it is {state}: it has {self.size} bytes, but its header implies {expected}"
            )

    def read(
        self, offset: int, count: int, memory: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """Return exactly `count` bytes, starting at `offset`, in new memory or in `memory`.

        Raises
        ------
        GaugeError
            If the file is too short, which is checked before memory is allocated, or if the system
            cannot read it.
        """
        if offset + count > self.size:
            raise self.damaged(
                f"it is truncated: it has {self.size} bytes, but {offset + count} are needed"
            )
        data = np.empty(count, np.uint8) if memory is None else memory
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
