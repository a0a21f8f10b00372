"""Files that are whole or not there."""

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
    """Open a file that appears under `path` whole and synced to disk, or not at all.

    It is written under a temporary name in the same folder, hidden and ending in ``.tmp``, and
    then renamed. On any error that file is removed, and what was at `path` stays.

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
