"""Run directories.

::

    runs/su2_b2.5_24x24x24x32/
      run.toml                 all parameters, and a record of each session
      configs/0000220.lime     configurations, numbered by update
      plaquette.csv ...        tables, with one or more records per measurement
      checkpoint/latest        links and state of the random number generator
      run.log                  sessions, checkpoints and warnings, as lines of JSON
      lock                     run lock; names the process that holds it and its progress
      thinned.toml             configurations that were removed on purpose, if there are any
"""

from __future__ import annotations

import dataclasses
import errno
import glob
import os
import platform
import re
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gauge_mc import __version__, errors
from gauge_mc.actions import couplings
from gauge_mc.algorithms import ALGORITHMS
from gauge_mc.files.atomic import remove_leftovers, replacing
from gauge_mc.files.input import make_folder, read_text, remove_empty
from gauge_mc.files.structured import parse_toml, typed
from gauge_mc.formats import FORMATS, ConfigurationFolder
from gauge_mc.observables import table_name
from gauge_mc.quoting import counted
from gauge_mc.registry import similar
from gauge_mc.results import documented, result_field
from gauge_mc.run.cards import MAX_CARD, RECORD, flat
from gauge_mc.run.lock import Holder, RunLock, is_locked, now, read_holder, refuse_in_use
from gauge_mc.run.log import LOG
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import NO_FORMAT, UNSTATED, Parameters, known_options

RUNS = Path("runs")
"""Default parent directory of runs and scans."""


CONFIG = re.compile(r"[0-9]{7,}\.[^.]+")
"""Form of the name of a configuration."""

LATER = {
    *("action", "algorithm"),
    *(c.name for c in couplings()),
    *(name for x in ALGORITHMS.values() for name in x.unstated),
    *UNSTATED,
}
"""Parameters that the run.toml of earlier versions do not have."""


@documented
@dataclass(frozen=True)
class SessionRecord:
    """The work of one process on a run, as recorded in run.toml."""

    started: str = result_field("Start time in ISO 8601, with UTC offset.")
    sweep: int = result_field("Number of updates done when the session began.")
    version: str = result_field("Version of gauge-mc.")
    python: str = result_field("Version of Python.")
    host: str = result_field("Name of the host.")
    device: str = result_field("Name of the device.")
    joules: float | None = result_field(
        "Energy that the devices used in the session, in joules, in equal parts for runs that are "
        "updated together; None if it is not available, or if the session was killed.",
        None,
    )
    seconds: float | None = result_field(
        "Duration of the session in seconds, in equal parts for runs that are updated together; "
        "None if the session was killed.",
        None,
    )

    @classmethod
    def begin(cls, sweep: int, device: str) -> SessionRecord:
        """Return the record of a session that this process begins now, after `sweep` updates."""
        return cls(now(), sweep, __version__, platform.python_version(), platform.node(), device)


