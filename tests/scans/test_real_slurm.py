"""Jobs in a real Slurm, whose daemons the tests start for themselves if they are installed."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gauge_mc import generate, scan
from gauge_mc.run.directory import Run
from tests.calls import call
from tests.patience import PATIENCE, wait_for
from tests.run.sessions import written

DAEMONS = ("slurmctld", "slurmd")
COMMANDS = ("sbatch", "squeue", "scancel", "scontrol", "sinfo")
PLUGINS = Path("/usr/lib/x86_64-linux-gnu/slurm-wlm")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(map(shutil.which, DAEMONS + COMMANDS)) or not (PLUGINS / "auth_none.so").exists(),
        reason="Slurm is not installed",
    ),
]

CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=sched_interval=1
KillWait=30
ReturnToService=2
NodeName={host} CPUs={cores} RealMemory=2000 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""

SMALL = {
    "group": "su2",
    "lattice": "4x4x4x4",
    "thermalize": 20,
    "configs": 50,
    "format": "none",
    "backend": "cpu",
}
LONG = {
    "lattice": "8x8x8x8",
    "group": "su3",
    "thermalize": 50,
    "configs": 2000,
    "separation": 1,
    "format": "none",
}
"""A run of about ten seconds."""


def free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    folder = tmp_path_factory.mktemp("slurm")
    for name in ("state", "spool"):
        (folder / name).mkdir()
    ports, cores = [free_port(), free_port()], len(os.sched_getaffinity(0))
    host, user = socket.gethostname().partition(".")[0], output("id", "-un").strip()
    text = CONFIGURATION.format(folder=folder, ports=ports, cores=cores, host=host, user=user)
    (folder / "slurm.conf").write_text(text)
    # The jobs run the Python of the tests.
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        patch.setenv("PATH", search)
        with open(folder / "log", "w") as log:
            daemons = [subprocess.Popen([name, "-D"], stdout=log, stderr=log) for name in DAEMONS]
            try:
                wait_for(lambda: "idle" in output("sinfo", "--noheader", "--format=%T"))
                yield folder
            finally:
                subprocess.run(["scancel", "--user", user], check=False)
                for daemon in daemons:
                    daemon.terminate()
                for daemon in daemons:
                    daemon.wait(PATIENCE)


def queued():
    return output("squeue", "--noheader", "--format=%i %T").splitlines()


def submit(path, **options):
    words = [f"--{name}={value}" for name, value in options.items()]
    asked = ["time=0:10:00", "partition=main", "array_parallelism=2"]
    slurm = [word for one in asked for word in ("--submit-option", one)]
    shown, code = call(
        "scan", *words, "--threads", "1", "--output", path, "--submit", "slurm", *slurm
    )
    assert code == 0, shown


def test_a_scan_of_jobs_is_that_of_this_process(slurm, tmp_path):
    chosen = {**SMALL, "chains": 2}
    submit(tmp_path / "jobs", **chosen, beta="2.2,2.4")
    wait_for(lambda: not queued())
    scan(**chosen, beta=[2.2, 2.4], output=tmp_path / "here", progress=False)
    runs = sorted(path.name for path in (tmp_path / "here").glob("b*"))
    assert len(runs) == 4
    for name in runs:
        assert written(tmp_path / "jobs" / name) == written(tmp_path / "here" / name)
    shown, code = call("scan", "--collect", "--output", tmp_path / "jobs")
    assert (code, "4 of 4 runs complete" in shown) == (0, True)


@pytest.mark.parametrize("word", [["--signal=USR1"], []], ids=["USR1", "TERM"])
def test_a_job_that_is_stopped_goes_on_in_the_next_one(slurm, tmp_path, word):
    chosen = {**LONG, "beta": 5.7}
    submit(tmp_path / "jobs", **chosen)
    run = Run(tmp_path / "jobs" / "b5.7_8x8x8x8_chain1")
    wait_for(lambda: run.begun() and run.holder()[0].sweep > 10)
    job = queued()[0].split()[0]
    output("scancel", *word, job)
    wait_for(lambda: not queued())
    assert not run.holder()[1]
    submit(tmp_path / "jobs")
    wait_for(lambda: not queued())
    generate(run.read()[0], output=tmp_path / "alone", progress=False, backend="cpu", threads=1)
    assert written(run.path) == written(tmp_path / "alone")


def test_a_job_that_puts_itself_back_into_the_queue(slurm, tmp_path):
    """The script of the documentation, with a first time limit that is too short for the run."""
    chosen = {**LONG, "beta": 5.7}
    words = " ".join(f"--{name} {value}" for name, value in chosen.items())
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/bash\n#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output=log\n"
        '[ -n "$SLURM_RESTART_COUNT" ] && limit=1:0:0 || limit=0:0:2\n'
        f"gauge-mc generate {words} --threads 1 --output run --time-limit $limit\n"
        "code=$?\necho ended with $code\n"
        'if [ $code -eq 75 ]; then scontrol requeue "$SLURM_JOB_ID"; fi\nexit $code\n'
    )
    output("sbatch", "--chdir", str(tmp_path), str(script))
    log = tmp_path / "log"
    # Slurm lets a job wait for two minutes before it begins again.
    wait_for(lambda: log.exists() and "ended with 0" in log.read_text())
    assert log.read_text().count("ended with 75") > 0
    wait_for(lambda: not queued())
    generate(**chosen, output=tmp_path / "alone", progress=False, backend="cpu", threads=1)
    assert written(tmp_path / "run") == written(tmp_path / "alone")
