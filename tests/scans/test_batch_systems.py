"""Arrays of jobs: options, scripts, what is submitted, and what the jobs then do."""

import json
import math
import os
import shlex
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from gauge_mc.configurations.writing import IN_FLIGHT
from gauge_mc.errors import INTERRUPTED, GaugeError, UsageError
from gauge_mc.run.cards import read_card
from gauge_mc.run.log import LogTail
from gauge_mc.run.needs import RunCosts, file_sizes
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import Execution
from gauge_mc.scans import batch_systems, forecast
from gauge_mc.scans.batch_systems import (
    BATCH_SYSTEMS,
    ArrayPlan,
    JobRequest,
    last_array,
    parse_minutes,
)
from gauge_mc.scans.scan import Scan
from tests.calls import call
from tests.scans.commands import SMALL, A, rows, scan, written

ANSWERS = {
    "slurm": "Submitted batch job 42",
    "pbs": "42[].server",
    "lsf": "Job <42> is submitted to default queue <normal>.",
    "htcondor": "Submitting job(s)..\n2 job(s) submitted to cluster 42.",
}
"""Answers to a submission of two jobs."""

QUERIES = {
    "slurm": "squeue --jobs 42",
    "pbs": "qstat -t '42[].server'",
    "lsf": "bjobs 42",
    "htcondor": "condor_q 42",
}
"""Commands that show these jobs; the last word is their ID."""

IDS = {name: shlex.split(query)[-1] for name, query in QUERIES.items()}

EVERY = pytest.mark.parametrize("name", BATCH_SYSTEMS)


def words(name, *more, **options):
    """Return the command that submits two runs."""
    grid = ("--beta", "2.2,2.3", "--lattice", A, "--output", "s", "--threads", 1, *SMALL)
    asked = {"time": "1:30:0", **options}
    given = [word for one in asked.items() for word in ("--submit-option", "=".join(one))]
    return (*grid, "--submit", name, *given, *more)


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def script(request, folder="/s/1", jobs=2, threads=None):
    return ArrayPlan(request, Path(folder), [None] * jobs, Execution(threads=threads)).text()


@pytest.fixture
def accepting(folder, monkeypatch):
    """A folder in which programs of all batch systems accept whatever they get.

    No run is tried.
    """
    monkeypatch.setattr(batch_systems, "job_needs", lambda members, execution: (7, 1800))
    monkeypatch.setenv("PATH", f"{folder}", prepend=os.pathsep)
    for name, answer in ANSWERS.items():
        ours = BATCH_SYSTEMS[name].program
        program(folder / ours, f"cat $1 > {name}; cat >> {name}; printf '%s\\n' '{answer}'")
    return folder


def test_times_and_options():
    minutes = {"90": 90, "1:30": 2, "2:0:0": 120, "1-0": 1440, "1-2:30": 1590, "0-0:0:1": 1}
    assert {text: parse_minutes(text) for text in minutes} == minutes
    asked = ["time=2:0:0", "gpus-per-node=1", "exclusive", "comment=a=b", "array_parallelism=9"]
    request = JobRequest.of("slurm", asked)
    assert (request.minutes, request.together) == (120, 9)
    assert request.options == {"gpus-per-node": "1", "exclusive": None, "comment": "a=b"}
    for bad in ("time=0", "time", "time=1:2:3:4", "time=-5", "array_parallelism=all", "a b=1"):
        with pytest.raises(UsageError):
            JobRequest.of("slurm", [bad] if bad.startswith("time") else ["time=5", bad])


@EVERY
@pytest.mark.parametrize("bad", ["x=\n", "a b=1", "=3", "x=\x1b[2J", "a;b=1", "é=1"])
def test_options_with_other_characters_are_refused(name, bad):
    with pytest.raises(UsageError, match="is not of the form KEY=VALUE"):
        JobRequest.of(name, ["time=5", bad])


@EVERY
def test_options_that_are_left_to_the_script_are_refused(name):
    for key in BATCH_SYSTEMS[name].fixed.split():
        for word in (f"{key}=1", key.title()):
            with pytest.raises(UsageError, match=r"is decided by the script; .* time=12:00:00\."):
                JobRequest.of(name, ["time=5", word])
    JobRequest.of("lsf", ["time=5", "e=errors.log"])


