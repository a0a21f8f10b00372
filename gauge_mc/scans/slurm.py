"""Slurm job arrays, submitted through submitit."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gauge_mc.errors import GaugeError, UsageError
from gauge_mc.libraries import load
from gauge_mc.quoting import shortened
from gauge_mc.run.execution import Execution
from gauge_mc.scans.scan import Member

NAME = "slurm"
"""Name of the batch system, as a value of ``--submit``."""

PARALLELISM = "array_parallelism"
"""Option for the maximum number of simultaneous jobs. It belongs to submitit, not to sbatch."""

SCRIPT = "_submission.sh"
"""Ending of the name of the script of a job array, which begins with the ID of the array."""

DIGITS = "[0-9]{1,9}"
"""Pattern of the numbers in options of sbatch."""

USUAL = {"job_name": "gauge-mc", "signal": "USR1@90"}
"""Default options of sbatch, which the user can override.

The signal comes 90 seconds before the end of the job's time; the run then writes a checkpoint and
stops."""


def parse_options(words: Sequence[str]) -> dict[str, Any]:
    """Read options of sbatch: ``KEY=VALUE``, or ``KEY`` for an option without a value.

    Returns
    -------
    dict of str to object
        Parameters of submitit's executor.

    Raises
    ------
    UsageError
        If an option does not have this form, or ``time`` is missing.
    """
    given: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        key = key.strip().lstrip("-").replace("-", "_")
        if not re.fullmatch("[a-z][a-z0-9_]*", key) or (equals and not value.isprintable()):
            raise UsageError(
                f"--slurm: '{shortened(word)}' is not of the form KEY=VALUE, as in partition=gpu."
            )
        given[key] = value if equals else True
    if "time" not in given:
        raise UsageError(
            "The time limit of the jobs is missing; give it, for instance by --slurm time=12:00:00."
        )
    own: dict[str, Any] = {"slurm_time": parse_minutes(str(given.pop("time")))}
    if PARALLELISM in given:
        number = str(given.pop(PARALLELISM))
        if not re.fullmatch(DIGITS, number) or not int(number):
            raise UsageError(
                f"--slurm: {PARALLELISM} must be a positive whole number, not "
                f"'{shortened(number)}'."
            )
        own[f"slurm_{PARALLELISM}"] = int(number)
    return own | {"slurm_additional_parameters": {**USUAL, **given}}


def parse_minutes(text: str) -> int:
    """Convert a time in a format of sbatch to minutes, rounded up.

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
            f"--slurm: time={shortened(text)} is not of the form HH:MM:SS or D-HH:MM:SS."
        )
    numbers = [int(word) for word in words]
    units = (3600, 60, 1) if dash or len(numbers) == 3 else (60, 1)
    seconds = sum(n * unit for n, unit in zip(numbers, units, strict=False))
    seconds += 86400 * int(days) if dash else 0
    if not seconds:
        raise UsageError(f"--slurm: time={text} must be longer than zero.")
    return -(-seconds // 60)


def task(member: Member, execution: Execution) -> dict[str, object]:
    """Return the task of a job: the values of `Parameters` and `Execution` by name."""
    limit = execution.time_limit
    how = {
        "backend": execution.backend,
        "devices": execution.devices,
        "threads": execution.threads,
        "checkpoint_every": execution.checkpoint_every,
        "time_limit": None if limit is None else f"0:0:{limit:.0f}",
        "output": str(member.run.path.absolute()),
    }
    given = {name: value for name, value in how.items() if value is not None}
    return {**member.parameters.values(), **given}


def submit(
    function: Callable[[Mapping[str, object]], None],
    tasks: Sequence[Mapping[str, object]],
    folder: Path,
    options: Mapping[str, Any],
    cluster: str = NAME,
) -> list[Any]:
    """Submit a job array with one job per task.

    Parameters
    ----------
    function : callable
        Function that a job calls with its task.
    tasks : sequence of mappings
        Tasks of the jobs; see `task`.
    folder : Path
        Folder for scripts, logs and other files of submitit.
    options : mapping of str to object
        Parameters of submitit's executor; see `parse_options`.
    cluster : str
        Name of an executor of submitit.

    Returns
    -------
    list of submitit.Job
        The jobs, in the order of the tasks.

    Raises
    ------
    GaugeError
        If submitit is not installed, or Slurm is missing or rejects the jobs.
    """
    submitit = load("submitit")
    try:
        executor = submitit.AutoExecutor(folder, cluster)
        executor.update_parameters(**options)
        with contextlib.redirect_stderr(io.StringIO()):  # the error also contains sbatch's message
            return list(executor.map_array(function, tasks))
    except RuntimeError as error:
        if "srun" in str(error):
            raise GaugeError(
                "Slurm is not installed on this machine (srun is missing); submit on a machine "
                "that has it."
            ) from error
        raise GaugeError(f"Slurm rejected the jobs: {_last_line(error)}.") from error
    except OSError as error:
        raise GaugeError(f"The jobs cannot be submitted: {_last_line(error)}.") from error


def last_job(folder: Path) -> str | None:
    """Return the ID of the job array that was submitted last.

    Parameters
    ----------
    folder : Path
        Folder of the files of submitit; see `submit`.

    Returns
    -------
    str or None
        None if Slurm has accepted no jobs, or the folder does not exist.
    """
    scripts = [path for path in folder.glob(f"*{SCRIPT}") if _job_id(path).isdecimal()]
    return _job_id(max(scripts, key=lambda path: path.stat().st_mtime)) if scripts else None


def _job_id(script: Path) -> str:
    return script.name.removesuffix(SCRIPT)


def _last_line(error: Exception) -> str:
    """Return the last line of an error message, which comes from sbatch."""
    return [*str(error).strip().split("\n")][-1].strip().rstrip(".")