@dataclass(frozen=True)
class Run:
    """A run directory, which need not exist yet."""

    path: Path
    """Path of the directory."""

    @property
    def toml(self) -> Path:
        """The file with the parameters; a directory that contains it is a run."""
        return self.path / "run.toml"

    @property
    def checkpoint(self) -> Path:
        """The latest checkpoint."""
        return self.path / "checkpoint" / "latest"

    @property
    def thinned(self) -> Path:
        """The record of configurations that were removed on purpose."""
        return self.path / "thinned.toml"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.path / "lock"

    def table(self, observable: str) -> Path:
        """Return the path of an observable's table."""
        return self.path / f"{table_name(observable)}.csv"

    def tables(self) -> list[Path]:
        """Return the paths of all tables in the directory, in alphabetical order."""
        return sorted(self.path.glob("*.csv"))

    def config(self, sweep: int, format: str) -> Path:
        """Return the path of the configuration after `sweep` updates."""
        return self.path / "configs" / f"{sweep:07d}{FORMATS[format].suffix}"

    def configs(self) -> dict[int, Path]:
        """Return the configuration files by update, in ascending order.

        If several files have the same number, one of them is returned. Use `unambiguous_configs` to
        read configurations.
        """
        return dict(self.config_files())

    def unambiguous_configs(self) -> dict[int, Path]:
        """Return the configuration files by update, in ascending order."""
        paths: dict[int, Path] = {}
        for number, path in self.config_files():
            if number in paths:
                raise ambiguous(number, paths[number], path)
            paths[number] = path
        return paths

    def config_files(self) -> list[tuple[int, Path]]:
        """Return all configuration files with their update, sorted by update and by name."""
        suffixes = {x.suffix for x in FORMATS.values() if x.suffix}
        files = (self.path / "configs").glob("[0-9]*.*")
        paths = [path for path in files if path.stem.isdecimal() and path.suffix in suffixes]
        return sorted((int(path.stem), path) for path in paths)

    def own_configs(self, format: str) -> dict[int, Path]:
        """Return the configuration files named and stored as the run does, by update, ascending."""
        files = self.config_files() if format != NO_FORMAT else ()
        return {number: path for number, path in files if path == self.config(number, format)}

    def exists(self) -> bool:
        """Return whether the directory contains a run.toml."""
        return self.toml.is_file()

    def begun(self) -> bool:
        """Return whether the run has written any results, so that its parameters are fixed."""
        return self.exists() and self._has_work()

    def read(self) -> tuple[Parameters, list[SessionRecord]]:
        """Read the parameters and the sessions from run.toml."""
        if not self.exists():
            raise missing_run(self.path)
        try:
            values = parse_toml(read_text(self.toml, MAX_CARD))
            sessions = typed(values.pop(RECORD, []), list[SessionRecord])
            values = flat(values)
            parameters = Parameters.from_run({**UNSTATED, **values})
            if unknown := values.keys() - known_options().keys():
                raise ValueError(f"unknown key {min(unknown)}")
            if missing := parameters.values().keys() - values.keys() - LATER:
                raise ValueError(f"no key {min(missing)}")
            return parameters, sessions
        except errors.UnreadableError:
            raise
        except (ValueError, TypeError, errors.GaugeError) as error:
            raise unusable(self.toml, error) from error

    def write(self, parameters: Parameters, sessions: list[SessionRecord]) -> None:
        """Write or replace run.toml."""
        import tomli_w

        tables = [dataclasses.asdict(item) for item in sessions]
        entries = [{name: x[name] for name in x if x[name] is not None} for x in tables]
        with replacing(self.toml) as file:
            file.write(tomli_w.dumps({**parameters.values(), RECORD: entries}).encode())

    def shorten(self, parameters: Parameters, sweep: int) -> None:
        """Lower the configurations in run.toml to those of `parameters`, if `sweep` updates do.

        The run must be locked.
        """
        stored, sessions = self.read()
        if stored.configs > parameters.configs and sweep >= parameters.updates:
            self.write(replace(stored, configs=parameters.configs), sessions)

    @contextmanager
    def locked(self) -> Iterator[RunLock]:
        """Create the directory if necessary, and hold the run lock.

        The record of the lock keeps the number of updates that the last holder has done. If the run
        has written no results by the end, everything that was created is removed again.
        """
        self.check_place()
        folders = (self.path / "configs", self.checkpoint.parent)
        created = [path for folder in folders for path in make_folder(folder)]
        last = read_holder(self.lock)
        lock = locked_or_removed(self.lock, created)
        try:
            lock.record(sweep=last.sweep)
            # The directory itself may be named by a link, but its folders may not be links.
            root = self.path.resolve()
            remove_leftovers(root, _of_run)
            remove_leftovers(root / "configs", lambda name: bool(CONFIG.fullmatch(name)))
            remove_leftovers(root / "checkpoint", self.checkpoint.name.__eq__)
            yield lock
        finally:
            if not self.begun():
                for file in (self.toml, self.path / LOG, self.lock):
                    file.unlink(missing_ok=True)
                remove_empty(
                    dict.fromkeys([*created, self.path / "configs", self.checkpoint.parent])
                )
            lock.close()

    def holder(self) -> tuple[Holder, bool]:
        """Return the current or last holder of the run lock, and whether it is still held."""
        locked = is_locked(self.lock)
        return read_holder(self.lock), locked

    def _has_work(self) -> bool:
        return self.checkpoint.exists() or bool(self.configs()) or bool(self.tables())

    def check_place(self) -> None:
        """Refuse a path at which there is something else than a run."""
        content = {"lock", LOG, "run.toml", "configs", "checkpoint"}
        refuse_other_content(self.toml, content, self._has_work)

    def refuse_leftovers(self, recorded: Iterable[Measurement]) -> None:
        """Check that the directory of a run that begins contains no results."""
        configs = self.configs()
        if configs or any(self.table(item.observable).exists() for item in recorded):
            advice = "--start from its last configuration and " if configs else ""
            raise errors.GaugeError(
                f"The run {self.path} contains results but no checkpoint; start a new run with "
                f"{advice}another --output."
            )

    def check_free(self) -> None:
        """Refuse what `locked` refuses, without making or locking anything."""
        self.check_place()
        refuse_in_use(self.lock)
        ancestor = next(
            parent for parent in (self.path, *self.path.absolute().parents) if parent.exists()
        )
        if not os.access(ancestor, os.W_OK | os.X_OK):
            raise errors.not_written(
                self.path, PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            )


def locked_or_removed(path: Path, created: Iterable[Path]) -> RunLock:
    """Return the lock of a run or a scan; if it cannot be had, remove the folders made for it."""
    try:
        return RunLock(path)
    except BaseException:
        remove_empty(created)
        raise


def refuse_other_content(
    toml: Path, content: Set[str], has_work: Callable[[], bool] = bool
) -> None:
    """Refuse a path at which there is something else than a run or a scan."""
    folder = toml.parent
    if folder.exists() and not folder.is_dir():
        raise errors.UsageError(f"{folder} is a file; choose another --output.")
    if folder.is_dir() and not toml.is_file():
        names = {item.name for item in folder.iterdir() if not item.name.startswith(".")}
        if names - content or has_work():
            raise errors.UsageError(
                f"{folder} is not empty and has no {toml.name}; choose another --output."
            )


