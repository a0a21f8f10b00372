"""Atomic writing: files that appear complete or not at all."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from gauge_mc.errors import GaugeError


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file that appears at `path` complete and synced to disk, or not at all.

    The file is written under a temporary name in the same folder, hidden and ending in ``.tmp``,
    and then renamed. On any error it is removed, and a file that was at `path` stays unchanged.

    Raises
    ------
    GaugeError
        If the file cannot be written.
    """
    # File names have at most 255 bytes on most file systems.
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
            remedy = "free some space" if full else "choose a folder in which you may write"
            raise GaugeError(
                f"{path} could not be written ({error.strerror}): {remedy}."
            ) from error
        raise


def _sync_folder(folder: Path) -> None:
    """Make a rename durable. Errors are ignored, since some file systems cannot sync folders."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
