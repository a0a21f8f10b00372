"""The directory of one run: what lies where, who holds it, and how it was made.

::

    runs/su2_b2.5_24x24x24x32/
      run.toml                 every parameter, and a record of each session that worked on it
      configs/0000220.lime     configurations, numbered by sweep
      plaquette.csv ...        tables, one record a measured sweep
      checkpoint/latest        links and generator state
      lock                     held by the process at work; says who, and how far it is
"""

from __future__ import annotations

import dataclasses
import datetime
import fcntl
import json
import os
import platform
import struct
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.parameters import RECORD, SUFFIXES, Parameters

RUNS = Path("runs")
"""Where runs go by default."""

FLOCK = struct.Struct("hhqqi4x")
"""Linux's ``struct flock``: type, whence, start, length, process."""


@dataclass(frozen=True)
class Session:
    """One process's work on a run, as run.toml records it.

    Parameters
    ----------
    started : str
        Time in ISO 8601, with offset.
    sweep : int
        Composite sweeps done when the session began.
    version, python, host, device : str
        Of gauge-mc, of Python, and where it ran.
    """

    started: str
    sweep: int
    version: str
    python: str
    host: str
    device: str

    @classmethod
    def now(cls, sweep: int, device: str) -> Session:
        """Describe a session of this process that begins at `sweep` on `device`."""
        return cls(_now(), sweep, __version__, platform.python_version(), platform.node(), device)


@dataclass(frozen=True)
class Holder:
    """Who holds a run, or held it last, and how far it was.

    Parameters
    ----------
    host : str
    process : int
    since : str
        Time in ISO 8601, with offset.
    sweep : int
        Composite sweeps done, thermalisation included.
    rate : float
        Composite sweeps a second in this session.
    """

    host: str = ""
    process: int = 0
    since: str = ""
    sweep: int = 0
    rate: float = 0.0


class Hold:
    """The exclusive right to write a run, for as long as it is open and the process lives.

    A POSIX record lock, which also works on network file systems and goes with its process.

    Raises
    ------
    GaugeError
        If another process holds the run, or the file system has no locks.
    """

    def __init__(self, path: Path) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A holder that leaves nothing behind may have removed the file since it was opened.
            if not os.path.samestat(os.fstat(self._fd), os.stat(path)):
                raise FileNotFoundError
        except (BlockingIOError, PermissionError, FileNotFoundError) as error:
            os.close(self._fd)
            holder = _holder(path)
            raise GaugeError(
                f"The run {path.parent} is in use by process {holder.process} on "
                f"{holder.host} since {holder.since}; wait for it, or choose another --output."
            ) from error
        except OSError as error:
            os.close(self._fd)
            raise GaugeError(
                f"The file system of {path.parent} has no file locks ({error.strerror}); "
                "choose an --output on one that has."
            ) from error
        self._path = path
        self.holder = Holder(platform.node(), os.getpid(), _now())

    def say(self, holder: Holder) -> None:
        """Write who holds the run and how far it is, for others to read.

        Raises
        ------
        GaugeError
            If it cannot be written, for instance because the disk is full.
        """
        self.holder = holder
        text = json.dumps(dataclasses.asdict(holder)).ljust(511) + "\n"
        try:
            os.pwrite(self._fd, text.encode(), 0)
        except OSError as error:
            raise GaugeError(
                f"{self._path} could not be written ({error.strerror}): free some space."
            ) from error

    def close(self) -> None:
        """Let go of the run."""
        os.close(self._fd)


