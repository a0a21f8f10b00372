"""Slots: how devices are divided among the runs of a scan."""

import json
import os
import subprocess
import sys

import pytest

from gauge_mc.errors import INTERRUPTED
from gauge_mc.scans.pool import PARENT
from tests.patience import PATIENCE


@pytest.mark.slow
def test_a_child_whose_parent_is_dead_does_not_begin(tmp_path):
    """The parent may be killed before the child can ask for the signal of its death."""
    code = "from gauge_mc.cli import child; child()"
    words, runs = [sys.executable, "-c", code], [{"output": f"{tmp_path}/run", "lattice": "4"}]
    options = {"env": {**os.environ, PARENT: "1"}, "capture_output": True, "timeout": PATIENCE}
    done = subprocess.run(words, input=json.dumps(runs).encode(), check=False, **options)
    assert (done.returncode, done.stdout, done.stderr) == (INTERRUPTED, b"", b"")
    assert not (tmp_path / "run").exists()
