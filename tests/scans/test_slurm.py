"""Job arrays of Slurm: options of sbatch, scripts, and what a job does."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.run.log import LogTail
from gauge_mc.scans.process import job
from gauge_mc.scans.slurm import SCRIPT, last_job, parse_minutes, parse_options, submit
from tests.calls import call
from tests.scans.commands import SMALL, A, rows, scan, written


def test_options_of_sbatch():
    minutes = {"90": 90, "1:30": 2, "2:0:0": 120, "1-0": 1440, "1-2:30": 1590, "0-0:0:1": 1}
    assert {text: parse_minutes(text) for text in minutes} == minutes
    options = parse_options(
        ["time=2:0:0", "gpus-per-node=1", "exclusive", "comment=a=b", "array_parallelism=9"]
    )
    assert options == {
        "slurm_time": 120,
        "slurm_array_parallelism": 9,
        "slurm_additional_parameters": {
            "job_name": "gauge-mc",
            "signal": "USR1@90",
            "gpus_per_node": "1",
            "exclusive": True,
            "comment": "a=b",
        },
    }
    for bad in ("time=0", "time=1:2:3:4", "time=-5", "array_parallelism=all", "a b=1", "x=\n"):
        with pytest.raises(UsageError):
            parse_options(["time=5", bad] if "time" not in bad else [bad])


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.slow
def test_a_job_array_of_slurm(folder, monkeypatch, sketched):
    pytest.importorskip("submitit")
    words = ("--beta", "2.2,2.3", "--lattice", A, "--output", "s", "--threads", 1, *SMALL)
    words = (*words, "--submit", "slurm", "--slurm", "time=1:30:0", "--slurm", "partition=gpu")
    monkeypatch.setenv("PATH", f"{folder}", prepend=os.pathsep)
    if not any((Path(one) / "srun").exists() for one in os.environ["PATH"].split(os.pathsep)):
        assert "Slurm is not installed on this machine" in scan(*words, expect=1)
    program(folder / "srun", "exit 1")
    program(folder / "sbatch", 'cp "$1" script; echo Submitted batch job 42')
    assert last_job(folder / "s" / "jobs") is None
    assert "0 of 2 runs complete, 2 submitted as job 42\n" in scan(*words)
    shown, code = call("status", "s")
    assert code == 0
    assert (
        "no run is running: the jobs are queued or have ended; to see which: squeue --jobs 42; "
        "once they have ended, to submit the rest: gauge-mc scan --output s --submit slurm "
        "--slurm time=HH:MM:SS\n"
    ) in shown
    script = (folder / "script").read_text()
    wanted = ("array=0-1%2", "time=90", "partition=gpu", "signal=USR1@90", "job-name=gauge-mc")
    for option in wanted:
        assert f"#SBATCH --{option}\n" in script
    # What Slurm would do with the first of the two jobs:
    command = re.search(r"srun .* (\S+ -u -m submitit\.\S+ \S+)\n", script).group(1).split()
    variables = {"SLURM_JOB_ID": "43", "SLURM_ARRAY_JOB_ID": "42", "SLURM_ARRAY_TASK_ID": "0"}
    variables |= {"SUBMITIT_EXECUTOR": "slurm", "PMI_SIZE": "2"}
    done = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 runs complete" in scan("--collect", "--output", "s")
    assert "1 of 2 runs complete, 1 submitted" in scan(*words)
    document = json.loads(scan(*words, "--json"))
    assert (document["command"], document["scan"], document["job"]) == ("scan", "s", "42")
    assert (document["all_runs"], document["complete"]) == (2, 1)
    assert document["submitted"] == [f"s/b2.3_{A}_chain1"]
    assert list(rows(folder / "s")) == [(2.2, str(A))]
    program(folder / "sbatch", "echo 'sbatch: error: Invalid account' >&2; exit 1")
    assert "rejected the jobs: sbatch: error: Invalid account." in scan(*words, expect=1)
    assert last_job(folder / "s" / "jobs") == "42"
    log = [one.fields for one in LogTail(folder / "s").new()]
    sessions, ends = log[::2], log[1::2]
    assert [one.get("devices") for one in sessions] == ["slurm", None, "slurm", "slurm", "slurm"]
    assert [one["runs"] for one in sessions] == [2, 2, 1, 1, 1]
    words = [one["ended"] for one in ends]
    assert words[:4] == ["submitted", "incomplete", "submitted", "submitted"]
    assert "Invalid account" in words[4]
    assert [one.get("job") for one in ends] == ["42", None, "42", "42", None]
    assert ends[1]["complete"] == 1


def test_the_last_job_is_that_of_the_newest_script(tmp_path):
    for number, age in (("41", 30), ("43", 10), ("42", 20)):
        script = tmp_path / f"{number}{SCRIPT}"
        script.touch()
        os.utime(script, (0, time.time() - age))
    assert last_job(tmp_path) == "43"


@pytest.mark.slow
def test_jobs_by_another_executor_of_submitit(folder):
    pytest.importorskip("submitit")
    values = {"lattice": str(A), "thermalize": 2, "configs": 1, "separation": 4, "backend": "cpu"}
    tasks = [values | {"output": str(folder / name)} for name in ("a", "b")]
    jobs = submit(job, tasks, folder / "jobs", parse_options(["time=5"]), "local")
    assert [one.result() for one in jobs] == [None, None]
    assert written(folder / "a") == written(folder / "b")
    assert len(written(folder / "a")) == 3


def test_without_submitit(monkeypatch):
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(GaugeError, match=r"pip install 'gauge-mc\[slurm\]'"):
        submit(job, [{}], Path("jobs"), {})
