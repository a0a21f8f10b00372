"""The directory of one run: where its files are, and how it was made.

::

    runs/su2_b2.5_24x24x24x32/
      run.toml                 every parameter, and a record of each session that worked on it
      configs/0000220.lime     configurations, numbered by update
      plaquette.csv ...        tables, one or more records a measurement
      checkpoint/latest        links and the state of the random numbers
      lock                     held by the process at work; says who it is, and how far
"""

from __future__ import annotations

import dataclasses
import platform
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from gauge_mc import __version__
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import replacing
from gauge_mc.formats import FORMATS
from gauge_mc.observables import table_name
from gauge_mc.run.lock import Holder, RunLock, is_locked, now, read_holder
from gauge_mc.run.parameters import RECORD, Parameters

RUNS = Path("runs")
"""The default folder of runs."""


@dataclass(frozen=True)
class Session:
    """The work of one process on a run, as run.toml records it.

    Attributes
    ----------
    started : str
        Time in ISO 8601, with offset.
    sweep : int
        Updates done when the session began.
    version, python, host, device : str
        The versions of gauge-mc and of Python, and where the session ran.
    """

    started: str
    sweep: int
    version: str
    python: str
    host: str
    device: str

    @classmethod
    def begin(cls, sweep: int, device: str) -> Session:
        """Describe a session of this process that begins now, after `sweep` updates."""
        return cls(now(), sweep, __version__, platform.python_version(), platform.node(), device)


@dataclass(frozen=True)
class Run:
    """A run directory, which may yet have to be made.

    Attributes
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

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.path / "lock"

    def table(self, observable: str) -> Path:
        """Return the path of an observable's table."""
        return self.path / f"{table_name(observable)}.csv"

    def tables(self) -> list[Path]:
        """Return the tables that are there, in alphabetical order."""
        return sorted(self.path.glob("*.csv"))

    def config(self, sweep: int, format: str) -> Path:
        """Return the path of the configuration after `sweep` updates."""
        return self.path / "configs" / f"{sweep:07d}{FORMATS[format].suffix}"

    def configs(self) -> dict[int, Path]:
        """Return the configurations that are there, by update, in order."""
        suffixes = {one.suffix for one in FORMATS.values() if one.suffix}
        found = (self.path / "configs").glob("[0-9]*.*")
        known = [path for path in found if path.stem.isdecimal() and path.suffix in suffixes]
        return {int(path.stem): path for path in sorted(known, key=lambda path: int(path.stem))}

    def exists(self) -> bool:
        """Return whether this is a run, begun or not."""
        return self.toml.is_file()

    def begun(self) -> bool:
        """Return whether a run has done some work here, so that its parameters are fixed."""
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
            parameters = Parameters.from_run(values)
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

        records = tomli_w.dumps({RECORD: [dataclasses.asdict(item) for item in sessions]})
        with replacing(self.toml) as file:
            file.write(f"{parameters.to_toml()}\n{records}".encode())

    @contextmanager
    def locked(self) -> Iterator[RunLock]:
        """Make the directory if need be and lock it; see `RunLock`.

        If no work has begun in it by the end, what was made is removed again.

        Raises
        ------
        UsageError
            If there is something else at its path.
        GaugeError
            If another process holds the lock.
        """
        there = self.path.exists()
        self._make()
        lock = RunLock(self.lock)
        try:
            lock.record(lock.holder)
            for leftover in [*self.path.glob(".*.tmp"), *self.path.glob("*/.*.tmp")]:
                leftover.unlink()
            yield lock
        finally:
            if not self.begun():
                self._unmake(there)
            lock.close()

    def holder(self) -> tuple[Holder, bool]:
        """Return who holds the lock or held it last, and whether they still do."""
        locked = is_locked(self.lock)
        return read_holder(self.lock), locked

    def _has_work(self) -> bool:
        return self.checkpoint.exists() or bool(self.configs()) or bool(self.tables())

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
        for file in (self.toml, self.lock):
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
