"""The scripts for batch systems without ``--submit``, as the documentation has them."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gauge_mc
from gauge_mc.errors import INTERRUPTED
from gauge_mc.run.directory import Run
from tests.calls import call
from tests.patience import PATIENCE

PAGE = Path(gauge_mc.__file__).parent.parent / "docs" / "how-to" / "cluster.md"
TITLED = re.compile(r'^```\w+ title="([\w.]+)"\n(.*?)^```', re.M | re.S)

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="there is no documentation")


@pytest.fixture
def scripts(tmp_path, monkeypatch):
    """A folder with the scripts, for small lattices, and with ``gauge-mc``."""
    for name, text in TITLED.findall(PAGE.read_text()):
        small = text.replace("24x24x24x4", "4x4x4x4").replace("--configs 500", "--configs 3")
        (tmp_path / name).write_text(small)
    program = tmp_path / "bin" / "gauge-mc"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m gauge_mc "$@" --threads 1\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(gauge_mc.__file__).parent.parent))
    return tmp_path


@pytest.fixture
def job(scripts):
    """The command of the third job, and the variables that Kubernetes sets for it."""
    listed = re.search(r"command: \[(.*)\]", (scripts / "array.yaml").read_text())[1]
    words = [word.strip('"') for word in listed.split(", ")]
    return {"args": words, "cwd": scripts, "env": {**os.environ, "JOB_COMPLETION_INDEX": "2"}}


@pytest.mark.slow
def test_a_job_carries_out_its_run(scripts, job):
    subprocess.run(**job, check=True)
    run = Run(scripts / "runs" / "nt4" / "b2.24")
    parameters, sessions = run.read()
    assert (parameters.beta, parameters.seed, len(sessions)) == (2.24, 102, 1)
    assert [path.name for path in run.path.parent.iterdir()] == ["b2.24"]
    betas = re.search(r"betas=\((.*)\)", (scripts / "point.sh").read_text())[1].split()
    assert "completions: 6\n" in (scripts / "array.yaml").read_text()
    assert len(betas) == 6


@pytest.mark.slow
def test_a_job_that_is_deleted_writes_a_checkpoint(scripts, job):
    point = scripts / "point.sh"
    point.write_text(point.read_text().replace("--configs 3", "--configs 20000"))
    begun = subprocess.Popen(**job, stdout=subprocess.DEVNULL)
    run = Run(scripts / "runs" / "nt4" / "b2.24")
    while not (run.begun() and run.holder()[0].sweep):
        assert begun.poll() is None
        time.sleep(0.05)
    begun.send_signal(signal.SIGTERM)
    assert begun.wait(PATIENCE) == INTERRUPTED
    assert not run.holder()[1]


@pytest.mark.slow
def test_the_runs_are_plotted_together(scripts, monkeypatch, sketched):
    for number in range(2):
        subprocess.run(
            ["bash", "point.sh", str(number)], cwd=scripts, check=True, stdout=subprocess.DEVNULL
        )
    monkeypatch.chdir(scripts)
    shown, code = call("plot", "averages", *sorted(Path("runs/nt4").glob("b*")))
    assert (code, "plaquette" in shown) == (0, True), shown
