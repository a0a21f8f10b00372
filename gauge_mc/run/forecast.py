"""Forecast of the memory, disk space and time of a run on this machine, by a short test run."""

from __future__ import annotations

import datetime
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from rich.console import RenderableType
from rich.filesize import decimal
from rich.table import Table

from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, Estimate, estimate, with_error
from gauge_mc.configurations.background import IN_FLIGHT
from gauge_mc.configurations.writing import Snapshot
from gauge_mc.devices.host import free_memory
from gauge_mc.domain.device_group import DeviceGroup, open_device_group
from gauge_mc.domain.mpi import find_processes
from gauge_mc.files.table import read_table
from gauge_mc.observables import Observable, measure_repeatedly
from gauge_mc.progress import duration
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import Batch, Chain
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.disk import (
    DiskNeeds,
    disk_shortage,
    file_sizes,
    free_disk,
    memory_beside,
    of_free,
)
from gauge_mc.run.display import describe, link_rate
from gauge_mc.run.functions import observables_of
from gauge_mc.run.measurement import Measurement
from gauge_mc.run.parameters import Parameters, Schedule
from gauge_mc.run.request import RunRequest, compile_kernels
from gauge_mc.run.settings import STARTS
from gauge_mc.run.thermalisation import LAST_ROW, series_of


@documented
@dataclass(frozen=True)
class ExpectedError:
    """The error that an average is expected to have, if autocorrelations are as they are so far."""

    table: str = result_field("The table.")
    column: str = result_field("The column; of several rows for each measurement, their mean.")
    now: Estimate = result_field("The average so far, with tau_int in measurements.")
    measurements: int = result_field("Number of measurements that are expected.")
    error: float = result_field("The expected error, σ √(2 τ_int / measurements).")
    error_of_error: float = result_field("Its error from that of τ_int.")

    def __str__(self) -> str:
        tau = with_error(self.now.tau_int, self.now.tau_int_error)
        expected = with_error(self.error, self.error_of_error)
        return (
            f"{self.table}, {self.column}: ±{expected} by {self.measurements} measurements; now "
            f"{self.now} by {self.now.samples}, τ_int {tau}"
        )


@documented
@dataclass(frozen=True)
class Prospect:
    """The state of a run after a time, if updates and measurements take as long as in a trial."""

    seconds: float = result_field("The time.")
    updates: int = result_field("Number of further updates in this time.")
    updates_error: float | None = result_field(
        "Its error from that of the time of an update in the trial; null if it is not known."
    )
    last: int = result_field("Number of the last update.")
    configurations: int = result_field("Number of configurations that the run then has.")
    errors: Sequence[ExpectedError] = result_field(
        "Errors of averages; none before there are enough measurements."
    )

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield what is known, by heading."""
        count = f"{self.updates}"
        if self.updates_error is not None and self.updates:
            count = f"{self.updates} ± {max(1, round(self.updates_error))}"
        words = f"{count} updates, up to update {self.last}, {self.configurations} configurations"
        yield f"in {duration(self.seconds)}", words
        for n, error in enumerate(self.errors):
            yield "" if n else "errors then", str(error)
        if not self.errors:
            words = "not known before the run has measured: begin it, and repeat this command"
            yield "errors then", words


def prospect(
    seconds: float,
    run: Run,
    schedule: Schedule,
    observables: Mapping[Measurement, Observable],
    sweep: int,
    costs: tuple[float, float, float | None],
) -> Prospect:
    """Return how far a run comes."""
    update, rest, error = costs
    early, total, count = max(0, schedule.thermalize - sweep), update + rest, seconds / update
    if count > early:
        count = early + (seconds - early * update) / total
    last = sweep + int(count)
    sampled = max(0, last - schedule.thermalize)
    return Prospect(
        seconds,
        int(count),
        None if error is None else count * error / total,
        last,
        sampled // schedule.separation,
        [error for item in observables for error in _errors(run, item, sampled // item.every)],
    )


def _errors(run: Run, item: Measurement, measurements: int) -> Iterator[ExpectedError]:
    """Yield the expected errors of the averages of a table after a number of measurements."""
    path = run.table(item.observable)
    if not path.exists():
        return
    for name, _, values in series_of(read_table(path)):
        now = estimate(values)
        if name.endswith(LAST_ROW) or now.samples < MIN_CONFIGURATIONS or not now.error > 0:
            continue
        count = max(measurements, now.samples)
        error = float(np.std(values, ddof=1)) * math.sqrt(2 * now.tau_int / count)
        uncertain = error * now.tau_int_error / (2 * now.tau_int)
        yield ExpectedError(item.observable, name, now, count, error, uncertain)


TEST_SECONDS = 0.5
"""Time in seconds for which updates are tried."""

LONG_SECONDS = 10.0
"""Time of a first call that is so long that what is done once does not count, so that there is no
second call."""

LEAST_UPDATES = 3
"""Least number of updates that are tried, whose times tell the error of their mean."""

RANDOM_LINKS = (
    "a lower bound: solvers of quarks need more iterations on thermalised links than on those that "
    "were tried; begin the run, and repeat this command after its thermalisation"
)


@documented
@dataclass(frozen=True)
class Forecast:
    """Needs of the rest of a run on this machine."""

    run: str = result_field("Run directory.")
    description: str = result_field("Description of the chain.")
    device: str = result_field("Names of the devices.")
    updates_left: int = result_field("Number of updates that are left.")
    links_per_update: int = result_field("Number of link updates in an update.")
    device_bytes: int = result_field("Memory of all devices that the run takes.")
    free_device_bytes: int = result_field("Memory of all devices that is free.")
    host_bytes: int = result_field("Memory of the host for configurations on their way to disk.")
    free_host_bytes: int = result_field("Memory of the host that is free.")
    configurations_left: int = result_field("Number of configurations that are left.")
    config_bytes: int = result_field("Size of a configuration file in bytes.")
    checkpoint_bytes: int = result_field("Size of the checkpoint in bytes.")
    table_bytes: int = result_field("Size of all rows that are added to tables.")
    disk_bytes: int = result_field(
        "Disk space that the run needs. A checkpoint exists twice while it is replaced."
    )
    free_disk_bytes: int = result_field("Disk space that is free.")
    update_seconds: float = result_field("Time of an update.")
    measure_seconds: float = result_field("Time of all measurements after an update, on average.")
    write_seconds: float = result_field(
        "Time of the snapshots of configurations, on average over updates."
    )
    seconds: float = result_field(
        "Time of all updates, measurements and snapshots, without waiting for the disk."
    )
    shortage: str | None = result_field(
        "Why the disk is too small, in a sentence; None if it is not.", None
    )
    update_error: float | None = result_field(
        "Standard error of the time of an update among those that were tried; None for one.", None
    )
    caution: str | None = result_field(
        "Why the times may be wrong, in a sentence; None if nothing speaks for it.", None
    )
    within: Prospect | None = result_field(
        "The state of the run after the time limit; None if there is none.", None
    )

    def table(self) -> RenderableType:
        """Return the content as a table."""
        table = Table.grid(padding=(0, 2))
        table.add_row("run", f"{self.run} (nothing was written)")
        table.add_row("chain", f"{self.description}, on {self.device}")
        table.add_row("memory", of_free(self.device_bytes, self.free_device_bytes))
        if self.configurations_left:
            host = f"{decimal(self.host_bytes)} of {decimal(self.free_host_bytes)} of the host"
            table.add_row("", f"{host} for configurations on their way to disk")
        files = f"{self.configurations_left} configurations of {decimal(self.config_bytes)}, "
        table.add_row("disk", of_free(self.disk_bytes, self.free_disk_bytes))
        table.add_row("", f"{files if self.configurations_left else ''}checkpoint, tables")
        rate = link_rate(self.links_per_update / self.update_seconds)
        table.add_row("update", f"{milliseconds(self.update_seconds)}, {rate}")
        measuring, writing = milliseconds(self.measure_seconds), milliseconds(self.write_seconds)
        table.add_row("", f"and on average {measuring} to measure, {writing} to write")
        end = datetime.datetime.now() + datetime.timedelta(seconds=self.seconds)
        until = f"until {end.isoformat(' ', 'minutes')}, if the disk keeps up"
        words = f"{duration(self.seconds)} for {counted(self.updates_left, 'update')}, {until}"
        words = words if self.updates_left else "the run is complete"
        table.add_row("time", words)
        if self.caution:
            table.add_row("", self.caution)
        for heading, words in self.within.lines() if self.within else ():
            table.add_row(heading, words)
        return table


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds with three digits."""
    return f"{1000 * seconds:.3g} ms"


