"""Memory of devices, time and disk space that the rest of runs needs: rehearsed, tried, counted.

A run that could not be finished is refused before it begins, and one whose disk fills up stops
while there is room for a checkpoint of what was done.
"""

from __future__ import annotations

import math
import shutil
import statistics
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
from rich.console import RenderableType
from rich.filesize import decimal
from rich.table import Table

from gauge_mc.configurations.writing import Snapshot, stored_by
from gauge_mc.devices import Device, describe_devices
from gauge_mc.devices.kernels import REAL_BYTES
from gauge_mc.devices.rehearsal import RehearsalDevice
from gauge_mc.domain.device_group import DeviceGroup
from gauge_mc.domain.device_pool import DevicePool, Devices
from gauge_mc.domain.lattice import Lattice
from gauge_mc.domain.slab import WORD_BYTES
from gauge_mc.errors import NoMemoryError
from gauge_mc.fields.field import Field
from gauge_mc.groups import GROUPS
from gauge_mc.observables import Measurer, Observable, measure_repeatedly
from gauge_mc.random import GENERATORS
from gauge_mc.registry import in_words
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import Batch, Chain
from gauge_mc.run.directory import Run
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.open_run import compile_kernels
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import STARTS

SPLIT = "let several devices share every configuration with --split"
"""Advice if the memory is too small for stored configurations."""

DIVIDE = "let more --devices share the lattice"
"""Advice if the memory is too small along the way."""

SAID = 2**30
"""Memory in bytes from which on the start of a measurement says it."""


def of_free(required: int, free: int) -> str:
    """Return in words how many bytes are needed, and how many are free."""
    return f"{decimal(required)} of {decimal(free)} that are free"


