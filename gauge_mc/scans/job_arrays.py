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
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.files.atomic import complete_folder, write_file
from gauge_mc.files.input import read_text
from gauge_mc.files.structured import parse_json
from gauge_mc.quoting import shortened
from gauge_mc.results import documented, result_field
from gauge_mc.run.lock import refuse_in_use
from gauge_mc.run.log import SUBMITTED, RunLog, logged_session
from gauge_mc.run.settings import Execution
from gauge_mc.scans.batch_systems import (
    BATCH_SYSTEMS,
    MARGIN,
    TIME,
    TOGETHER,
    BatchSystem,
    JobArray,
)
from gauge_mc.scans.display import Tally
from gauge_mc.scans.forecast import job_needs
from gauge_mc.scans.ladders import ladders
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Member, Scan

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
        """Read options: ``KEY=VALUE``, or ``KEY`` for one without a value.

        Parameters
        ----------
        name : str
            Name of the batch system.
        words : sequence of str
            Options, as on the command line.

        Raises
        ------
        UsageError
            If the batch system is unknown; or an option does not have this form or no possible
            value, decides what the jobs execute, or is one of another batch system.
        """
        BATCH_SYSTEMS.check(name, "--submit")
        system = BATCH_SYSTEMS[name]
        given: dict[str, str | None] = {}
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
            own = key.replace("-", "_")
            others = [] if own in system.known else BATCH_SYSTEMS.values()
            if other := next((one for one in others if own in one.known), None):
                raise UsageError(
                    f"--submit-option: {key} is an option of {other.title} and not of "
                    f"{system.title}; give that of {system.title}, or leave it out."
                )
            key = own.replace("_", "-") if system.dashes else key
            given[own if own in (TIME, TOGETHER) else key] = value if equals else None
        minutes = parse_minutes(given.pop(TIME) or "") if TIME in given else 0
        together = None
        if TOGETHER in given:
            text = given.pop(TOGETHER) or ""
            together = int(text) if re.fullmatch(DIGITS, text) else 0
            if not together:
                raise UsageError(
                    f"--submit-option: {TOGETHER} must be a positive whole number, not "
                    f"'{shortened(text)}'."
                )
        return cls(system, minutes, together, given)

    def forecast(self, members: Sequence[Member], execution: Execution) -> JobRequest:
        """Return the request with a time and a memory that suffice, where the user states none.

        Without a time limit of the user, there must be a forecast. With one it is left out where
        runs are tried for long, those with dynamical quarks, and where they cannot be tried.

        Raises
        ------
        UsageError
            If there is no time, and no run can be tried here.
        """
        memory = self.system.memory
        stated = not memory or self.options.keys() & {*memory}
        if self.minutes and (stated or any(one.parameters.algorithm.labels for one in members)):
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

    Raises
    ------
    UsageError
        If the time has another format, or is zero.
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
        """Return an array in the next folder of those in `jobs`.

        Raises
        ------
        UsageError
            If a script cannot have the path.
        """
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
        """Write the folder and submit the array; return its ID.

        Raises
        ------
        GaugeError
            If the batch system is missing or rejects the jobs, and the folder is removed, or it
            does not say under which ID it has accepted them.
        """
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
        how = {
            "output": str(member.run.path.absolute()),
            "backend": e.backend,
            "devices": e.devices,
            "threads": e.threads,
            "checkpoint_every": e.checkpoint_every,
            "time_limit": None if limit is None else f"0:0:{limit:.0f}",
        }
        given = {name: value for name, value in how.items() if value is not None}
        return {**member.parameters.values(), **given}

    def _answer(self) -> str:
        """Let the batch system have the array; return what it answers."""
        system = self.request.system
        script = self.text() if system.by_input else None
        try:
            done = subprocess.run(
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
        if done.returncode:
            said = _last_line(done.stderr) or _last_line(done.stdout) or "it gives no reason"
            raise GaugeError(f"{system.title} rejected the jobs: {said}.")
        return done.stdout


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
        done = f"{self.scan}: {self.complete} of {self.all_runs} runs complete"
        if self.submit_by and not self.job:
            return f"{done}, {len(self.submitted)} to be submitted by: {self.submit_by}"
        array = f" as job {self.job}" if self.job else ""
        return f"{done}, {len(self.submitted)} submitted{array}"


def submit(
    asked: ScanRequest, system: str, words: Sequence[str], dry_run: bool = False
) -> Submission:
    """Submit a job for each run that is neither complete nor running.

    Parameters
    ----------
    asked : ScanRequest
        The scan that the user requests.
    system : str
        Name of the batch system.
    words : sequence of str
        Options of the batch system, as on the command line.
    dry_run : bool
        Whether to write and submit nothing.

    Returns
    -------
    Submission
        The job array, with its ID, its runs and its script.

    Raises
    ------
    UsageError, GaugeError
        If the jobs cannot be submitted.
    """
    wanted = JobRequest.of(system, words)
    if ladders(asked.scan().members()):
        raise UsageError(
            "--submit makes a job of every run, and runs that exchange their couplings are one "
            "process; repeat the command without --submit in a job, or leave out --tempering."
        )
    asked.check_runs()
    if dry_run:
        asked.scan().check_place()
        refuse_in_use(asked.scan().lock)
        return _submission(asked.scan(), wanted, asked.execution)
    with asked.locked(write=False) as scan:
        return _submission(scan, wanted, asked.execution, RunLog(scan.path))


def _submission(
    scan: Scan, wanted: JobRequest, execution: Execution, log: RunLog | None = None
) -> Submission:
    """Return the jobs of a scan; if there is a log, submit them, and write the scan.

    Nothing is written if the jobs are refused.
    """
    tally = Tally(scan.members())
    left = [one for one in tally.members if not (tally.done(one) or one.run.holder()[1])]
    job = array = None
    if left:
        array = ArrayPlan.of(wanted.forecast(left, execution), scan.jobs, left, execution)
    if array and log:
        try:
            job = array.submit()
        finally:
            if array.folder.exists():  # the batch system may have the jobs
                scan.write()
        with logged_session([log], devices=wanted.system.name, runs=len(left)) as ended:
            ended |= {"ended": SUBMITTED, "job": job}
    elif log:
        scan.write()
    return Submission(
        str(scan.path),
        job,
        [str(one.run.path) for one in left],
        len(tally.members),
        sum(map(tally.done, tally.members)),
        array.command if array else None,
        array.text() if array else None,
    )


def last_array(jobs: Path) -> tuple[str | None, str | None, str | None]:
    """Return the array that was submitted last, of those with folders in `jobs`.

    Returns
    -------
    tuple of (str, str, str)
        ID of the array, name of the batch system, and the command that shows the jobs in its
        queue; each is None if no batch system has accepted jobs, or it is known no longer.
    """
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
