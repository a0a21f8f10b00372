"""A scan: independent runs at all points of a grid of couplings and lattices, in one directory.

::

    runs/scan_su2/
      scan.toml                       what the runs have in common, and the grid
      b2.25_24x24x24x4_chain1/ ...    the runs, each like any other
      scan.csv, scan.pdf              averages at every point
      jobs/                           of a batch system, if one was used
      lock                            held by the process at work
"""

from __future__ import annotations

import dataclasses
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.lattice import Lattice
from gauge_mc.parameters import Parameters
from gauge_mc.run import RUNS, Run

MAX_RUNS = 10_000

GRIDS = "grid"
"""What a scan.toml holds besides the parameters that its runs share."""

Point = tuple[float, Lattice]
"""A coupling and a lattice."""


@dataclass(frozen=True)
class Grid:
    """Chains at every coupling on every lattice.

    Parameters
    ----------
    beta : tuple of float
    lattice : tuple of Lattice
    chains : int
        At each point.

    Raises
    ------
    UsageError
        If it has no runs, or more than `MAX_RUNS`, or something twice.
    """

    beta: tuple[float, ...]
    lattice: tuple[Lattice, ...]
    chains: int = 1

    def __post_init__(self) -> None:
        for name, values in (("beta", self.beta), ("lattice", self.lattice)):
            if len(set(values)) < len(values):
                twice = next(one for one in values if values.count(one) > 1)
                raise UsageError(f"{name} names {twice} twice.")
        if not all(math.isfinite(beta) and beta > 0 for beta in self.beta):
            raise UsageError("beta must consist of positive numbers.")
        if self.chains < 1:
            raise UsageError(f"chains must be at least 1, not {self.chains}.")
        runs = len(self.beta) * len(self.lattice) * self.chains
        if not 1 <= runs <= MAX_RUNS:
            raise UsageError(f"A scan has 1 to {MAX_RUNS} runs, not {runs}.")

    def values(self) -> dict[str, object]:
        """Return it as TOML keys and values."""
        return {
            "beta": list(self.beta),
            "lattice": list(map(str, self.lattice)),
            "chains": self.chains,
        }

    @classmethod
    def from_values(cls, values: dict[str, list[object]]) -> Grid:
        """Read what `values` returns."""
        beta = tuple(float(str(one)) for one in values["beta"])
        lattice = tuple(Lattice.parse(str(one)) for one in values["lattice"])
        return cls(beta, lattice, int(str(values["chains"])))


def parse_betas(text: str) -> tuple[float, ...]:
    """Read couplings: numbers and ranges ``FIRST:LAST:STEP``, separated by commas.

    Ranges are counted in decimals and hold their last number.

    Raises
    ------
    UsageError
        If `text` is not of that form, or a range does not lead from its first number to its last.
    """
    return tuple(beta for word in text.split(",") for beta in _range(word.strip()))


def parse_lattices(text: str) -> tuple[Lattice, ...]:
    """Read lattices separated by commas; errors as of `Lattice.parse`."""
    return tuple(Lattice.parse(word.strip()) for word in text.split(","))


def _range(word: str) -> list[float]:
    """Read a number, or a range."""
    numbers = [_number(part, word) for part in word.split(":")]
    if len(numbers) == 1:
        return [float(numbers[0])]
    if len(numbers) != 3:
        raise UsageError(f"beta: '{word}' is not of the form FIRST:LAST:STEP, as in 2.2:2.8:0.05.")
    first, last, step = numbers
    if last < first:
        raise UsageError(f"beta: in {word} the last number must not be below the first.")
    steps = (last - first) / step
    if steps >= MAX_RUNS:
        raise UsageError(f"beta: {word} has more than {MAX_RUNS} numbers.")
    if steps != int(steps):
        raise UsageError(f"beta: in {word} no whole number of steps leads from {first} to {last}.")
    return [float(first + i * step) for i in range(int(steps) + 1)]


def _number(part: str, word: str) -> Decimal:
    """Read a positive number of at most 12 digits, as many as names of runs show."""
    try:
        number = Decimal(part)
    except InvalidOperation:
        number = Decimal("NaN")
    value = float(number)
    if not (math.isfinite(value) and value > 0):
        raise UsageError(f"beta: '{word}' must consist of positive numbers, as in 2.2:2.8:0.05.")
    if float(f"{value:.12g}") != value:
        raise UsageError(f"beta: {part} has more than 12 digits.")
    return number


@dataclass(frozen=True)
class Member:
    """A run of a scan.

    Parameters
    ----------
    parameters : Parameters
        Its own.
    chain : int
        Its number at its point, from 1.
    run : Run
        Its directory.
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
        """Where it is on the grid."""
        return (self.parameters.beta, self.parameters.lattice)

    def sweep(self) -> int:
        """Return how many composite sweeps are done, as far as that is saved and sound."""
        from gauge_mc.checkpoint import read_moment

        try:
            return read_moment(self.run.checkpoint).sweep
        except GaugeError:
            return 0

    def complete(self) -> bool:
        """Tell whether all is done that the run was last continued for."""
        try:
            return self.run.begun() and self.sweep() >= self.run.read()[0].sweeps
        except GaugeError:
            return False


@dataclass(frozen=True)
class Scan:
    """A scan, on disk or yet to be.

    Every run has a seed of its own, counted up from that of the parameters in the order in which
    the runs came to the scan. Runs that differ in beta alone, with the same random numbers, would
    have averages that are far from independent.

    Parameters
    ----------
    path : Path
        The directory.
    parameters : Parameters
        What all runs share: all but beta, lattice and seed.
    grids : tuple of Grid
        In the order in which they were asked for; where they overlap, the runs are the same.

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

    def members(self) -> list[Member]:
        """Return the runs, in the order in which they came to the scan."""
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
        """Return the scan with all that is asked for.

        Parameters
        ----------
        beta, lattice : tuple, optional
            Where there are to be runs. If one is not given, it means all that the scan has; if
            none is given, the points that the scan has.
        chains : int, optional
            At each of these points; by default as many as the scan has anywhere.

        Raises
        ------
        UsageError
            If the grid is not possible, or nothing says where a new scan is to have runs.
        """
        points = self.points()
        lattices = lattice or tuple(dict.fromkeys(lattice for _, lattice in points))
        if not points:
            lattices = lattice or (self.parameters.lattice,)
            if beta is None:
                raise UsageError(
                    f"There is no scan in {self.path} yet; say where to begin one, by --beta such "
                    "as 2.2:2.8:0.05."
                )
        many = max(points.values(), default=1) if chains is None else chains
        if beta is None and lattice is None:
            there = {each: tuple(b for b, one in points if one == each) for each in lattices}
            asked = [Grid(betas, (each,), many) for each, betas in there.items()]
        else:
            asked = [Grid(beta or tuple(dict.fromkeys(b for b, _ in points)), lattices, many)]
        scan = self
        for grid in asked:
            larger = dataclasses.replace(scan, grids=(*scan.grids, grid))
            if len(larger._keys()) > len(scan._keys()):
                scan = larger
        return scan

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
        if not empty.toml.is_file():
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

        from gauge_mc.formats.files import replacing

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
        if self.path.is_dir() and not self.toml.is_file():
            names = {item.name for item in self.path.iterdir()}
            if names - {"lock"}:
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
    """Return where a scan goes by default: a name without what differs between its runs."""
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