@pytest.mark.parametrize(
    ("name", "text"), [("pbs", "^array_index^"), ("lsf", "%I"), ("lsf", "%J"), ("slurm", "a\nb")]
)
def test_folders_whose_names_a_script_cannot_have_are_refused(folder, name, text):
    said = scan(*words(name)[:4], "--output", text, *words(name)[6:], expect=2)
    assert "characters that a script cannot have; choose another --output" in said


WANTED = {
    "slurm": (
        "#SBATCH --array=0-1%8",
        "#SBATCH --time=90",
        "#SBATCH --signal=USR1@90",
        "#SBATCH --output='/a b/1/%a.log'",
        "#SBATCH --comment='c d'",
        "#SBATCH --cpus-per-task=3",
        "#SBATCH --mem=1800M",
    ),
    "pbs": (
        "#PBS -J 0-1%8",
        "#PBS -l walltime=01:30:00",
        "#PBS -o '/a b/1/^array_index^.log'",
        "#PBS -l comment='c d'",
        "#PBS -l ncpus=3",
        "#PBS -l mem=1800mb",
    ),
    "lsf": (
        "#BSUB -J 'gauge-mc[1-2]%8'",
        "#BSUB -W 90",
        "#BSUB -wa USR1",
        "#BSUB -Q 75",
        "#BSUB -o '/a b/1/%I.log'",
        "#BSUB -comment 'c d'",
        "#BSUB -n 3",
        "#BSUB -R 'span[hosts=1] rusage[mem=1800MB]'",
    ),
    "htcondor": (
        "allowed_execute_duration = 5400",
        "on_exit_remove = (ExitBySignal =?= True) || (ExitCode =!= 75)",
        "max_materialize = 8",
        "output = /a b/1/$(Process).log",
        "comment = c d",
        "request_cpus = 3",
        "request_memory = 1800MB",
        "queue 2",
    ),
}
"""Lines of the scripts of an array."""


@EVERY
def test_a_script_asks_for_the_jobs(name):
    request = JobRequest(BATCH_SYSTEMS[name], 90, 8, {"comment": "c d"}, 1800)
    assert {*WANTED[name]} <= {*script(request, "/a b/1", threads=3).splitlines()}


@EVERY
def test_cores_and_memory_of_the_user_replace_those_of_the_script(name):
    needs = [names.split() for names in BATCH_SYSTEMS[name].needs]
    for stated in {option for names in needs for option in names}:
        request = JobRequest.of(name, [f"{stated.replace('-', '_')}=24"])
        lines = script(replace(request, minutes=90, memory=1800), threads=33).splitlines()
        assert sum("24" in line for line in lines) == 1
        assert [any(x in line for line in lines) for x in ("33", "1800")] == [
            stated not in names for names in needs
        ]


@EVERY
def test_options_of_other_batch_systems_are_refused(name):
    words = {"cpus_per_task", "gpus_per_node", "ncpus", "R", "gpu", "request_memory"}
    system = BATCH_SYSTEMS[name]
    own = words & system.known
    assert len(own) in (1, 2)
    for word in own:
        JobRequest.of(name, [f"{word}=1"])
    for word in words - own:
        with pytest.raises(
            UsageError, match=rf"{word} is an option of \w+ and not of {system.title}"
        ):
            JobRequest.of(name, [f"{word}=1"])


def members(folder, **values):
    return Scan(folder / "s", Parameters(**values)).enlarged((2.3, 2.4), (A,)).members()


def test_time_and_memory_are_upper_bounds_from_a_test_run(folder, monkeypatch):
    """A job has no time beyond a day, after which the same command goes on."""
    runs = members(folder, configs=10, separation=5, thermalize=10)
    costs = RunCosts(100 * 2**20, 2**40, 60.0, None, 30.0, 30.0)
    monkeypatch.setattr(forecast, "try_out", lambda *words: costs)
    asked = JobRequest.of("slurm", []).forecast(runs, Execution(backend="cpu"))
    snapshots = 2 * IN_FLIGHT * file_sizes(runs[0].parameters)[0] / 2**20
    assert asked.minutes == 10 + 2 * (10 + 100)
    assert asked.memory == math.ceil(200 + snapshots) + 2048
    costs = replace(costs, update_seconds=3600.0)
    asked = JobRequest.of("slurm", ["time=5"]).forecast(runs, Execution(backend="cpu"))
    assert (asked.minutes, asked.memory is None) == (5, False)
    for limit, minutes in ((None, 1440), (600.0, 20)):
        execution = Execution(backend="cpu", time_limit=limit)
        assert JobRequest.of("slurm", []).forecast(runs, execution).minutes == minutes


