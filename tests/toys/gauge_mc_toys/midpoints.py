"""An addition to scans: points midway between the couplings."""

from itertools import pairwise

from gauge_mc.options import Option
from gauge_mc.run.thermalisation import Skip
from gauge_mc.scans.additions import ScanAddition
from gauge_mc.scans.grid import Grid
from gauge_mc.scans.scan import Scan


class Midpoints(ScanAddition):
    """A point on every lattice between each two couplings that follow each other."""

    name = "midpoints"
    option = Option(
        "midpoints", bool, "Add points midway between those of an existing scan.", usual=False
    )

    def points(self, scan: Scan, skip: Skip) -> list[Grid]:
        """Return a grid of the new couplings; none if the scan has one coupling."""
        couplings = sorted({one.beta for one in scan.points()})
        lattices = tuple(dict.fromkeys(one.lattice for one in scan.points()))
        between = tuple(round((a + b) / 2, 9) for a, b in pairwise(couplings))
        return [Grid(between, lattices)] if between else []


MIDPOINTS = Midpoints()
