"""Batch systems, to which ``gauge-mc scan --submit`` hands an array of jobs.

Each batch system is a subclass of `BatchSystem` that is registered in `BATCH_SYSTEMS`. It says how
a script asks for the jobs, how the command that submits it is called, and what that answers. A job
carries out one run with ``gauge-mc generate``, which writes a checkpoint before its time is up and
then ends with exit code 75.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import join, quote
from typing import ClassVar

from gauge_mc.errors import INTERRUPTED
from gauge_mc.libraries import PYTHON
from gauge_mc.registry import Registry

MARGIN = 90
"""Seconds before the end of its time in which a job writes a checkpoint and stops."""

TIME, TOGETHER = "time", "array_parallelism"
"""Options that all batch systems have: the time limit of a job, and the maximum number of jobs at
the same time."""

JOB_NAME = "gauge-mc"
"""Usual name of the jobs."""

COMMAND = (*PYTHON, "-u", "-m", "gauge_mc", "generate", "--card")
"""Words of the command that carries out a run, before the path of its run card."""


@dataclass(frozen=True)
class JobArray:
    """Jobs that a batch system carries out independently of each other."""

    folder: Path
    """Absolute path of the folder with the script, the run cards and the logs."""
    jobs: int
    """Number of jobs."""
    minutes: int
    """Time limit of each job."""
    together: int | None = None
    """Maximum number of jobs at the same time; None for no limit."""
    options: Mapping[str, str | None] = field(default_factory=dict)
    """Options of the batch system as the user gives them; None for one without a value."""
    cores: int = 1
    """Number of cores of each job, unless the options state it."""
    memory: int | None = None
    """Memory of each job in MiB, unless the options state it; None if it is not known."""

    @property
    def seconds(self) -> int:
        """Time limit of each job in seconds."""
        return 60 * self.minutes

    @property
    def limit(self) -> str:
        """The suffix ``%N`` of the indices of an array of which N jobs run at the same time."""
        return f"%{self.together}" if self.together else ""


class BatchSystem(ABC):
    """A batch system."""

    name: ClassVar[str]
    """Name on the command line."""
    title: ClassVar[str]
    """Name in sentences."""
    stopped: ClassVar[str]
    """Fate of jobs that are stopped before they are complete, for the documentation."""
    program: ClassVar[str]
    """Command that submits a script."""
    queue: ClassVar[str]
    """Command that shows the jobs of an array, before its ID."""
    answer: ClassVar[str]
    """Regular expression for the answer of the command that submits; its group is the ID."""
    index: ClassVar[str]
    """Index of a job in the array, as the script reads it."""
    mark: ClassVar[str] = ""
    """Beginning of the lines of a script that the batch system reads."""
    first: ClassVar[int] = 0
    """Index of the first job."""
    warns: ClassVar[bool] = True
    """Whether the batch system can send a signal before the time of a job is up. Otherwise the run
    keeps the time itself.
    """
    by_input: ClassVar[bool] = False
    """Whether the command that submits reads the script from standard input."""
    launcher: ClassVar[str] = ""
    """Words before the command of a job."""
    keys: ClassVar[str] = "[A-Za-z][A-Za-z0-9_-]*"
    """Regular expression for the names of options."""
    dashes: ClassVar[bool] = False
    """Whether names of options have dashes where the user may write underscores."""
    fixed: ClassVar[tuple[str, ...]] = ()
    """Options that are left to the script: what the jobs execute, and a time limit by its own name.
    """
    cores: ClassVar[tuple[str, ...]] = ()
    """Options that state the cores of a job, of which the script has the first."""
    memory: ClassVar[tuple[str, ...]] = ()
    """Options that state its memory, of which the script has the first."""
    amount: ClassVar[str] = ""
    """Format of the value of that option, given the memory in MiB."""
    common: ClassVar[str] = ""
    """Other options that users give, by which those of another batch system are recognised."""
    replaced: ClassVar[tuple[str, ...]] = ()
    """Words that are replaced in names of logs, so that no folder can have them in its name."""

    @abstractmethod
    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the lines of a script that the batch system reads, without `mark`."""

    def script(self, array: JobArray) -> str:
        """Return the script of an array, which can also be submitted by hand."""
        marked = [f"{self.mark} {one}\n" for one in self.directives(array)]
        card = f"{quote(str(array.folder))}/{self.index}.toml"
        words = " ".join(filter(None, ["exec", self.launcher, join(COMMAND), card]))
        return f"#!/bin/bash\n{''.join(marked)}{words}\n"

    @property
    def known(self) -> set[str]:
        """Options by which those of another batch system are recognised, with underscores."""
        return {one.replace("-", "_") for one in (*self.cores, *self.memory, *self.common.split())}

    def options(self, array: JobArray, usual: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the options of jobs: those of the user, and others that these do not replace."""
        memory = self.amount.format(array.memory) if array.memory else None
        asked = dict(usual)
        for names, value in ((self.cores, str(array.cores)), (self.memory, memory)):
            if names and value and not array.options.keys() & {*names}:
                asked[names[0]] = value
        return asked | dict(array.options)

    def words(self, script: Path) -> list[str]:
        """Return the command that submits a script."""
        return [self.program] if self.by_input else [self.program, str(script)]

    def command(self, script: Path) -> str:
        """Return the command that submits a script, as a shell takes it."""
        words = join(self.words(script))
        return f"{words} < {quote(str(script))}" if self.by_input else words

    def job_id(self, answer: str) -> str | None:
        """Return the ID of an array; None if the answer to its submission has none."""
        found = re.search(self.answer, answer, re.M)
        return found[1] if found else None


BATCH_SYSTEMS: Registry[BatchSystem] = Registry("batch system", __name__, BatchSystem)


def hours(seconds: int) -> str:
    """Return a time as HH:MM:SS."""
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"


class Slurm(BatchSystem):
    """Slurm, whose options are those of ``sbatch``.

    The jobs are steps of ``srun``, which a signal reaches before the time is up and by ``scancel
    --signal``.
    """

    name: ClassVar[str] = "slurm"
    title: ClassVar[str] = "Slurm"
    stopped: ClassVar[str] = "are submitted again by the same command"
    program: ClassVar[str] = "sbatch"
    queue: ClassVar[str] = "squeue --jobs"
    answer: ClassVar[str] = r"^Submitted batch job (\d+)"
    index: ClassVar[str] = "$SLURM_ARRAY_TASK_ID"
    mark: ClassVar[str] = "#SBATCH"
    dashes: ClassVar[bool] = True
    fixed: ClassVar[tuple[str, ...]] = ("array", "wrap", "a")
    cores: ClassVar[tuple[str, ...]] = ("cpus-per-task", "cpus-per-gpu")
    memory: ClassVar[tuple[str, ...]] = ("mem", "mem-per-cpu", "mem-per-gpu")
    amount: ClassVar[str] = "{}M"
    common: ClassVar[str] = "account partition qos constraint gres gpus gpus-per-node nodes"
    # srun does not take over the processors per task of sbatch.
    launcher: ClassVar[str] = "srun ${SLURM_CPUS_PER_TASK:+-c$SLURM_CPUS_PER_TASK}"

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the options of the script; see `BatchSystem.directives`."""
        folder = str(array.folder).replace("%", "%%")
        usual = {
            "job-name": JOB_NAME,
            "nodes": "1",
            "open-mode": "append",
            "output": f"{folder}/%a.log",
            "signal": f"USR1@{MARGIN}",
        }
        yield f"--array=0-{array.jobs - 1}{array.limit}"
        yield f"--time={array.minutes}"
        for key, value in self.options(array, usual).items():
            yield f"--{key}" if value is None else f"--{key}={quote(value)}"


BATCH_SYSTEMS.register(Slurm())


class PBS(BatchSystem):
    """PBS, whose options of one letter are those of ``qsub``, and whose others are resources.

    PBS sends no signal in time, so that a run keeps the time itself. It knows no array of a single
    job, which therefore is none, and has no index.
    """

    name: ClassVar[str] = "pbs"
    title: ClassVar[str] = "PBS"
    stopped: ClassVar[str] = "are submitted again by the same command"
    program: ClassVar[str] = "qsub"
    queue: ClassVar[str] = "qstat -t"
    answer: ClassVar[str] = r"^(\d+(?:\[\])?(?:\.[\w.-]+)?)$"
    index: ClassVar[str] = "${PBS_ARRAY_INDEX:-0}"
    mark: ClassVar[str] = "#PBS"
    fixed: ClassVar[tuple[str, ...]] = ("J", "walltime")
    # A job either selects chunks, or names its resources.
    cores: ClassVar[tuple[str, ...]] = ("ncpus", "select", "nodes")
    memory: ClassVar[tuple[str, ...]] = ("mem", "select", "nodes")
    amount: ClassVar[str] = "{}mb"
    common: ClassVar[str] = "q A P place ngpus vmem"
    replaced: ClassVar[tuple[str, ...]] = ("^array_index^",)
    warns: ClassVar[bool] = False

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the options of the script; see `BatchSystem.directives`."""
        several = array.jobs > 1
        log = "^array_index^" if several else "0"
        usual = {"N": JOB_NAME, "V": None, "j": "oe", "o": f"{array.folder}/{log}.log"}
        if several:
            yield f"-J 0-{array.jobs - 1}{array.limit}"
        yield f"-l walltime={hours(array.seconds)}"
        for key, value in self.options(array, usual).items():
            if len(key) == 1:
                yield f"-{key}" if value is None else f"-{key} {quote(value)}"
            else:
                yield f"-l {key}" if value is None else f"-l {key}={quote(value)}"


BATCH_SYSTEMS.register(PBS())


class LSF(BatchSystem):
    """LSF, whose options are those of ``bsub``.

    It numbers jobs from 1, and queues those again that end with the exit code of a stopped run.
    """

    name: ClassVar[str] = "lsf"
    title: ClassVar[str] = "LSF"
    stopped: ClassVar[str] = "are queued again by LSF"
    program: ClassVar[str] = "bsub"
    queue: ClassVar[str] = "bjobs"
    answer: ClassVar[str] = r"^Job <(\d+)> is submitted"
    index: ClassVar[str] = "$LSB_JOBINDEX"
    mark: ClassVar[str] = "#BSUB"
    fixed: ClassVar[tuple[str, ...]] = ("E", "Ep", "W")
    cores: ClassVar[tuple[str, ...]] = ("n",)
    memory: ClassVar[tuple[str, ...]] = ("R", "M")
    amount: ClassVar[str] = "span[hosts=1] rusage[mem={}MB]"
    common: ClassVar[str] = "q P gpu app G sla"
    replaced: ClassVar[tuple[str, ...]] = ("%I", "%J")
    first: ClassVar[int] = 1
    by_input: ClassVar[bool] = True

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the options of the script; see `BatchSystem.directives`."""
        usual = {
            "Q": str(INTERRUPTED),
            "R": "span[hosts=1]",
            "o": f"{array.folder}/%I.log",
            "wa": "USR1",
            "wt": str(-(-MARGIN // 60)),  # minutes
        }
        given = dict(array.options)
        name = given.pop("J", None) or JOB_NAME
        yield f"-J {quote(f'{name}[1-{array.jobs}]{array.limit}')}"
        yield f"-W {array.minutes}"
        for key, value in self.options(replace(array, options=given), usual).items():
            yield f"-{key}" if value is None else f"-{key} {quote(value)}"


BATCH_SYSTEMS.register(LSF())


class HTCondor(BatchSystem):
    """HTCondor, whose options are commands of a submit description.

    A job stays in the queue, and begins again, until it ends with another exit code than that of a
    stopped run. HTCondor sends no signal before the time of a job is up, so that a run keeps the
    time itself. The hosts must share the folder of the scan.
    """

    name: ClassVar[str] = "htcondor"
    title: ClassVar[str] = "HTCondor"
    stopped: ClassVar[str] = "stay in the queue and begin again"
    program: ClassVar[str] = "condor_submit"
    queue: ClassVar[str] = "condor_q"
    answer: ClassVar[str] = r"submitted to cluster (\d+)"
    index: ClassVar[str] = "$(Process)"
    warns: ClassVar[bool] = False
    keys: ClassVar[str] = r"\+?[A-Za-z][A-Za-z0-9_.]*"
    fixed: ClassVar[tuple[str, ...]] = (
        *("universe", "executable", "arguments", "queue", "allowed_execute_duration"),
    )
    cores: ClassVar[tuple[str, ...]] = ("request_cpus",)
    memory: ClassVar[tuple[str, ...]] = ("request_memory",)
    amount: ClassVar[str] = "{}MB"
    common: ClassVar[str] = "request_gpus request_disk requirements rank accounting_group"

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the commands of the submit description; see `BatchSystem.directives`."""
        program, *words = COMMAND
        folder = _literal(str(array.folder))
        card = f"{_literal(str(array.folder), quoted=True)}/{self.index}.toml"
        usual: dict[str, str | None] = {
            "universe": "vanilla",
            "executable": _literal(program),
            "arguments": f"\"{' '.join(words)} '{card}'\"",
            "output": f"{folder}/{self.index}.log",
            "error": f"{folder}/{self.index}.err",
            "log": f"{folder}/events.log",
            "getenv": "True",
            "should_transfer_files": "NO",
            "batch_name": JOB_NAME,
            "allowed_execute_duration": str(array.seconds),
            "on_exit_remove": f"(ExitBySignal =?= True) || (ExitCode =!= {INTERRUPTED})",
        }
        if array.together:
            usual["max_materialize"] = str(array.together)
        for key, value in self.options(array, usual).items():
            yield f"{key} = {'True' if value is None else value}"
        yield f"queue {array.jobs}"

    def script(self, array: JobArray) -> str:
        """Return the submit description of an array."""
        return "".join(f"{one}\n" for one in self.directives(array))


def _literal(text: str, quoted: bool = False) -> str:
    """Return a text whose characters mean themselves; `quoted` between quotes of arguments."""
    text = text.replace("$", "$(DOLLAR)")
    return text.replace("'", "''").replace('"', '""') if quoted else text


BATCH_SYSTEMS.register(HTCondor())
