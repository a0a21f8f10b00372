"""Scan directories.

::

    runs/scan_su2_b2.25-2.35_24x24x24x4/
      scan.toml                       parameters that all runs share, and the grids
      b2.25_24x24x24x4_chain1/ ...    ordinary run directories
      scan.csv, scan.pdf              averages at every point
      failed.json                     runs that failed in the latest session, if any
      jobs/                           files of the batch system, if one is used
      run.log                         sessions, failures and warnings, as lines of JSON
      lock                            lock of the process that carries out the scan
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

from gauge_mc.actions import BETA, couplings
from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, MissingFileError, UnreadableError, UsageError
from gauge_mc.files.atomic import write_file
from gauge_mc.files.input import make_folder, read_text, remove_empty
from gauge_mc.files.structured import parse_json, parse_toml, typed
from gauge_mc.options import Option
from gauge_mc.run import directory
from gauge_mc.run.cards import MAX_CARD
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.log import LOG
from gauge_mc.run.parameters import UNSTATED, Parameters
from gauge_mc.run.settings import start_of_chain
from gauge_mc.run.state import saved_updates, updates_there
from gauge_mc.scans.grid import MAX_RUNS, Grid, Point, axes, list_axes

GRIDS, REMOVED = "grid", "removed"
"""Keys of the grids in a scan.toml, and of the names of runs that were taken out. All other keys
are parameters that the runs share."""


@dataclass(frozen=True)
class Member:
    """A run of a scan."""

    parameters: Parameters
    """Parameters of the run."""
    chain: int
    """Number of the chain at its point, from 1."""
    run: directory.Run
    """Run directory."""

    @property
    def name(self) -> str:
        """Name of the run directory."""
        return self.run.path.name

    @property
    def point(self) -> Point:
        """Couplings and lattice of the run."""
        return Point.of(self.parameters)

    def sweep(self) -> int:
        """Return the number of updates in the last checkpoint; 0 if it is missing or damaged."""
        return saved_updates(self.run)

    def begun(self) -> bool:
        """Return whether the run has a run.toml or a checkpoint, possibly damaged."""
        return self.run.exists() or self.run.checkpoint.exists()

    def damage(self) -> str | None:
        """Return the reason why the run cannot be read or continued, in one sentence, or None."""
        try:
            if self.begun():
                self.run.read()
            if self.run.begun():
                read_state(self.run.checkpoint)
        except GaugeError as error:
            return str(error)
        return None

    def complete(self) -> bool:
        """Return whether the run has done all updates that its run.toml asks for."""
        try:
            return self.run.begun() and self.sweep() >= self.run.read()[0].updates
        except GaugeError:
            return False


@dataclass(frozen=True)
class Scan:
    """A scan, which need not exist on disk yet.

    The first run has the seed of the parameters. Each further run, in the order in which the runs
    were added, has a seed larger by one. If the runs used the same random numbers, averages at
    neighbouring couplings would be strongly correlated.

    Raises
    ------
    UsageError
        If there are more than `MAX_RUNS` runs, or a seed would be too large.
    """

    path: Path
    """Scan directory."""
    parameters: Parameters
    """Parameters that all runs share: all except those of the grid and the seed. Their start may
    be a list, which the chains of a point take in turn.
    """
    grids: tuple[Grid, ...] = ()
    """Grids in the order in which they were added. A run in several grids is carried out once."""
    removed: tuple[str, ...] = ()
    """Names of the runs that were taken out. The seeds of the others stay as they were."""

    def __post_init__(self) -> None:
        runs = len(self._keys())
        if runs > MAX_RUNS:
            raise UsageError(f"A scan has at most {MAX_RUNS} runs, not {runs}.")
        replace(self.parameters, seed=self.parameters.seed + max(runs - 1, 0))

    @property
    def toml(self) -> Path:
        """The file with parameters and grids; a directory that contains it is a scan."""
        return self.path / "scan.toml"

    @property
    def table(self) -> Path:
        """Table of the averages."""
        return self.path / "scan.csv"

    @property
    def figure(self) -> Path:
        """Figure of the averages."""
        return self.path / "scan.pdf"

    @property
    def jobs(self) -> Path:
        """Folder of the batch system's files; it exists if the scan has been submitted."""
        return self.path / "jobs"

    @property
    def lock(self) -> Path:
        """Lock file."""
        return self.path / "lock"

    @property
    def failed(self) -> Path:
        """File with the runs that failed in the latest session; it exists only if there are any."""
        return self.path / "failed.json"

    def failures(self) -> dict[str, str]:
        """Return the error messages of the latest session, by the name of the run."""
        try:
            content = parse_json(read_text(self.failed, MAX_CARD))
        except (GaugeError, ValueError):
            return {}
        named = content.items() if isinstance(content, dict) else ()
        return {str(name): str(message) for name, message in named}

    def record_failures(self, failures: Mapping[str, str]) -> None:
        """Write the error messages of the runs that have failed so far in a session."""
        if not failures:
            self.failed.unlink(missing_ok=True)
            return
        text = json.dumps(dict(failures), indent=1, ensure_ascii=False)
        write_file(self.failed, f"{text}\n")

    def members(self) -> list[Member]:
        """Return the runs, in the order in which they were added."""
        result = []
        for number, (point, chain) in enumerate(self._keys()):
            seed = self.parameters.seed + number
            start = start_of_chain(self.parameters.start, chain - 1)
            if (run := self._run(point, chain)).path.name not in self.removed:
                parameters = replace(self.parameters, **point._asdict(), seed=seed, start=start)
                result.append(Member(parameters, chain, run))
        return result

    def _run(self, point: Point, chain: int) -> directory.Run:
        words = "".join(f"_{o.tagged(v)}" for o, v in self._own(point).items())
        return directory.Run(self.path / f"b{point.beta:.12g}_{point.lattice}{words}_chain{chain}")

    def _own(self, point: Point) -> dict[Option, float]:
        """Return the options of an action, and the numbers of things, that names of runs state.

        These are the ones that are not usual. An option that has no usual value is stated if the
        value is not that of the parameters. Things of lists are stated if they are not those of the
        parameters, and in scans that began with several.
        """
        shared = self.parameters.action.values
        options = {
            name: value
            for name, value in point.action.changed.items()
            if name.usual is not None or value != shared[name.name]
        }
        several = self.grids[0].options.keys() & list_axes()
        stated = several or point.algorithm != self.parameters.algorithm
        return options | (point.listed if stated else {})

    def points(self) -> dict[Point, int]:
        """Return the number of chains at each point."""
        points: dict[Point, int] = {}
        keys = (
            ((member.point, member.chain) for member in self.members())
            if self.removed
            else self._keys()
        )
        for point, chain in keys:
            points[point] = max(chain, points.get(point, 0))
        return points

    def enlarged(
        self,
        beta: tuple[float, ...] | None = None,
        lattice: tuple[Lattice, ...] | None = None,
        chains: int | None = None,
        options: Mapping[str, tuple[Any, ...]] | None = None,
    ) -> Scan:
        """Return the scan with points and chains added."""
        points = self.points()
        if not points:
            if beta is None:
                raise UsageError(
                    f"There is no scan in {self.path} yet; to begin one, give --beta, such as "
                    "--beta 2.2:2.8:0.05."
                )
            lattice = lattice or (self.parameters.lattice,)
            return self._with(Grid(beta, lattice, 1 if chains is None else chains, options or {}))
        chains = max(points.values()) if chains is None else chains
        if beta is None and lattice is None and not options:
            on: defaultdict[Point, list[float]] = defaultdict(list)
            for point in points:
                on[point._replace(beta=0.0)].append(point.beta)
            return self.including(
                [Grid(tuple(b), (p.lattice,), chains, self.options_of([p])) for p, b in on.items()]
            )
        betas = tuple(dict.fromkeys(point.beta for point in points))
        lattices = tuple(dict.fromkeys(point.lattice for point in points))
        ranges = {**self.options_of([*points]), **(options or {})}
        return self._with(Grid(beta or betas, lattice or lattices, chains, ranges))

    def options_of(self, points: Sequence[Point]) -> dict[str, tuple[Any, ...]]:
        """Return the values that options of the action have at points, and the lists of things.

        Lists are left out if they are those of the parameters everywhere.
        """
        shared, values = self.parameters.algorithm.values, [point.action.values for point in points]
        options = {
            name: tuple(dict.fromkeys(value[name] for value in values)) for name in values[0]
        }
        for name in list_axes().keys() & shared.keys():
            lists = tuple(dict.fromkeys(point.algorithm.values[name] for point in points))
            options |= {name: lists} if lists != (shared[name],) else {}
        return options

    def including(self, grids: Sequence[Grid]) -> Scan:
        """Return the scan with grids added, as far as it does not contain their runs already."""
        return reduce(Scan._with, grids, self)

    def _with(self, grid: Grid) -> Scan:
        """Return the scan with a grid added, unless the scan already contains all of its runs."""
        larger = replace(self, grids=(*self.grids, grid))
        again = {larger._run(*key).path.name for key in larger._keys(grid)} if self.removed else ()
        removed = tuple(name for name in self.removed if name not in again)
        more = len(larger._keys()) > len(self._keys()) or removed != self.removed
        return replace(larger, removed=removed) if more else self

    def continued(self, values: Mapping[str, object]) -> Scan:
        """Return the scan with the requested parameters; see `Parameters.continued`."""
        members = self.members() if "configs" in values else []
        updates = max(
            (updates_there(member.run, member.parameters.format) for member in members), default=0
        )
        shared = self.parameters.continued(values, f"The scan {self.path}", updates)
        return replace(self, parameters=shared)

    @classmethod
    def read(cls, path: Path) -> Scan:
        """Read a scan from its scan.toml."""
        empty = cls(path, Parameters())
        if not is_scan(path):
            raise MissingFileError(f"There is no scan in {path}: it has no scan.toml.")
        try:
            values = parse_toml(read_text(empty.toml, MAX_CARD))
            grids = tuple(map(Grid.from_values, values.pop(GRIDS)))
            removed = typed(values.pop(REMOVED, []), tuple[str, ...])
            scan = cls(path, Parameters.from_values({**UNSTATED, **values}), grids, removed)
            unknown = values.keys() - scan.shared().keys()
            if unknown:
                raise ValueError(f"unknown key {min(unknown)}")
            return scan
        except UnreadableError:
            raise
        except (ValueError, TypeError, LookupError, AttributeError, GaugeError) as error:
            raise directory.unusable(empty.toml, error) from error

    def write(self) -> None:
        """Write scan.toml, which appears complete or not at all."""
        import tomli_w

        grids = tomli_w.dumps({GRIDS: [grid.values() for grid in self.grids]})
        removed = {REMOVED: self.removed} if self.removed else {}
        write_file(self.toml, f"{tomli_w.dumps(self.shared() | removed)}\n{grids}")

    def check_place(self) -> None:
        """Refuse a path at which there is something else than a scan."""
        # A process that was killed may have left temporary files, which are hidden.
        directory.refuse_other_content(self.toml, {self.lock.name})

    def make(self) -> list[Path]:
        """Create the directory if necessary; return it and its parents if they did not exist.

        For the errors see `check_place`.
        """
        self.check_place()
        return make_folder(self.path)

    def unmake(self, folders: Sequence[Path]) -> None:
        """Remove the scan if it has no runs, after an attempt that was refused."""
        remove_empty([self.jobs])
        if not any(item.is_dir() for item in self.path.iterdir()):
            log = self.path / LOG
            for file in (self.toml, self.table, self.figure, self.failed, log, self.lock):
                file.unlink(missing_ok=True)
            remove_empty(folders)

    def shared(self) -> dict[str, str | int | float]:
        """Return the parameters that all runs share, without those of the grid.

        An option of the action that has no default is kept, with its first value in the grid.
        """
        values = self.parameters.values()
        names = {option.name for option in self.parameters.action.options if option.usual is None}
        varying = axes().keys() - names
        return {name: value for name, value in values.items() if name not in varying}

    def _keys(self, *grids: Grid) -> dict[tuple[Point, int], None]:
        """Return point and chain of every run of all or some grids, each once and in order.

        Runs that were taken out are among them.
        """
        return {
            (point, chain): None
            for grid in grids or self.grids
            for point in grid.points(self.parameters.action, self.parameters.algorithm)
            for chain in range(1, grid.chains + 1)
        }


def default_path(parameters: Parameters, numbers: Mapping[str, Sequence[Any]]) -> Path:
    """Return the default directory of a scan, named after its grid and what its runs share."""
    p = parameters
    lattices = sorted(numbers.get("lattice", [p.lattice]), key=lambda x: x.sites)
    words = [_span(BETA, numbers.get(BETA.name, [p.beta]))]
    words.append("-".join(map(str, dict.fromkeys([lattices[0], lattices[-1]]))))
    for option in couplings():
        values = [*numbers.get(option.name, ())]
        if len(values) > 1 or (option.usual is not None and values not in ([], [option.usual])):
            words.append(_span(option, values))
    place = "".join(f"_{word}" for word in words)
    return directory.RUNS / f"scan_{p.name.replace(f'_b{p.beta:.12g}_{p.lattice}', place, 1)}"


def _span(option: Option, values: Sequence[float]) -> str:
    """Return the smallest and the largest value of an option, as in names of directories."""
    several = f"-{max(values):.12g}" if len({*values}) > 1 else ""
    return f"{option.tagged(min(values))}{several}"


def is_scan(folder: Path) -> bool:
    """Return whether a folder is a scan."""
    return (folder / "scan.toml").is_file()
