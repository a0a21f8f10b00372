"""The run lock: the exclusive right of one process to write a run."""

from __future__ import annotations

import dataclasses
import datetime
import fcntl
import json
import os
import platform
import struct
import threading
from dataclasses import dataclass
from pathlib import Path

from gauge_mc.errors import GaugeError

FLOCK = struct.Struct("hhqqi4x")
"""Linux's ``struct flock``: type, whence, start, length, process."""

RECORD_BYTES = 512
"""Length of the record of the holder, padded so that it can be overwritten in one write."""

UNKNOWN = "an unknown host"
"""The host of a holder whose record cannot be read."""


@dataclass(frozen=True)
class Holder:
    """Who holds a run lock, or held it last, and how far the run was.

    Attributes
    ----------
    host : str
    process : int
    since : str
        Time in ISO 8601, with offset.
    sweep : int
        Updates done, thermalisation included.
    rate : float
        Updates a second in this session.
    """

    host: str = ""
    process: int = 0
    since: str = ""
    sweep: int = 0
    rate: float = 0.0


class RunLock:
    """The exclusive right to write a run, for as long as it is open and the process lives.

    A POSIX record lock, which also works on network file systems and ends with its process.

    Parameters
    ----------
    path : Path
        The lock file, which is made if need be.

    Raises
    ------
    GaugeError
        If another process or thread holds the lock, or the file system has no locks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self.holder = Holder(platform.node(), os.getpid(), now())
        with _guard:
            if self._path in _held:
                raise _in_use(path, _held[self._path].holder)
            self._open(path)
            _held[self._path] = self

    def _open(self, path: Path) -> None:
        """Open and lock the file."""
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A holder that leaves nothing behind may have removed the file since it was opened.
            if not os.path.samestat(os.fstat(self._fd), os.stat(path)):
                raise FileNotFoundError
        except (BlockingIOError, PermissionError, FileNotFoundError) as error:
            os.close(self._fd)
            raise _in_use(path, read_holder(path)) from error
        except OSError as error:
            os.close(self._fd)
            raise GaugeError(
                f"The file system of {path.parent} has no file locks ({error.strerror}); "
                "choose an --output on one that has."
            ) from error

    def record(self, holder: Holder) -> None:
        """Write who holds the run and how far it is, for other processes to read.

        Raises
        ------
        GaugeError
            If it cannot be written, for instance because the disk is full.
        """
        self.holder = holder
        text = json.dumps(dataclasses.asdict(holder)).ljust(RECORD_BYTES - 1) + "\n"
        try:
            os.pwrite(self._fd, text.encode(), 0)
        except OSError as error:
            raise GaugeError(
                f"{self._path} could not be written ({error.strerror}): free some space."
            ) from error

    def close(self) -> None:
        """Release the lock."""
        with _guard:
            os.close(self._fd)
            del _held[self._path]


_held: dict[Path, RunLock] = {}
"""The locks of this process.

The system would grant them to it again, and release them whenever it closes such a file, so that it
must not open one twice."""

_guard = threading.Lock()
"""Held by the thread that changes `_held`."""

os.register_at_fork(after_in_child=_held.clear)  # which inherits no locks


def _in_use(path: Path, holder: Holder) -> GaugeError:
    return GaugeError(
        f"The run {path.parent} is in use by process {holder.process} on {holder.host} since "
        f"{holder.since}; wait for it, or choose another --output."
    )


def is_locked(path: Path) -> bool:
    """Return whether a process, this one or another, holds a lock."""
    if path.resolve() in _held:
        return True
    try:
        with path.open("rb") as file:
            asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind = FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
    except OSError:
        return False
    return bool(kind != fcntl.F_UNLCK)


def read_holder(path: Path) -> Holder:
    """Return who holds a lock or held it last, as the lock file says."""
    if path.resolve() in _held:
        return _held[path.resolve()].holder
    try:
        return Holder(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return Holder(UNKNOWN, 0, "an unknown time")


def now() -> str:
    """Return the time in ISO 8601, with offset."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
