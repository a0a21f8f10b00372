"""A batch system: Grid Engine."""

from collections.abc import Iterator
from shlex import quote

from gauge_mc.scans.batch_systems import JOB_NAME, BatchSystem, JobArray, hours


class GridEngine(BatchSystem):
    """Grid Engine, whose options are those of ``qsub``, and others are resources."""

    name = "grid-engine"
    title = "Grid Engine"
    stopped = "are submitted again by the same command"
    program = "qsub"
    queue = "qstat -j"
    answer = r"^Your job-array (\d+)"
    index = "$SGE_TASK_ID"
    mark = "#$"
    first = 1
    warns = False

    def directives(self, array: JobArray) -> Iterator[str]:
        """Yield the options of the script."""
        yield f"-t 1-{array.jobs}"
        yield f"-l h_rt={hours(array.seconds)}"
        if array.together:
            yield f"-tc {array.together}"
        usual = {"N": JOB_NAME, "V": None, "j": "y", "o": f"{array.folder}/$TASK_ID.log"}
        for key, value in (usual | dict(array.options)).items():
            yield f"-{key}" if value is None else f"-{key} {quote(value)}"


GRID_ENGINE = GridEngine()