def test_runs_that_cannot_be_tried_need_a_time(folder, monkeypatch):
    def fail(*words):
        raise GaugeError("There is no compiler.")

    monkeypatch.setattr(forecast, "try_out", fail)
    asked = JobRequest.of("pbs", ["time=5"])
    assert asked.forecast(members(folder), Execution(backend="cpu")) == asked
    with pytest.raises(UsageError, match=r"\(There is no compiler\); give it, as in --submit-opt"):
        JobRequest.of("pbs", ["mem=5gb"]).forecast(members(folder), Execution(backend="cpu"))


def test_pbs_has_no_array_of_one_job():
    text = script(JobRequest(BATCH_SYSTEMS["pbs"], 90), jobs=1)
    assert "-J" not in text
    assert "#PBS -o /s/1/0.log\n" in text


@EVERY
def test_the_dry_run_shows_what_is_submitted(name, accepting):
    shown = scan(*words(name, "--dry-run"))
    assert not (accepting / "s").exists()
    first, _, text = shown.partition("\n")
    scan(*words(name))
    script = accepting / "s" / "jobs" / "1" / f"array.{name}"
    assert text == script.read_text() == (accepting / name).read_text()
    command = f"bsub < {script}" if name == "lsf" else f"{BATCH_SYSTEMS[name].program} {script}"
    assert first == f"s: 0 of 2 runs complete, 2 to be submitted by: {command}"


@EVERY
def test_jobs_are_submitted_and_named_by_status(name, accepting):
    assert last_array(accepting / "s" / "jobs") == (None, None, None)
    assert f"0 of 2 runs complete, 2 submitted as job {IDS[name]}\n" in scan(*words(name))
    shown, code = call("status", "s")
    assert code == 0
    assert f"to see which: {QUERIES[name]}; once they have ended" in shown
    again = f"gauge-mc scan --output s --submit {name}\n"
    assert f"to submit the rest: {again}" in shown
    document = json.loads(scan("--output", "s", *words(name, "--json")[6:]))
    assert (document["job"], document["all_runs"], document["complete"]) == (IDS[name], 2, 0)
    assert document["submitted"] == [f"s/b{beta}_{A}_chain1" for beta in ("2.2", "2.3")]
    assert document["script"] == (accepting / "s" / "jobs" / "2" / f"array.{name}").read_text()
    sessions = [one.fields for one in LogTail(accepting / "s").new()][::2]
    assert [(one["devices"], one["runs"]) for one in sessions] == [(name, 2)] * 2


@EVERY
def test_a_refused_submission_changes_nothing(name, accepting):
    """A finished scan became unfinished by points that nobody could take out."""
    scan(*words(name))
    system, path = BATCH_SYSTEMS[name], accepting / "s"
    own = [file for file in sorted(path.rglob("*")) if file.is_file() and file.name != "lock"]
    before = {file: file.read_bytes() for file in own}
    program(accepting / system.program, "exit 3")
    assert "rejected the jobs" in scan(*words(name), "--beta", "2.2:2.9:0.1", expect=1)
    assert {file: file.read_bytes() for file in own} == before
    assert sorted(path.rglob("*")) == sorted(
        {*own, *path.rglob("lock"), path / "jobs", path / "jobs/1"}
    )


@EVERY
def test_a_bad_answer_ends_in_a_sentence(name, accepting):
    system, jobs = BATCH_SYSTEMS[name], accepting / "s" / "jobs"
    program(accepting / system.program, "echo oops: no such queue. >&2; exit 3")
    assert f"{system.title} rejected the jobs: oops: no such queue.\n" in scan(
        *words(name), expect=1
    )
    assert not (accepting / "s").exists()
    scan_words = words(name)
    program(accepting / system.program, "echo hello; echo you")
    said = scan(*scan_words, expect=1)
    assert f"{system.program} has answered 'you' instead of the ID of the jobs" in said
    assert (jobs / "1" / f"array.{name}").exists()  # the jobs may be in the queue
    assert last_array(jobs) == (None, None, None)
    program(accepting / system.program, r"printf '\377'")
    assert f"cannot be submitted by {system.program}" in scan(*scan_words, expect=1)
    (accepting / system.program).chmod(0o644)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(accepting))
        assert f"by {system.program}: " in scan(*scan_words, expect=1)
        (accepting / system.program).unlink()
        said = scan(*scan_words, expect=1)
    assert f"{system.title} is not installed on this machine ({system.program} is missing)" in said


