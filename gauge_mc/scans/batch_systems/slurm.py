"""Slurm."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import ClassVar

from gauge_mc.scans.batch_systems import BATCH_SYSTEMS, JOB_NAME, MARGIN, BatchSystem, JobArray


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
        given = {key.replace("_", "-"): value for key, value in array.options.items()}
        yield f"--array=0-{array.jobs - 1}{array.limit}"
        yield f"--time={array.minutes}"
        for key, value in (usual | given).items():
            yield f"--{key}" if value is None else f"--{key}={quote(value)}"


BATCH_SYSTEMS.register(Slurm())
