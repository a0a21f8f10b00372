"""Atomic writing: files that appear complete or not at all."""

from __future__ import annotations

import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gauge_mc.errors import not_written

STALE_SECONDS = 60.0
"""Age after which a temporary file that nobody holds is what a killed process has left."""

NAME_BYTES = 200
"""Number of bytes of a file's name in that of its temporary file; most file systems allow 255."""


@contextmanager
def replacing(path: Path, turn: Callable[[], object] | None = None) -> Iterator[BinaryIO]:
    """Open a file that appears at `path` complete and synced to disk, or not at all.

    The file is written under a temporary name in the same folder, hidden and ending in ``.tmp``,
    which cannot be guessed, and then renamed. On any error it is removed, and a file that was at
    `path` stays unchanged. Temporary files that killed processes have left for the same `path` are
    removed.

    Parameters
    ----------
    path : Path
    turn : callable, optional
        Called when the file is on disk, before it is renamed; it may wait, or raise an exception.

    Raises
    ------
    GaugeError
        If the file cannot be written.
    """
    prefix = _prefix(path)
    temporary, created = path.with_name(f"{prefix}{secrets.token_hex(8)}.tmp"), False
    try:
        with _created(temporary) as out:
            created = True
            _remove_leftovers(path.parent, prefix, out)
            yield out
            out.flush()
            os.fsync(out.fileno())
            if turn:
                turn()
            os.replace(temporary, path)
        sync_folder(path.parent)
    except BaseException as error:
        if created:
            with suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError):
            raise not_written(path, error) from error
        raise


def _prefix(path: Path) -> str:
    """Return the beginning of the names of temporary files for a path."""
    name = os.fsencode(path.name)[:NAME_BYTES]
    return f".{os.fsdecode(name)}."


def _created(path: Path) -> BinaryIO:
    """Create a file that nobody can have prepared, and lock it as long as it is open."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    out = open(os.open(path, flags, 0o666), "w+b")  # noqa: SIM115 - closed by the caller
    with suppress(OSError):  # the lock only protects it from being taken for a leftover
        fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return out


def _remove_leftovers(folder: Path, prefix: str, now: BinaryIO) -> None:
    """Remove old temporary files of one path that no process holds.

    Parameters
    ----------
    folder : Path
    prefix : str
        Beginning of their names.
    now : file
        A file that has just been created, whose time of change is now in the file system's clock.
    """
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(prefix) and name.endswith(".tmp"):
                with suppress(OSError):
                    _remove_if_stale(folder / name, os.fstat(now.fileno()).st_mtime)


def _remove_if_stale(path: Path, now: float) -> None:
    """Remove a temporary file if it is ours, old, and not locked."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        found = os.fstat(file)
        ours = stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid()
        if ours and now - found.st_mtime > STALE_SECONDS:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(file)


def sync_folder(folder: Path) -> None:
    """Make a rename durable. Errors are ignored, since some file systems cannot sync folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
