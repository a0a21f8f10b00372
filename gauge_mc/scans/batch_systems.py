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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import join, quote

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

COMMAND = (*PYTHON, "-u", "-m", "gauge_mc", "generate", "--card")
"""Words of the command that carries out a run, before the path of its run card."""


@dataclass(frozen=True, kw_only=True)
class BatchSystem:
    """A batch system, and how its scripts ask for an array of jobs.

    Options of the script are written as users give them, ``KEY=VALUE`` or ``KEY``. Braces stand for
    what an array has: ``{jobs}`` and ``{last}``, the number of jobs and the number before it;
    ``{together}``, how many of them may run at the same time, and ``{limit}``, ``%`` and that
    number, both empty without a limit; ``{time}``, ``{minutes}`` and ``{seconds}``, the time limit
    of a job; ``{cores}``, and ``{memory}`` in MiB; ``{name}`` of the jobs; ``{folder}`` of the run
    cards and logs, and ``{argument}``, the same within quotes; ``{program}`` and ``{command}``, the
    first and all words that carry out a run, without the name of its card in that folder.
    """

    name: str
    """Name on the command line."""
    title: str
    """Name in sentences."""
    stopped: str = "are submitted again by the same command"
    """Fate of jobs that are stopped before they are complete, for the documentation."""
    program: str
    """Command that submits a script."""
    queue: str
    """Command that shows the jobs of an array, before its ID."""
    answer: str
    """Regular expression for the answer of the command that submits; its group is the ID."""
    usual: str
    """Options of the script with "; " between them. Those with an empty value are left out. A batch
    system that is not asked for USR1 before the time is up leaves the time to the run."""
    single: str = ""
    """Such options that differ for a single job, after "; "."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Values of options for cores and memory. The script has the first of several names, unless the
    user gives one of them."""
    option: tuple[str, str]
    """Lines of an option: ``{key}`` with a ``{value}``, or that ``{quoted}``, and without any."""
    resource: tuple[str, str] | None = None
    """The same for names of several letters, if they differ."""
    script: str
    """The script, given these lines as ``{options}``."""
    escape: tuple[str, str] = ("", "")
    """Character that has a meaning in paths, and what stands for it."""
    first: int = 0
    """Index of the first job."""
    by_input: bool = False
    """Whether the command that submits reads the script from standard input."""
    keys: str = "[A-Za-z][A-Za-z0-9_-]*"
    """Regular expression for the names of options."""
    dashes: bool = False
    """Whether names of options have dashes where the user may write underscores."""
    naming: str = ""
    """Option that names the jobs, if the script writes more into it."""
    fixed: str
    """Options left to the script: what the jobs execute, and a time limit by its own name."""
    common: str = ""
    """Other options that users give, by which those of another batch system are recognised."""
    replaced: str = ""
    """Words that are replaced in names of logs, so that no folder can have them in its name."""

    @property
    def known(self) -> set[str]:
        """Options by which those of another batch system are recognised, with underscores."""
        return {*" ".join([*self.needs, self.common]).replace("-", "_").split()}

    def read(self, word: str) -> tuple[str, str | None]:
        """Return name and value of an option as the user gives it."""
        key, equals, value = word.partition("=")
        key = key.strip().lstrip("-")
        if not re.fullmatch(self.keys, key) or not value.isprintable():
            raise UsageError(
                f"--submit-option: '{shortened(word)}' is not of the form KEY=VALUE, as in "
                "time=12:00:00."
            )
        if {key, key.lower()} & {*self.fixed.split()}:
            raise UsageError(
                f"--submit-option: {key} is decided by the script; leave it out, and give a "
                f"time limit as {TIME}=12:00:00."
            )
        option = key.replace("-", "_")
        systems = [] if option in self.known else BATCH_SYSTEMS.values()
        if owner := next((x for x in systems if option in x.known), None):
            raise UsageError(
                f"--submit-option: {key} is an option of {owner.title} and not of "
                f"{self.title}; give that of {self.title}, or leave it out."
            )
        if option not in (TIME, TOGETHER):
            option = option.replace("_", "-") if self.dashes else key
        return option, value if equals else None

    def options(
        self, given: Mapping[str, str | None], values: Mapping[str, object], single: bool
    ) -> dict[str, str | None]:
        """Return the options of a script: those of the user, and the usual ones."""
        words = f"{self.usual}{self.single if single else ''}".split("; ")
        for names, amount in self.needs.items():
            unknown = "{memory}" in amount and not values["memory"]
            if not (unknown or given.keys() & {*names.split()}):
                words.append(f"{names.split()[0]}={amount}")
        items = (word.partition("=") for word in words)
        usual = {key: text.format(**values) if equals else None for key, equals, text in items}
        return {key: text for key, text in usual.items() if text != ""} | {**given}

    def line(self, key: str, value: str | None) -> str:
        """Return the line of a script with an option."""
        forms = self.resource if self.resource and len(key) > 1 else self.option
        return forms[value is None].format(key=key, value=value, quoted=quote(value or ""))

    def job_id(self, answer: str) -> str | None:
        """Return the ID of an array; None if the answer to its submission has none."""
        match = re.search(self.answer, answer, re.M)
        return match[1] if match else None


