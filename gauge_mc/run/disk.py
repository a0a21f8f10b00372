"""Disk space: what the rest of runs needs, and whether there is enough of it.

A run that could not be finished is refused before it begins, and one whose disk fills up stops
while there is room for a checkpoint of what was done.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.filesize import decimal

from gauge_mc.configurations.writing import stored_by
from gauge_mc.devices.kernels import REAL_BYTES
from gauge_mc.domain.layout import WORD_BYTES
from gauge_mc.errors import GaugeError
from gauge_mc.groups import GROUPS
from gauge_mc.observables import Observable
from gauge_mc.random import GENERATORS
from gauge_mc.run.directory import Run
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters

SLACK = 2**16
"""Number of bytes for headers and for the blocks of the file system, per file."""

ROW_BYTES = 24
"""Typical number of bytes of a number in a table."""

Observables = Mapping[Measurement, Observable]


@dataclass(frozen=True)
class DiskNeeds:
    """Disk space that the rest of a run needs."""

    run: Run
    """The run directory."""
    configurations_left: int
    """Number of configurations that are left."""
    config_bytes: int
    """Size of a configuration file in bytes."""
    checkpoint_bytes: int
    """Size of a checkpoint in bytes. It exists twice while it is replaced."""
    table_bytes: int
    """Approximate size of the rows that are added to tables."""
    checkpoints: int
    """Number of checkpoints for which there must be room, besides the one that exists."""

    @classmethod
    def of(cls, run: Run, parameters: Parameters, observables: Observables, done: int) -> DiskNeeds:
        """Return the needs of a run after some updates."""
        p, started = parameters, max(0, done - parameters.thermalize)
        left, size = 0, 0
        if p.keeps_configs:
            left = p.configs - started // p.separation
            size = stored_by(p.format, p.lattice, p.group, p.precision).nbytes
        sampled = p.updates - p.thermalize - started
        rows = sum(sampled // item.every * row_bytes(one) for item, one in observables.items())
        checkpoints = 1 if run.checkpoint.exists() else 2
        return cls(run, left, size, checkpoint_bytes(p), rows, checkpoints)

    @property
    def bytes(self) -> int:
        """Total number of bytes."""
        configs = self.configurations_left * self.config_bytes
        return configs + self.checkpoints * self.checkpoint_bytes + self.table_bytes

    @property
    def parts(self) -> list[tuple[Path, int]]:
        """Bytes needed in each folder; the folders may be on different disks."""
        return [
            (self.run.path, self.table_bytes),
            (self.run.path / "configs", self.configurations_left * self.config_bytes),
            (self.run.checkpoint.parent, self.checkpoints * self.checkpoint_bytes),
        ]


def row_bytes(observable: Observable) -> int:
    """Return the approximate size of the rows of one measurement.

    A user's function counts as one number until it has been called.
    """
    columns = getattr(observable, "columns", ("",))
    return max(1, observable.records) * (1 + len(columns)) * ROW_BYTES


def checkpoint_bytes(parameters: Parameters) -> int:
    """Return the size of a checkpoint: links, and states of random numbers."""
    p = parameters
    links = p.lattice.links * GROUPS[p.group].reals * REAL_BYTES[p.precision]
    return links + p.lattice.sites * GENERATORS[p.rng].state_words * WORD_BYTES


def free_disk(path: Path) -> int:
    """Return the free disk space where a path is or would be."""
    return shutil.disk_usage(_existing(path)).free


def shortage(parts: Iterable[tuple[Path, int]]) -> tuple[Path, int, int] | None:
    """Return the first disk on which there is too little space, or None.

    Parameters
    ----------
    parts : iterable of (Path, int)
        Folders, which need not exist yet, and the number of bytes that are needed in each.

    Returns
    -------
    tuple of (Path, int, int) or None
        A folder on the disk, the number of bytes needed there, and the number that is free.
    """
    disks: dict[int, tuple[Path, int]] = {}
    for path, count in parts:
        disk = _existing(path).stat().st_dev
        first, before = disks.get(disk, (path, 0))
        disks[disk] = first, before + count
    for path, needed in disks.values():
        free = free_disk(path)
        if needed > free:
            return path, needed, free
    return None


def check_disk(needs: Iterable[DiskNeeds]) -> None:
    """Refuse runs for which a disk is too small.

    Raises
    ------
    GaugeError
        If there is too little space for everything that the runs would write.
    """
    every = list(needs)
    found = shortage(part for one in every for part in one.parts)
    if found is None:
        return
    path, needed, free = found
    configs = sum(one.configurations_left for one in every)
    size = max(one.config_bytes for one in every)
    what = f"{configs} configurations of {decimal(size)}, " if configs and size else ""
    whose = f"The run {every[0].run.path} needs" if len(every) == 1 else f"{len(every)} runs need"
    raise GaugeError(
        f"{whose} {decimal(needed)} on the disk of {path}, where {decimal(free)} are free: {what}"
        "checkpoints and tables; free some space, choose another --output or --format none, or "
        "fewer --configs, which can be raised later."
    )


@dataclass(frozen=True)
class DiskGuard:
    """Check of the disk space for what runs that are updated together write next."""

    runs: Sequence[Run]
    """Run directories."""
    config_bytes: int
    """Size of a configuration file in bytes; 0 if none are written."""
    checkpoint_bytes: int
    """Size in bytes of the checkpoints that exist twice at the same time: one, or those of all runs
    if these can only be continued together.
    """
    row_bytes: int
    """Approximate size of the rows of all tables of a run that are not yet written."""

    @classmethod
    def of(
        cls,
        runs: Sequence[Run],
        parameters: Parameters,
        observables: Observables,
        pending: int,
    ) -> DiskGuard:
        """Return the guard for runs of which at most `pending` measurements are not yet written."""
        p, size = parameters, 0
        if p.keeps_configs:
            size = stored_by(p.format, p.lattice, p.group, p.precision).nbytes
        rows = pending * sum(row_bytes(one) for one in observables.values())
        twice = len(runs) if p.tempering else 1
        return cls(runs, size, twice * checkpoint_bytes(p), rows)

    def shortage(self, unwritten: int, due: bool) -> str | None:
        """Return why the runs must stop now, in a sentence, or None.

        Parameters
        ----------
        unwritten : int
            Number of configurations that are on their way to the disk.
        due : bool
            Whether every run writes a configuration after the next update.
        """
        first, count = self.runs[0], len(self.runs)
        configs = unwritten + due * count
        parts = [
            (first.path, count * (self.row_bytes + SLACK)),
            (first.path / "configs", configs * (self.config_bytes + SLACK)),
            (first.checkpoint.parent, self.checkpoint_bytes + SLACK),
        ]
        found = shortage(parts)
        if found is None:
            return None
        path, needed, free = found
        return (
            f"The disk of {path} has {decimal(free)} left, and what comes next needs "
            f"{decimal(needed)}; a checkpoint of what was done was written: free some space, then "
            "run the same command again."
        )


def _existing(path: Path) -> Path:
    """Return a path, or the nearest folder above it that exists."""
    return next(one for one in (path.absolute(), *path.absolute().parents) if one.exists())
