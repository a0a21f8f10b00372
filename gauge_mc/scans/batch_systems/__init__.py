"""Batch systems, to which ``gauge-mc scan --submit`` hands an array of jobs.

Each batch system has a module of its name, with a subclass of `BatchSystem` of which an instance is
registered in `BATCH_SYSTEMS`. It says how a script asks for the jobs, how the command that submits
it is called, and what that answers. A job carries out one run with ``gauge-mc generate``, which
writes a checkpoint before its time is up and then ends with exit code 75.
"""

from __future__ import annotations

import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join, quote
from typing import ClassVar

from gauge_mc.registry import Registry

MARGIN = 90
"""Seconds before the end of its time in which a job writes a checkpoint and stops."""

JOB_NAME = "gauge-mc"
"""Usual name of the jobs."""

COMMAND = (sys.executable, "-u", "-m", "gauge_mc", "generate", "--card")
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

    @abstractmethod
    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the lines of a script that the batch system reads, without `mark`."""

    def script(self, array: JobArray) -> str:
        """Return the script of an array, which can also be submitted by hand."""
        marked = [f"{self.mark} {one}\n" for one in self.directives(array)]
        card = f"{quote(str(array.folder))}/{self.index}.toml"
        words = " ".join(filter(None, ["exec", self.launcher, join(COMMAND), card]))
        return f"#!/bin/bash\n{''.join(marked)}{words}\n"

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
