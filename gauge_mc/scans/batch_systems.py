"""Arrays of jobs: one job of a batch system for each run of a scan.

Every array has a folder of its own in that of the scan, ``jobs/1``, ``jobs/2`` and so on, with the
script, a run card for each job, and their logs. The script can be submitted again by hand, which
continues the runs that are not complete.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import join, quote
from typing import ClassVar

from gauge_mc.errors import INTERRUPTED, GaugeError, UsageError
from gauge_mc.files.atomic import complete_folder, write_file
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json
from gauge_mc.libraries import PYTHON
from gauge_mc.quoting import shortened
from gauge_mc.registry import Registry
from gauge_mc.results import documented, result_field
from gauge_mc.run.lock import refuse_in_use
from gauge_mc.run.log import SUBMITTED, RunLog, logged_session
from gauge_mc.run.settings import Execution
from gauge_mc.scans.display import Tally
from gauge_mc.scans.forecast import job_needs
from gauge_mc.scans.ladders import ladders
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Member, Scan

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
        marked = [f"{self.mark} {d}\n" for d in self.directives(array)]
        card = f"{quote(str(array.folder))}/{self.index}.toml"
        words = " ".join(filter(None, ["exec", self.launcher, join(COMMAND), card]))
        return f"#!/bin/bash\n{''.join(marked)}{words}\n"

    @property
    def known(self) -> set[str]:
        """Options by which those of another batch system are recognised, with underscores."""
        return {
            core.replace("-", "_") for core in (*self.cores, *self.memory, *self.common.split())
        }

    def options(self, array: JobArray, usual: Mapping[str, str | None]) -> dict[str, str | None]:
        """Return the options of jobs: those of the user, and others that these do not replace."""
        memory = self.amount.format(array.memory) if array.memory else None
        settings = dict(usual)
        for names, value in ((self.cores, str(array.cores)), (self.memory, memory)):
            if names and value and not array.options.keys() & {*names}:
                settings[names[0]] = value
        return settings | dict(array.options)

    def words(self, script: Path) -> list[str]:
        """Return the command that submits a script."""
        return [self.program] if self.by_input else [self.program, str(script)]

    def command(self, script: Path) -> str:
        """Return the command that submits a script, as a shell takes it."""
        words = join(self.words(script))
        return f"{words} < {quote(str(script))}" if self.by_input else words

    def job_id(self, answer: str) -> str | None:
        """Return the ID of an array; None if the answer to its submission has none."""
        match = re.search(self.answer, answer, re.M)
        return match[1] if match else None


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
        options = dict(array.options)
        name = options.pop("J", None) or JOB_NAME
        yield f"-J {quote(f'{name}[1-{array.jobs}]{array.limit}')}"
        yield f"-W {array.minutes}"
        for key, value in self.options(replace(array, options=options), usual).items():
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
        return "".join(f"{d}\n" for d in self.directives(array))


def _literal(text: str, quoted: bool = False) -> str:
    """Return a text whose characters mean themselves; `quoted` between quotes of arguments."""
    text = text.replace("$", "$(DOLLAR)")
    return text.replace("'", "''").replace('"', '""') if quoted else text


BATCH_SYSTEMS.register(HTCondor())


RECORD = "submitted.json"
"""File in the folder of an array that says who has accepted it."""

MAX_RECORD = 2**16
"""Maximum size of that file in bytes."""

DIGITS = "[0-9]{1,9}"
"""Pattern of the numbers in options."""


@dataclass(frozen=True)
class JobRequest:
    """The batch system that the user chooses, and its options."""

    system: BatchSystem
    """The batch system."""
    minutes: int
    """Time limit of each job; 0 if the user leaves it to a forecast."""
    together: int | None
    """Maximum number of jobs at the same time; None for no limit."""
    options: dict[str, str | None]
    """Options of the batch system; None for one without a value."""
    memory: int | None = None
    """Memory of each job in MiB by a forecast; None if there is none."""

    @classmethod
    def of(cls, name: str, words: Sequence[str]) -> JobRequest:
        """Read options: ``KEY=VALUE``, or ``KEY`` for one without a value."""
        BATCH_SYSTEMS.check(name, "--submit")
        system = BATCH_SYSTEMS[name]
        options: dict[str, str | None] = {}
        for word in words:
            key, equals, value = word.partition("=")
            key = key.strip().lstrip("-")
            if not re.fullmatch(system.keys, key) or not value.isprintable():
                raise UsageError(
                    f"--submit-option: '{shortened(word)}' is not of the form KEY=VALUE, as in "
                    "time=12:00:00."
                )
            if {key, key.lower()} & {*system.fixed}:
                raise UsageError(
                    f"--submit-option: {key} is decided by the script; leave it out, and give a "
                    f"time limit as {TIME}=12:00:00."
                )
            option = key.replace("-", "_")
            systems = [] if option in system.known else BATCH_SYSTEMS.values()
            if owner := next((x for x in systems if option in x.known), None):
                raise UsageError(
                    f"--submit-option: {key} is an option of {owner.title} and not of "
                    f"{system.title}; give that of {system.title}, or leave it out."
                )
            key = option.replace("_", "-") if system.dashes else key
            options[option if option in (TIME, TOGETHER) else key] = value if equals else None
        minutes = parse_minutes(options.pop(TIME) or "") if TIME in options else 0
        together = None
        if TOGETHER in options:
            text = options.pop(TOGETHER) or ""
            together = int(text) if re.fullmatch(DIGITS, text) else 0
            if not together:
                raise UsageError(
                    f"--submit-option: {TOGETHER} must be a positive whole number, not "
                    f"'{shortened(text)}'."
                )
        return cls(system, minutes, together, options)

    def forecast(self, members: Sequence[Member], execution: Execution) -> JobRequest:
        """Return the request with a time and a memory that suffice, where the user states none.

        Without a time limit of the user, there must be a forecast. With one it is left out where
        runs are tried for long, those with dynamical quarks, and where they cannot be tried.
        """
        memory = self.system.memory
        stated = not memory or self.options.keys() & {*memory}
        if self.minutes and (
            stated or any(member.parameters.algorithm.labels for member in members)
        ):
            return self
        try:
            minutes, mib = job_needs(members, execution)
        except GaugeError as error:
            if self.minutes:
                return self
            raise UsageError(
                f"The time of the jobs is not known, since runs cannot be tried here "
                f"({str(error).rstrip('.')}); give it, as in --submit-option time=12:00:00."
            ) from error
        return replace(self, minutes=self.minutes or minutes, memory=mib)


def parse_minutes(text: str) -> int:
    """Convert a time to minutes, rounded up.

    The formats are M, M:S, H:M:S, D-H, D-H:M and D-H:M:S.
    """
    days, dash, rest = text.rpartition("-")
    words = rest.split(":")
    parts = [*words, *([days] if dash else [])]
    if not all(re.fullmatch(DIGITS, part) for part in parts) or len(words) > 3:
        raise UsageError(
            f"--submit-option: time={shortened(text)} is not of the form HH:MM:SS or D-HH:MM:SS."
        )
    numbers = [int(word) for word in words]
    units = (3600, 60, 1) if dash or len(numbers) == 3 else (60, 1)
    seconds = sum(n * unit for n, unit in zip(numbers, units, strict=False))
    seconds += 86400 * int(days) if dash else 0
    if not seconds:
        raise UsageError(f"--submit-option: time={text} must be longer than zero.")
    return -(-seconds // 60)


@dataclass(frozen=True)
class ArrayPlan:
    """An array of jobs that is not submitted yet."""

    request: JobRequest
    """The batch system and its options."""
    folder: Path
    """Absolute path of its folder, which does not exist yet."""
    members: Sequence[Member]
    """The runs, in the order of the jobs."""
    execution: Execution
    """How the runs are carried out."""

    @classmethod
    def of(
        cls, request: JobRequest, jobs: Path, members: Sequence[Member], execution: Execution
    ) -> ArrayPlan:
        """Return an array in the next folder of those in `jobs`."""
        folder = jobs.absolute() / str(max(_numbers(jobs), default=0) + 1)
        replaced = any(word in str(folder) for word in request.system.replaced)
        if replaced or not str(folder).isprintable():
            raise UsageError(
                "The path of the scan has characters that a script cannot have; choose another "
                "--output."
            )
        return cls(request, folder, members, execution)

    @property
    def script(self) -> Path:
        """The script."""
        return self.folder / f"array.{self.request.system.name}"

    @property
    def command(self) -> str:
        """The command that submits the script."""
        return self.request.system.command(self.script)

    def text(self) -> str:
        """Return the content of the script."""
        r = self.request
        jobs = self.folder, len(self.members), r.minutes, r.together, r.options
        return r.system.script(JobArray(*jobs, self.execution.threads or 1, r.memory))

    def submit(self) -> str:
        """Write the folder and submit the array; return its ID."""
        self._write()
        try:
            answer = self._answer()
        except GaugeError:
            shutil.rmtree(self.folder)
            raise
        system = self.request.system
        job = system.job_id(answer)
        if not job:
            raise GaugeError(
                f"{system.program} has answered '{shortened(_last_line(answer))}' instead of the "
                f"ID of the jobs; look in the queue whether {system.title} has them."
            )
        submitted = json.dumps({"system": system.name, "job": job})
        write_file(self.folder / RECORD, f"{submitted}\n")
        return job

    def _write(self) -> None:
        import tomli_w

        with complete_folder(self.folder) as temporary:
            for number, member in enumerate(self.members, self.request.system.first):
                write_file(temporary / f"{number}.toml", tomli_w.dumps(self._card(member)))
            write_file(temporary / self.script.name, self.text())

    def _card(self, member: Member) -> dict[str, object]:
        """Return the run card of a job."""
        e, limit = self.execution, self.execution.time_limit
        if not self.request.system.warns:
            seconds = 60 * self.request.minutes
            limit = min(limit or seconds, max(seconds - MARGIN, seconds // 2))
        settings = {
            "output": str(member.run.path.absolute()),
            "backend": e.backend,
            "devices": e.devices,
            "threads": e.threads,
            "checkpoint_every": e.checkpoint_every,
            "time_limit": None if limit is None else f"0:0:{limit:.0f}",
        }
        stated = {name: value for name, value in settings.items() if value is not None}
        return {**member.parameters.values(), **stated}

    def _answer(self) -> str:
        """Let the batch system have the array; return what it answers."""
        system = self.request.system
        script = self.text() if system.by_input else None
        try:
            process = subprocess.run(
                system.words(self.script), input=script, capture_output=True, text=True, check=False
            )
        except FileNotFoundError as error:
            raise GaugeError(
                f"{system.title} is not installed on this machine ({system.program} is missing); "
                "submit on a machine that has it."
            ) from error
        except (OSError, ValueError) as error:  # among them what is not text
            raise GaugeError(
                f"The jobs cannot be submitted by {system.program}: {error}."
            ) from error
        if process.returncode:
            reason = (
                _last_line(process.stderr) or _last_line(process.stdout) or "it gives no reason"
            )
            raise GaugeError(f"{system.title} rejected the jobs: {reason}.")
        return process.stdout


@documented
@dataclass(frozen=True)
class Submission:
    """The jobs of a scan for a batch system, submitted or, with ``--dry-run``, about to be."""

    scan: str = result_field("Scan directory.")
    job: str | None = result_field(
        "ID of the job array; None if no run was left to be submitted, or none was submitted."
    )
    submitted: Sequence[str] = result_field(
        "Run directories of the jobs, in the order of their indices in the array."
    )
    all_runs: int = result_field("Number of runs.")
    complete: int = result_field("Number of complete runs.")
    submit_by: str | None = result_field(
        "Command that submits the script of the array; None if no run is left."
    )
    script: str | None = result_field("Script of the array; None if no run is left.")

    def __str__(self) -> str:
        progress = f"{self.scan}: {self.complete} of {self.all_runs} runs complete"
        if self.submit_by and not self.job:
            return f"{progress}, {len(self.submitted)} to be submitted by: {self.submit_by}"
        array = f" as job {self.job}" if self.job else ""
        return f"{progress}, {len(self.submitted)} submitted{array}"


def submit(
    scan_request: ScanRequest, system: str, words: Sequence[str], dry_run: bool = False
) -> Submission:
    """Submit a job for each run that is neither complete nor running."""
    request = JobRequest.of(system, words)
    if ladders(scan_request.scan().members()):
        raise UsageError(
            "--submit makes a job of every run, and runs that exchange their couplings are one "
            "process; repeat the command without --submit in a job, or leave out --tempering."
        )
    scan_request.check_runs()
    if dry_run:
        scan_request.scan().check_place()
        refuse_in_use(scan_request.scan().lock)
        return _submission(scan_request.scan(), request, scan_request.execution)
    with scan_request.locked(write=False) as scan:
        return _submission(scan, request, scan_request.execution, RunLog(scan.path))


def _submission(
    scan: Scan, request: JobRequest, execution: Execution, log: RunLog | None = None
) -> Submission:
    """Return the jobs of a scan; if there is a log, submit them, and write the scan.

    Nothing is written if the jobs are refused.
    """
    tally = Tally(scan.members())
    remaining = [
        member for member in tally.members if not (tally.done(member) or member.run.holder()[1])
    ]
    job = array = None
    if remaining:
        array = ArrayPlan.of(
            request.forecast(remaining, execution), scan.jobs, remaining, execution
        )
    if array and log:
        try:
            job = array.submit()
        finally:
            if array.folder.exists():  # the batch system may have the jobs
                scan.write()
        with logged_session([log], devices=request.system.name, runs=len(remaining)) as ended:
            ended |= {"ended": SUBMITTED, "job": job}
    elif log:
        scan.write()
    return Submission(
        str(scan.path),
        job,
        [str(x.run.path) for x in remaining],
        len(tally.members),
        sum(map(tally.done, tally.members)),
        array.command if array else None,
        array.text() if array else None,
    )


def last_array(jobs: Path) -> tuple[str | None, str | None, str | None]:
    """Return the array that was submitted last, of those with folders in `jobs`."""
    for number in sorted(_numbers(jobs), reverse=True):
        with suppress(GaugeError, ValueError, LookupError, TypeError):
            record = parse_json(read_text(jobs / str(number) / RECORD, MAX_RECORD))
            system, job = BATCH_SYSTEMS[str(record["system"])], str(record["job"])
            return job, system.name, f"{system.queue} {quote(job)}"
    return None, None, None


def _numbers(jobs: Path) -> list[int]:
    """Return the numbers of the folders of arrays."""
    return [int(path.name) for path in jobs.glob("*") if re.fullmatch(DIGITS, path.name)]


def _last_line(text: str) -> str:
    """Return the last line of what a program has printed."""
    return text.strip().rpartition("\n")[2].strip().rstrip(".")
