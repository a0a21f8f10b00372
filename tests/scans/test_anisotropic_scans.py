"""Scans over the bare anisotropy."""

import pytest

from gauge_mc.files.table import read_table
from gauge_mc.run.directory import Run
from gauge_mc.scans.scan import Scan
from tests.calls import call, make_run
from tests.scans.commands import SMALL, scan, written

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("sketched")]


def test_points_differ_in_the_anisotropy(folder):
    """Every run writes what it writes alone, and averages are by anisotropy."""
    words = ("--lattice", "4x4x4x4", *SMALL, "--output", "s")
    shown = scan("--beta", "2.0,2.3", "--anisotropy", "1,2", *words)
    assert "ξ₀" in shown
    found = Scan.read(folder / "s")
    assert [member.name for member in found.members()] == [
        "b2_4x4x4x4_chain1",
        "b2.3_4x4x4x4_chain1",
        "b2_4x4x4x4_xi2_chain1",
        "b2.3_4x4x4x4_xi2_chain1",
    ]
    table = read_table(folder / "s" / "scan.csv", text=("lattice",))
    assert table["anisotropy"].tolist() == [1, 1, 2, 2]
    assert table["beta"].tolist() == [2.0, 2.3, 2.0, 2.3]
    assert not {"anisotropy", "beta_space", "formula"} & table.header.keys()
    last = found.members()[-1]
    alone = make_run(folder / "alone", **last.parameters.values())
    assert written(Run(alone).path) == written(last.run.path)
    said, code = call("verify", "s")
    assert code == 0, said


def test_a_scan_is_enlarged_by_an_anisotropy(folder):
    words = ("--lattice", "4x4x4x2", *SMALL, "--output", "s")
    scan("--beta", "2.0", *words)
    assert "anisotropy" not in (folder / "s" / "scan.toml").read_text()
    scan("--anisotropy", "1.5", "--output", "s")
    assert [one.point.action.anisotropy for one in Scan.read(folder / "s").members()] == [1.0, 1.5]
    scan("--output", "s")
    assert len(Scan.read(folder / "s").members()) == 2
