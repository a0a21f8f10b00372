"""A batch system: Grid Engine."""

from gauge_mc.scans.batch_systems import BatchSystem

GRID_ENGINE = BatchSystem(
    name="grid-engine",
    title="Grid Engine",
    program="qsub",
    queue="qstat -j",
    answer=r"^Your job-array (\d+)",
    usual="t=1-{jobs}; tc={together}; N={name}; V; j=y; o={folder}/$TASK_ID.log",
    option=("#$ -{key} {quoted}\n", "#$ -{key}\n"),
    script="#!/bin/bash\n#$ -l h_rt={time}\n{options}exec {command}/$SGE_TASK_ID.toml\n",
    first=1,
    fixed="t",
)
