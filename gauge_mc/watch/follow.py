"""The entries of logs as they come."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from gauge_mc.run.directory import Run
from gauge_mc.run.lock import is_locked
from gauge_mc.run.log import END, SESSION, LogEntry, LogTail
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.scan import Scan

EARLIER = 10
"""Number of entries of each log that are shown at first."""

SECONDS = 0.5
"""Time in seconds between two looks at the logs."""

KILLED = "The last session has no end in the log: it was killed, or its machine failed."
"""Remark about a run that nobody works on and whose last session has not ended."""


def followed(path: Path, seconds: float = SECONDS) -> Iterator[str]:
    """Yield the entries of the log of a run or a scan in lines, until nobody works on it.

    The logs of the runs of a scan are followed as well, and their lines begin with their names.

    Parameters
    ----------
    path : Path
        Directory of the run or the scan.
    seconds : float
        Time between two looks at the logs.
    """
    is_scan = Scan(path, Parameters()).exists()
    logs: dict[Path, LogTail] = {}
    last: dict[Path, LogEntry] = {}
    while True:
        at_work = _at_work(path, is_scan)  # before the logs are read, so that none is missed
        found: list[tuple[str, str]] = []
        for folder in (path, *(sorted(path.glob("*/")) if is_scan else ())):
            new: deque[LogEntry] = deque(maxlen=None if folder in logs else EARLIER)
            new.extend(logs.setdefault(folder, LogTail(folder)).new())
            name = "" if folder == path else f"{folder.name}: "
            found += [(one.time, f"{name}{one}") for one in new]
            last.update((folder, one) for one in new if one.event in (SESSION, END))
        yield from (line for _, line in sorted(found, key=lambda pair: pair[0]))
        if not at_work:
            break
        time.sleep(seconds)
    if path in last and last[path].event == SESSION:
        yield KILLED


def _at_work(path: Path, is_scan: bool) -> bool:
    """Return whether a process generates, measures, or carries out the scan or one of its runs."""
    folders = (path, *path.glob("*/")) if is_scan else (path,)
    return any(
        is_locked(lock)
        for folder in folders
        for lock in (Run(folder).lock, *folder.glob(".*.csv.lock"))
    )
