"""Checkpoints of runs that can only be continued together, after the same update.

While new checkpoints are written, every run keeps its last one beside the new one. A process that
is killed meanwhile leaves some new and some old ones, and the old ones are then valid for all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gauge_mc.errors import GaugeError, not_written
from gauge_mc.run.checkpoint import read_state

PREVIOUS = "previous"
"""Name of the last checkpoint of a run while a new one is written."""

Moment = tuple[int, bool]
"""Number of updates, and whether everything that is due after them has been written."""


@contextmanager
def replaced_together(paths: Sequence[Path]) -> Iterator[None]:
    """Keep the last checkpoints of several runs until all new ones have been written.

    Parameters
    ----------
    paths : sequence of Path
        The checkpoints, which exist, and which are replaced within the context.

    Raises
    ------
    GaugeError
        If the last ones cannot be kept.
    """
    for path in paths:
        try:
            if not _previous(path).exists():  # which it does if writing new ones has just failed
                os.link(path, _previous(path))
        except OSError as error:
            raise not_written(_previous(path), error) from error
    yield
    for path in paths:
        _previous(path).unlink(missing_ok=True)


def restore_common(paths: Sequence[Path]) -> None:
    """Restore the newest checkpoints that several runs have after the same update.

    Parameters
    ----------
    paths : sequence of Path
        The checkpoints, each of which may be missing, or newer than that of another run.

    Raises
    ------
    GaugeError
        If a checkpoint is damaged, or there is no update after which all runs have one.
    """
    found = [_by_moment(path) for path in paths]
    common = set.intersection(*(set(one) for one in found))
    if common:
        newest = max(common)
        for path, files in zip(paths, found, strict=True):
            if files[newest] != path:
                os.replace(files[newest], path)
            _previous(path).unlink(missing_ok=True)
    elif all(moment[0] == 0 for one in found for moment in one):
        for path in paths:  # the process was killed while the first ones were written
            path.unlink(missing_ok=True)
    else:
        raise GaugeError(
            f"The checkpoint {paths[0]} and those of the runs with which it exchanges couplings "
            "are not after the same update; restore them from copies, or begin again with another "
            "--output."
        )


def _by_moment(path: Path) -> dict[Moment, Path]:
    """Return the checkpoints of a run by the update after which they are."""
    found: dict[Moment, Path] = {}
    for file in (_previous(path), path):
        if file.exists():
            state = read_state(file)
            found[state.sweep, state.measured] = file
    return found


def _previous(path: Path) -> Path:
    return path.with_name(PREVIOUS)
