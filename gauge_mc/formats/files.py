"""Files on disk: exact reads that never trust a header, writes that are whole or not there."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from gauge_mc.errors import GaugeError


class InputFile:
    """A regular file open for reading; every failure is a `GaugeError` that names it.

    Parameters
    ----------
    path : str or path-like
        The file. Pipes and devices are refused, since their size is not known.

    Attributes
    ----------
    path : Path
    size : int
        True size in bytes.

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
        """Make the error that says that, and how, the file is damaged.

        What the reason may quote of the file is kept to one line, and to what can be printed.
        """
        quoted = "".join(c if c.isprintable() else "?" for c in reason[:400])
        return GaugeError(
            f"{self.path} is damaged: {quoted}; restore it from a copy or write it again."
        )

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
            If the file does not hold them (found out before anything is allocated), or the
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


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears under `path` whole, synced to disk, or not at all.

    It is written under a temporary name in the same folder, hidden and ending in ``.tmp``,
    then renamed. On any error that file is removed and what was at `path` stays.

    Raises
    ------
    GaugeError
        If the system does not let it be written.
    """
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w+b") as out:
            yield out
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
        _sync_folder(path.parent)
    except BaseException as error:
        with suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            remedy = "free some space" if full else "choose a place that you may write to"
            raise GaugeError(
                f"{path} could not be written ({error.strerror}): {remedy}."
            ) from error
        raise


def _sync_folder(folder: Path) -> None:
    """Make a rename durable; some file systems cannot, and need not."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
