"""PBS Professional and OpenPBS."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import ClassVar

from gauge_mc.scans.batch_systems import BATCH_SYSTEMS, JOB_NAME, BatchSystem, JobArray, hours


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
    warns: ClassVar[bool] = False

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the options of the script; see `BatchSystem.directives`."""
        several = array.jobs > 1
        log = "^array_index^" if several else "0"
        usual = {"N": JOB_NAME, "V": None, "j": "oe", "o": f"{array.folder}/{log}.log"}
        if several:
            yield f"-J 0-{array.jobs - 1}{array.limit}"
        yield f"-l walltime={hours(array.seconds)}"
        for key, value in (usual | dict(array.options)).items():
            if len(key) == 1:
                yield f"-{key}" if value is None else f"-{key} {quote(value)}"
            else:
                yield f"-l {key}" if value is None else f"-l {key}={quote(value)}"


BATCH_SYSTEMS.register(PBS())
