"""Folders that are made for files, and removed again if there will be none."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def may_be_made(folder: Path) -> bool:
    """Return whether files can be written in a folder.

    If necessary it is made, and removed again.
    """
    try:
        made = make_folder(folder)
    except OSError:
        return False
    ready = folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    remove_empty(made)
    return ready


def make_folder(path: Path) -> list[Path]:
    """Make a folder with its parents, unless it exists; return those that were made, in order."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    made = []
    for one in reversed(missing):
        with suppress(FileExistsError):  # another process was faster
            one.mkdir()
            made.append(one)
    return made


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove those of the folders that are empty, the last one first."""
    for folder in reversed([*folders]):
        with suppress(OSError):
            folder.rmdir()