def _of_run(name: str) -> bool:
    """Return whether a file in a run directory is one that the run itself writes."""
    return name in ("run.toml", "thinned.toml") or name.endswith(".csv")


def unusable(path: Path, error: Exception) -> errors.GaugeError:
    """Return the error for a run.toml or a scan.toml that cannot be understood.

    It may be intact if it names something that a package declares which is not installed.
    """
    reason = " ".join(str(error).split()).rstrip(".")
    if isinstance(error, errors.UnknownNameError):
        return errors.GaugeError(
            f"{path} names something that is unknown here: {reason}; install the package that "
            "declares it, or restore the file from a copy if it is damaged."
        )
    return errors.DamagedError(f"{path} is damaged: {reason}.")


def ambiguous(number: int, first: Path, second: Path) -> errors.DamagedError:
    """Return the error for two configuration files of a run with the same number."""
    return errors.DamagedError(
        f"{first} and {second} both have the number {number}, which must identify a configuration; "
        "move one of them out of the run."
    )


def missing_run(path: Path) -> errors.MissingFileError:
    """Return the error for a path that is not a run directory, with what is there instead."""
    inside = sorted(path.glob("*/run.toml")) if path.is_dir() else []
    words = f"in {path}: it has no run.toml."
    if not path.exists():
        cards = (card for folder in (RUNS, path.parent) for card in folder.glob("*/run.toml"))
        runs = {card.parent.name: str(card.parent) for card in cards}
        near = runs.get(similar(path.name, runs))
        words = f"{path}{f'; did you mean {near!r}?' if near else '.'}"
    elif not path.is_dir():
        words = f"in {path}, which is a file; name the run's directory."
    elif inside:
        several = f"one of the {len(inside)} runs" if len(inside) > 1 else "the run"
        words = f"in {path} itself; name {several} in it, such as {inside[0].parent}."
    elif files := ConfigurationFolder.of(path).files:
        count = counted(len(files), "configuration")
        words = f"in {path}, but {count}; name one, as in {files[0]}."
    return errors.MissingFileError(f"There is no run {words}")


def newest(*kinds: str) -> Path:
    """Return the newest folder in ``runs/`` of some kinds, ``run`` and ``scan``; see `newness`."""
    folders = [path.parent for kind in kinds for path in RUNS.glob(f"*/{kind}.toml")]
    if not folders:
        names = " and no ".join(f"{kind}s" for kind in kinds)
        raise errors.UsageError(f"There are no {names} in {RUNS}; name one.")
    return max(folders, key=newness)


def newness(folder: Path) -> tuple[bool, float]:
    """Return whether a run or a scan is running, and when it was last generated, in seconds.

    The largest is the newest. A scan is as new as its newest run. What only reads a run, such as
    measurements and figures, makes it no newer.
    """
    runs = {folder, *(path.parent for path in folder.glob("*/run.toml"))}
    files = [run / name for run in runs for name in ("run.toml", "scan.toml", "checkpoint/latest")]
    return any(is_locked(Run(run).lock) for run in runs), max(map(modified, files))


def modified(path: Path) -> float:
    """Return the modification time of a file in seconds; 0 for a link that leads nowhere."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


CHAIN = re.compile(r"(.+_chain)([1-9][0-9]{0,5})")
"""Name of the directory of one of several chains."""


def chains_of(folder: Path) -> list[Path]:
    """Return the chains of the ensemble of a run, in order of their numbers; alone, it is one.

    They are the runs beside it whose names differ by the number of the chain, and that are of the
    same ensemble.
    """
    label, parameters = number_of_chain(folder), known_parameters(folder)
    if not label or not parameters:
        return [folder]
    chains = []
    for path in folder.parent.glob(f"{glob.escape(label[0])}*"):
        number, its = number_of_chain(path), known_parameters(path)
        if number and its and same_ensemble(parameters, its):
            chains.append((number[1], path))
    return [path for _, path in sorted(chains)]


def only_newest_run() -> Run:
    """Return the newest run, which must not be one of several chains."""
    folder = newest("run")
    chains = chains_of(folder)
    if len(chains) > 1:
        raise errors.UsageError(
            f"The newest run in {RUNS} is one of {len(chains)} chains, {chains[0]} to "
            f"{chains[-1]}; name one."
        )
    return Run(folder)


def number_of_chain(folder: Path) -> tuple[str, int] | None:
    """Return the beginning of a chain's name and its number; None if it is not one of several."""
    match = CHAIN.fullmatch(folder.name) or CHAIN.fullmatch(folder.resolve().name)
    return (match[1], int(match[2])) if match else None


def known_parameters(folder: Path) -> Parameters | None:
    """Return the parameters of a run that has begun; None if there is none, or it is damaged."""
    try:
        return Run(folder).read()[0] if Run(folder).begun() else None
    except errors.GaugeError:
        return None


def same_ensemble(reference: Parameters, its: Parameters) -> bool:
    """Return whether two chains have the same parameters but for start, seed and length."""
    return reference == replace(
        its, start=reference.start, seed=reference.seed, configs=reference.configs
    )