@documented
@dataclass(frozen=True)
class MemoryForecast:
    """Memory that a measurement takes on devices."""

    observable: str = result_field("Name of the observable.")
    group: str = result_field("Gauge group.")
    lattice: str = result_field("Extents of the lattice.")
    device: str = result_field("Names of the devices.")
    device_bytes: int = result_field(
        "Memory of all devices that the measurement takes when it takes most, without what the "
        "driver takes for itself, and if iterations need not go on in higher precision."
    )
    free_device_bytes: int = result_field("Memory of all devices that is free.")
    shortage: str | None = result_field(
        "Why the memory is too small, in a sentence; None if it is not.", None
    )

    @property
    def sentence(self) -> str:
        """The memory that is needed and that is free, in words."""
        return of_free(self.device_bytes, self.free_device_bytes)

    def table(self) -> RenderableType:
        """Return the content as a table."""
        table = Table.grid(padding=(0, 2))
        table.add_row("measurement", f"{self.observable} (nothing was measured)")
        table.add_row("links", f"{self.group} on {self.lattice}")
        table.add_row("device", self.device)
        table.add_row("memory", self.sentence)
        return table


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of one device, or of the host if the device works there."""

    name: str
    """Name of the device."""
    needed: int
    """Bytes that are needed."""
    free: int
    """Bytes that are free."""


def rehearse(
    observables: Sequence[Observable],
    lattice: Lattice,
    group: str,
    precision: str,
    devices: Devices,
    sharing: bool = False,
) -> list[int]:
    """Return the largest memory in bytes that measurements take, for each device of a group.

    They are carried out without memory and kernels; see `RehearsalDevice`. It begins with the
    links that are measured, and is done twice, because scratch memory stays.
    """
    real = DeviceGroup.of(devices)
    actors = [RehearsalDevice(device) for device in real.devices]
    stage = replace(real, devices=tuple(cast(Device, actor) for actor in actors))
    rehearseds = [o.rehearsed for o in observables if o.rehearsed]
    measurers: list[Measurer] = []
    for _ in range(2):
        field = Field.cold(lattice, group, precision, stage)
        # Results are all zero, and so are denominators of ratios.
        with stage.measuring() if sharing else nullcontext(), np.errstate(all="ignore"):
            measurers = measurers or [x.measurer(field) for x in rehearseds]
            for measure in measurers:
                measure(field)
        del field
    return [actor.memory.most for actor in actors]


def memory_of(
    observable: Observable, lattice: Lattice, group: str, precision: str, pool: DevicePool
) -> MemoryForecast:
    """Return the memory that a measurement takes on a pool of devices; see `rehearse`."""

    def job(devices: Devices, numbers: Sequence[int]) -> Generator[list[DeviceMemory], None, None]:
        for _ in numbers:
            required = rehearse([observable], lattice, group, precision, devices)
            yield _memory(DeviceGroup.of(devices), required)

    each = [x for several in pool.results(job, range(len(pool.devices))) for x in several]
    lacking = (x for x in each if x.needed > x.free)
    return MemoryForecast(
        observable.name,
        group,
        str(lattice),
        describe_devices(x.name for x in each),
        sum(x.needed for x in each),
        sum(x.free for x in each),
        next((_shortage(f"{observable.name} needs", x, SPLIT) for x in lacking), None),
    )


def memory_beside(observables: Iterable[Observable], field: Field) -> list[int]:
    """Return the memory in bytes that measurements along the way take besides the field.

    It is that on each device of this process of all observables that may take much. If the lattice
    is shared by several processes, between which nothing can be rehearsed, it is 0.
    """
    several, devices = [o for o in observables if o.takes_memory], field.devices
    if not several or devices.processes.size > 1:
        return [0] * len(field.slabs)
    kind = field.lattice, field.group.name, field.precision, devices
    pairs = zip(rehearse(several, *kind, sharing=True), field.slabs, strict=True)
    required = [nbytes - slab.buffer.nbytes for nbytes, slab in pairs]
    names = in_words([x.name for x in several])
    names += " need" if len(several) > 1 else " needs"
    for memory in _memory(devices, required):
        if memory.needed > memory.free:
            raise NoMemoryError(_shortage(names, memory, DIVIDE))
    return required


def _memory(devices: DeviceGroup, required: Sequence[int]) -> list[DeviceMemory]:
    """Return the memory of every device of a group, or of the host that all of them share."""
    first = devices.devices[0]
    if first.in_host_memory:
        return [DeviceMemory(devices.name, sum(required), first.free_bytes())]
    pairs = zip(devices.devices, required, strict=True)
    return [DeviceMemory(x.name, nbytes, x.free_bytes()) for x, nbytes in pairs]


def _shortage(need: str, memory: DeviceMemory, otherwise: str) -> str:
    """Return why a device has too little memory, given what needs it, and what to do."""
    return (
        f"{need} {decimal(memory.needed)} of memory on {memory.name}, where "
        f"{decimal(memory.free)} are free: measure fewer quarks or smearing levels at a time, or "
        f"{otherwise}."
    )


def refuse_shortage(forecast: MemoryForecast) -> None:
    """Refuse a measurement for which a device has too little memory."""
    if forecast.shortage:
        raise NoMemoryError(forecast.shortage)


TEST_SECONDS = 0.5
"""Time in seconds for which updates are tried."""

LONG_SECONDS = 10.0
"""Time of a first call that is so long that what is done once does not count, so that there is no
second call."""

LEAST_UPDATES = 3
"""Least number of updates that are tried, whose times tell the error of their mean."""


@dataclass(frozen=True)
class RunCosts:
    """Memory and times of a run, or of several runs updated together, from a short test run."""

    device_bytes: int
    """Memory of all devices that the runs take."""
    free_device_bytes: int
    """Memory of all devices that was free before."""
    update_seconds: float
    """Time of an update of all runs."""
    update_error: float | None
    """Its standard error in the trial; None if there was one update."""
    measure_seconds: float
    """Time of all measurements, on average over updates."""
    write_seconds: float
    """Time of the snapshots of configurations, on average over updates."""

    @property
    def each(self) -> tuple[float, float, float | None]:
        """Time of an update, that of what follows it on average, and the error of the former."""
        return self.update_seconds, self.measure_seconds + self.write_seconds, self.update_error

    def seconds(self, p: Parameters, sweep: int) -> float:
        """Return the time of the rest of a run, or of several that are updated together."""
        remaining = p.updates - sweep
        sampled = p.updates - max(sweep, p.thermalize)
        return remaining * self.update_seconds + sampled * (
            self.measure_seconds + self.write_seconds
        )


def try_out(
    runs: Sequence[Parameters],
    observables: Mapping[Measurement, Observable],
    devices: DeviceGroup,
    checkpoint: Path | None = None,
) -> RunCosts:
    """Try a few updates and measurements in memory. All processes call this function."""
    p, free = runs[0], sum(device.free_bytes() for device in devices.devices)
    compile_kernels(p, observables.values(), devices, resumed=False, several=len(runs) > 1)
    # A hopping parameter of interacting quarks is beyond the critical one of free quarks, for which
    # a solver needs very many iterations.
    start = "hot" if p.start in STARTS else p.start
    if checkpoint:
        begun = iter([Chain.resume(p, devices, checkpoint)[0]])
    else:
        begun = (Chain.begin(replace(run, start=start), devices) for run in runs)
    batch = Batch(begun, len(runs))
    field = batch.field
    (update, error), measuring = _seconds(batch.update, batch.update, devices, LEAST_UPDATES), 0.0
    beside = sum(memory_beside(observables.values(), field.replicas[0]))
    for item, observable in observables.items():
        each = [observable.for_ensemble(run.provenance) for run in runs]
        then = observable.recorder(field, each)
        first = observable.warm_up.recorder(field, [x.warm_up for x in each])
        warming = partial(measure_repeatedly, first, devices)
        measure = partial(measure_repeatedly, then, devices)
        measuring += _seconds(warming, measure, devices)[0] / item.every
    writing = 0.0
    if p.keeps_configs:
        snapshot = partial(Snapshot.of, field.replicas[0], p.format)
        writing = len(runs) * _seconds(snapshot, snapshot, devices)[0] / p.separation
    occupied = beside + sum(device.allocated_bytes() for device in devices.devices)
    memory = devices.processes.allgather((occupied, free))
    occupied, free = (sum(each) for each in zip(*memory, strict=True))
    return RunCosts(occupied, free, update, error, measuring, writing)


def _seconds(
    first: Callable[[], object], then: Callable[[], object], devices: DeviceGroup, least: int = 1
) -> tuple[float, float | None]:
    """Return the mean time in seconds of a call after the first, and its standard error.

    Kernels must have been compiled. If the first call takes long, it is the only one. The error is
    None if there was one call.
    """
    began = time.monotonic()
    first()
    devices.synchronize()
    took = time.monotonic() - began
    if devices.processes.broadcast(took >= LONG_SECONDS):
        return took, None
    times = [time.monotonic()]
    while devices.processes.broadcast(times[-1] - times[0] < TEST_SECONDS or len(times) <= least):
        then()
        devices.synchronize()
        times.append(time.monotonic())
    each = [later - before for before, later in pairwise(times)]
    error = statistics.stdev(each) / math.sqrt(len(each)) if len(each) > 1 else None
    return statistics.fmean(each), error


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
    def of(cls, run: Run, p: Parameters, observables: Observables, sweep: int) -> DiskNeeds:
        """Return the needs of a run after some updates."""
        started = max(0, sweep - p.thermalize)
        configs = p.configs - started // p.separation if p.keeps_configs else 0
        sampled = p.updates - p.thermalize - started
        rows = sum(sampled // item.every * row_bytes(o) for item, o in observables.items())
        checkpoints = 1 if run.checkpoint.exists() else 2
        return cls(run, configs, *file_sizes(p), rows, checkpoints)

    @property
    def bytes(self) -> int:
        """Total number of bytes."""
        return sum(count for _, count in self.parts)

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


def file_sizes(p: Parameters) -> tuple[int, int]:
    """Return the size of a configuration file, 0 if none is kept, and of a checkpoint in bytes."""
    links = p.lattice.links * GROUPS[p.group].reals * REAL_BYTES[p.precision]
    states = p.lattice.sites * GENERATORS[p.rng].state_words * WORD_BYTES
    if not p.keeps_configs:
        return 0, links + states
    return stored_by(p.format, p.lattice, p.group, p.precision).nbytes, links + states


def free_disk(path: Path) -> int:
    """Return the free disk space where a path is or would be."""
    return shutil.disk_usage(_existing(path)).free


def shortage(parts: Iterable[tuple[Path, int]]) -> tuple[Path, int, int] | None:
    """Return the first disk on which there is too little space, or None."""
    disks: dict[int, tuple[Path, int]] = {}
    for path, count in parts:
        disk = _existing(path).stat().st_dev
        first, before = disks.get(disk, (path, 0))
        disks[disk] = first, before + count
    for path, required in disks.values():
        free = free_disk(path)
        if required > free:
            return path, required, free
    return None


def disk_shortage(needs: Iterable[DiskNeeds]) -> str | None:
    """Return why a disk is too small for what runs write, in a sentence; None if it is not."""
    runs = list(needs)
    if not (lacking := shortage(part for run in runs for part in run.parts)):
        return None
    path, required, free = lacking
    configs = sum(run.configurations_left for run in runs)
    size = max(run.config_bytes for run in runs)
    detail = f"{configs} configurations of {decimal(size)}, " if configs and size else ""
    whose = f"The run {runs[0].run.path} needs" if len(runs) == 1 else f"{len(runs)} runs need"
    return (
        f"{whose} {decimal(required)} on the disk of {path}, where {decimal(free)} are free: "
        f"{detail}checkpoints and tables; free some space, choose another --output or --format "
        "none, or fewer --configs, which can be raised later."
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
        cls, runs: Sequence[Run], p: Parameters, observables: Observables, pending: int
    ) -> DiskGuard:
        """Return the guard for runs of which at most `pending` measurements are not yet written."""
        config, checkpoint = file_sizes(p)
        rows = pending * sum(row_bytes(o) for o in observables.values())
        return cls(runs, config, (len(runs) if p.tempering else 1) * checkpoint, rows)

    def shortage(self, unwritten: int, due: bool) -> str | None:
        """Return why the runs must stop now, in a sentence, or None."""
        first, count = self.runs[0], len(self.runs)
        configs = unwritten + due * count
        parts = [
            (first.path, count * (self.row_bytes + SLACK)),
            (first.path / "configs", configs * (self.config_bytes + SLACK)),
            (first.checkpoint.parent, self.checkpoint_bytes + SLACK),
        ]
        if not (lacking := shortage(parts)):
            return None
        path, required, free = lacking
        return (
            f"The disk of {path} has {decimal(free)} left, and what comes next needs "
            f"{decimal(required)}; a checkpoint of what was done was written: free some space, "
            "then run the same command again."
        )


def _existing(path: Path) -> Path:
    """Return a path, or the nearest folder above it that exists."""
    return next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
