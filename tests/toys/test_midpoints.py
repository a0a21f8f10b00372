"""The addition to scans: its points."""

from gauge_mc.domain.lattice import Lattice
from gauge_mc.scans.additions import ADDITIONS
from gauge_mc.scans.request import ScanRequest


def test_points_are_midway_between_others(tmp_path):
    addition = ADDITIONS["midpoints"]
    asked = {"beta": "2.5,2.2,2.4", "lattice": "4,6", "output": str(tmp_path)}
    (grid,) = addition.points(ScanRequest.of(asked).scan(), 0)
    assert grid.beta == (2.3, 2.45)
    assert grid.lattice == (Lattice(4, 4, 4, 4), Lattice(6, 6, 6, 6))
    assert addition.points(ScanRequest.of({**asked, "beta": "2.5"}).scan(), 0) == []
