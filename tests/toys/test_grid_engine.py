"""Grid Engine: the script of an array, and the answer to it."""

from pathlib import Path

from gauge_mc.run.settings import Execution
from gauge_mc.scans.batch_systems import BATCH_SYSTEMS, ArrayPlan, JobRequest


def test_a_script_asks_for_the_jobs():
    system = BATCH_SYSTEMS["grid-engine"]
    request = JobRequest(system, 90, together=2, options={"q": "long", "cwd": None})
    plan = ArrayPlan(request, Path("/jobs"), [None] * 3, Execution())
    first, *directives, command = plan.text().splitlines()
    assert first == "#!/bin/bash"
    assert directives == [
        *("#$ -l h_rt=01:30:00", "#$ -t 1-3", "#$ -tc 2", "#$ -N gauge-mc", "#$ -V", "#$ -j y"),
        *("#$ -o '/jobs/$TASK_ID.log'", "#$ -q long", "#$ -cwd"),
    ]
    assert command.endswith(" generate --card /jobs/$SGE_TASK_ID.toml")
    answer = 'Your job-array 42.1-3:1 ("gauge-mc") has been submitted'
    assert system.job_id(answer) == "42"
