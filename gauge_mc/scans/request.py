"""The scan that the user requests, by command-line options or in a run card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gauge_mc.actions import BETA, couplings
from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.option_items import Items
from gauge_mc.options import check_options
from gauge_mc.quoting import counted
from gauge_mc.registry import first_few
from gauge_mc.run.cards import flat
from gauge_mc.run.chain import check_start
from gauge_mc.run.directory import RUNS, locked_or_removed, newest
from gauge_mc.run.lock import refuse_in_use
from gauge_mc.run.measurement import check_folders, observable_along
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution, check_starts
from gauge_mc.run.thermalisation import SKIP, Skip
from gauge_mc.scans.additions import ADDITIONS
from gauge_mc.scans.averages import check_skip
from gauge_mc.scans.grid import (
    PLACE,
    Grid,
    axes,
    is_point_beside,
    list_axes,
    lists_of,
    parse_lattices,
    parse_numbers,
)
from gauge_mc.scans.ladders import check_ladders
from gauge_mc.scans.scan import Member, Scan, default_path, is_scan


@dataclass(frozen=True)
class ScanRequest:
    """The scan that the user requests."""

    values: Mapping[str, object]
    """Parameters that all runs share, by the names of `Parameters`."""
    execution: Execution
    """How and where the runs are carried out."""
    path: Path
    """Scan directory."""
    axes: Mapping[str, str]
    """Couplings, lattices and options of the action of the grid, as on the command line."""
    lists: Mapping[str, tuple[Items[Any], ...]]
    """Lists of things of the grid, such as dynamical quarks, by the name of their option."""
    chains: int | None
    """Number of chains at each point."""
    skip: Skip = 0
    """Last update that is left out of the averages, or `AUTO`."""
    more: Sequence[Grid] = ()
    """Further grids, such as those that refine a scan."""

    @classmethod
    def of(cls, values: Mapping[str, object]) -> ScanRequest:
        """Return the request for values by the names of options."""
        values = flat(values)
        words = {name: _words(values[name]) for name in axes() if values.get(name) is not None}
        shared = {name: value for name, value in values.items() if name not in axes()}
        for coupling in couplings():
            if coupling.usual is None and coupling.name in words:
                shared[coupling.name] = parse_numbers(words[coupling.name], coupling)[0]
        kinds = {name: kind for name, kind in list_axes().items() if shared.get(name)}
        lists = {name: lists_of(kind, shared[name]) for name, kind in kinds.items()}
        shared |= {name: each[0] for name, each in lists.items()}
        execution = Execution.from_values(values)
        path = Path(execution.output) if execution.output else None
        if not path and BETA.name not in words and any(RUNS.glob("*/scan.toml")):
            path = newest("scan")
        path = path or default_path(Parameters.from_values(shared), _numbers(words))
        chains: Any = values.get("chains")
        skip = check_options([SKIP], {SKIP.name: values.get(SKIP.name)}, "scans").get(SKIP.name, 0)
        return cls(shared, execution, path, words, lists, chains, skip)

    def scan(self) -> Scan:
        """Return the requested scan: a new one, or the existing one with new points and chains."""
        before, lists = self._there()
        numbers = _numbers(self.axes)
        betas, lattices = (numbers.pop(name, None) for name in PLACE)
        larger = before.enlarged(betas, lattices, self.chains, {**numbers, **lists})
        larger = larger.including(self.more)
        check_starts(larger.parameters.start, min(larger.points().values()))
        check_ladders(larger, before)
        return larger

    def _there(self) -> tuple[Scan, Mapping[str, tuple[Items[Any], ...]]]:
        """Return the scan without what is added, and the lists of things that are points of it.

        One list is a parameter of a scan without others. Those of an existing scan differ in
        numbers that may be axes alone.
        """
        if not is_scan(self.path):
            several = {name: each for name, each in self.lists.items() if len(each) > 1}
            return Scan(self.path, Parameters.from_values(self.values)), several
        scan, values = Scan.read(self.path), dict(self.values)
        check_folders(scan.toml, scan.parameters, values)
        options = scan.parameters.algorithm.values
        varying = {name for grid in scan.grids for name in grid.options}
        points = {}
        for name, each in self.lists.items():
            if name in options and all(is_point_beside(options[name], x) for x in each):
                del values[name]
                if name in varying or each != (options[name],):
                    points[name] = each
        return scan.continued(values), points

    def with_additions(self, values: Mapping[str, object]) -> ScanRequest:
        """Return the request with the points that options add; see `gauge_mc.scans.request`."""
        additions = [x for name, x in ADDITIONS.items() if values.get(name)]
        if not additions:
            return self
        scan = Scan.read(self.path)
        return replace(self, more=[grid for x in additions for grid in x.points(scan, self.skip)])

    def growth(self) -> str | None:
        """Return in a sentence how many runs the request adds to an existing scan, if any."""
        if not is_scan(self.path):
            return None
        before = [member.name for member in Scan.read(self.path).members()]
        names = [member.name for member in self.scan().members() if member.name not in {*before}]
        count = f"adds {counted(len(names), 'run')} to {self.path}, which has {len(before)}"
        return f"{count}: {first_few(names)}" if names else None

    def reduced(self) -> tuple[Scan, list[Member]]:
        """Return the scan without the requested points, and the runs that are taken out."""
        before, requested = Scan.read(self.path), {**_numbers(self.axes), **self.lists}
        if not requested or self.chains is not None or self._there()[0] != before:
            raise UsageError(
                "--remove takes out the points that --beta, --lattice and other options of the "
                "grid name, and nothing else; give these only."
            )
        members = before.members()
        gone = [
            member
            for member in members
            if all(_value(member, key) in requested[key] for key in requested)
        ]
        if not gone or len(gone) == len(members):
            raise UsageError(
                f"--remove would take out {len(gone)} of the {len(members)} runs of {self.path}; "
                "name other points, or remove the folder to begin anew."
            )
        for dropped in gone:
            refuse_in_use(dropped.run.lock)
        scan = replace(before, removed=(*before.removed, *(x.name for x in gone)))
        check_ladders(scan, before)
        return scan, gone

    @contextmanager
    def locked(self, write: bool = True) -> Iterator[Scan]:
        """Hold the lock of the requested scan, which is written to disk by default."""
        new = not is_scan(self.path)
        folders = self.scan().make()
        with closing(locked_or_removed(self.scan().lock, folders)) as lock:
            lock.record()
            for leftover in self.path.glob(".*.tmp"):
                leftover.unlink()
            scan = self.scan()
            if write:
                scan.write()
            for member in scan.members() if write and "configs" in self.values else ():
                with suppress(GaugeError), member.run.locked():
                    member.run.shorten(member.parameters, member.sweep())
            try:
                yield scan
            except GaugeError:
                if new:
                    scan.unmake(folders)
                raise

    def check_runs(self) -> None:
        """Refuse values with which no run could begin.

        The start, the observables and their options are checked, and the number of updates that
        averages leave out.
        """
        check_skip(self.skip, self.scan().parameters)
        unbegun = [member.parameters for member in self.scan().members() if not member.begun()]
        for parameters in {(x.lattice, x.algorithm): x for x in unbegun}.values():
            check_start(parameters.start, parameters.group, parameters.lattice)
            for item in parameters.measure:
                observable_along(item, parameters)


def _numbers(words: Mapping[str, str]) -> dict[str, Any]:
    """Return the couplings, lattices and values of options of a grid, by name."""
    return {
        name: parse_lattices(text) if name == "lattice" else parse_numbers(text, axes()[name])
        for name, text in words.items()
    }


def _value(member: Member, name: str) -> object:
    """Return a coupling, the lattice, an option of the action or a list of things of a run."""
    p = member.parameters
    values = {"beta": p.beta, "lattice": p.lattice, **p.action.values, **p.algorithm.values}
    return values.get(name)


def _words(value: object) -> str:
    """Return a value as on the command line. Elsewhere it may be a number, or several values."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ",".join(map(str, value))