@dataclass(frozen=True)
class Run:
    """A run directory, there or yet to be made.

    Parameters
    ----------
    path : Path
        The directory.
    """

    path: Path

    @property
    def toml(self) -> Path:
        """The file that makes a directory a run."""
        return self.path / "run.toml"

    @property
    def checkpoint(self) -> Path:
        """The last checkpoint."""
        return self.path / "checkpoint" / "latest"

    def table(self, observable: str) -> Path:
        """Return the path of an observable's table."""
        return self.path / f"{observable.replace('-', '_')}.csv"

    def config(self, sweep: int, format: str) -> Path:
        """Return the path of the configuration after `sweep` composite sweeps."""
        return self.path / "configs" / f"{sweep:07d}{SUFFIXES[format]}"

    def configs(self) -> dict[int, Path]:
        """Return the configurations that are there by sweep, in order."""
        found = (self.path / "configs").glob("[0-9]*.*")
        known = [
            path for path in found if path.stem.isdecimal() and path.suffix in SUFFIXES.values()
        ]
        return {int(path.stem): path for path in sorted(known, key=lambda path: int(path.stem))}

    def exists(self) -> bool:
        """Tell whether this is a run, begun or not."""
        return self.toml.is_file()

    def begun(self) -> bool:
        """Tell whether there is work of a run here, so that its parameters are settled."""
        return self.exists() and self._has_work()

    def read(self) -> tuple[Parameters, list[Session]]:
        """Read run.toml.

        Raises
        ------
        UsageError
            If there is no run here.
        GaugeError
            If run.toml is damaged.
        """
        if not self.exists():
            raise UsageError(f"There is no run in {self.path}: it has no run.toml.")
        try:
            values = tomllib.loads(self.toml.read_text())
            sessions = [Session(**session) for session in values.pop(RECORD, [])]
            parameters = Parameters.from_values(values)
            unknown = values.keys() - parameters.values().keys()
            if unknown:
                raise ValueError(f"unknown key {min(unknown)}")
            return parameters, sessions
        except (OSError, ValueError, TypeError, GaugeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise GaugeError(f"{self.toml} is damaged: {reason}.") from error

    def write(self, parameters: Parameters, sessions: list[Session]) -> None:
        """Write run.toml anew."""
        import tomli_w

        from gauge_mc.formats.files import replacing

        records = tomli_w.dumps({RECORD: [dataclasses.asdict(item) for item in sessions]})
        with replacing(self.toml) as file:
            file.write(f"{parameters.to_toml()}\n{records}".encode())

    @contextmanager
    def held(self) -> Iterator[Hold]:
        """Make the directory if need be and hold it; see `Hold`.

        If no work has begun in it by the end, what was made is removed again.

        Raises
        ------
        UsageError
            If there is something else at its path.
        GaugeError
            If another process holds it.
        """
        there = self.path.exists()
        self._make()
        hold = Hold(self.path / "lock")
        try:
            hold.say(hold.holder)
            for leftover in [*self.path.glob(".*.tmp"), *self.path.glob("*/.*.tmp")]:
                leftover.unlink()
            yield hold
        finally:
            if not self.begun():
                self._unmake(there)
            hold.close()

    def holder(self) -> tuple[Holder, bool]:
        """Return who holds the run or held it last, and whether they still do.

        Not for the process that holds it: to close the file would give up its lock.
        """
        path = self.path / "lock"
        try:
            with path.open("rb") as file:
                asked = FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
                kind = FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))[0]
        except OSError:
            kind = fcntl.F_UNLCK
        return _holder(path), kind != fcntl.F_UNLCK

    def _has_work(self) -> bool:
        return self.checkpoint.exists() or bool(self.configs()) or any(self.path.glob("*.csv"))

    def _make(self) -> None:
        known = {"lock", "run.toml", "configs", "checkpoint"}
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; choose another --output.")
        if self.path.is_dir() and not self.exists():
            names = {item.name for item in self.path.iterdir() if not item.name.startswith(".")}
            if self._has_work() or names - known:
                raise UsageError(
                    f"{self.path} is not empty and has no run.toml; choose another --output."
                )
        for folder in (self.path / "configs", self.checkpoint.parent):
            folder.mkdir(parents=True, exist_ok=True)

    def _unmake(self, keep: bool) -> None:
        for file in (self.toml, self.path / "lock"):
            file.unlink(missing_ok=True)
        folders = [self.path / "configs", self.checkpoint.parent, *([] if keep else [self.path])]
        for folder in folders:
            with suppress(OSError):
                folder.rmdir()


def newest_run(root: Path = RUNS) -> Run:
    """Return the run that was worked on last.

    Parameters
    ----------
    root : Path
        The directory that holds the runs.

    Raises
    ------
    UsageError
        If it holds none.
    """
    runs = [Run(path.parent) for path in root.glob("*/run.toml")]
    if not runs:
        raise UsageError(f"There are no runs in {root}; name one.")
    return max(runs, key=lambda run: _last_use(run.path))


def _last_use(path: Path) -> float:
    return max(item.stat().st_mtime for item in path.iterdir())


def _now() -> str:
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def _holder(path: Path) -> Holder:
    try:
        return Holder(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return Holder("an unknown host", 0, "an unknown time")