def forecast(values: Mapping[str, object]) -> Forecast | None:
    """Try a few updates in memory, and return what the rest of a run would need.

    Nothing is written. An existing run is not continued, but the work that it has done is
    subtracted, and updates are tried on its links, of which solvers take as long as later. With a
    time limit also the errors are told that averages are expected to have after it.
    """
    request, processes = RunRequest(values), find_processes()
    e = request.execution
    with processes.aborting():
        run, p = request.run, request.checked()
        run.check_free()
        sweep = min(p.updates, read_state(run.checkpoint).sweep if run.checkpoint.exists() else 0)
        for item in p.recorded if sweep else ():
            read_table(run.table(item.observable))
        if not sweep:
            run.refuse_leftovers(p.recorded)
        observables = observables_of(p, request.observables, run.table)
        opened = open_device_group(*e.place, processes, e.share_gpus, lattice=p.lattice)
        with closing(opened) as devices:
            name = devices.name  # a collective operation of all processes
            costs = try_out([p], observables, devices, run.checkpoint if sweep else None)
            if not devices.root:
                return None
            remaining = p.updates - sweep
            sampled = (p.updates - max(sweep, p.thermalize)) / max(1, remaining)
            disk = DiskNeeds.of(run, file_sizes(p), p.schedule, observables, sweep)
            configs, size = disk.configurations_left, disk.config_bytes
            unthermalised = p.algorithm.labels and sweep < p.thermalize and p.start in STARTS
            limit = e.time_limit
            return Forecast(
                str(run.path),
                describe(p),
                name,
                remaining,
                p.links_per_update,
                costs.device_bytes,
                costs.free_device_bytes,
                min(IN_FLIGHT, configs) * size,
                free_memory(),
                configs,
                size,
                disk.checkpoint_bytes,
                disk.table_bytes,
                disk.bytes,
                free_disk(run.path),
                costs.update_seconds,
                costs.measure_seconds * sampled,
                costs.write_seconds * sampled,
                costs.seconds(p.schedule, sweep),
                disk_shortage([disk]),
                costs.update_error,
                RANDOM_LINKS if unthermalised else None,
                prospect(limit, run, p.schedule, observables, sweep, costs.each) if limit else None,
            )


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

    def seconds(self, schedule: Schedule, sweep: int) -> float:
        """Return the time of the rest of a run, or of several that are updated together."""
        remaining = schedule.updates - sweep
        sampled = schedule.updates - max(sweep, schedule.thermalize)
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
    metadata = [run.provenance for run in runs]
    for item, observable in observables.items():
        first, then = (each.recorder(field, metadata) for each in (observable.warm_up, observable))
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