def test_the_last_array_is_that_of_the_largest_number(accepting):
    for name in ("pbs", "slurm"):
        scan(*words(name))
    jobs = accepting / "s" / "jobs"
    for number in range(3, 11):
        (jobs / str(number)).mkdir()
    assert last_array(jobs) == ("42", "slurm", QUERIES["slurm"])
    (jobs / "10" / "submitted.json").write_text('{"system": "pbs", "job": "7[].b"}')
    assert last_array(jobs)[0] == "7[].b"
    for damaged in ("[]", "{", '{"system": "none", "job": 1}', '{"system": "pbs"}', '"x"'):
        (jobs / "10" / "submitted.json").write_text(damaged)
        assert last_array(jobs)[0] == "42"


@EVERY
@pytest.mark.parametrize(("limit", "kept"), [(None, "0:0:5310"), ("0:10:00", "0:0:600")])
def test_a_run_keeps_the_time_where_nobody_warns_it(name, limit, kept, accepting):
    more = ("--time-limit", limit) if limit else ()
    scan(*words(name, *more))
    card = sorted((accepting / "s" / "jobs" / "1").glob("*.toml"))[0]
    warned = "USR1" in (accepting / "s" / "jobs" / "1" / f"array.{name}").read_text()
    expected = kept if limit or not warned else None
    assert read_card(card).get("time_limit") == expected


def job(name, folder, number):
    """Return the command and the variables with which a batch system begins a job."""
    script = folder / f"array.{name}"
    if name == "htcondor":
        lines = dict(one.split(" = ", 1) for one in script.read_text().splitlines() if " = " in one)
        arguments = lines["arguments"].strip('"').replace("$(Process)", str(number))
        return [lines["executable"], *shlex.split(arguments)], {}
    named = {"slurm": "SLURM_ARRAY_TASK_ID", "pbs": "PBS_ARRAY_INDEX", "lsf": "LSB_JOBINDEX"}
    first = BATCH_SYSTEMS[name].first
    return ["bash", str(script)], {named[name]: str(number + first), "SLURM_CPUS_PER_TASK": "3"}


@EVERY
@pytest.mark.slow
def test_jobs_carry_out_their_runs(name, accepting, sketched):
    program(accepting / "srun", '[ "$1" = -c3 ] && shift; exec "$@"')
    scan(*words(name))
    folder = accepting / "s" / "jobs" / "1"
    command, variables = job(name, folder, 1)
    done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1 of 2 runs complete" in scan("--collect", "--output", "s")
    assert "1 of 2 runs complete, 1 submitted" in scan(*words(name))
    command, variables = job(name, accepting / "s" / "jobs" / "2", 0)
    subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True)
    assert "2 of 2 runs complete, 0 submitted\n" in scan(*words(name))
    assert not (accepting / "s" / "jobs" / "3").exists()
    command, variables = job(name, folder, 1)  # submitted once more by hand
    subprocess.run(command, env={**os.environ, **variables}, check=True, capture_output=True)
    scan(*words(name)[:4], "--output", "here", *words(name)[6:8], *SMALL, "--quiet")
    for one in ("2.2", "2.3"):
        run = f"b{one}_{A}_chain1"
        assert written(accepting / "s" / run) == written(accepting / "here" / run)
    assert list(rows(accepting / "here")) == [(2.2, str(A)), (2.3, str(A))]


@EVERY
@pytest.mark.slow
def test_a_job_whose_time_is_up_goes_on_when_it_is_submitted_again(name, accepting):
    program(accepting / "srun", 'shift; exec "$@"')
    long = ("--beta", "2.3", "--lattice", 8, "--configs", 1, "--separation", 4000)
    scan(*long, "--output", "s", "--threads", 1, "--thermalize", 0, "--backend", "cpu",
         "--time-limit", "0:0:2", "--submit", name, "--submit-option", "time=5")  # fmt: skip
    command, variables = job(name, accepting / "s" / "jobs" / "1", 0)
    codes = []
    while not codes or codes[-1] == INTERRUPTED:
        done = subprocess.run(command, env={**os.environ, **variables}, capture_output=True)
        codes.append(done.returncode)
        assert len(codes) < 100
    assert codes[-1] == 0
    assert len(codes) > 1
    assert "1 of 1 runs complete" in scan("--collect", "--output", "s")
