"""`status` of runs that were killed."""

from gauge_mc import status
from tests.reports.pages import write_run


def test_a_run_without_a_checkpoint_begins_anew(tmp_path):
    run = write_run(tmp_path / "run")
    for one in run.glob("checkpoint*"):
        one.unlink()
    found = status(run)
    assert (found.sweep, found.checkpoint_sweep, found.state) == (0, None, "stopped")
    again = f"gauge-mc generate --output {run}"
    assert found.lines()["state"] == f"stopped before its first checkpoint; to begin anew: {again}"
