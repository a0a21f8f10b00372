"""Run locks, which ensure that only one process at a time writes to a run."""

from __future__ import annotations

import dataclasses
import datetime
import errno
import fcntl
import json
import os
import platform
import stat
import struct
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gauge_mc.errors import GaugeError, not_written
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json, typed
from gauge_mc.results import documented, result_field

FLOCK = struct.Struct("hhqqi4x")
"""Layout of ``struct flock`` on Linux: type, whence, start, length, process."""

RECORD_BYTES = 512
"""Length of a holder's record in bytes. It is fixed, so that one write replaces the record."""

LONG = 1e18
"""Upper limit of the numbers in a record that is not damaged."""

MAX_RECORD = 65536
"""Maximum size of a record that is read in bytes."""


@documented
@dataclass(frozen=True)
class Holder:
    """The process that holds a run lock, or held it last, and its progress."""

    host: str = result_field("Name of the host; empty if the record cannot be read.", "")
    process: int = result_field("Process ID.", 0)
    since: str = result_field("Time at which the lock was taken, in ISO 8601 with UTC offset.", "")
    sweep: int = result_field("Number of updates done, thermalisation included.", 0)
    rate: float = result_field("Updates per second in this session.", 0.0)
    times: dict[str, float] = result_field(
        "Shares of this session's time by name, in seconds.", dict
    )
    joules: float | None = result_field(
        "Energy that the devices have used in this session, in joules; None if it is not "
        "available, or if several processes share the lattice.",
        None,
    )
    physics: str = result_field(
        "Observables on the present links, as text; empty if several processes share the lattice.",
        "",
    )

    def __post_init__(self) -> None:
        numbers = (self.process, self.sweep, self.rate, self.joules or 0, *self.times.values())
        if not all(0 <= number < LONG for number in numbers):
            raise ValueError("The record of the holder of a lock is damaged.")

    def __str__(self) -> str:
        return f"process {self.process} on {self.host} since {self.since}"


class RunLock:
    """Exclusive lock on a run, held until it is closed or the process ends.

    It is a POSIX record lock, which also works on network file systems and which the system
    releases when the process ends.

    Parameters
    ----------
    path : Path
        Lock file. It is created if necessary.

    Raises
    ------
    GaugeError
        If another process or thread holds the lock, if something else than a lock file is there, or
        if the file system does not support locks.
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
        """Open the file and lock it."""
        # In a shared folder others may have put a link there, to a file that is not theirs.
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, 0o666)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
                raise _stranger(path) from error
            raise not_written(path, error) from error
        status = os.fstat(self._fd)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or status.st_size > RECORD_BYTES:
            os.close(self._fd)
            raise _stranger(path)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The previous holder may have removed the file after it was opened here.
            if not os.path.samestat(os.fstat(self._fd), os.stat(path)):
                raise FileNotFoundError
        except (BlockingIOError, PermissionError, FileNotFoundError) as error:
            os.close(self._fd)
            raise _in_use(path, read_holder(path)) from error
        except OSError as error:
            os.close(self._fd)
            if not status.st_size:  # it was made here, and nobody can hold a lock on it
                path.unlink(missing_ok=True)
            raise GaugeError(
                f"The file system of {path.parent} does not support file locks "
                f"({error.strerror}); choose an --output on another file system."
            ) from error

    def record(self, **progress: Any) -> None:
        """Write the holder and its progress to the lock file, for other processes."""
        self.holder = dataclasses.replace(self.holder, **progress)
        text = json.dumps(dataclasses.asdict(self.holder)).ljust(RECORD_BYTES - 1) + "\n"
        try:
            os.pwrite(self._fd, text.encode(), 0)
        except OSError as error:
            raise not_written(self._path, error) from error

    def close(self) -> None:
        """Release the lock."""
        with _guard:
            os.close(self._fd)
            del _held[self._path]


_held: dict[Path, RunLock] = {}
"""The locks that this process holds, by path.

A process must not open a lock file twice: the system would grant it the same lock again, and would
release the lock as soon as either of the files is closed."""

_guard = threading.Lock()
"""Protects `_held`."""

os.register_at_fork(after_in_child=_held.clear)  # a child process inherits no record locks


def _in_use(path: Path, holder: Holder) -> GaugeError:
    unknown = "is in use by another process, whose record in the lock file cannot be read"
    use = f"has been in use by {holder}" if holder.host else unknown
    return GaugeError(
        f"The run {path.parent} {use}; wait until it has finished, or choose another --output."
    )


def _stranger(path: Path) -> GaugeError:
    return GaugeError(
        f"{path} is not a lock file of gauge-mc, but a link or another file; remove it if it is "
        "not needed, or choose another --output."
    )


def is_locked(path: Path) -> bool:
    """Return whether this or another process holds a lock."""
    if path.resolve() in _held:
        return True
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(path, flags), "rb") as file:
            request = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
            kind = FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, request))[0]
    except OSError:
        return False
    return bool(kind != fcntl.F_UNLCK)


def refuse_in_use(path: Path) -> None:
    """Refuse a lock that is held, as `RunLock` does, without taking it."""
    if is_locked(path):
        raise _in_use(path, read_holder(path))


def read_holder(path: Path) -> Holder:
    """Return the current or last holder of a lock, without a host if its record is damaged."""
    if path.resolve() in _held:
        return _held[path.resolve()].holder
    try:
        holder: Holder = typed(parse_json(read_text(path, MAX_RECORD)), Holder)
        return holder
    except (GaugeError, ValueError, TypeError):
        return Holder()


def now() -> str:
    """Return the current time in ISO 8601, with UTC offset."""
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")