BATCH_SYSTEMS: Registry[BatchSystem] = Registry("batch system", __name__, BatchSystem)

SLURM = BatchSystem(
    name="slurm",
    title="Slurm",
    program="sbatch",
    queue="squeue --jobs",
    answer=r"^Submitted batch job (\d+)",
    usual="array=0-{last}{limit}; time={minutes}; job-name={name}; nodes=1; open-mode=append; "
    f"output={{folder}}/%a.log; signal=USR1@{MARGIN}",
    needs={"cpus-per-task cpus-per-gpu": "{cores}", "mem mem-per-cpu mem-per-gpu": "{memory}M"},
    option=("#SBATCH --{key}={quoted}\n", "#SBATCH --{key}\n"),
    # Signals reach steps of srun, which does not take over the processors per task of sbatch.
    script="#!/bin/bash\n{options}"
    "exec srun ${{SLURM_CPUS_PER_TASK:+-c$SLURM_CPUS_PER_TASK}} "
    "{command}/$SLURM_ARRAY_TASK_ID.toml\n",
    escape=("%", "%%"),
    dashes=True,
    fixed="array wrap a",
    common="account partition qos constraint gres gpus gpus-per-node nodes",
)

PBS = BatchSystem(
    name="pbs",
    title="PBS",
    program="qsub",
    queue="qstat -t",
    answer=r"^(\d+(?:\[\])?(?:\.[\w.-]+)?)$",
    usual="J=0-{last}{limit}; walltime={time}; N={name}; V; j=oe; o={folder}/^array_index^.log",
    single="; J=; o={folder}/0.log",  # of which it knows no array
    # A job either selects chunks, or names its resources.
    needs={"ncpus select nodes": "{cores}", "mem select nodes": "{memory}mb"},
    option=("#PBS -{key} {quoted}\n", "#PBS -{key}\n"),
    resource=("#PBS -l {key}={quoted}\n", "#PBS -l {key}\n"),
    script="#!/bin/bash\n{options}exec {command}/${{PBS_ARRAY_INDEX:-0}}.toml\n",
    fixed="J walltime",
    common="q A P place ngpus vmem",
    replaced="^array_index^",
)

LSF = BatchSystem(  # which queues jobs again that end with the code INTERRUPTED
    name="lsf",
    title="LSF",
    stopped="are queued again by LSF",
    program="bsub",
    queue="bjobs",
    answer=r"^Job <(\d+)> is submitted",
    usual="J={name}[1-{jobs}]{limit}; W={minutes}; "
    f"Q={INTERRUPTED}; R=span[hosts=1]; o={{folder}}/%I.log; wa=USR1; wt={-(-MARGIN // 60)}",
    needs={"n": "{cores}", "R M": "span[hosts=1] rusage[mem={memory}MB]"},
    option=("#BSUB -{key} {quoted}\n", "#BSUB -{key}\n"),
    script="#!/bin/bash\n{options}exec {command}/$LSB_JOBINDEX.toml\n",
    first=1,
    by_input=True,
    naming="J",
    fixed="E Ep W",
    common="q P gpu app G sla",
    replaced="%I %J",
)

