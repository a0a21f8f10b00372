"""What a scan's runs have measured, gathered in its table and its figure."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

from gauge_mc.analysis.scan import PANELS, average, draw_scan, write_scan
from gauge_mc.analysis.timeseries import with_error
from gauge_mc.chain import provenance
from gauge_mc.errors import GaugeError
from gauge_mc.formats.table import Value
from gauge_mc.observables.records import AVERAGES
from gauge_mc.scans import Member, Point, Scan


class Averages:
    """The averages at every point of a scan, over the chains that are complete.

    Parameters
    ----------
    scan : Scan

    Attributes
    ----------
    rows : dict of Point to dict of str to int, float or str
        By the columns of the scan's table, for every point with a complete chain.
    failures : dict of str to str
        What is wrong where tables are damaged, by the name of the point's first run.
    """

    def __init__(self, scan: Scan) -> None:
        self.scan = scan
        self.members: dict[Point, list[Member]] = {}
        for member in scan.members():
            self.members.setdefault(member.point, []).append(member)
        self.rows: dict[Point, dict[str, Value]] = {}
        self.failures: dict[str, str] = {}
        for point in self.members:
            self.update(point)

    def update(self, point: Point) -> None:
        """Average anew at a point."""
        self.rows.pop(point, None)
        first = self.members[point][0].name
        self.failures.pop(first, None)
        chains = [member for member in self.members[point] if member.complete()]
        if not chains:
            return
        beta, lattice = point
        shared = self.scan.parameters
        row: dict[str, Value] = {
            "beta": beta,
            "lattice": str(lattice),
            "chains": len(chains),
            "sweeps": sum(member.sweep() - shared.thermalize for member in chains),
        }
        try:
            for item in shared.measure:
                if found := AVERAGES.get(item.observable):
                    paths = [member.run.table(found.name) for member in chains]
                    row |= average(found.name, found.columns, paths, item.every, lattice)
            self.rows[point] = row
        except GaugeError as error:
            self.failures[first] = str(error)

    def sorted_rows(self) -> list[dict[str, Value]]:
        """Return the rows by lattice, and then by beta."""
        lattices = list(dict.fromkeys(lattice for _, lattice in self.members))
        order = sorted(self.rows, key=lambda point: (lattices.index(point[1]), point[0]))
        return [self.rows[point] for point in order]

    def write(self) -> None:
        """Write the scan's table, whole or not at all."""
        facts = provenance(self.scan.parameters)
        header = {name: fact for name, fact in facts.items() if name not in ("beta", "lattice")}
        write_scan(self.scan.table, header, self.sorted_rows())

    def draw(self) -> bool:
        """Draw the scan's figure if there is something to draw, and Matplotlib; tell whether."""
        known = find_spec("matplotlib") and any(PANELS.keys() & row for row in self.rows.values())
        if known:
            draw_scan(self.scan.table, self.scan.figure)
        return bool(known)


def in_words(row: Mapping[str, Value]) -> dict[str, str]:
    """Return what people are shown of a point: numbers with errors, by the names of `PANELS`."""
    return {
        name: with_error(float(row[name]), float(row[f"{name}_error"]))
        for name in PANELS
        if name in row
    }
