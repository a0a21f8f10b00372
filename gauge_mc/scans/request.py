"""The scan that the user requests, by command-line options or in a run card."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gauge_mc.actions import couplings
from gauge_mc.errors import GaugeError
from gauge_mc.option_items import Items
from gauge_mc.options import check_options
from gauge_mc.run.cards import flat
from gauge_mc.run.directory import locked_or_removed
from gauge_mc.run.functions import check_folders, observable_along
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution, check_starts
from gauge_mc.run.thermalisation import SKIP, Skip
from gauge_mc.scans.additions import ADDITIONS
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
from gauge_mc.scans.scan import Scan, default_path


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
        """Return the request for values by the names of options.

        Raises
        ------
        UsageError
            If a value has the wrong type or is invalid.
        """
        values = flat(values)
        words = {name: _words(values[name]) for name in axes() if values.get(name) is not None}
        shared = {name: value for name, value in values.items() if name not in axes()}
        for one in couplings():
            if one.usual is None and one.name in words:
                shared[one.name] = parse_numbers(words[one.name], one)[0]
        kinds = {name: kind for name, kind in list_axes().items() if shared.get(name)}
        lists = {name: lists_of(kind, shared[name]) for name, kind in kinds.items()}
        shared |= {name: each[0] for name, each in lists.items()}
        execution = Execution.from_values(values)
        path = Path(execution.output or default_path(Parameters.from_values(shared)))
        chains: Any = values.get("chains")
        skip = check_options([SKIP], {SKIP.name: values.get(SKIP.name)}, "scans").get(SKIP.name, 0)
        return cls(shared, execution, path, words, lists, chains, skip)

    def scan(self) -> Scan:
        """Return the requested scan: a new one, or the existing one with new points and chains.

        Raises
        ------
        UsageError
            If the grid is invalid, there are fewer chains than starts, the parameters differ from
            those of the existing scan, or tempering is not possible.
        """
        there, lists = self._there()
        beta, lattice = map(self.axes.get, PLACE)
        betas = None if beta is None else parse_numbers(beta)
        lattices = None if lattice is None else parse_lattices(lattice)
        others = {name: words for name, words in self.axes.items() if name not in PLACE}
        numbers = {name: parse_numbers(words, axes()[name]) for name, words in others.items()}
        larger = there.enlarged(betas, lattices, self.chains, {**numbers, **lists})
        larger = larger.including(self.more)
        check_starts(larger.parameters.start, min(larger.points().values()))
        check_ladders(larger, there)
        return larger

    def _there(self) -> tuple[Scan, Mapping[str, tuple[Items[Any], ...]]]:
        """Return the scan without what is added, and the lists of things that are points of it.

        One list is a parameter of a scan without others. Those of an existing scan differ in
        numbers that may be axes alone.
        """
        if not Scan(self.path, Parameters()).exists():
            several = {name: each for name, each in self.lists.items() if len(each) > 1}
            return Scan(self.path, Parameters.from_values(self.values)), several
        there, values = Scan.read(self.path), dict(self.values)
        check_folders(there.toml, there.parameters, values)
        known = there.parameters.algorithm.values
        varying = {name for grid in there.grids for name in grid.options}
        points = {}
        for name, each in self.lists.items():
            if name in known and all(is_point_beside(known[name], one) for one in each):
                del values[name]
                if name in varying or each != (known[name],):
                    points[name] = each
        return there.continued(values), points

    def with_additions(self, values: Mapping[str, object]) -> ScanRequest:
        """Return the request with the points that options add; see `gauge_mc.scans.additions`.

        Raises
        ------
        UsageError
            If the scan does not exist.
        GaugeError
            If a complete run has not measured the Polyakov loop and its action.
        """
        chosen = [one for name, one in ADDITIONS.items() if values.get(name)]
        if not chosen:
            return self
        there = Scan.read(self.path)
        return replace(self, more=[grid for one in chosen for grid in one.points(there, self.skip)])

    @contextmanager
    def locked(self) -> Iterator[Scan]:
        """Write the requested scan to disk, and hold its lock.

        Raises
        ------
        UsageError
            If the path has other content; see also `scan`.
        GaugeError
            If another process is carrying out the scan.
        """
        new = not self.scan().exists()
        made = self.scan().make()
        with closing(locked_or_removed(self.scan().lock, made)) as lock:
            lock.record(lock.holder)
            for leftover in self.path.glob(".*.tmp"):
                leftover.unlink()
            scan = self.scan()
            scan.write()
            try:
                yield scan
            except GaugeError:
                if new:
                    scan.unmake(made)
                raise

    def check_runs(self) -> None:
        """Refuse values with which no run could begin.

        The start, the observables and their options are checked, and the number of updates that
        averages leave out.

        Raises
        ------
        UsageError
            If the start file does not exist or does not fit, or an observable is not possible.
        GaugeError
            If the start file cannot be read.
        """
        from gauge_mc.run.chain import check_start
        from gauge_mc.scans.averages import check_skip

        check_skip(self.skip, self.scan().parameters)
        left = [one.parameters for one in self.scan().members() if not one.begun()]
        for parameters in {(one.lattice, one.algorithm): one for one in left}.values():
            check_start(parameters)
            for item in parameters.measure:
                observable_along(item, parameters)


def _words(value: object) -> str:
    """Return a value as on the command line. Elsewhere it may be a number, or several values."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return str(value)
    return ",".join(map(str, value))