HTCONDOR = BatchSystem(  # which queues such jobs again; the hosts must share the folder
    name="htcondor",
    title="HTCondor",
    stopped="stay in the queue and begin again",
    program="condor_submit",
    queue="condor_q",
    answer=r"submitted to cluster (\d+)",
    usual=f'universe=vanilla; executable={{program}}; arguments="{" ".join(COMMAND[1:])} '
    "'{argument}/$(Process).toml'\"; output={folder}/$(Process).log; "
    "error={folder}/$(Process).err; log={folder}/events.log; getenv=True; "
    "should_transfer_files=NO; batch_name={name}; allowed_execute_duration={seconds}; "
    f"on_exit_remove=(ExitBySignal =?= True) || (ExitCode =!= {INTERRUPTED}); "
    "max_materialize={together}",
    needs={"request_cpus": "{cores}", "request_memory": "{memory}MB"},
    option=("{key} = {value}\n", "{key} = True\n"),
    script="{options}queue {jobs}\n",
    escape=("$", "$(DOLLAR)"),
    keys=r"\+?[A-Za-z][A-Za-z0-9_.]*",
    fixed="universe executable arguments queue allowed_execute_duration",
    common="request_gpus request_disk requirements rank accounting_group",
)

for _system in (SLURM, PBS, LSF, HTCONDOR):
    BATCH_SYSTEMS.register(_system)


RECORD = "submitted.json"
"""File in the folder of an array that says who has accepted it."""

DIGITS = "[0-9]{1,9}"
"""Pattern of the numbers in options."""


