"""Forecast of runs and scans on this machine: time, memory and disk, by short test runs."""

from __future__ import annotations

import datetime
import heapq
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from rich.filesize import decimal
from rich.table import Table

from gauge_mc.actions import couplings
from gauge_mc.analysis.timeseries import MIN_CONFIGURATIONS, Estimate, estimate, with_error
from gauge_mc.configurations.writing import IN_FLIGHT
from gauge_mc.console import plain_table
from gauge_mc.devices.host import free_memory
from gauge_mc.domain.device_group import open_device_group
from gauge_mc.domain.mpi import find_processes
from gauge_mc.errors import GaugeError
from gauge_mc.files.table import read_table
from gauge_mc.observables import Observable
from gauge_mc.options import Option
from gauge_mc.progress import duration
from gauge_mc.quoting import counted
from gauge_mc.results import documented, result_field
from gauge_mc.run.chain import check_start, shared_values
from gauge_mc.run.checkpoint import read_state
from gauge_mc.run.directory import Run
from gauge_mc.run.lock import is_locked
from gauge_mc.run.measurement import Measurement, observables_of
from gauge_mc.run.needs import (
    DiskNeeds,
    RunCosts,
    disk_shortage,
    file_sizes,
    free_disk,
    of_free,
    try_out,
)
from gauge_mc.run.open_run import RunRequest
from gauge_mc.run.parameters import Parameters
from gauge_mc.run.settings import STARTS, Execution
from gauge_mc.run.state import describe, link_rate
from gauge_mc.run.thermalisation import LAST_ROW, series_of
from gauge_mc.scans.averages import check_skip
from gauge_mc.scans.carry_out import places
from gauge_mc.scans.display import Tally, opening
from gauge_mc.scans.grid import COUPLINGS, Point, differing, number_of_point, value_at
from gauge_mc.scans.ladders import RunBatch, ladders, pack, unfinished
from gauge_mc.scans.pool import Slot
from gauge_mc.scans.request import ScanRequest
from gauge_mc.scans.scan import Member, Scan


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
    p: Parameters,
    observables: Mapping[Measurement, Observable],
    sweep: int,
    costs: tuple[float, float, float | None],
) -> Prospect:
    """Return how far a run comes."""
    update, rest, error = costs
    early, total, count = max(0, p.thermalize - sweep), update + rest, seconds / update
    if count > early:
        count = early + (seconds - early * update) / total
    last = sweep + int(count)
    sampled = max(0, last - p.thermalize)
    return Prospect(
        seconds,
        int(count),
        None if error is None else count * error / total,
        last,
        sampled // p.separation,
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


def forecast_run(values: Mapping[str, object]) -> Forecast | None:
    """Try a few updates in memory, and return what the rest of a run would need.

    Nothing is written. An existing run is not continued, but the work that it has done is
    subtracted, and updates are tried on its links, of which solvers take as long as later. With a
    time limit also the errors are told that averages are expected to have after it.
    """
    request, processes = RunRequest(values), find_processes()
    e = request.execution
    with processes.aborting():
        run, p = request.run, request.parameters()
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
            disk = DiskNeeds.of(run, p, observables, sweep)
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
                costs.seconds(p, sweep),
                disk_shortage([disk]),
                costs.update_error,
                RANDOM_LINKS if unthermalised else None,
                prospect(limit, run, p, observables, sweep, costs.each) if limit else None,
            )


SHOWN = 5
"""Maximum number of refusals that are shown."""


@documented
@dataclass(frozen=True)
class BatchForecast:
    """Runs that are updated together, in the order in which batches are started."""

    runs: Sequence[str] = result_field("Names of the runs.")
    device_bytes: int = result_field("Memory of the device that they take.")
    seconds: float = result_field(
        "Time of all updates, measurements and snapshots, without waiting for the disk."
    )


@documented
@dataclass(frozen=True)
class PointForecast:
    """The remaining work at a point, and its needs."""

    beta: float = result_field("Coupling.")
    lattice: str = result_field("Extents of the lattice.")
    couplings: Mapping[str, float] = result_field(COUPLINGS)
    chains: int = result_field("Number of chains at each point.")
    complete: int = result_field("Number of complete runs.")
    updates_left: int = result_field("Number of updates that are left, of all chains.")
    seconds: float = result_field(
        "Time of all updates, measurements and snapshots, without waiting for the disk. Runs "
        "that are updated together have equal parts of the time of their batch."
    )
    device_bytes: int = result_field(
        "Memory of the device that the largest batch with a run at this point takes."
    )
    disk_bytes: int = result_field("Disk space that the runs need.")


