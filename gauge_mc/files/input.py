"""Folders that are made, and files that are read, with sizes checked before allocation."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gauge_mc import errors

FAILURES = {errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Failures to make a folder for which the folder is not to blame."""


def may_be_made(folder: Path) -> bool:
    """Return whether files can be written in a folder.

    If necessary it is made, and removed again.
    """
    try:
        folders = make_folder(folder)
    except errors.GaugeError as error:
        if getattr(error.__cause__, "errno", None) in FAILURES:
            raise
        return False
    ready = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    remove_empty(folders)
    return ready


def make_folder(path: Path) -> list[Path]:
    """Make a folder with its parents, unless it exists; return those that were made, in order."""
    folder = []
    try:
        missing = [parent for parent in (path, *path.parents) if not parent.exists()]
        for ancestor in reversed(missing):
            with suppress(FileExistsError):  # another process was faster
                ancestor.mkdir()
                folder.append(ancestor)
    except OSError as error:
        raise errors.not_written(path, error) from error
    return folder


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of the folders that are empty, the last one first."""
    for folder in reversed([*folders]):
        with suppress(OSError):
            folder.rmdir()


Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A path, or several paths."""


def paths_of(paths: Paths | None) -> list[Path]:
    """Return the paths that were given; none if it is None."""
    if paths is None:
        return []
    return [Path(paths)] if isinstance(paths, str | os.PathLike) else [*map(Path, paths)]


_COMPRESSED = {"gzip": b"\x1f\x8b", "bzip2": b"BZh", "xz": b"\xfd7zXZ", "zstd": b"\x28\xb5\x2f\xfd"}
"""First bytes of compressed files, by the program."""

PACKED_BYTES = 512
"""Number of leading bytes that tell the kind; a tar archive has its signature at byte 257."""


def packed(head: bytes) -> str:
    """Return of which kind of packed files one with these first bytes is, or an empty text."""
    if head.startswith(b"PK\3\4") or head.startswith(b"ustar", 257):
        return "an archive"
    kinds = [name for name, begin in _COMPRESSED.items() if head.startswith(begin)]
    return f"compressed with {kinds[0]}" if kinds else ""


UNCHECKED = "GAUGE_MC_UNCHECKED"
"""Environment variable that is 1 if files without a checksum are to be read on purpose."""


def open_regular(path: Path, expected: str = "a file") -> BufferedReader:
    """Open a regular file for reading.

    Pipes and devices are refused: reading them may take forever, and their size is unknown.
    """
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    mode = os.fstat(number).st_mode
    if not stat.S_ISREG(mode):
        os.close(number)
        kind = "a directory" if stat.S_ISDIR(mode) else "not a regular file"
        raise errors.IrregularFileError(f"{path} is {kind}: name {expected}.")
    return open(number, "rb")


def is_missing(path: Path) -> bool:
    """Return whether there is no such file; one that the system does not show may be there."""
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass
    return False


def read_bytes(path: Path, limit: int) -> bytes:
    """Return the content of a small file.

    Raises
    ------
    GaugeError
        If the file cannot be read, is not a regular file, or has more than `limit` bytes.
    """
    with open_regular(path) as file:
        try:
            content = file.read(limit + 1)
        except OSError as error:
            raise unreadable(path, error) from error
    if len(content) > limit:
        raise errors.GaugeError(f"{path} is larger than {limit} bytes: name another file.")
    return content


def read_text(path: Path, limit: int) -> str:
    """Return the content of a small text file; for the errors see `read_bytes`."""
    try:
        return read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise errors.GaugeError(f"{path} is not text in UTF-8: name another file.") from error


def unreadable(path: Path, error: OSError | ValueError) -> errors.GaugeError:
    """Return the error for a file that the system does not let be read, or that is not there."""
    reason = getattr(error, "strerror", None) or error
    missing = isinstance(error, FileNotFoundError | NotADirectoryError | ValueError)
    return (errors.MissingFileError if missing else errors.UnreadableError)(
        f"{path} cannot be read ({reason}): check its name and permissions."
    )


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
        self._file = open_regular(self.path, "a configuration file")
        self.size = os.fstat(self._file.fileno()).st_size

    def __enter__(self) -> InputFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def refusal(
        self, reason: str, *, short: bool = False, agrees: bool | None = None, outside: bool = False
    ) -> errors.DamagedError | errors.UnsupportedError:
        """Return the error for a file that is refused, and decide whether it is damaged.

        Damage is evidence of a changed byte: a checksum that disagrees, bytes that are missing, or
        links outside of the group that no checksum confirms. Anything else may be intact, as that
        of a program that writes its files in another way.
        """
        quoted = "".join(c if c.isprintable() else "?" for c in reason[:400])
        if short or agrees is False or (outside and agrees is None):
            remedy = "restore it from a copy or write it again"
            return errors.DamagedError(f"{self.path} is damaged: {quoted}; {remedy}.", quoted)
        return errors.UnsupportedError(f"{self.path} is not supported: {quoted}.", quoted)

    def absent(self, entry: str, consequence: str) -> str:
        """Refuse a file that lacks something by which it is checked, unless that is on purpose."""
        if os.environ.get(UNCHECKED) != "1":
            raise errors.UncheckedError(
                f"{self.path} states no {entry}, so that {consequence}; to read it all the same, "
                f"set the environment variable {UNCHECKED}=1."
            )
        return f"it states no {entry}, so that {consequence}"

    def expect_size(self, expected: int, alternatives: Collection[int] = ()) -> None:
        """Compare the size of the file with the size that its header implies."""
        if self.size != expected:
            short = self.size < expected and self.size not in alternatives
            kind = "too long" if self.size > expected else "of another kind"
            state = "truncated" if short else kind
            words = f"it is {state}: it has {self.size} bytes, but its header implies {expected}"
            raise self.refusal(words, short=short)

    def read(
        self, offset: int, count: int, memory: NDArray[np.uint8] | None = None
    ) -> NDArray[np.uint8]:
        """Return exactly `count` bytes, starting at `offset`, in new memory or in `memory`."""
        if offset + count > self.size:
            raise self.refusal(
                f"it is truncated: it has {self.size} bytes, but {offset + count} are needed",
                short=True,
            )
        data = np.empty(count, np.uint8) if memory is None else memory
        try:
            self._file.seek(offset)
            length = self._file.readinto(data.data)
        except OSError as error:
            raise errors.UnreadableError(
                f"{self.path} cannot be read ({error.strerror}): check the disk."
            ) from error
        if length != count:
            words = f"only {length} of {count} bytes could be read at byte {offset}"
            raise self.refusal(words, short=True)
        return data
