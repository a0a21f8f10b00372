"""Writing without loss: files appear complete or not at all, and replace only what they may.

Whatever the program writes goes through `replacing`, except for rows that are appended to tables.
A `FileKind` protects files of others whose names a user may give by mistake, `refuse_link` what is
behind a link, and `remove_leftovers` removes what killed processes have left and nothing else.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from gauge_mc.errors import UsageError, not_written
from gauge_mc.files.input import make_folder, remove_empty

STALE_SECONDS = 60.0
"""Age after which a temporary file that nobody holds is what a killed process has left."""

NAME_BYTES = 200
"""Number of bytes of a file's name in that of its temporary file; most file systems allow 255."""


TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.tmp", re.DOTALL)
"""Form of the name of a temporary file; the group is the beginning of the name of its file."""


@dataclass(frozen=True)
class FileKind:
    """A kind of file that may replace files of the same kind, and nothing else."""

    name: str
    """Name of the kind with an article, for messages."""
    recognises: Callable[[Path], bool]
    """Function that returns whether a regular file that is not empty is of this kind."""

    def check(self, path: Path) -> None:
        """Refuse a path at which there is anything that a file of this kind must not replace."""
        if not path.parent.is_dir():
            raise UsageError(
                f"There is no folder {path.parent} for {path.name}; create it, or choose another "
                "name."
            )
        try:
            status = path.lstat()
        except OSError:
            return  # there is nothing, or writing will fail
        if stat.S_ISREG(status.st_mode) and (not status.st_size or self.recognises(path)):
            return
        kinds = {stat.S_IFREG: "another file", stat.S_IFDIR: "a folder", stat.S_IFLNK: "a link"}
        kind = kinds.get(stat.S_IFMT(status.st_mode), "not a file")
        raise UsageError(
            f"{path} is {kind}, which {self.name} must not replace; choose another name, or "
            "remove it if it is not needed."
        )


def write_file(path: Path, content: str | bytes, kind: FileKind | None = None) -> None:
    """Write a file that appears complete and synced to disk, or not at all; see `replacing`."""
    with replacing(path, kind=kind) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(
    path: Path, turn: Callable[[], object] | None = None, kind: FileKind | None = None
) -> Iterator[BinaryIO]:
    """Open a file that appears at `path` complete and synced to disk, or not at all.

    The file is written under a temporary name in the same folder, hidden and ending in ``.tmp``,
    which cannot be guessed, and then renamed. On any error it is removed, and a file that was at
    `path` stays unchanged. Temporary files that killed processes have left for the same `path` are
    removed.
    """
    if kind:
        kind.check(path)
    prefix, temporary = _prefix(path), None
    try:
        temporary, file = _created(path, prefix)
        with file as out:
            begun = os.fstat(out.fileno()).st_mtime  # now, in the clock of the file system
            remove_leftovers(path.parent, prefix.__eq__, begun - STALE_SECONDS)
            yield out
            out.flush()
            os.fsync(out.fileno())
            if turn:
                turn()
            if kind:
                kind.check(path)
            os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if temporary:
            with suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise


@contextmanager
def complete_folder(path: Path) -> Iterator[Path]:
    """Make a folder that appears at `path` complete, or not at all; see `replacing`.

    It is filled under a temporary name beside it, and then renamed. Its files are to be written by
    `replacing`, so that they are on disk. An empty folder is replaced.
    """
    path = path.resolve()
    prefix = _prefix(path)
    temporary = path.with_name(f".{prefix}.{secrets.token_hex(8)}.tmp")
    parents, handle = [], None
    try:
        parents = make_folder(path.parent)
        temporary.mkdir()
        handle = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with suppress(OSError):  # the lock only protects it from being taken for a leftover
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        begun = os.fstat(handle).st_mtime
        remove_leftovers(path.parent, prefix.__eq__, begun - STALE_SECONDS)
        yield temporary
        for folder, *_ in os.walk(temporary):
            sync_folder(Path(folder))
        os.rename(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        shutil.rmtree(temporary, ignore_errors=True)
        remove_empty(parents)
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise
    finally:
        if handle is not None:
            os.close(handle)


def _prefix(path: Path) -> str:
    """Return the part of a file's name that is in the name of its temporary file."""
    return os.fsdecode(os.fsencode(path.name)[:NAME_BYTES])


def _created(path: Path, prefix: str) -> tuple[Path, BinaryIO]:
    """Create a file that nobody can have prepared, and lock it as long as it is open."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    while True:
        temporary = path.with_name(f".{prefix}.{secrets.token_hex(8)}.tmp")
        out = open(os.open(temporary, flags, 0o666), "w+b")  # noqa: SIM115 - closed by the caller
        with suppress(OSError):  # the lock only protects it from being taken for a leftover
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(out.fileno()).st_nlink:
            return temporary, out
        out.close()  # it was taken for a leftover before it was locked


def remove_leftovers(folder: Path, of: Callable[[str], bool], before: float | None = None) -> None:
    """Remove temporary files and folders that killed processes have left in a folder.

    They are regular files, or folders, of this user with names that `replacing` and
    `complete_folder` give, which no process holds. Nothing is removed through a symbolic link, be
    it the folder or a file in it.
    """
    with suppress(OSError):
        within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            for name in os.listdir(within):
                match = TEMPORARY.fullmatch(name)
                if match and of(match[1]):
                    with suppress(OSError):
                        _remove_if_left(name, within, before)
        finally:
            os.close(within)


def _remove_if_left(name: str, folder: int, before: float | None) -> None:
    """Remove a temporary file or folder of an open folder if it is ours, old, and not locked."""
    is_folder = stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    access = os.O_RDONLY | os.O_DIRECTORY if is_folder else os.O_RDWR  # NFS locks what is writable
    flags = access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(name, flags, dir_fd=folder)
    try:
        status = os.fstat(file)
        ours = (is_folder or stat.S_ISREG(status.st_mode)) and status.st_uid == os.geteuid()
        if ours and (before is None or status.st_mtime < before):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (shutil.rmtree if is_folder else os.unlink)(name, dir_fd=folder)
    finally:
        os.close(file)


def refuse_link(path: Path) -> None:
    """Refuse a symbolic link, or one of several names of a file, that is to be appended to."""
    with suppress(FileNotFoundError, NotADirectoryError):
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink > 1):
            raise UsageError(
                f"{path} is a link, and nothing is added to files through links; put the file "
                "itself there, or choose another name."
            )


def sync_folder(folder: Path) -> None:
    """Make a rename durable. Errors are ignored, since some file systems cannot sync folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