@documented
@dataclass(frozen=True)
class ScanForecast:
    """The needs of the rest of a scan on this machine."""

    scan: str = result_field("Scan directory.")
    description: str = result_field(
        "Description of the grid, of the parameters and of the devices."
    )
    points: Sequence[PointForecast] = result_field("Points of the grid.")
    batches: Sequence[BatchForecast] = result_field("Batches of runs that are updated together.")
    processes: int = result_field("Number of batches that are carried out at the same time.")
    complete: int = result_field("Number of complete runs.")
    device_bytes: int = result_field(
        "Memory of a device that the batches take that are carried out on it at the same time, "
        "if they are the largest ones."
    )
    free_device_bytes: int = result_field("Memory of a device that is free.")
    disk_bytes: int = result_field("Disk space that all runs need.")
    free_disk_bytes: int = result_field("Disk space that is free.")
    seconds: float = result_field(
        "Time until the last batch has ended, without the starts of the processes."
    )
    refusals: Sequence[str] = result_field(
        "Reasons for which runs would be refused, one sentence each."
    )

    def table(self) -> RenderableType:
        """Return the content as a table."""
        shown = varied_couplings([point.couplings for point in self.points])
        needs = ("complete", "updates left", "time", "memory", "disk")
        table = plain_table(["lattice"], ["β", *(x.short for x in shown), *needs])
        for point in self.points:
            table.add_row(
                point.lattice,
                f"{point.beta:.12g}",
                *(f"{value_at(point.couplings, each.name):.12g}" for each in shown),
                f"{point.complete} of {point.chains}",
                str(point.updates_left),
                duration(point.seconds),
                decimal(point.device_bytes),
                decimal(point.disk_bytes),
            )
        lines = Table.grid(padding=(0, 2))
        together = ", ".join(_counts([len(batch.runs) for batch in self.batches])) or "none is left"
        lines.add_row("batches", together)
        lines.add_row("time", f"{duration(self.seconds)}, and the starts of the processes")
        memory = of_free(self.device_bytes, self.free_device_bytes)
        lines.add_row("memory", f"{memory} on a device")
        lines.add_row("disk", of_free(self.disk_bytes, self.free_disk_bytes))
        more = len(self.refusals) - SHOWN
        refused = [*self.refusals[:SHOWN], *([f"and {more} more such reasons"] if more > 0 else [])]
        for reason in refused:
            lines.add_row("refused", reason)
        return Group(f"{self.description}\nnothing was written\n", table, "", lines)


def varied_couplings(points: Sequence[Mapping[str, float]]) -> list[Option]:
    """Return the options of actions that have unusual values at some of several points.

    Numbers of things in lists, such as quarks, are among them if they differ.
    """
    values = {c: {each.get(c.name, c.usual) for each in points} for c in couplings()}
    of_actions = [name for name, value in values.items() if value != {name.usual}]
    return [*of_actions, *map(number_of_point, differing(points))]


def _counts(sizes: Sequence[int]) -> Iterator[str]:
    """Yield how many batches have how many runs, in words."""
    for size in dict.fromkeys(sizes):
        count = sizes.count(size)
        runs = f"{size} runs that are updated together" if size > 1 else "a single run"
        yield f"{count} of {runs}"


def forecast_scan(request: ScanRequest, per_device: int | None = None) -> ScanForecast:
    """Try a few updates of every kind of batch in memory, and return what the rest would need.

    Nothing is written. Batches that are carried out at the same time may slow each other down,
    which a test run of one after the other does not show.
    """
    scan = request.scan()
    scan.check_place()
    check_skip(request.skip, scan.parameters)
    tally = Tally(scan.members())
    slots, busy_sites = places(request.execution, per_device, len(ladders(tally.members)))
    remaining = unfinished(tally.members, tally.done)
    packed = pack(remaining, busy_sites, len(slots))
    refusals = list(_refusals(scan, remaining))
    costs = _costs(packed, slots[0]) if not refusals else {}
    # Without costs, times and memory are 0.
    batches = [_batch(x, costs.get(_kind(x)), tally) for x in packed]
    disks = {}
    for member in (x for batch in packed for x in batch):
        p, sweep = member.parameters, tally.sweeps[member.name]
        disks[member.name] = DiskNeeds.of(member.run, p, observables_of(p), sweep).bytes
    on_one = sum(slot.device == slots[0].device for slot in slots)
    memory = sum(sorted((batch.device_bytes for batch in batches), reverse=True)[:on_one])
    free = min((cost.free_device_bytes for cost in costs.values()), default=0)
    disk, free_bytes = sum(disks.values()), free_disk(scan.path)
    if memory > free:
        refusals.append(
            f"The batches on a device need {decimal(memory)} of its memory, and {decimal(free)} "
            "are free; choose smaller lattices or a smaller --per-device."
        )
    if disk > free_bytes:
        refusals.append(
            f"The runs need {decimal(disk)} on the disk of {scan.path}, and {decimal(free_bytes)} "
            "are free; choose another --output, fewer configurations, or --format none."
        )
    points: dict[Point, list[Member]] = {}
    for member in tally.members:
        points.setdefault(member.point, []).append(member)
    of_run = {name: batch for batch in batches for name in batch.runs}
    return ScanForecast(
        str(scan.path),
        opening(scan, tally, slots),
        [_point(members, of_run, disks, tally) for members in points.values()],
        batches,
        len(slots),
        sum(map(tally.done, tally.members)),
        memory,
        free,
        disk,
        free_bytes,
        _makespan([batch.seconds for batch in batches], len(slots)),
        refusals,
    )


