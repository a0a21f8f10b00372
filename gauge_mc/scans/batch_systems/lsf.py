"""LSF."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import ClassVar

from gauge_mc.errors import INTERRUPTED
from gauge_mc.scans.batch_systems import BATCH_SYSTEMS, JOB_NAME, MARGIN, BatchSystem, JobArray


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
    first: ClassVar[int] = 1
    by_input: ClassVar[bool] = True

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the options of the script; see `BatchSystem.directives`."""
        usual = {
            "Q": str(INTERRUPTED),
            "o": f"{array.folder}/%I.log",
            "wa": "USR1",
            "wt": str(-(-MARGIN // 60)),  # minutes
        }
        given = dict(array.options)
        name = given.pop("J", None) or JOB_NAME
        yield f"-J {quote(f'{name}[1-{array.jobs}]{array.limit}')}"
        yield f"-W {array.minutes}"
        for key, value in (usual | given).items():
            yield f"-{key}" if value is None else f"-{key} {quote(value)}"


BATCH_SYSTEMS.register(LSF())
