"""Logs: what has happened to a run or a scan, as lines of JSON in ``run.log``.

Every line is an object with the keys ``time``, ``level``, ``event`` and those of the event. A line
is appended in one write, so that a process that is killed loses nothing it has reported. An
incomplete last line, which a full disk or a machine that failed has left, is skipped by readers,
and removed before the next line is written. Nothing that a run computes depends on its log, and a
log that cannot be written stops no run.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import shlex
import stat
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gauge_mc import __version__
from gauge_mc.errors import GaugeError
from gauge_mc.files.input import open_regular
from gauge_mc.files.structured import parse_json
from gauge_mc.quoting import sentence
from gauge_mc.results import documented, result_field
from gauge_mc.run.lock import now

LOG = "run.log"
"""Name of the file in the directory of a run or a scan."""

INFO, WARNING, ERROR = "info", "warning", "error"
"""Levels of entries."""

SESSION, CHECKPOINT, CAUTION, END = "session", "checkpoint", "warning", "end"
FAILURE = "failure"
"""Events: a session begins, a checkpoint is on disk, a warning, a session ends, a run of a scan has
failed."""

COMPLETE, INCOMPLETE, INTERRUPTED = "complete", "incomplete", "interrupted"
SUBMITTED = "submitted"
"""How a session has ended: with nothing left to do, with runs of a scan that are not complete, at
once by a signal, or with jobs that a batch system will carry out. Otherwise the reason is stated.
"""

LONGEST_LINE = 2**16
"""Number of bytes of the longest line that is read or repaired."""

COMMON = ("time", "level", "event")
"""Keys that every line has."""


@documented
@dataclass(frozen=True)
class LogEntry:
    """An entry of a log."""

    time: str = result_field("Time in ISO 8601, with UTC offset.")
    level: str = result_field("``info``, ``warning`` or ``error``.")
    event: str = result_field("``session``, ``checkpoint``, ``warning``, ``failure`` or ``end``.")
    fields: Mapping[str, Any] = result_field("The other keys of the line.", dict)

    @classmethod
    def read(cls, line: bytes) -> LogEntry | None:
        """Return the entry in a line; None if the line is not one."""
        try:
            fields = parse_json(line.decode())
            common = {name: str(fields.pop(name)) for name in COMMON}
        except (GaugeError, ValueError, LookupError, TypeError, AttributeError):
            return None
        return cls(**common, fields=fields)

    def __str__(self) -> str:
        words = [str(self.fields.get("message", ""))]
        words += [
            f"{name}={_word(field)}" for name, field in self.fields.items() if name != "message"
        ]
        level = "" if self.level in (INFO, self.event) else f" ({self.level})"
        return " ".join([self.time, f"{self.event}{level}", *filter(None, words)])


def _word(value: object) -> str:
    """Return a value as a word, quoted if it consists of several."""
    return shlex.quote(value) if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class RunLog:
    """The log in a directory, to which several processes may append."""

    folder: Path
    """Directory of a run or a scan."""

    def add(self, event: str, level: str = INFO, **fields: Any) -> None:
        """Append an entry; nothing happens if that is not possible."""
        present = {name: value for name, value in fields.items() if value is not None}
        entry = {"time": now(), "level": level, "event": event, **present}
        line = json.dumps(entry, ensure_ascii=False).encode(errors="replace")
        with suppress(OSError):
            _append(self.folder / LOG, line)

    def caution(self, *messages: str) -> None:
        """Append warnings, one sentence each."""
        for message in messages:
            self.add(CAUTION, WARNING, message=message)


def _append(path: Path, line: bytes) -> None:
    """Append a line, after an incomplete last line has been removed."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags, 0o666), "r+b", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return  # a link, which may lead to another user's file
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        size = os.fstat(file.fileno()).st_size
        begin = max(0, size - LONGEST_LINE)
        last = os.pread(file.fileno(), size - begin, begin).rpartition(b"\n")[2]
        if last.startswith(b'{"time"'):
            os.ftruncate(file.fileno(), size - len(last))
        elif last:  # another program's line
            line = b"\n" + line
        file.write(line + b"\n")


@dataclass
class LogTail:
    """The entries of a log that have not been read yet.

    The file need not exist, and another process may append to it.
    """

    folder: Path
    """Directory of a run or a scan."""
    _end: int = field(default=0, init=False)

    def new(self) -> list[LogEntry]:
        """Return the entries that have been added since the last call, at first all of them."""
        try:
            with open_regular(self.folder / LOG, "a log") as file:
                size = os.fstat(file.fileno()).st_size
                self._end = 0 if size < self._end else self._end
                file.seek(self._end)
                data = file.read(size - self._end)
        except (OSError, GaugeError):
            return []
        lines = data[: data.rfind(b"\n") + 1]
        self._end += len(lines)
        entries = (LogEntry.read(line) for line in lines.split(b"\n")[:-1])
        return [x for x in entries if x]


def command_line() -> str:
    """Return the command line of this process, as a shell takes it."""
    program, *arguments = sys.argv
    itself = Path(program).parts[-2:] == ("gauge_mc", "__main__.py")
    return shlex.join(["gauge-mc" if itself else Path(program).name, *arguments])


@contextmanager
def logged_session(logs: Sequence[RunLog], **fields: Any) -> Iterator[dict[str, Any]]:
    """Log that a session of this process begins and how it ends."""
    about = {"version": __version__, "process": os.getpid(), "host": platform.node()}
    for log in logs:
        log.add(SESSION, **{"command": command_line(), **about, **fields})
    ended: dict[str, Any] = {"ended": COMPLETE}
    began, level = time.monotonic(), INFO
    try:
        yield ended
    except BaseException as error:
        failed = isinstance(error, Exception)
        level = ERROR if failed else WARNING
        ended["ended"] = sentence(str(error)) if failed else INTERRUPTED
        raise
    finally:
        for log in logs:
            log.add(END, level, **ended, seconds=round(time.monotonic() - began, 3))