def _refusals(scan: Scan, remaining: Sequence[Member]) -> Iterator[str]:
    """Yield the reasons for which the scan or its runs would be refused."""
    if is_locked(scan.lock):
        yield f"Another process is carrying out the scan {scan.path}; wait until it has ended."
    parameters = (member.parameters for member in remaining)
    for start in dict.fromkeys((p.start, p.group, p.lattice) for p in parameters):
        try:
            check_start(*start)
        except GaugeError as error:
            yield str(error)
    for member in remaining:
        reason = member.damage()
        try:
            member.run.check_free()
        except GaugeError as error:
            reason = reason or str(error)
        if reason:
            yield reason


def _kind(batch: RunBatch) -> tuple[Any, ...]:
    """Return what the time and the memory of a batch depend on, besides the updates done."""
    return (len(batch), *shared_values(batch[0].parameters))


def _costs(packed: Sequence[RunBatch], slot: Slot) -> dict[tuple[Any, ...], RunCosts]:
    """Return the costs of every kind of batch, from a short test run of each."""
    costs: dict[tuple[Any, ...], RunCosts] = {}
    for batch in packed:
        if _kind(batch) in costs:
            continue
        p = batch[0].parameters
        opened = open_device_group(*slot.place, find_processes(), lattice=p.lattice)
        with closing(opened) as devices:
            runs = [member.parameters for member in batch]
            observables = observables_of(p)
            costs[_kind(batch)] = try_out(runs, observables, devices)
    return costs


LONGEST = 24 * 60
"""Maximum number of minutes for which a job asks by a forecast; a run that needs more goes on."""

SAFETY = 2.0
"""Ratio of the time and the memory for which a job asks to those of a test run."""

START_MINUTES = 10
"""Time for which a job asks besides, to start and to compile kernels."""

PROGRAM_MIB = 2048
"""Memory for which a job asks besides, for the program and compilers."""


def job_needs(members: Sequence[Member], execution: Execution) -> tuple[int, int]:
    """Try a few updates of every kind of run, and return upper bounds of what a job needs."""
    packed = [(member,) for member in members]
    costs = _costs(packed, places(execution, None)[0][0])
    minutes, memory = 0.0, 0
    for member in members:
        p, cost = member.parameters, costs[_kind((member,))]
        seconds = math.inf if p.algorithm.labels else cost.seconds(p, member.sweep())
        minutes = max(minutes, SAFETY * seconds / 60)
        memory = max(memory, cost.device_bytes + IN_FLIGHT * file_sizes(p)[0])
    minutes = min(minutes, (execution.time_limit or math.inf) / 60) + START_MINUTES
    return math.ceil(min(minutes, LONGEST)), math.ceil(SAFETY * memory / 2**20) + PROGRAM_MIB


def _batch(batch: RunBatch, cost: RunCosts | None, tally: Tally) -> BatchForecast:
    names, first = [member.name for member in batch], batch[0]
    if cost is None:
        return BatchForecast(names, 0, 0.0)
    seconds = cost.seconds(first.parameters, tally.sweeps[first.name])
    return BatchForecast(names, cost.device_bytes, seconds)


def _point(
    members: Sequence[Member], of_run: dict[str, BatchForecast], disks: dict[str, int], tally: Tally
) -> PointForecast:
    point = members[0].point
    batches = [of_run[member.name] for member in members if member.name in of_run]
    return PointForecast(
        point.beta,
        str(point.lattice),
        point.numbers,
        len(members),
        sum(map(tally.done, members)),
        sum(max(0, member.parameters.updates - tally.sweeps[member.name]) for member in members),
        sum(batch.seconds / len(batch.runs) for batch in batches),
        max((batch.device_bytes for batch in batches), default=0),
        sum(disks.get(member.name, 0) for member in members),
    )


def _makespan(seconds: Sequence[float], slots: int) -> float:
    """Return when the last batch ends, if each begins as soon as a slot is free."""
    ends = [0.0] * slots
    for second in seconds:
        heapq.heappush(ends, heapq.heappop(ends) + second)
    return max(ends)
