"""A scan on disk: which runs it has, and where they are.

::

    runs/scan_su2/
      scan.toml                       what the runs have in common, and the grids
      b2.25_24x24x24x4_chain1/ ...    the runs, each like any other
      scan.csv, scan.pdf              averages at every point
      jobs/                           files of a batch system, if one was used
      lock                            held by the process at work
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

from gauge_mc.domain.lattice import Lattice
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import replacing
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import RUNS, Run
from gauge_mc.run.parameters import Parameters
from gauge_mc.scans.grid import MAX_RUNS, Grid, Point

GRIDS = "grid"
"""What a scan.toml holds besides the parameters that its runs share."""


@dataclass(frozen=True)
class Member:
    """A run of a scan.

    Attributes
    ----------
    parameters : Parameters
        The run's own parameters.
    chain : int
        The number of the chain at its point, from 1.
    run : Run
        The run's directory.
    """

    parameters: Parameters
    chain: int
    run: Run

    @property
    def name(self) -> str:
        """The name of the directory."""
        return self.run.path.name

    @property
    def point(self) -> Point:
        """The point of the grid."""
        return (self.parameters.beta, self.parameters.lattice)

    def sweep(self) -> int:
        """Return how many updates are done, as far as that is saved and sound."""
        try:
            return read_state(self.run.checkpoint).sweep
        except GaugeError:
            return 0

    def begun(self) -> bool:
        """Return whether there is anything of the run, be it damaged."""
        return self.run.exists() or self.run.checkpoint.exists()

    def damage(self) -> str | None:
        """Return what keeps the run from being continued or read, in one sentence, or None."""
        try:
            if self.begun():
                self.run.read()
            if self.run.begun():
                read_state(self.run.checkpoint)
        except GaugeError as error:
            return str(error)
        return None

    def complete(self) -> bool:
        """Return whether everything is done for which the run was last continued."""
        try:
            return self.run.begun() and self.sweep() >= self.run.read()[0].updates
        except GaugeError:
            return False


@dataclass(frozen=True)
class Scan:
    """A scan, on disk or yet to be made.

    Every run has a seed of its own, counted up from that of the parameters in the order in which
    the runs joined the scan. With the same random numbers, runs that differ only in beta would have
    strongly correlated averages.

    Attributes
    ----------
    path : Path
        The directory.
    parameters : Parameters
        What all runs share: all parameters except beta, lattice and seed.
    grids : tuple of Grid
        In the order in which they were asked for. Runs that several grids contain are the same.

    Raises
    ------
    UsageError
        If there are more than `MAX_RUNS` runs, or too few seeds.
    """

    path: Path
    parameters: Parameters
    grids: tuple[Grid, ...] = ()

    def __post_init__(self) -> None:
        runs = len(self._keys())
        if runs > MAX_RUNS:
            raise UsageError(f"A scan has at most {MAX_RUNS} runs, not {runs}.")
        dataclasses.replace(self.parameters, seed=self.parameters.seed + max(runs - 1, 0))

    @property
    def toml(self) -> Path:
        """The file that makes a directory a scan."""
        return self.path / "scan.toml"

    @property
    def table(self) -> Path:
        """The table of the averages."""
        return self.path / "scan.csv"

    @property
    def figure(self) -> Path:
        """The figure of the averages."""
        return self.path / "scan.pdf"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.path / "lock"

    def exists(self) -> bool:
        """Return whether there is a scan in the directory."""
        return self.toml.is_file()

    def members(self) -> list[Member]:
        """Return the runs, in the order in which they joined the scan."""
        result = []
        for number, (beta, lattice, chain) in enumerate(self._keys()):
            seed = self.parameters.seed + number
            own = dataclasses.replace(self.parameters, beta=beta, lattice=lattice, seed=seed)
            run = Run(self.path / f"b{beta:.12g}_{lattice}_chain{chain}")
            result.append(Member(own, chain, run))
        return result

    def points(self) -> dict[Point, int]:
        """Return the points, and how many chains each has."""
        points: dict[Point, int] = {}
        for beta, lattice, chain in self._keys():
            points[beta, lattice] = max(chain, points.get((beta, lattice), 0))
        return points

    def enlarged(
        self,
        beta: tuple[float, ...] | None = None,
        lattice: tuple[Lattice, ...] | None = None,
        chains: int | None = None,
    ) -> Scan:
        """Return the scan with what is asked for added.

        Parameters
        ----------
        beta, lattice : tuple, optional
            Where there are to be runs. If one is not given, all that the scan has are meant; if
            neither is given, the points that the scan has.
        chains : int, optional
            How many chains each of these points is to have; by default as many as the scan has
            anywhere.

        Raises
        ------
        UsageError
            If the grid is not possible, or nothing says where a new scan is to have runs.
        """
        points = self.points()
        if not points:
            return self._with(
                Grid(*self._first_points(beta, lattice), 1 if chains is None else chains)
            )
        chains = max(points.values()) if chains is None else chains
        lattices = tuple(dict.fromkeys(one for _, one in points))
        betas = tuple(dict.fromkeys(one for one, _ in points))
        if beta is None and lattice is None:
            on = {each: tuple(b for b, one in points if one == each) for each in lattices}
            asked = [Grid(on[each], (each,), chains) for each in lattices]
        else:
            asked = [Grid(beta or betas, lattice or lattices, chains)]
        return reduce(Scan._with, asked, self)

    def _first_points(
        self, beta: tuple[float, ...] | None, lattice: tuple[Lattice, ...] | None
    ) -> tuple[tuple[float, ...], tuple[Lattice, ...]]:
        """Return where a new scan has runs."""
        if beta is None:
            raise UsageError(
                f"There is no scan in {self.path} yet; say where to begin one, by --beta such "
                "as 2.2:2.8:0.05."
            )
        return beta, lattice or (self.parameters.lattice,)

    def _with(self, grid: Grid) -> Scan:
        """Return the scan with a grid, or the same scan if it has all of its runs."""
        larger = dataclasses.replace(self, grids=(*self.grids, grid))
        return larger if len(larger._keys()) > len(self._keys()) else self

    def continued(self, values: Mapping[str, object]) -> Scan:
        """Return the scan as it is asked for; values and errors as of `Parameters.continued`."""
        shared = self.parameters.continued(values, f"The scan {self.path}")
        return dataclasses.replace(self, parameters=shared)

    @classmethod
    def read(cls, path: Path) -> Scan:
        """Read scan.toml.

        Raises
        ------
        UsageError
            If there is no scan here.
        GaugeError
            If scan.toml is damaged.
        """
        empty = cls(path, Parameters())
        if not empty.exists():
            raise UsageError(f"There is no scan in {path}: it has no scan.toml.")
        try:
            values = tomllib.loads(empty.toml.read_text())
            grids = tuple(map(Grid.from_values, values.pop(GRIDS)))
            scan = cls(path, Parameters.from_values(values), grids)
            unknown = values.keys() - scan._shared().keys()
            if unknown:
                raise ValueError(f"unknown key {min(unknown)}")
            return scan
        except (OSError, ValueError, TypeError, LookupError, GaugeError) as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise GaugeError(f"{empty.toml} is damaged: {reason}.") from error

    def write(self) -> None:
        """Write scan.toml, whole or not at all."""
        import tomli_w

        grids = tomli_w.dumps({GRIDS: [grid.values() for grid in self.grids]})
        with replacing(self.toml) as file:
            file.write(f"{tomli_w.dumps(self._shared())}\n{grids}".encode())

    def make(self) -> None:
        """Make the directory if need be.

        Raises
        ------
        UsageError
            If there is something else at its path.
        """
        if self.path.exists() and not self.path.is_dir():
            raise UsageError(f"{self.path} is a file; choose another --output.")
        if self.path.is_dir() and not self.exists():
            names = {item.name for item in self.path.iterdir()}
            if names - {self.lock.name}:
                raise UsageError(
                    f"{self.path} is not empty and has no scan.toml; choose another --output."
                )
        self.path.mkdir(parents=True, exist_ok=True)

    def _shared(self) -> dict[str, str | int | float]:
        values = self.parameters.values()
        return {name: value for name, value in values.items() if name not in ("beta", "lattice")}

    def _keys(self) -> dict[tuple[float, Lattice, int], None]:
        """Return beta, lattice and chain of every run, each once and in order."""
        return {
            (beta, lattice, chain): None
            for grid in self.grids
            for lattice in grid.lattice
            for beta in grid.beta
            for chain in range(1, grid.chains + 1)
        }


def default_path(parameters: Parameters) -> Path:
    """Return the default directory of a scan, whose name omits what differs between its runs."""
    p = parameters
    return RUNS / f"scan_{p.name.replace(f'_b{p.beta:.12g}_{p.lattice}', '', 1)}"


def newest_scan(root: Path = RUNS) -> Scan:
    """Return the scan whose table or grid was written last.

    Raises
    ------
    UsageError
        If there is none.
    """
    found: Sequence[Path] = [*root.glob("*/scan.toml"), *root.glob("*/scan.csv")]
    if not found:
        raise UsageError(f"There are no scans in {root}; name one.")
    return Scan.read(max(found, key=lambda path: path.stat().st_mtime).parent)
