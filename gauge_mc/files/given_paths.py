"""Paths as users of Python functions give them: one, or several."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A path, or several paths."""


def paths_of(given: Paths | None) -> list[Path]:
    """Return the paths that were given; none if it is None."""
    if given is None:
        return []
    return [Path(given)] if isinstance(given, str | os.PathLike) else [*map(Path, given)]