@dataclass(frozen=True)
class JobRequest:
    """The batch system that the user chooses, and what its jobs ask for."""

    system: BatchSystem
    """The batch system."""
    minutes: int = 0
    """Time limit of each job; 0 if the user leaves it to a forecast."""
    together: int | None = None
    """Maximum number of jobs at the same time; None for no limit."""
    options: Mapping[str, str | None] = field(default_factory=dict)
    """Options of the batch system; None for one without a value."""
    memory: int | None = None
    """Memory of each job in MiB by a forecast; None if there is none."""

    @classmethod
    def of(cls, name: str, words: Sequence[str]) -> JobRequest:
        """Read options: ``KEY=VALUE``, or ``KEY`` for one without a value."""
        BATCH_SYSTEMS.check(name, "--submit")
        system = BATCH_SYSTEMS[name]
        options = dict(system.read(word) for word in words)
        minutes = parse_minutes(options.pop(TIME) or "") if TIME in options else 0
        if TOGETHER not in options:
            return cls(system, minutes, None, options)
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
        needs = self.system.needs.items()
        memory = {x for names, amount in needs if "{memory}" in amount for x in names.split()}
        stated = not memory or memory & self.options.keys()
        if self.minutes and (stated or any(x.parameters.algorithm.labels for x in members)):
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
    number = f"({DIGITS})"
    match = re.fullmatch(f"(?:{number}-)?{number}(?::{number})?(?::{number})?", text)
    if not match:
        raise UsageError(
            f"--submit-option: time={shortened(text)} is not of the form HH:MM:SS or D-HH:MM:SS."
        )
    units = (86400, 3600, 60, 1) if match[1] or match[4] else (0, 60, 1, 0)
    seconds = sum(unit * int(x or 0) for unit, x in zip(units, match.groups(), strict=True))
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
        replaced = any(word in str(folder) for word in request.system.replaced.split())
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
        """The command that submits the script, as a shell takes it."""
        system, script = self.request.system, quote(str(self.script))
        return f"{system.program} < {script}" if system.by_input else f"{system.program} {script}"

    def text(self) -> str:
        """Return the content of the script, which can also be submitted by hand."""
        r, system, jobs = self.request, self.request.system, len(self.members)
        options = dict(r.options)
        place, program = (x.replace(*system.escape) for x in (str(self.folder), COMMAND[0]))
        values = {
            "jobs": jobs,
            "last": jobs - 1,
            "together": r.together or "",
            "limit": f"%{r.together}" if r.together else "",
            "time": f"{r.minutes // 60:02d}:{r.minutes % 60:02d}:00",
            "minutes": r.minutes,
            "seconds": 60 * r.minutes,
            "cores": self.execution.threads or 1,
            "memory": r.memory,
            "name": options.pop(system.naming, None) or "gauge-mc",
            "folder": place,
            "argument": place.replace("'", "''").replace('"', '""'),
            "program": program,
            "command": f"{join(COMMAND)} {quote(str(self.folder))}",
        }
        lines = (system.line(*item) for item in system.options(options, values, jobs == 1).items())
        return system.script.format(options="".join(lines), **values)

    def submit(self) -> str:
        """Write the folder and submit the array; return its ID."""
        import tomli_w

        system = self.request.system
        with complete_folder(self.folder) as temporary:
            for number, member in enumerate(self.members, system.first):
                write_file(temporary / f"{number}.toml", tomli_w.dumps(self._card(member)))
            write_file(temporary / self.script.name, self.text())
        try:
            answer = self._answer()
        except GaugeError:
            shutil.rmtree(self.folder)
            raise
        job = system.job_id(answer)
        if not job:
            raise GaugeError(
                f"{system.program} has answered '{shortened(_last_line(answer))}' instead of the "
                f"ID of the jobs; check in the queue whether {system.title} has them."
            )
        submitted = json.dumps({"system": system.name, "job": job})
        write_file(self.folder / RECORD, f"{submitted}\n")
        return job

    def _card(self, member: Member) -> dict[str, object]:
        """Return the run card of a job."""
        e, limit, seconds = self.execution, self.execution.time_limit, 60 * self.request.minutes
        if "USR1" not in self.request.system.usual:
            limit = min(limit or seconds, max(seconds - MARGIN, seconds // 2))
        names = ("backend", "devices", "threads", "checkpoint_every")
        settings = {
            "output": str(member.run.path.absolute()),
            **{name: getattr(e, name) for name in names},
            "time_limit": None if limit is None else f"0:0:{limit:.0f}",
        }
        stated = {name: value for name, value in settings.items() if value is not None}
        return {**member.parameters.values(), **stated}

    def _answer(self) -> str:
        """Let the batch system have the array; return what it answers."""
        system, by_input = self.request.system, self.request.system.by_input
        words = [system.program] if by_input else [system.program, str(self.script)]
        text = self.text() if by_input else None
        try:
            process = subprocess.run(words, input=text, capture_output=True, text=True, check=False)
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
            lines = map(_last_line, (process.stderr, process.stdout, "it gives no reason"))
            raise GaugeError(f"{system.title} rejected the jobs: {next(filter(None, lines))}.")
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
    request, scan = JobRequest.of(system, words), scan_request.scan()
    if ladders(scan.members()):
        raise UsageError(
            "--submit makes a job of every run, and runs that exchange their couplings are one "
            "process; repeat the command without --submit in a job, or leave out --tempering."
        )
    scan_request.check_runs()
    if dry_run:
        scan.check_place()
        refuse_in_use(scan.lock)
        return _submission(scan, request, scan_request.execution)
    with scan_request.locked(write=False) as scan:
        return _submission(scan, request, scan_request.execution, RunLog(scan.path))


def _submission(
    scan: Scan, request: JobRequest, execution: Execution, log: RunLog | None = None
) -> Submission:
    """Return the jobs of a scan; if there is a log, submit them, and write the scan.

    Nothing is written if the jobs are refused.
    """
    tally = Tally(scan.members())
    left = [x for x in tally.members if not (tally.done(x) or x.run.holder()[1])]
    job = array = None
    if left:
        array = ArrayPlan.of(request.forecast(left, execution), scan.jobs, left, execution)
    if array and log:
        try:
            job = array.submit()
        finally:
            if array.folder.exists():  # the batch system may have the jobs
                scan.write()
        with logged_session([log], devices=request.system.name, runs=len(left)) as ended:
            ended |= {"ended": SUBMITTED, "job": job}
    elif log:
        scan.write()
    return Submission(
        str(scan.path),
        job,
        [str(x.run.path) for x in left],
        len(tally.members),
        sum(map(tally.done, tally.members)),
        array.command if array else None,
        array.text() if array else None,
    )


def last_array(jobs: Path) -> tuple[str | None, str | None, str | None]:
    """Return the array that was submitted last, of those with folders in `jobs`."""
    for number in sorted(_numbers(jobs), reverse=True):
        with suppress(GaugeError, ValueError, LookupError, TypeError):
            record = parse_json(read_text(jobs / str(number) / RECORD, 2**16))
            system, job = BATCH_SYSTEMS[str(record["system"])], str(record["job"])
            return job, system.name, f"{system.queue} {quote(job)}"
    return None, None, None


def _numbers(jobs: Path) -> list[int]:
    """Return the numbers of the folders of arrays."""
    return [int(path.name) for path in jobs.glob("*") if re.fullmatch(DIGITS, path.name)]


def _last_line(text: str) -> str:
    """Return the last line of what a program has printed."""
    return text.strip().rpartition("\n")[2].strip().rstrip(".")
