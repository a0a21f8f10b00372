"""Secondary tables know which version made their rows, and are kept with the table."""

import pytest

from gauge_mc import __version__
from gauge_mc.files.table import read_table
from gauge_mc.run import parameters
from tests.calls import call, make_run

ONE_CORE = ("--backend", "cpu", "--threads", "1")
OLD = f"gauge-mc {__version__}"


@pytest.mark.slow
@pytest.mark.kernels
def test_secondary_tables_have_versions_and_are_kept_together(tmp_path, monkeypatch):
    run = make_run(tmp_path / "run", lattice="2x2x2x4", configs=1)
    words = ("measure", "mesons", run, "--kappa", "0.1", *ONE_CORE)
    assert call(*words)[1] == 0
    tables = sorted(run.glob("mesons*.csv"))
    assert len(tables) == 2
    before = [one.read_bytes() for one in tables]
    assert [read_table(one).makers for one in tables] == [{0: OLD}] * 2
    monkeypatch.setattr(parameters, "__version__", "99.0")
    checked = call("verify", run)[0]
    lines = [line for line in checked.splitlines() if "mesons" in line]
    assert [line.endswith("of them by another version") for line in lines] == [True] * 2
    assert call(*words, "--again")[1] == 0
    assert [one.with_name(f"{one.name}.1").read_bytes() for one in tables] == before
    assert [read_table(one).makers for one in tables] == [{0: "gauge-mc 99.0"}] * 2


@pytest.mark.slow
@pytest.mark.kernels
def test_secondary_tables_along_the_way_have_versions(tmp_path):
    how = {"lattice": "2x2x2x4", "configs": 1, "measure": "mesons:3:kappa=0.1"}
    tables = sorted(make_run(tmp_path / "run", **how).glob("mesons*.csv"))
    assert [read_table(one).makers for one in tables] == [{0: OLD}] * 2
